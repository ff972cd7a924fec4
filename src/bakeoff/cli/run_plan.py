"""Run a plan for a command: check it, show its progress, report the results, return the exit code.

All commands that run trials call `check_plan`, `run_checked` and `conclude`. For `--dry-run`,
`print_dry_run` shows what would run, the likely usage, and the smallest difference it can find.
"""

import asyncio
import json
import os
import shlex
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.text import Text

from bakeoff._kernel.text import count_of, visible
from bakeoff.cli.console import add_row, can_ask, err, out, print_json, results_alone_on_stdout, say, table
from bakeoff.cli.declare import FAILED, INTERRUPTED, PASSED, UNDECIDED
from bakeoff.cli.flags import EndingFlags, OutputFlags, ReportFlags, allowed_in
from bakeoff.cli.progress import DelayNotes, RunProgress, show_progress
from bakeoff.doors import Door, DoorResults, FinishedRun, door_of, parts_of
from bakeoff.engine.reach import check_reach
from bakeoff.engine.registry import ResolvedPlan
from bakeoff.engine.reuse import CARRIED_OVER
from bakeoff.engine.run import run
from bakeoff.engine.run_control import RunControl
from bakeoff.engine.run_journal import RunJournal
from bakeoff.engine.trust import what_runs
from bakeoff.errors import UsageError
from bakeoff.models.estimate import estimate_run
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.record import Record
from bakeoff.report.answer import run_evidence, what_always_failed, what_was_lost_unequally
from bakeoff.report.blocks import Report, paragraph
from bakeoff.report.compare.description import verdict_on
from bakeoff.report.compare.within_run import describe_comparisons
from bakeoff.report.exports.ci import CiRun, harmless_in_logs, harmless_json, markdown_of, write_ci_outputs
from bakeoff.report.formatting import cost, money
from bakeoff.report.gates import GateDecision, GateResult, GateState, decide_gate, undecided
from bakeoff.report.render.markdown import to_markdown
from bakeoff.report.render.terminal import print_blocks
from bakeoff.report.run_summary import summary_blocks, summary_json
from bakeoff.report.summary import RunTally, Summary, tallied
from bakeoff.stats.power import design_of
from bakeoff.storage.journal import JournalMark
from bakeoff.storage.own_runs import why_unknown
from bakeoff.storage.redacted_stream import printed_secrets
from bakeoff.storage.run_folder import FinishedRunFolder, RunFolder, new_run_folder
from bakeoff.storage.store_copy import store_of

_LEFT_OUT = "it is left out, and the run goes on without it"
_WORST_FIRST = (INTERRUPTED, FAILED, UNDECIDED, PASSED)


@dataclass(frozen=True, slots=True)
class CheckedPlan:
    """A plan that can be run, with everything that it names already built."""

    plan: Plan
    door: Door
    options: RunOptions
    resolved: ResolvedPlan


def check_plan(plan: Plan, options: RunOptions, door: Door | None = None) -> CheckedPlan:
    """Build everything that a plan names; raise one error that lists all problems."""
    door = door or door_of(plan)
    options = door.options(plan, options)
    registry = door.named_registry(plan, options)
    resolved = registry.resolve(plan, offline=options.replay == "strict", attempts=not options.rescore_only)
    printed_secrets().learn({**resolved.secrets(), **options.secrets})
    return CheckedPlan(plan, door, options, resolved)


def carry_out(
    checked: CheckedPlan, ending: EndingFlags, *, folder: RunFolder | None = None, opened: bool = False
) -> int:
    """Run the remaining trials of a plan, report the results, and return the exit code.

    `folder` is an existing run; by default, start a new one. `opened` shows the run in the browser.
    """
    ending.check()  # refuses files that cannot be written before anything is paid for
    return conclude([run_checked(checked, ending, folder=folder)], ending, opened=opened)


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has ended, the results of its door, and whether it was interrupted."""

    run: FinishedRun
    door: Door
    results: DoorResults
    tally: RunTally
    interrupted: bool

    def exit_code(self, ending: EndingFlags) -> int:
        """Return the exit code: 0 if all passed, 1 if something failed, else 3 if any is missing.

        Control subjects do not count.
        """
        if self.interrupted:
            return INTERRUPTED
        code = self.gate(ending).exit_code
        return PASSED if ending.exit_zero and code == FAILED else code

    def gate(self, ending: EndingFlags) -> GateDecision:
        """Decide whether the run passes: by --fail-under, by the rule of its door, or if no trial failed."""
        evidence = self.results.evidence
        if ending.fail_under is not None or evidence is None:
            evidence = run_evidence(self.run.summary, ending.fail_under)
        return decide_gate(replace(evidence, allowed=allowed_in(ending.allow_undecided)))

    def for_ci(self, ending: EndingFlags) -> CiRun:
        """Return the run in the form that CI outputs require."""
        gate = undecided("the run was interrupted") if self.interrupted else self.gate(ending)
        return CiRun(self.run.folder, self.run.plan, self.door.places(self.run.plan) if ending.github else {}, gate)

    def kept_with_gate(self, ending: EndingFlags) -> RunFolder:
        """Record the gate if the user set it or it is undecided; return the folder of the run."""
        folder, decision = self.run.folder, self.gate(ending)
        last, is_set = next(folder.newest_first(), None), ending.fail_under is not None
        kept = (is_set or decision.state is GateState.UNDECIDED) and store_of(self.run.options.results) is None
        if self.interrupted or not kept or not isinstance(last, JournalMark) or last.kind != "end":
            return folder
        about = {"option": "score" if is_set else "trials", "met": decision.state.met, "sentence": decision.sentence}
        with RunJournal(folder, self.run.options.redactor()) as journal:
            journal.end(**{**last.facts, "gates": [GateResult(**about).model_dump(mode="json")]})
        return FinishedRunFolder(folder.path)

    def gate_to_print(self, ending: EndingFlags, *, first: bool = False) -> str:
        """Return the text of the gate, or an empty string if it is not to be printed here.

        A gate that the user set is printed `first` and last, any other only last, unless it passed.
        """
        decision, is_set = self.gate(ending), ending.fail_under is not None or ending.allow_undecided != "0"
        is_told = is_set or (not first and decision.state is not GateState.PASSED)
        return str(decision) if is_told and not self.interrupted else ""


def run_checked(
    checked: CheckedPlan, ending: EndingFlags, *, folder: RunFolder | None = None, runner: asyncio.Runner | None = None
) -> EndedRun:
    """Run a plan with progress, write the files of its door, and print the summary.

    `runner` has the event loop of resources that are already open; by default, make a new loop.
    """
    plan, start = checked.plan, runner.run if runner is not None else asyncio.run
    if folder is None and checked.options.replay in ("off", "record") and checked.options.executor == "local":
        start(check_reach(checked.resolved, say))
    folder = folder or new_run_folder(checked.options.results, plan.name)
    options = replace(checked.options, folder=folder.path)
    stopped = start(watch(checked, options, err()))
    warn_of_forgotten_run(folder, plan)
    return finish_run(folder, plan, checked.door, options, ending, stopped=stopped)


def finish_run(
    folder: RunFolder, plan: Plan, door: Door, options: RunOptions, ending: EndingFlags, *, stopped: bool = False
) -> EndedRun:
    """Write the door's files for a run that has ended, and print the summary."""
    folder = FinishedRunFolder(folder.path)  # everything from here on reads the journal only once
    tally = tallied(plan, folder.latest_records(plan))
    finished = FinishedRun(folder, plan, options, tally.summary())
    interrupted = stopped and not finished.summary.ended  # a signal after the last trial stops nothing
    if not stopped:
        door.illustrate(finished, say)
    ended = EndedRun(finished, door, door.finish(finished), tally, interrupted)
    if ending.prints_table:
        text, compared = ended.results.text, finished.summary.comparisons
        if text is None:
            text = summary_blocks(plan, finished.summary, tally.cells)
        else:
            more = what_always_failed(finished.summary), what_was_lost_unequally(finished.summary.unequal_losses)
            text = (*text, *(paragraph(each) for each in more if each))
            text = (*text, *((describe_comparisons(compared),) if compared is not None else ()))
        gate = ended.gate_to_print(ending, first=True)
        print_blocks(out(), (*((paragraph(gate),) if gate else ()), *text, *ended.results.more))
        print_spending(err(), finished.summary, folder)
    if interrupted:
        say(f"interrupted; continue with `{_command('resume', finished)}`")
    return ended


def conclude(
    runs: Sequence[EndedRun],
    ending: EndingFlags,
    *,
    opened: bool = False,
    planned: int = 1,
    more_files: Iterable[Path] = (),
) -> int:
    """Write and name the files of runs that have ended, and return the exit code of the worst.

    `planned` is the expected number of runs; if some are missing, the result is undecided.
    """
    told, folders = [one.for_ci(ending) for one in runs], [one.kept_with_gate(ending) for one in runs]
    files = [path for one in runs for path in one.results.files]
    files += [*more_files, *write_ci_outputs(told, ending.outputs())]
    if ending.as_json:
        reports = [
            summary_json(one.run.plan, one.run.summary, one.tally, one.run.folder)
            if one.results.report is None
            else one.results.report.model_dump(mode="json", by_alias=True)
            for one in runs
        ]
        files += ending.write(json.dumps(reports[0] if planned == 1 else reports, indent=2, ensure_ascii=False) + "\n")
    elif ending.markdown:
        files += ending.write(harmless_in_logs(markdown_of(told)))
    if ending.prints_table or ending.markdown:
        from bakeoff.cli.pages import open_page
        from bakeoff.report.render.html.index_page import write_pages_of

        pages = [path for path in files if path.suffix == ".html"]
        for one, folder in zip(runs, folders, strict=True):
            if one.door.pages:
                page, index = write_pages_of(folder, parts=parts_of)
                files += (page, index)
                pages.append(page)
        for path in files:
            say(f"wrote {path}")
        for one in runs:
            say(f"kept in {one.run.folder.path}; show it again with `{_command('runs show', one.run)}`")
            if not one.run.summary.complete and not one.interrupted:
                say(f"some trials have no result; try them again with `{_command('resume', one.run)}`")
        if opened and pages:
            open_page(pages[-1])
        _print_gates(runs, ending)
    return worst_of([one.exit_code(ending) for one in runs] + [UNDECIDED] * (planned - len(runs)))


def _print_gates(runs: Sequence[EndedRun], ending: EndingFlags) -> None:
    for one in runs:
        if gate := one.gate_to_print(ending):
            say(f"{visible(one.run.plan.name, 80)}: {gate}" if len(runs) > 1 else gate)


def worst_of(codes: Sequence[int]) -> int:
    """Return the worst exit code of several runs."""
    return next(code for code in _WORST_FIRST if code in codes)


def print_spending(console: Console, summary: Summary, folder: RunFolder) -> None:
    """Print the total cost if the table shows less, because killed trials have no record."""
    spent, shown = folder.spent(), summary.spent.cost
    if spent.cost is not None and spent.cost > (shown or 0.0) + 1e-9:
        console.print(f"total cost: {money(spent)}, including trials that have no record")


def _command(what: str, run: FinishedRun) -> str:
    """Return a command line: the command `what` for this run."""
    store = store_of(run.options.results)
    results = run.options.results if store is None else store.address
    usual = results == Path("results")
    return shlex.join(["bakeoff", *what.split(), run.folder.name, *([] if usual else ["--results", str(results)])])


async def watch(
    checked: CheckedPlan, options: RunOptions, console: Console, line_of: Callable[[Record], str | None] | None = None
) -> bool:
    """Run a plan to its end with a progress display. Return True if it was interrupted.

    `line_of` returns the line to print for a finished trial, instead of the door's line.
    """
    control, line_of = RunControl(), line_of or checked.door.line_of
    progress = RunProgress.of(checked.plan, control)
    scored, ran = False, set[str]()  # subjects that were started now, and not only scored again
    control.on_delay = notes = DelayNotes(console)
    with _ctrl_c(control, console), results_alone_on_stdout():
        async with show_progress(console, progress) as update:
            async for record in run(checked.resolved, options, control=control):
                progress.before = control.finished_before
                progress.add(record)
                scored = True
                if record.transcript is None or CARRIED_OVER not in record.transcript.metadata:
                    ran.add(record.subject)
                if (line := line_of(record)) is not None:
                    console.print(control.redact(line), markup=False, highlight=False)
                update()
                notes.once(control.refused, "no further trial of it is started")
                notes.once(control.left_out, _LEFT_OUT)
    notes.once(control.left_out, _LEFT_OUT)
    notes.once(control.cut_off, "its trials were stopped without a result")
    if control.upload_problem is not None and options.folder is not None:
        problem, place = control.upload_problem, options.folder
        if control.taken_over:
            say(f"{problem}. The store has that process's trials; those that only this one has run stay in {place}")
        else:
            say(
                f"the store does not have all of this run: {problem}. Nothing is lost: it is complete in {place}; "
                f"upload it with `bakeoff runs upload {shlex.quote(str(place))}`"
            )
    for left, why in control.left_behind.items():
        say(f"the folder of a trial is left in {left}, which changes no result: {why}")
    if control.sandbox and scored and checked.resolved.may_run_commands(ran):
        held = f": {control.guarantees}" if control.guarantees else ""
        console.print(f"commands ran in the {control.sandbox} sandbox{held}", highlight=False)
    commands = [spec for spec in checked.plan.subjects if spec.name in ran and spec.kind == "command"]
    if names := [visible(spec.name) for spec in commands if spec.options.get("sandbox") == "none"]:
        console.print(f"without a sandbox, as you: {', '.join(names)}", markup=False, highlight=False)
    return control.draining


@contextmanager
def _ctrl_c(control: RunControl, console: Console) -> Iterator[None]:
    """Let the first Ctrl-C finish trials in flight, the second stop at once, and the third end the process.

    The third is for a subject that blocks the event loop.
    """
    loop = asyncio.get_running_loop()
    pressed = 0

    def interrupt(number: int) -> None:
        if not control.draining:
            again = "press Ctrl-C" if number == signal.SIGINT else "send SIGTERM"
            console.print(f"finishing the trials in flight; {again} again to stop at once")
        control.interrupt()

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the shape of a handler
        nonlocal pressed
        pressed += 1
        if pressed > 2:
            os._exit(INTERRUPTED)  # every trial that was reported finished is on disk
        if not loop.is_closed():
            loop.call_soon_threadsafe(interrupt, number)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        if not pressed:  # otherwise a second one must not end the process before it has said what happened
            for number, handler in before.items():
                signal.signal(number, handler)


_MAX_TRUST_LINES = 40
_MAX_LINE_LENGTH = 1000


def trusted_plan(folder: RunFolder, *, trust: bool, doing: str) -> Plan:
    """Return the plan of a run whose code is about to be executed, if the user trusts it.

    If this user did not start the run here with this plan, ask on a terminal, or else raise
    `UsageError`. The message names the command `doing`.
    """
    data = folder.read_plan_bytes()  # read once, so that the checked plan is the one that runs
    plan = folder.parse_plan(data)
    if trust or not (named := what_runs(plan)) or (why := why_unknown(folder.path, data)) is None:
        return plan
    found = f"run {folder.label} {why}; `{doing}` would use:"
    lines = [visible(line, _MAX_LINE_LENGTH) for line in named[:_MAX_TRUST_LINES]]
    if len(named) > _MAX_TRUST_LINES:
        lines.append(f"… and {len(named) - _MAX_TRUST_LINES} more in {folder.plan_file}")
    if not can_ask():
        shown = "\n".join((found, *(f"  {line}" for line in lines)))
        raise UsageError(f"{shown}\nif you trust all of this, add --trust")
    from bakeoff.cli.prompts import confirm

    say(found)
    for line in lines:
        say(f"  {line}")
    if not confirm("Run it?", default=False):
        raise UsageError(f"run {folder.label} was left as it is: nothing was run")
    return plan


def warn_of_forgotten_run(folder: RunFolder, plan: Plan) -> None:
    """Warn if this run could not be registered as started by this user."""
    if why_unknown(folder.path, folder.read_plan_bytes()) is not None and what_runs(plan):
        say("this run could not be noted in your state folder (XDG_STATE_HOME): to resume it, add --trust")


def show_report(to_json: Callable[..., str], report: Report, shown_as: ReportFlags) -> None:
    """Print a report as JSON, Markdown or text, and write its page if requested."""
    shown_as.check()
    if shown_as.html:
        from bakeoff.report.render.html.render import write_report_page  # takes long to import

        say(f"wrote {write_report_page(shown_as.html, report)}")
    files: tuple[Path, ...] = ()
    if shown_as.as_json:
        files = shown_as.write(harmless_json(to_json(indent=2)) + "\n")
    elif shown_as.markdown:
        files = shown_as.write(harmless_in_logs(to_markdown(report)))
    for path in files:
        say(f"wrote {path}")
    if shown_as.prints_table:
        console = out()
        with console.capture() as printed:  # a page has everything else
            print_blocks(console, replace(report, sections=()) if shown_as.html else report)
        console.file.write(harmless_in_logs(printed.get()))


_CASES_SHOWN = 20


def print_dry_run(checked: CheckedPlan, ending: OutputFlags, **more: Any) -> None:
    """Print what a run would do, and that nothing was run; `more` is added to `--json`."""
    if ending.as_json:
        print_json({**plan_json(checked), **more})
        return
    print_plan(out(), checked)
    out().print("nothing was run")


def plan_json(checked: CheckedPlan) -> dict[str, Any]:
    """Return as JSON what a run of this plan would do."""
    plan = checked.plan
    return {
        "plan": plan.name,
        "trials": plan.size,
        "cases": [{"id": case.id, "tags": case.tags} for case in plan.cases],
        "subjects": [{"name": spec.name, "kind": spec.kind} for spec in plan.subjects],
        "rounds": plan.rounds,
        "threshold": plan.threshold,
        "scorers": list(dict.fromkeys(scorer.kind for scorer in plan.every_scorer)),
        "estimates": [
            {"subject": one.subject, **one.usage.model_dump(), "basis": one.basis}
            for one in estimate_run(plan, checked.options.results)
        ],
        "power": verdict_on(design_of(len(plan.cases), plan.rounds)),
        "ran": False,
    }


def print_plan(console: Console, checked: CheckedPlan) -> None:
    """Print what a run of this plan would do."""
    plan = checked.plan
    console.print(
        f"plan {visible(plan.name)}: {count_of(plan.size, 'trial')} = {count_of(len(plan.cases), 'case')} × "
        f"{count_of(len(plan.subjects), 'subject')} × {count_of(plan.rounds, 'round')}"
    )
    if plan.shard is not None:
        console.print(f"shard {plan.shard} of a plan with {count_of(plan.shard.cases, 'case')}")
    if plan.until_decided is not None:
        margin = plan.until_decided.margin
        within = "" if margin is None else f", equivalent within ±{100 * margin:g} points"
        console.print(
            f"until decided: subjects are compared in pairs after every case{within}; this is the most it runs"
        )
    threshold = "none, scores are only recorded" if plan.threshold is None else f"{plan.threshold:g}"
    console.print(f"pass threshold: {threshold}")
    console.print(f"scorers: {', '.join(dict.fromkeys(scorer.kind for scorer in plan.every_scorer))}")
    console.print(f"subjects: {', '.join(visible(subject.name) for subject in plan.subjects)}")
    cases = table("case", "files", "hidden", "prompt")
    for case in plan.cases[:_CASES_SHOWN]:
        add_row(cases, case.id, str(len(case.files)), str(len(case.hidden)), Text(visible(case.prompt, 70)))
    console.print(cases)
    if len(plan.cases) > _CASES_SHOWN:
        console.print(f"… and {len(plan.cases) - _CASES_SHOWN:,} more cases")
    if estimates := estimate_run(plan, checked.options.results):
        console.print("estimated use of the whole run:")
    for estimate in estimates:
        used = f"{estimate.usage.input:,} tokens in, {estimate.usage.output:,} out, {cost(estimate.usage.cost)}"
        console.print(Text(f"  {visible(estimate.subject)}: {used} (assuming {estimate.basis})"))
    console.print(verdict_on(design_of(len(plan.cases), plan.rounds)))

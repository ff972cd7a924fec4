"""Carrying out a plan for someone who watches: progress, Ctrl-C, the summary at the end and the exit code."""

import asyncio
import json
import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from pydantic import ValidationError
from rich.console import Console

from bakeoff.cli.console import err, out
from bakeoff.cli.progress import News, show_progress
from bakeoff.doors import Ruling, door_of
from bakeoff.engine.run import run
from bakeoff.engine.run_control import RunControl
from bakeoff.errors import UsageError
from bakeoff.options import RunOptions
from bakeoff.plan import Plan, ScorerSpec
from bakeoff.report import Summary, summarise
from bakeoff.report.ci import NO_OUTPUTS, CiOutputs, CiRun, write_ci_outputs
from bakeoff.report.terminal import print_summary
from bakeoff.report.words import cost
from bakeoff.storage.run_folder import RunFolder, find_run

PASSED, FAILED, UNDECIDED, INTERRUPTED = 0, 1, 3, 130


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run is to be judged and told at its end."""

    fail_under: float | None = None
    exit_zero: bool = False
    as_json: bool = False
    outputs: CiOutputs = NO_OUTPUTS
    opened: bool = False  # the browser is shown the page, where there is one


def resume_run(name: str, options: RunOptions, ending: Ending) -> int:
    folder = find_run(options.results, name)
    if not options.sandbox:
        options = replace(options, sandbox=str(folder.beginning().get("sandbox_wanted") or "auto"))
    return carry_out(folder.read_plan(), folder, options, ending)


def rescore_run(name: str, scorers: list[str], options: RunOptions, ending: Ending) -> int:
    folder = find_run(options.results, name)
    plan = folder.read_plan()
    if scorers:
        plan = plan.model_copy(update={"scorers": tuple(map(read_scorer, scorers))})
    return carry_out(plan, folder, options, ending)


def read_scorer(text: str) -> ScorerSpec:
    """A scorer as people type it: its kind, or its whole spec as JSON."""
    try:
        return ScorerSpec.model_validate_json(text) if text.lstrip().startswith("{") else ScorerSpec(kind=text)
    except ValidationError as error:
        raise UsageError(f"--scorer {text!r}: {error.errors()[0]['msg']}") from error


def carry_out(plan: Plan, folder: RunFolder, options: RunOptions, ending: Ending) -> int:
    """Run what is left of a plan in its folder; returns the exit code."""
    options = replace(door_of(plan).options(plan, options), folder=folder.path)
    interrupted = asyncio.run(watch(plan, options, err()))
    summary = summarise(plan, folder.latest_records(plan))
    told = CiRun(folder, plan, door_of(plan).share(plan))
    exported = [*door_of(plan).export(folder, plan, options), *write_ci_outputs([told], ending.outputs)]
    if ending.as_json:
        print_json(summary, folder)
    else:
        print_summary(out(), summary)
        print_spending(err(), summary, folder)
        for path in (*exported, *_pages(plan, folder, ending)):
            err().print(f"wrote {path}", markup=False)
        err().print(f"\nkept in {folder.path}; see it again with `{command_for('runs show', folder, options)}`")
    if interrupted:
        err().print(f"interrupted; go on with `{command_for('resume', folder, options)}`")
        return INTERRUPTED
    return exit_code(summary, ending, door_of(plan).ruling(folder, plan))


def _pages(plan: Plan, folder: RunFolder, ending: Ending) -> tuple[Path, ...]:
    """The run's page and the index, where its door has them made: anew each time a run is taken up again."""
    if not door_of(plan).pages:
        return ()
    from bakeoff.cli.reports import show, write_pages_of

    page, index = write_pages_of(folder)
    if ending.opened:
        show(page)
    return page, index


def command_for(what: str, folder: RunFolder, options: RunOptions) -> str:
    """What to type for this run, from here."""
    usual = options.results == Path("results")
    words = ["bakeoff", *what.split(), folder.name, *([] if usual else ["--results", str(options.results)])]
    return shlex.join(words)


def print_spending(console: Console, summary: Summary, folder: RunFolder) -> None:
    """What the table leaves out: money spent on trials that were killed before they could be recorded."""
    spent, shown = folder.spent().cost, summary.spent.cost
    if spent is not None and spent > (shown or 0.0) + 1e-9:
        console.print(f"spent in all: {cost(spent)}, also on trials that have no record")


def print_json(summary: Summary, folder: RunFolder) -> None:
    told = {"run": folder.name, "spent": folder.spent().model_dump(), "summary": summary.model_dump(mode="json")}
    out().file.write(json.dumps(told, indent=2) + "\n")


def exit_code(summary: Summary, ending: Ending, ruling: Ruling | None = None) -> int:
    """0 all passed, 1 something failed, 3 nothing failed but something is missing. Controls decide nothing."""
    if ruling is not None and ending.fail_under is None:
        failed = FAILED if not ending.exit_zero else PASSED
        return {"passed": PASSED, "failed": failed, "undecided": UNDECIDED}[ruling]
    if ending.fail_under is not None:
        scores = [subject.score for subject in summary.judged]
        failed = any(score is not None and score < ending.fail_under for score in scores)
    else:
        failed = not summary.all_passed
    if failed:
        return PASSED if ending.exit_zero else FAILED
    return PASSED if summary.complete else UNDECIDED


async def watch(plan: Plan, options: RunOptions, console: Console) -> bool:
    """Run to the end, or until someone stops it; whether someone did."""
    control = RunControl()
    news = News.of(plan, control)
    with _ctrl_c(control, console):
        async with show_progress(console, news) as told:
            async for record in run(plan, options, registry=door_of(plan).registry(plan, options), control=control):
                news.before = control.finished_before
                news.add(record)
                told()
    if control.sandbox:
        console.print(f"commands ran in the {control.sandbox} sandbox")
    return control.draining


@contextmanager
def _ctrl_c(control: RunControl, console: Console) -> Iterator[None]:
    """The first Ctrl-C drains, the second stops, the third ends the process: a subject may have blocked the loop."""
    loop = asyncio.get_running_loop()
    heard = 0

    def interrupt() -> None:
        if not control.draining:
            console.print("finishing what is in flight; Ctrl-C again stops at once")
        control.interrupt()

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the shape of a handler
        nonlocal heard
        heard += 1
        if heard > 2:
            os._exit(INTERRUPTED)  # what was reported finished is on disk
        loop.call_soon_threadsafe(interrupt)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

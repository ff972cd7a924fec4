"""Carry out `bakeoff eval --watch`: after every save, run what changed, and reuse all other answers."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from bakeoff._kernel.text import count_of, visible
from bakeoff._kernel.watch import WAITING, FileStates, FileWatch, forget_modules, source_files
from bakeoff.cli.console import err, say
from bakeoff.cli.eval import EvalRunFlags, run_options
from bakeoff.cli.flags import EndingFlags, SelectionFlags
from bakeoff.cli.run_plan import PASSED, REUSED, UNDECIDED, CheckedPlan, EndedRun, check_plan, conclude, run_checked
from bakeoff.cli.warm_models import WarmModels, warm_models
from bakeoff.doors.eval.config import PromptSuite
from bakeoff.doors.eval.find import find_config, read_suite
from bakeoff.doors.eval.plan import DOOR, EvalRequest, build_plan, settings_of
from bakeoff.engine.run_journal import RunJournal
from bakeoff.errors import BakeoffError, InfraError, UsageError
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.record import NO_USAGE, Record, Usage
from bakeoff.storage.made_here import why_unknown
from bakeoff.storage.run_folder import RunFolder, new_run_folder, run_folders

WATCH = "watch"
"""The key that marks the start of a run as one of a watch. Only such runs are ever deleted."""

_WRONG_CONFIGURATION = 2
_LOOK_SECONDS = 0.15
_MAX_SOURCES = 2000
KEPT_RUNS = 20
"""The number of runs of a file that a watch searches for answers, and the number of its own runs that it keeps."""

_SEARCHED_RUNS = 100  # of all files
_MAX_NAMED = 3


def watch_eval(
    request: EvalRequest, flags: EvalRunFlags, selection: SelectionFlags, ending: EndingFlags, *, opened: bool
) -> int:
    """Run cycles until Ctrl-C, and return the exit code of the last one."""
    refused = {"--json": ending.as_json, "--junit": ending.junit, "--markdown": ending.markdown}
    refused |= {"--github": ending.github, "--dry-run": flags.dry_run, "--until-decided": selection.until_decided}
    if names := [name for name, given in refused.items() if given]:
        raise UsageError(f"{names[0]} is for one run, and --watch makes many: leave one of them out")
    request = request.model_copy(update={"path": find_config(request.path)})  # a wrong path is an error at once
    with asyncio.Runner() as runner, warm_models(runner) as warm:
        watching = _EvalWatch(request, flags, selection, ending, runner, warm, opened=opened)
        with suppress(KeyboardInterrupt):
            watching.run()
        return watching.code


class _EvalWatch:
    """The cycles of one watch."""

    def __init__(
        self,
        request: EvalRequest,
        flags: EvalRunFlags,
        selection: SelectionFlags,
        ending: EndingFlags,
        runner: asyncio.Runner,
        warm: WarmModels,
        *,
        opened: bool,
    ) -> None:
        self._request, self._flags, self._selection, self._ending = request, flags, selection, ending
        self._runner, self._warm, self._opened = runner, warm, opened
        self._suite: PromptSuite | None = None  # as it was read last
        self._made: RunFolder | None = None  # the run of the last cycle that ended
        self._runs: list[RunFolder] | None = None  # of this file, newest first
        self._spent: Usage = NO_USAGE
        self._states = FileStates()
        self.code = PASSED
        self._watch = FileWatch(self._look, self._look(), _LOOK_SECONDS)

    def run(self) -> None:
        """Run a cycle at once, and then one after every change."""
        while True:
            self._cycle()
            self._watch.known = self._look() | self._watch.known  # files that the configuration names only now
            say(WAITING)
            changed = sorted(self._watch.wait())
            forget_modules(changed, self._sources())
            names = [visible(Path(path).name, 100) for path in changed]
            more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
            err().print()
            say(f"Changed: {', '.join(names[:_MAX_NAMED])}{more}")

    def _look(self) -> dict[str, str]:
        return self._states(sorted(self._sources()))

    def _sources(self) -> set[str]:
        """Return the files to watch: all that the configuration was read from, and Python modules beside it."""
        assert self._request.path is not None
        file = self._request.path.absolute()
        named = self._suite.sources if self._suite else ()
        beside = source_files(file.parent.resolve(), ".py", {str(self._flags.results.resolve())})
        return {str(file.resolve()), *(str(each.resolve()) for each in named), *islice(beside, _MAX_SOURCES)}

    def _cycle(self) -> None:
        try:
            self._suite = suite = read_suite(self._request.path)
            for warning in suite.warnings:
                say(f"warning: {warning}")
            plan = self._selection.applied(build_plan(suite, self._request))
            self._evaluate(check_plan(plan, self._left(run_options(self._flags, plan))))
        except BakeoffError as error:
            self.code = UNDECIDED if isinstance(error, InfraError) else _WRONG_CONFIGURATION
            for line in str(error).splitlines():
                say(f"error: {line}")

    def _evaluate(self, checked: CheckedPlan) -> None:
        plan, results = checked.plan, checked.options.results
        if self._made is not None and self._is_done(self._made, plan):
            say("nothing to run: no prompt, subject, case or scorer has changed")
            return
        self._runs = past_runs(results, plan) if self._runs is None else self._runs
        earlier = self._runs[:KEPT_RUNS]
        reused = reused_records(earlier, plan)
        again = sum(not _is_finished(record, plan) for record in reused)
        self._warm.keep([str(spec.options.get("model")) for spec in plan.subjects if "model" in spec.options])
        folder = new_run_folder(results, plan.name)
        self._runs.insert(0, folder)
        with RunJournal(folder, checked.options.redactor()) as journal:
            journal.start(plan, jobs=checked.options.jobs, **{WATCH: True})
            for record in reused:
                journal.append(record)
        if earlier:
            runs = earlier[0].name if len(earlier) == 1 else count_of(len(earlier), "run")
            say(
                f"{count_of(plan.size - len(reused), 'answer')} to get; {len(reused):,} of {plan.size:,} reused from "
                f"{runs}{_scored_again(again)}"
            )
        ended = run_checked(checked, self._ending, folder=folder, runner=self._runner)
        self._finish(ended, folder)

    def _is_done(self, run: RunFolder, plan: Plan) -> bool:
        """Tell whether a run is one of this very plan, and complete."""
        before = run.read_plan()
        if before.size != plan.size or _thresholds(before) != _thresholds(plan):
            return False
        return sum(_is_finished(record, plan) for record in reused_records([run], plan)) == plan.size

    def _finish(self, ended: EndedRun, folder: RunFolder) -> None:
        self._spent += ended.run.folder.spent()
        self.code = conclude([ended], self._ending, opened=self._opened)
        self._opened = False
        self._made = folder
        if ended.interrupted:
            raise KeyboardInterrupt  # before anything is deleted: this run may have fewer answers than an older one
        self._delete_oldest()

    def _delete_oldest(self) -> None:
        """Delete runs beyond those that are kept: only those of a watch, and none that was labelled or signed."""
        assert self._runs is not None
        ours = [run for run in self._runs if run.beginning().get(WATCH) is True]
        for run in ours[KEPT_RUNS:]:
            if not run.labels_file.exists() and not run.signature_file.exists():
                self._runs.remove(run)
                with suppress(BakeoffError):
                    run.delete()

    def _left(self, options: RunOptions) -> RunOptions:
        """Return the options with what earlier cycles have left of the limits."""
        cost, tokens = options.max_cost, options.max_total_tokens
        cost = None if cost is None else cost - (self._spent.cost or 0.0)
        tokens = None if tokens is None else tokens - self._spent.tokens
        if (cost is not None and cost <= 0) or (tokens is not None and tokens <= 0):
            raise UsageError("--max-cost or --max-total-tokens is used up: start again with a higher limit")
        return replace(options, max_cost=cost, max_total_tokens=tokens)


def _thresholds(plan: Plan) -> dict[str, float | None]:
    return {case.id: plan.threshold_of(case) for case in plan.cases}


def _scored_again(number: int) -> str:
    return f", {number:,} of them scored again" if number else ""


def past_runs(results: Path, plan: Plan) -> list[RunFolder]:
    """Return the last runs of the same configuration, newest first, without those that cannot be read.

    Runs that this user did not start here are left out: a cloned repository could bring answers of anyone.
    """
    file = settings_of(plan).file
    found: list[RunFolder] = []
    for folder in run_folders(results)[: -_SEARCHED_RUNS - 1 : -1]:
        with suppress(BakeoffError):
            data = folder.read_plan_bytes()
            if why_unknown(folder.path, data) is not None:
                continue
            before = folder.parse_plan(data)
            if before.door == DOOR and settings_of(before).file == file:
                found.append(folder)
    return found


def reused_records(earlier: Sequence[RunFolder], plan: Plan) -> list[Record]:
    """Return the newest records of earlier runs whose attempts are those of this plan.

    They cost nothing again: a budget counts what a run pays itself. Their usage stays in them, for comparisons.
    """
    found: dict[str, Record] = {}
    for folder in earlier:
        with suppress(BakeoffError):  # a damaged run
            for record in folder.latest_records(folder.read_plan()):
                trial = plan.find(record.case, record.subject, record.round)
                if trial is None or trial.attempt_key != record.attempt_key or record.attempt_key in found:
                    continue
                if record.verdict.counts or record.attempted:
                    asked = record.model_copy(update={"threshold": plan.threshold_of(trial.case)})
                    found[record.attempt_key] = _reused(asked, folder.label)
        if len(found) == plan.size:
            break
    return list(found.values())


def _reused(record: Record, run: str) -> Record:
    transcript = record.transcript
    if transcript is None or REUSED in transcript.metadata:
        return record
    metadata = {**transcript.metadata, REUSED: run, "replayed": True}
    return record.model_copy(update={"transcript": transcript.model_copy(update={"metadata": metadata})})


def _is_finished(record: Record, plan: Plan) -> bool:
    """Tell whether a reused record needs no new score."""
    trial = plan.find(record.case, record.subject, record.round)
    scored = trial is not None and trial.score_key == record.score_key
    return record.verdict.counts and (scored or not record.attempted)

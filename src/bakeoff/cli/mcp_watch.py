"""Carry out `bakeoff mcp evaluate --watch`: after every save, ask what changed or failed, and carry over the rest."""

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path

from bakeoff._kernel.text import visible
from bakeoff._kernel.watch import WAITING, FileStates, FileWatch, forget_modules
from bakeoff.cli.console import err, out, say
from bakeoff.cli.flags import EndingFlags, PlanFlags, SelectionFlags
from bakeoff.cli.pages import open_page
from bakeoff.cli.run_plan import PASSED, UNDECIDED, EndedRun, check_plan, watch, worst_of
from bakeoff.cli.warm_models import WarmModels, warm_models
from bakeoff.doors import DoorResults, FinishedRun
from bakeoff.doors.mcp.outcome import confusions, outcome_of
from bakeoff.doors.mcp.plan import EvaluationRequest, settings_of, suite_name
from bakeoff.doors.mcp.results.cycles import cycle_blocks
from bakeoff.doors.mcp.results.report import failure_reason
from bakeoff.doors.mcp.results.sections import page_parts, state_with
from bakeoff.doors.mcp.runs import compare_with_run_before
from bakeoff.doors.mcp.selection import EarlierRun, Selection, select
from bakeoff.doors.mcp.sources import DATA_SUFFIXES, suite_sources
from bakeoff.doors.mcp.suites import SelectedSuite, find_suites, prepare, read_suites
from bakeoff.engine.run_journal import RunJournal
from bakeoff.errors import BakeoffError, InfraError, UsageError
from bakeoff.options import RunOptions
from bakeoff.record import NO_USAGE, Record, Usage
from bakeoff.report.render.html import write_cycle, write_run_page
from bakeoff.report.render.terminal import print_blocks
from bakeoff.report.summary import tallied
from bakeoff.storage.run_folder import FinishedRunFolder, RunFolder, new_run_folder
from bakeoff.verdict import Verdict

_LOOK_SECONDS = 0.15
_WRONG_CONFIGURATION = 2
_MAX_NAMED = 3
_MAX_REASON_LENGTH = 200
_RESTLESS = 3  # cycles in a row that change a file by themselves, after which it is not watched any more


def watch_suites(
    request: EvaluationRequest,
    flags: PlanFlags,
    selection: SelectionFlags,
    ending: EndingFlags,
    *,
    opened: bool,
) -> int:
    """Run cycles until Ctrl-C, and return the exit code of the last one."""
    refused = {"--json": ending.as_json, "--junit": ending.junit, "--markdown": ending.markdown}
    refused |= {"--github": ending.github, "--dry-run": flags.dry_run, "--until-decided": selection.until_decided}
    if names := [name for name, given in refused.items() if given]:
        raise UsageError(f"{names[0]} is for one evaluation, and --watch makes many: leave one of them out")
    files = find_suites(request.path)  # a wrong path is an error at once
    with asyncio.Runner() as runner, warm_models(runner) as warm:
        watching = _McpWatch(request, flags.options(), ending, runner, warm, files, opened=opened)
        try:
            with suppress(KeyboardInterrupt):
                watching.run()
        finally:
            watching.end()
        return watching.code


class _McpWatch:
    """The cycles of one watch."""

    def __init__(
        self,
        request: EvaluationRequest,
        options: RunOptions,
        ending: EndingFlags,
        runner: asyncio.Runner,
        warm: WarmModels,
        files: Sequence[Path],
        *,
        opened: bool,
    ) -> None:
        self._request, self._options, self._ending = request, options, ending
        self._runner, self._warm, self._opened = runner, warm, opened
        self._files = files
        self._suites: dict[Path, SelectedSuite] = {}  # as they were read last
        self._earlier: dict[Path, EarlierRun] = {}
        self._made: dict[Path, RunFolder] = {}  # the runs of the last cycles
        self._codes: dict[Path, int] = {}
        self._results: dict[Path, int] = {}  # the exit codes of the last cycles that were evaluated
        self._told: set[str] = set()  # warnings
        self._reloaded: set[Path] = set()  # suites whose own modules have changed since they were evaluated
        self._spent: Usage = NO_USAGE
        self._number = 0
        self._states = FileStates()
        self._restless: Counter[str] = Counter()
        self._watch = FileWatch(self._look, self._look(), _LOOK_SECONDS)

    @property
    def code(self) -> int:
        codes = list(self._codes.values())
        return _WRONG_CONFIGURATION if _WRONG_CONFIGURATION in codes else worst_of(codes or [PASSED])

    def run(self) -> None:
        """Run a cycle at once, and then one after every change."""
        changed: Sequence[str] = ()
        while True:
            before = self._all_states()
            self._cycle(changed)
            self._settle(before)
            pages = [page for file in self._files if (page := self._page(file)).exists()]
            shown = f" Page: {', '.join(visible(os.path.relpath(page), 200) for page in pages)}" if pages else ""
            if self._opened and pages:
                self._opened = False
                open_page(pages[0])
            say(f"{WAITING}{shown}")
            changed = sorted(self._watch.wait())
            names = [visible(os.path.relpath(path), 100) for path in changed]
            more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
            err().print()
            say(f"Changed: {', '.join(names[:_MAX_NAMED])}{more}")

    def end(self) -> None:
        """Tell open pages that no further cycle comes, and users where the last one is."""
        for file in self._files:
            write_cycle(self._page(file), None)
        for folder in self._made.values():
            say(f"the last cycle is kept in {folder.path}")

    def _look(self) -> dict[str, str]:
        return {path: state for path, state in self._all_states().items() if self._restless[path] < _RESTLESS}

    def _all_states(self) -> dict[str, str]:
        return self._states(sorted(set[str]().union(*map(self._sources, self._files))))

    def _sources(self, file: Path) -> set[str]:
        known = self._suites.get(file)
        servers = known.suite.config.mcpServers if known else ()
        outputs = (self._options.results, self._request.report)
        return {str(file.resolve()), *suite_sources(file.parent, servers, outputs)}

    def _settle(self, before: dict[str, str]) -> None:
        """Watch files that a changed configuration names, and not those that servers write in every cycle."""
        for path, state in self._all_states().items():
            self._watch.known.setdefault(path, state)
            if not path.endswith(DATA_SUFFIXES):  # a person has saved it while the cycle went on
                continue
            if before.get(path, state) == state:
                if self._restless.pop(path, 0) >= _RESTLESS:
                    self._watch.known[path] = state
                continue
            self._restless[path] += 1
            if self._restless[path] == _RESTLESS:
                say(f"{visible(path, 200)} changes in every cycle: it is not watched while it does")

    def _cycle(self, changed: Sequence[str]) -> None:
        """Read all suites again, and evaluate those that the changes concern."""
        self._number += 1
        self._reloaded.update(file for file in self._files if forget_modules(changed, self._sources(file)))
        try:
            read = read_suites(self._request, self._options)
        except BakeoffError as error:
            self._fail(self._files, error)
            return
        self._files = tuple(sorted((*read.problems, *(selected.suite.file for selected in read.suites))))
        for file, problem in read.problems.items():
            self._fail([file], UsageError(problem))
        for selected in read.suites:
            file = selected.suite.file
            if changed and file in self._codes and not self._concerns(file, changed):
                continue
            self._suites[file] = selected
            try:
                self._codes[file] = self._evaluate(selected, "changed provider" if file in self._reloaded else None)
                self._reloaded.discard(file)
            except BakeoffError as error:
                self._fail([file], error)

    def _fail(self, files: Sequence[Path], error: BakeoffError) -> None:
        for file in files:
            self._codes[file] = UNDECIDED if isinstance(error, InfraError) else _WRONG_CONFIGURATION
        for line in str(error).splitlines():
            say(f"error: {line}")

    def _concerns(self, file: Path, changed: Sequence[str]) -> bool:
        """Tell whether one of the changed files is used by a suite. The files of other suites beside it are not."""
        others = {str(each.resolve()) for each in self._files if each != file}
        return bool({*changed} & self._sources(file) - others)

    def _evaluate(self, selected: SelectedSuite, anew: str | None) -> int:
        """Start the servers of a suite, ask what must be asked, and return the exit code."""
        self._warm.keep([spec.name for spec in selected.plan.subjects])
        stack = AsyncExitStack()
        try:
            return self._ask(self._runner.run(prepare(selected, stack)), anew)
        finally:
            self._runner.run(stack.aclose())

    def _ask(self, prepared: SelectedSuite, anew: str | None) -> int:
        file = prepared.suite.file
        settings = prepared.door.settings_of(prepared.plan)
        for warning in settings.warnings:
            if warning not in self._told:
                say(f"warning: {warning}")
        self._told.update(settings.warnings)
        earlier = self._earlier.get(file)
        if earlier is None and (earlier := EarlierRun.newest(self._options.results, settings.file)) is not None:
            say(f"results are carried over from {earlier.folder.name}")
        selection = select(prepared.plan, earlier, anew=anew)
        if selection.is_empty and file in self._earlier:
            say("nothing to ask: no tool changed, and every cell passed")
            return self._results[file]
        ended = self._run(prepared, selection)
        self._earlier[file] = EarlierRun.of(ended.run.folder, ended.run.plan)
        self._replace(file, ended.run.folder)
        self._results[file] = self._codes[file] = ended.exit_code(self._ending)
        if ended.interrupted:
            raise KeyboardInterrupt
        return self._results[file]

    def _run(self, prepared: SelectedSuite, selection: Selection) -> EndedRun:
        plan, door = selection.noted_in(prepared.plan), prepared.door
        settings = settings_of(plan)
        checked = check_plan(plan, self._left(prepared.options), door)
        folder = new_run_folder(self._options.results, plan.name)
        options = replace(checked.options, folder=folder.path)
        with RunJournal(folder, options.redactor()) as journal:
            journal.start(plan, jobs=options.jobs)
            for record in selection.carried:
                journal.append(record)
        stopped = self._runner.run(watch(checked, options, err(), lambda record: _line(record, selection)))
        folder = FinishedRunFolder(folder.path)
        self._spent += folder.spent()
        records = list(folder.latest_records(plan))
        tally = tallied(plan, records)
        finished = FinishedRun(folder, plan, options, tally.summary())
        outcome, found = outcome_of(plan, records, settings), confusions(plan, records)
        print_blocks(out(), tuple(cycle_blocks(selection, outcome, plan.rounds)))
        since = compare_with_run_before(folder, plan)
        page = self._page(prepared.suite.file)
        write_run_page(
            folder,
            page,
            parts=lambda run: page_parts(run.plan, settings, outcome, found, since),
            cycle=self._number,
        )
        write_cycle(page, self._number)
        results = DoorResults(state=state_with(outcome, settings.coverage))
        return EndedRun(finished, door, results, tally, stopped and not finished.summary.ended)

    def _left(self, options: RunOptions) -> RunOptions:
        """Return the options with what earlier cycles have left of the limits. Raise UsageError if that is nothing."""
        cost, tokens = options.max_cost, options.max_total_tokens
        cost = None if cost is None else cost - (self._spent.cost or 0.0)
        tokens = None if tokens is None else tokens - self._spent.tokens
        if (cost is not None and cost <= 0) or (tokens is not None and tokens <= 0):
            raise UsageError("--max-cost or --max-total-tokens is used up: start again with a higher limit")
        return replace(options, max_cost=cost, max_total_tokens=tokens)

    def _replace(self, file: Path, folder: RunFolder) -> None:
        """Delete the run of the cycle before, unless someone has labelled it."""
        before, self._made[file] = self._made.get(file), folder
        if before is not None and not before.labels_file.exists():
            with suppress(BakeoffError):
                before.delete()

    def _page(self, file: Path) -> Path:
        name = "watch" if len(self._files) == 1 else f"watch-{suite_name(file)}"
        return self._request.report / f"{name}.html"


def _line(record: Record, selection: Selection) -> str | None:
    """Return a line about an answer, so that the first is seen before the cycle ends."""
    if (record.case, record.subject) not in selection.asked:
        return None
    passed = record.verdict is Verdict.PASS
    why = "" if passed else f": {visible(failure_reason(record) or '', _MAX_REASON_LENGTH)}"
    verdict = "passed" if passed else record.verdict.value
    return f"{verdict}  {visible(record.case, 80)}, {visible(record.subject, 60)}{why}"

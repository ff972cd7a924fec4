"""Carry out `bakeoff mcp evaluate --watch`: after every save, ask what changed or failed, and carry over the rest."""

from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from bakeoff._kernel.text import visible
from bakeoff.cli.console import err, out, say, warn
from bakeoff.cli.declare import PASSED
from bakeoff.cli.flags import EndingFlags, PlanFlags, SelectionFlags
from bakeoff.cli.pages import open_page
from bakeoff.cli.run_plan import EndedRun, check_plan, watch, worst_of
from bakeoff.cli.watching import WatchSession, open_watch
from bakeoff.doors import DoorResults, FinishedRun
from bakeoff.doors.mcp.outcome import confusions, outcome_of
from bakeoff.doors.mcp.plan import EvaluationRequest, settings_of, suite_name
from bakeoff.doors.mcp.results.report import failure_reason
from bakeoff.doors.mcp.results.sections import page_parts, state_with
from bakeoff.doors.mcp.runs import compare_with_run_before
from bakeoff.doors.mcp.suites import SelectedSuite, find_suites, prepare, read_suites
from bakeoff.doors.mcp.watch import EarlierRun, Selection, cycle_blocks, select, suite_sources
from bakeoff.engine.reuse import delete_runs, start_run
from bakeoff.engine.watch import (
    WRONG_CONFIGURATION,
    Changes,
    WatchLoop,
    forget_modules,
    remaining_limits,
    report_error,
)
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.options import RunOptions
from bakeoff.record import Record
from bakeoff.report.render.html.render import write_cycle
from bakeoff.report.render.html.run_page import write_run_page
from bakeoff.report.render.terminal import print_blocks
from bakeoff.report.summary import tallied
from bakeoff.storage.run_folder import FinishedRunFolder, RunFolder
from bakeoff.verdict import Verdict

_MAX_REASON_LENGTH = 200


def watch_suites(
    request: EvaluationRequest, flags: PlanFlags, selection: SelectionFlags, ending: EndingFlags, *, opened: bool
) -> int:
    """Run cycles until Ctrl-C, and return the exit code of the last one."""
    with open_watch(flags, selection, ending) as session:
        watching = _McpWatch(request, flags.options(), ending, session, opened=opened)
        try:
            return watching.loop.run()
        finally:
            watching.end()


@dataclass(slots=True)
class _WatchedSuite:
    """The state of one suite between cycles."""

    page: Path
    selected: SelectedSuite | None = None  # as it was read last
    earlier: EarlierRun | None = None
    made: RunFolder | None = None  # the run of the last cycle that asked something
    result: int = PASSED  # the exit code of that run
    code: int | None = None  # of the last cycle; None before the first
    is_reloaded: bool = False  # modules of the suite have changed since it was evaluated


class _McpWatch:
    """The cycles of one watch."""

    def __init__(
        self,
        request: EvaluationRequest,
        options: RunOptions,
        ending: EndingFlags,
        session: WatchSession,
        *,
        opened: bool,
    ) -> None:
        self._request, self._options, self._ending = request, options, ending
        self._session, self._opened = session, opened
        self._number = 0
        self._suites: dict[Path, _WatchedSuite] = {}
        self._keep(find_suites(request.path))  # a wrong path is an error at once
        self.loop = WatchLoop(self._all_sources, self._cycle, say, self._pages)

    def end(self) -> None:
        """Tell open pages that no further cycle comes, and users where the last one is."""
        for suite in self._suites.values():
            write_cycle(suite.page, None)
            if suite.made is not None:
                say(f"the last cycle is kept in {suite.made.path}")

    def _keep(self, files: tuple[Path, ...]) -> None:
        for file in files:
            name = "watch" if len(files) == 1 else f"watch-{suite_name(file)}"
            self._suites.setdefault(file, _WatchedSuite(self._request.report / f"{name}.html"))
        self._suites = {file: self._suites[file] for file in sorted(files)}

    def _pages(self) -> list[Path]:
        return [suite.page for suite in self._suites.values()]

    def _all_sources(self) -> set[str]:
        return set[str]().union(*map(self._sources, self._suites))

    def _sources(self, file: Path) -> set[str]:
        known = self._suites[file].selected
        servers = known.suite.config.mcpServers if known else ()
        outputs = (self._options.results, self._request.report)
        return {str(file.resolve()), *suite_sources(file.parent, servers, outputs)}

    def _cycle(self, changed: Changes) -> int:
        """Read all suites again, evaluate those that the changes concern, and return the worst exit code of all."""
        self._number += 1
        for file, suite in self._suites.items():
            suite.is_reloaded |= forget_modules(changed, self._sources(file))
        read = read_suites(self._request, self._options)
        self._keep((*read.problems, *(selected.suite.file for selected in read.suites)))
        for file, problem in read.problems.items():
            self._suites[file].code = report_error(UsageError(problem), say)
        for selected in read.suites:
            suite = self._suites[selected.suite.file]
            if self.loop.ended or (suite.code is not None and not self._concerns(selected.suite.file, changed)):
                continue
            suite.selected = selected
            try:
                suite.code = self._evaluate(suite, selected)
            except BakeoffError as error:
                suite.code = report_error(error, say)
        if self._opened and (pages := [page for page in self._pages() if page.exists()]):
            self._opened = False
            open_page(pages[0])
        codes = [suite.code for suite in self._suites.values() if suite.code is not None]
        return WRONG_CONFIGURATION if WRONG_CONFIGURATION in codes else worst_of(codes)

    def _concerns(self, file: Path, changed: Changes) -> bool:
        """Tell whether one of the changed files is used by a suite. The files of other suites beside it are not."""
        others = {str(each.resolve()) for each in self._suites if each != file}
        return bool({*changed} & self._sources(file) - others)

    def _evaluate(self, suite: _WatchedSuite, selected: SelectedSuite) -> int:
        """Start the servers of a suite, ask what must be asked, and return the exit code."""
        self._session.keep_loaded([spec.name for spec in selected.plan.subjects])
        stack = AsyncExitStack()
        try:
            self._ask(suite, self._session.runner.run(prepare(selected, stack)))
        finally:
            self._session.runner.run(stack.aclose())
        suite.is_reloaded = False
        return suite.result

    def _ask(self, suite: _WatchedSuite, prepared: SelectedSuite) -> None:
        settings = prepared.door.settings_of(prepared.plan)
        warn(settings.warnings)
        earlier = suite.earlier
        if earlier is None and (earlier := EarlierRun.newest(self._options.results, settings.file)) is not None:
            say(f"results are carried over from {earlier.folder.name}")
        selection = select(prepared.plan, earlier, anew="changed provider" if suite.is_reloaded else None)
        if selection.is_empty and suite.earlier is not None:
            say("nothing to ask: no tool changed, and every cell passed")
            return
        ended = self._run(prepared, selection, suite.page)
        if suite.made is not None:
            delete_runs([suite.made])
        suite.made = ended.run.folder
        suite.earlier = EarlierRun.of(ended.run.folder, ended.run.plan)
        suite.result = ended.exit_code(self._ending)
        self.loop.ended = ended.interrupted

    def _run(self, prepared: SelectedSuite, selection: Selection, page: Path) -> EndedRun:
        plan, door = selection.noted_in(prepared.plan), prepared.door
        settings = settings_of(plan)
        checked = check_plan(plan, remaining_limits(prepared.options, self._session.spent), door)
        folder = start_run(plan, checked.options, selection.carried)
        options = replace(checked.options, folder=folder.path)
        running = watch(checked, options, err(), lambda record: _line(record, selection))
        stopped = self._session.runner.run(running)
        folder = FinishedRunFolder(folder.path)  # everything from here on reads the journal only once
        self._session.spent += folder.spent()
        records = list(folder.latest_records(plan))
        tally = tallied(plan, records)
        finished = FinishedRun(folder, plan, options, tally.summary())
        outcome, found = outcome_of(plan, records, settings), confusions(plan, records)
        print_blocks(out(), tuple(cycle_blocks(selection, outcome, plan.rounds)))
        since = compare_with_run_before(folder, plan)
        write_run_page(
            folder,
            page,
            parts=lambda run: page_parts(run.plan, settings, outcome, found, since),
            cycle=self._number,
        )
        write_cycle(page, self._number)
        results = DoorResults(state=state_with(outcome, settings.coverage))
        return EndedRun(finished, door, results, tally, stopped and not finished.summary.ended)


def _line(record: Record, selection: Selection) -> str | None:
    """Return a line about an answer, so that the first is seen before the cycle ends."""
    if (record.case, record.subject) not in selection.asked:
        return None
    passed = record.verdict is Verdict.PASS
    why = "" if passed else f": {visible(failure_reason(record) or '', _MAX_REASON_LENGTH)}"
    verdict = "passed" if passed else record.verdict.value
    return f"{verdict}  {visible(record.case, 80)}, {visible(record.subject, 60)}{why}"

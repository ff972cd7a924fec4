"""Carry out `bakeoff mcp evaluate --watch`: after every save, ask what changed or failed, and carry over the rest."""

from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from bakeoff.cli.console import say, warn
from bakeoff.cli.declare import PASSED
from bakeoff.cli.flags import EndingFlags, PlanFlags, SelectionFlags
from bakeoff.cli.pages import open_page
from bakeoff.cli.run_plan import check_plan, worst_of
from bakeoff.cli.watching import WatchSession, open_watch
from bakeoff.doors.mcp.plan import EvaluationRequest, suite_name
from bakeoff.doors.mcp.suites import SelectedSuite, find_suites, prepare, read_suites
from bakeoff.doors.mcp.watch import CycleDoor, newest_run, select, suite_sources
from bakeoff.engine.reuse import delete_runs, start_run
from bakeoff.engine.watch import (
    WRONG_CONFIGURATION,
    Changes,
    WatchLoop,
    forget_modules,
    report_error,
    stale_users,
)
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.options import RunOptions
from bakeoff.report.render.html.render import write_cycle
from bakeoff.storage.run_folder import RunFolder


def watch_suites(
    request: EvaluationRequest, flags: PlanFlags, selection: SelectionFlags, ending: EndingFlags, *, opened: bool
) -> int:
    """Run cycles until Ctrl-C, and return the exit code of the last one."""
    with open_watch(flags, selection, ending) as session:
        watching = _McpWatch(request, flags.options(), session, opened=opened)
        try:
            return watching.loop.run()
        finally:
            watching.end()


@dataclass(slots=True)
class _WatchedSuite:
    """The state of one suite between cycles."""

    page: Path
    selected: SelectedSuite | None = None  # as it was read last
    earlier: RunFolder | None = None
    is_ours: bool = False  # the earlier run is one of this watch
    result: int = PASSED  # the exit code of that run
    code: int | None = None  # of the last cycle; None before the first
    is_reloaded: bool = False  # modules of the suite have changed since it was evaluated


class _McpWatch:
    """The cycles of one watch."""

    def __init__(self, request: EvaluationRequest, options: RunOptions, session: WatchSession, *, opened: bool) -> None:
        self._request, self._options = request, options
        self._session, self._opened = session, opened
        self._number = 0
        self._suites: dict[Path, _WatchedSuite] = {}
        self._keep(find_suites(request.path))  # a wrong path is an error at once
        self.loop = WatchLoop(self._all_sources, self._cycle, say, self._pages)

    def end(self) -> None:
        """Tell open pages that no further cycle comes, and users where the last one is."""
        for suite in self._suites.values():
            write_cycle(suite.page, None)
            if suite.earlier is not None and suite.is_ours:
                say(f"the last cycle is kept in {suite.earlier.path}")

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
        stale = stale_users(changed, self._uses())
        for selected in read.suites:
            file = selected.suite.file
            suite, is_stale = self._suites[file], stale is None or str(file.resolve()) in stale
            if self.loop.ended or (suite.code is not None and not is_stale):
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

    def _uses(self) -> dict[str, set[str]]:
        """Return the files that each suite uses. The files of other suites beside it are not among them."""
        files = {str(file.resolve()) for file in self._suites}
        return {own: self._sources(file) - files | {own} for file in self._suites for own in (str(file.resolve()),)}

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
        if suite.earlier is None and (earlier := newest_run(self._options.results, settings.file)) is not None:
            suite.earlier = earlier
            say(f"results are carried over from {earlier.name}")
        selection = select(prepared.plan, suite.earlier, anew="changed provider" if suite.is_reloaded else None)
        if selection.is_empty and suite.is_ours:
            say("nothing to ask: no tool changed, and every cell passed")
            return
        options = self._session.limited(prepared.options)
        checked = check_plan(selection.noted_in(prepared.plan), options, prepared.door)
        door = CycleDoor(selection, suite.page, self._number)
        folder = start_run(checked.plan, checked.options, selection.carried)
        ended = self._session.run(replace(checked, door=door), folder)
        if suite.earlier is not None and suite.is_ours:
            delete_runs([suite.earlier])
        suite.earlier, suite.is_ours = ended.run.folder, True
        suite.result = ended.exit_code(self._session.ending)
        self.loop.ended = ended.interrupted

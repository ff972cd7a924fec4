"""Implement `bakeoff eval --watch` and `bakeoff mcp evaluate --watch`: run what a save changed."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bakeoff._kernel.text import count_of
from bakeoff.cli.console import say, warn
from bakeoff.cli.declare import PASSED
from bakeoff.cli.eval import run_options
from bakeoff.cli.flags import EndingFlags, PlanFlags, RunFlags, SelectionFlags
from bakeoff.cli.mcp.evaluate import servers_in
from bakeoff.cli.pages import open_page
from bakeoff.cli.run_plan import CheckedPlan, EndedRun, check_plan, conclude, run_checked, worst_of
from bakeoff.doors.eval.find import find_config, read_suite
from bakeoff.doors.eval.plan import DOOR, EvalRequest, build_plan, settings_of
from bakeoff.doors.mcp.plan import EvaluationRequest, suite_name
from bakeoff.doors.mcp.suites import SelectedSuite, find_suites, prepare, read_suites
from bakeoff.doors.mcp.watch import CycleDoor, newest_run, select, suite_sources
from bakeoff.engine.reuse import count_finished, delete_runs, past_runs, reusable_records, start_run
from bakeoff.engine.watch import (
    WRONG_CONFIGURATION,
    Changes,
    WatchLoop,
    forget_modules,
    remaining_limits,
    report_error,
    source_files,
    stale_users,
)
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.models.embedded import EmbeddedServer
from bakeoff.models.providers import parse_model_name
from bakeoff.plan import Plan
from bakeoff.record import NO_USAGE
from bakeoff.report.render.html.render import write_cycle
from bakeoff.storage.run_folder import RunFolder

KEPT_RUNS = 20
"""The number of runs that `eval --watch` searches for answers, and of its own runs that it keeps, for each file."""

_WATCH = "watch"  # marks runs of a watch: only these are ever deleted
_MAX_SOURCES = 2000


class WatchOutputs(NamedTuple):
    """The options that all commands with `--watch` share."""

    selection: SelectionFlags
    ending: EndingFlags
    opened: bool  # show the page in the browser once


class _Watch(ABC):
    """One watch. Its cycles share an event loop, loaded models and limits."""

    def __init__(self, flags: PlanFlags, outputs: WatchOutputs) -> None:
        selection, self._ending, self._opened = outputs
        ending = self._ending
        refused = {"--json": ending.as_json, "--junit": ending.junit, "--markdown": ending.markdown}
        refused |= {"--github": ending.github, "--dry-run": flags.dry_run, "--until-decided": selection.until_decided}
        if names := [name for name, given in refused.items() if given]:
            raise UsageError(f"{names[0]} is for one run, and --watch makes many: leave one of them out")
        self._runner = asyncio.Runner()
        self._loaded: set[str] = set()
        self._spent = NO_USAGE

    def run(self) -> int:
        """Run cycles until Ctrl-C, and return the exit code of the last one."""
        self._loop = WatchLoop(self._sources, self._cycle, say, self._pages)
        with self._runner, servers_in(self._runner) as self._stack:
            return self._loop.run()

    @abstractmethod
    def _sources(self) -> set[str]:
        """Return the files to watch."""

    @abstractmethod
    def _cycle(self, changed: Changes) -> int:
        """Run the trials that the changes affect, and return the exit code."""

    def _pages(self) -> Sequence[Path]:
        return ()

    def _keep_loaded(self, names: Iterable[str]) -> None:
        """Load the local models among `names`, and keep them until the watch ends."""
        for name in map(parse_model_name, names):
            if name.provider == "local" and name.model not in self._loaded:
                self._loaded.add(name.model)
                with suppress(BakeoffError):  # the cycle reports it
                    self._runner.run(self._stack.enter_async_context(EmbeddedServer(name.model).open()))

    def _run(self, checked: CheckedPlan, folder: RunFolder) -> EndedRun:
        """Run the rest of a plan. An interrupted cycle is the last."""
        ended = run_checked(checked, self._ending, folder=folder, runner=self._runner)
        self._spent += ended.run.folder.spent()
        self._loop.ended = ended.interrupted
        return ended


class EvalWatch(_Watch):
    """A watch of a prompt configuration: changed trials run again, other answers are reused."""

    def __init__(self, request: EvalRequest, flags: RunFlags, outputs: WatchOutputs) -> None:
        super().__init__(flags, outputs)
        self._flags, self._selection = flags, outputs.selection
        self._file = find_config(request.path)  # a wrong path is an error at once
        self._request = request.model_copy(update={"path": self._file})
        self._named: Sequence[Path] = ()  # the files that the configuration named when it was read last
        self._runs: list[RunFolder] | None = None  # of this file, newest first
        self._complete: Plan | None = None  # the plan of the last cycle, if every trial has a result
        self._code = PASSED  # of that cycle

    def _sources(self) -> set[str]:
        """Return the configuration, the files that it names, and the Python modules beside it."""
        file = self._file.absolute()
        beside = source_files(file.parent.resolve(), ".py", {str(self._flags.results.resolve())})
        return {str(each.resolve()) for each in (file, *self._named)} | {*islice(beside, _MAX_SOURCES)}

    def _cycle(self, changed: Changes) -> int:  # noqa: ARG002 - the keys of trials say what changed
        sources = self._sources()
        forget_modules(sources, sources)  # all: a file that changes just now is not among the changes yet
        suite = read_suite(self._file, self._request.judge)
        self._named = suite.sources
        warn(suite.warnings)
        plan = self._selection.applied(build_plan(suite, self._request))
        checked = check_plan(plan, remaining_limits(run_options(self._flags, plan), self._spent))
        if plan == self._complete:
            say("nothing to run: no prompt, subject, case or scorer has changed")
        else:
            self._evaluate(checked)
        return self._code

    def _evaluate(self, checked: CheckedPlan) -> None:
        plan, options = checked.plan, checked.options
        if self._runs is None:
            file = settings_of(plan).file
            self._runs = past_runs(options.results, lambda was: was.door == DOOR and settings_of(was).file == file)
        earlier = self._runs[:KEPT_RUNS]
        carried = reusable_records(earlier, plan)
        self._keep_loaded(str(spec.options["model"]) for spec in plan.subjects if "model" in spec.options)
        folder = start_run(plan, options, carried, **{_WATCH: True})
        self._runs.insert(0, folder)  # also if it breaks: its answers are paid for
        if earlier:
            runs = earlier[0].name if len(earlier) == 1 else count_of(len(earlier), "run")
            again = len(carried) - count_finished(carried, plan)
            say(
                f"{count_of(plan.size - len(carried), 'answer')} to get; {len(carried):,} of {plan.size:,} reused from "
                f"{runs}{f', {again:,} of them scored again' if again else ''}"
            )
        ended = self._run(checked, folder)
        self._code = conclude([ended], self._ending, opened=self._opened)
        self._opened, self._complete = False, plan if ended.run.summary.complete else None
        if not ended.interrupted:  # otherwise this run may have fewer answers than an older one
            delete_runs([run for run in self._runs if run.beginning().get(_WATCH) is True][KEPT_RUNS:])
            self._runs = [run for run in self._runs if run.path.exists()]


@dataclass(slots=True)
class _WatchedSuite:
    """The state of one MCP suite between cycles."""

    page: Path
    selected: SelectedSuite | None = None  # as it was read last
    earlier: RunFolder | None = None
    is_ours: bool = False  # the earlier run belongs to this watch
    result: int = PASSED  # the exit code of that run
    code: int | None = None  # of the last cycle; None before the first
    is_reloaded: bool = False  # modules of the suite have changed since it was evaluated


class McpWatch(_Watch):
    """A watch of MCP suites: changed and failed cells run again, other results are carried over."""

    def __init__(self, request: EvaluationRequest, flags: PlanFlags, outputs: WatchOutputs) -> None:
        super().__init__(flags, outputs)
        self._request, self._options = request, flags.options()
        self._number = 0
        self._suites: dict[Path, _WatchedSuite] = {}
        self._keep(find_suites(request.path))  # a wrong path is an error at once

    def run(self) -> int:
        """Run cycles until Ctrl-C; then tell open pages, and print where the last cycle is kept."""
        try:
            return super().run()
        finally:
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

    def _sources(self) -> set[str]:
        return set[str]().union(*map(self._sources_of, self._suites))

    def _sources_of(self, file: Path) -> set[str]:
        known = self._suites[file].selected
        servers = known.suite.config.mcpServers if known else ()
        outputs = (self._options.results, self._request.report)
        return {str(file.resolve()), *suite_sources(file.parent, servers, outputs)}

    def _cycle(self, changed: Changes) -> int:
        """Read all suites again, evaluate the affected ones, and return the worst exit code."""
        self._number += 1
        for file, suite in self._suites.items():
            suite.is_reloaded |= forget_modules(changed, self._sources_of(file))
        read = read_suites(self._request, self._options)
        self._keep((*read.problems, *(selected.suite.file for selected in read.suites)))
        for file, problem in read.problems.items():
            self._suites[file].code = report_error(UsageError(problem), say)
        stale = stale_users(changed, self._uses())
        for selected in read.suites:
            file = selected.suite.file
            suite, is_stale = self._suites[file], stale is None or str(file.resolve()) in stale
            if self._loop.ended or (suite.code is not None and not is_stale):
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
        """Return the files that each suite uses, except the configurations of other suites."""
        files = {str(file.resolve()) for file in self._suites}
        return {own: self._sources_of(file) - files | {own} for file in self._suites for own in (str(file.resolve()),)}

    def _evaluate(self, suite: _WatchedSuite, selected: SelectedSuite) -> int:
        """Start the servers of a suite, run the affected cells, and return the exit code."""
        self._keep_loaded(spec.name for spec in selected.plan.subjects)
        with servers_in(self._runner) as stack:
            self._ask(suite, self._runner.run(prepare(selected, stack)))
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
        options = remaining_limits(prepared.options, self._spent)
        checked = check_plan(selection.noted_in(prepared.plan), options, prepared.door)
        door = CycleDoor(selection, suite.page, self._number)
        folder = start_run(checked.plan, checked.options, selection.carried)
        ended = self._run(replace(checked, door=door), folder)
        if suite.earlier is not None and suite.is_ours:
            delete_runs([suite.earlier])
        suite.earlier, suite.is_ours = ended.run.folder, True
        suite.result = ended.exit_code(self._ending)

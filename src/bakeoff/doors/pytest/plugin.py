"""Connect evals with pytest.

Every pytest run in a project that has bakeoff installed loads this module, most of them without an eval. So it imports
only pytest, and everything else when there is an eval.
"""

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from bakeoff._kernel.imports import collection_paused, existing_objects_frozen
from bakeoff.doors.pytest.gather import FINAL, LOGGED, RUNNING, EvalFailed, gathering
from bakeoff.doors.pytest.options import (
    COLLECTED_FILE,
    FIXTURES,
    SPENDING_FILE,
    TERMINAL_WIDTH,
    add_options,
    has_eval,
    is_limited,
    keep_shard,
    name_of_test,
    replay_mode,
    shard_of,
)
from bakeoff.doors.pytest.report_texts import SessionSecrets

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from bakeoff.doors.pytest.in_tests import RunEval, ToEval
    from bakeoff.doors.pytest.reports import EvalReporter
    from bakeoff.doors.pytest.run_writer import RunWriter
    from bakeoff.doors.pytest.watch import WatchCycle
    from bakeoff.report.suites.outcomes import EvalOutcome

_SUITE_MODULE = "bakeoff.doors.pytest.suite"  # imported by every file with a suite
_SESSION_MODULE = "bakeoff.doors.pytest.session"
_MAX_REMARKS = 20
_AT_THE_END = pytest.StashKey[ExitStack]()  # closed after pytest's last search for garbage
_ASYNC_MARKS = ("asyncio", "anyio", "trio", "twisted", "tornado")
"""Marks of plugins that run async tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser.getgroup("bakeoff", "evals (bakeoff)"))


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Register what is done last: what is cleaned up before it was registered after it."""
    until_end = early_config.stash[_AT_THE_END] = ExitStack()
    early_config.add_cleanup(until_end.close)


_ONLY_TELLS = ("help", "version", "collectonly", "showfixtures", "show_fixtures_per_test", "markers", "cacheshow")
"""Options of pytest's with which no test runs."""


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Run cycle after cycle instead of a session with `--eval-watch`."""
    option = config.option
    if not option.eval_watch or option.eval_watch_cycle or any(getattr(option, name, None) for name in _ONLY_TELLS):
        return None
    from bakeoff.doors.pytest.watch import watch

    return watch(config)


def pytest_configure(config: pytest.Config) -> None:
    from bakeoff.doors.pytest.reports import register

    if config.option.eval_watch_cycle is not None:
        from bakeoff.doors.pytest.watch import begin_cycle

        begin_cycle(config, config.option.eval_watch_cycle)
    register(config)
    config.pluginmanager.register(EvalHooks(config), "bakeoff-evals")  # after the reports: the last is called first
    config.pluginmanager.register(SessionSecrets(config), "bakeoff-secrets")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> list[pytest.Item] | None:
    suites = sys.modules.get(_SUITE_MODULE)
    if suites is None:
        return None
    suites.FILES.add(str(collector.path))
    static = isinstance(obj, staticmethod)
    suite = obj.__func__ if isinstance(obj, staticmethod) else obj
    if not isinstance(suite, suites.EvalSuite) or not collector.funcnamefilter(name):
        return None
    with collection_paused():
        from bakeoff.doors.pytest.collecting import collect

        return collect(collector, name, suite, static=static)


@pytest.fixture
def to_eval(request: pytest.FixtureRequest) -> "ToEval":
    """Score one input in a test: `await to_eval(input, task=…, expected=…, scorer=…)`."""
    from bakeoff.doors.pytest.in_tests import ToEval

    return ToEval(request.config, request.node.nodeid, name_of_test(request.node))


@pytest.fixture
def run_eval(request: pytest.FixtureRequest) -> "RunEval":
    """Call the application once in a test: `result = await run_eval(input, task=…)`, then asserts and judges."""
    from bakeoff.doors.pytest.in_tests import RunEval

    return RunEval(request.config, request.node.nodeid, name_of_test(request.node))


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run async tests that use `to_eval` or `run_eval`, unless a mark leaves them to another plugin."""
    import inspect

    if FIXTURES.isdisjoint(pyfuncitem.fixturenames) or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    if any(pyfuncitem.get_closest_marker(name) for name in _ASYNC_MARKS):
        return None
    from bakeoff.doors.pytest.loops import run_here

    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    run_here(pyfuncitem.obj(**arguments))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> "Generator[None, pytest.TestReport, pytest.TestReport]":
    """Give pytest's short summary the reason of the worst scorer, also for an eval inside of a test."""
    report = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, EvalFailed):
        crash: Any = getattr(report.longrepr, "reprcrash", None)
        if crash is not None:
            crash.message = call.excinfo.value.short
    return report


class EvalHooks:
    """The hooks that need the session's configuration."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._gathered = gathering(config)
        self._is_worker = hasattr(config, "workerinput")
        self._keeps_runs = not config.getoption("eval_no_record")
        self._writer: RunWriter | None = None
        self._temporary: Path | None = None  # with the next two
        self._spending = ""  # the file in which the workers of xdist count what they spend
        self._collected = ""  # the file in which a worker of xdist writes down what it has collected
        self._seen: set[str] = set()  # tests that were reported, by node id
        self._crashed: dict[str, str] = {}  # what is known of tests whose worker crashed, by node id
        self._remarks: list[str] = []  # on evals that disturbed others
        self._over_budget = 0  # cases
        self._limit_reached = ""

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give the workers of xdist a file for what they collect, and one to count their spending if it is limited."""
        node.workerinput[TERMINAL_WIDTH] = self._config.get_terminal_writer().fullwidth
        if is_limited(self._config):
            self._spending = self._spending or self._temporary_file("spending")
            node.workerinput[SPENDING_FILE] = self._spending
        if not self._collected:  # the first worker writes it: all collect the same
            self._collected = self._temporary_file("collected")
            node.workerinput[COLLECTED_FILE] = self._collected

    def _temporary_file(self, name: str) -> str:
        from contextlib import ExitStack

        from bakeoff._kernel.temporary import temporary_folder

        if self._temporary is None:
            until_end = ExitStack()
            self._temporary = until_end.enter_context(temporary_folder("bakeoff-pytest-"))
            self._config.add_cleanup(until_end.close)
        path = self._temporary / name
        path.touch()
        return str(path)

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if (group := getattr(item, "group", None)) is not None:
            group.following = nextitem
            from bakeoff.doors.pytest.printing import printing_of

            printing_of(self._config).route()  # the streams between tests
        run = getattr(item, "run_call_phase_only", None)
        return True if run and run(nextitem) else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        RUNNING.append(item)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        if item in RUNNING:
            RUNNING.remove(item)

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport | None:
        if call.when == "call" and not hasattr(item, "group") and LOGGED in item.stash:
            from bakeoff.doors.pytest.in_tests import add_logged

            add_logged(item, call)
        if call.when == "call" and hasattr(item, "group"):
            call.duration = gathering(self._config).seconds(item.nodeid, call.duration)
        if call.excinfo is not None:
            self._note_lost(item, call)
            return None
        passing = getattr(item, "passing_report", None)
        return passing and passing(call)

    def _note_lost(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Add the outcome of an eval that an error of a fixture, or of the test around it, kept from being run."""
        if not has_eval(item) or call.when == "teardown" or item.get_closest_marker("xfail"):
            return
        gathered = gathering(self._config)
        if call.when == "setup":
            gathered.begin(item.nodeid)
        elif gathered.has(item.nodeid):
            return
        from bakeoff.doors.pytest.lost import lost_by_error

        if (outcome := lost_by_error(item, call)) is not None:
            gathered.add(item.nodeid, outcome)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> "Generator[None]":
        """Take the outcomes before anyone reports them; a worker sends them with the report instead."""
        if report.when == "call" or (report.when == "setup" and not report.passed):
            gathered = self._gathered
            (gathered.attach if self._is_worker else gathered.take)(report)
            outcomes = gathered.of(report)
            for outcome in outcomes:
                self._keep(outcome)
            if outcomes and (report.sections or not report.passed):
                from bakeoff.doors.pytest.report_texts import break_up_commands

                break_up_commands(report)
            if report.outcome in FINAL:
                self._seen.add(report.nodeid)
        elif report.when not in ("setup", "teardown"):  # of xdist: the worker crashed
            said = str(report.longrepr).replace("while running", "while pytest was at")
            self._crashed[report.nodeid] = f"it was not finished: {said}; a case beside it may be the cause"
        yield

    def _keep(self, outcome: "EvalOutcome") -> None:
        if not outcome.passed:
            failures = (record.failure for record in outcome.records)
            if stopped := next((failure for failure in failures if failure and failure.kind == "budget"), None):
                self._over_budget += 1
                self._limit_reached = stopped.message
        for record in outcome.records:
            for phase in (record.attempt, record.score):
                if phase is not None and phase.remarks:
                    self._remarks += [f"{outcome.nodeid}: {remark}" for remark in phase.remarks]
        self._write(outcome)

    def _write(self, outcome: "EvalOutcome", *, earlier: bool = False) -> None:
        if not self._keeps_runs:
            return
        if self._writer is None:
            from bakeoff.doors.pytest.run_writer import RunWriter

            self._writer = RunWriter(self._config)
        self._writer.add(outcome, earlier=earlier)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> "Generator[None, Any, Any]":
        """Fail a test that forgot to await an eval, whoever runs it. That eval is undecided."""
        given = getattr(pyfuncitem, "funcargs", {})
        evals: list[ToEval | RunEval] = [given[name] for name in FIXTURES if name in given]
        try:
            result = yield
        finally:
            forgotten = [said for each in evals for said in each.made.forget()]
        if forgotten:
            from bakeoff.doors.pytest.lost import lost_unawaited

            if not pyfuncitem.get_closest_marker("xfail"):
                gathering(self._config).add(pyfuncitem.nodeid, lost_unawaited(pyfuncitem, forgotten[0]))
            pytest.fail(forgotten[0], pytrace=False)
        return result

    @pytest.hookimpl(tryfirst=True)  # a shard must not depend on what failed last time
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        shard = shard_of(config)
        if shard is not None and config.option.eval_watch_cycle is None:
            keep_shard(config, items, *shard)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Warn of suites that pytest does not collect, and start replay before the first fixture."""
        if _SUITE_MODULE in sys.modules and getattr(self._config, "workerinput", {}).get("workerid", "gw0") == "gw0":
            from bakeoff.doors.pytest.collecting import warn_of_uncollected

            warn_of_uncollected()
        if _SUITE_MODULE in sys.modules and (until_end := self._config.stash.get(_AT_THE_END, None)) is not None:
            until_end.enter_context(existing_objects_frozen())
        collected = getattr(self._config, "workerinput", {}).get(COLLECTED_FILE)
        replays = replay_mode(self._config) != "off" and not self._config.option.collectonly
        if not (collected or replays) or not any(map(has_eval, session.items)):
            return
        if collected:
            from pathlib import Path

            from bakeoff.doors.pytest.groups import KEPT_GROUPS
            from bakeoff.doors.pytest.lost import write_collected

            write_collected(Path(collected), session.items, self._config.stash.get(KEPT_GROUPS, ()))
        if replays:
            from bakeoff.doors.pytest.session import session_of

            session_of(self._config)

    def pytest_report_collectionfinish(self, config: pytest.Config, items: list[pytest.Item]) -> list[str]:
        if config.get_verbosity() <= 0 or _SUITE_MODULE not in sys.modules:
            return []
        from bakeoff.doors.pytest.groups import serial_notes

        return serial_notes(items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Cancel what was not reported before fixtures are torn down, also after -x and Ctrl-C."""
        if _SESSION_MODULE in sys.modules:
            from bakeoff.doors.pytest.session import close_session

            close_session(self._config)
        if not self._is_worker:
            self._add_lost(session)
            self._add_kept()
        if self._writer is not None:
            stopped = exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
            self._writer.finish(interrupted=stopped or bool(session.shouldfail or session.shouldstop))
            if self._watch_cycle is not None:
                self._watch_cycle.run = self._writer.path

    @property
    def _watch_cycle(self) -> "WatchCycle | None":
        found: WatchCycle | None = self._config.pluginmanager.getplugin("bakeoff-watch")
        return found

    def _add_kept(self) -> None:
        """Add the outcomes that a cycle of `--eval-watch` keeps from earlier ones."""
        if self._watch_cycle is None:
            return
        reporter: EvalReporter = self._config.pluginmanager.getplugin("bakeoff-reports")
        for outcome in self._watch_cycle.kept_outcomes():
            gathering(self._config).outcomes.add(outcome)
            reporter.count([outcome])
            self._write(outcome, earlier=True)

    def _add_lost(self, session: pytest.Session) -> None:
        """Add the evals that were collected and never reported."""
        unseen = (item for item in session.items if item.nodeid not in self._seen and has_eval(item))
        if not self._collected and (_SUITE_MODULE not in sys.modules or next(unseen, None) is None):
            return
        from bakeoff.doors.pytest.lost import STOPPED, all_lost

        reporter: EvalReporter = self._config.pluginmanager.getplugin("bakeoff-reports")
        for outcome in all_lost(session, self._collected, self._seen, self._crashed):
            reporter.incomplete |= outcome.problem == STOPPED
            gathering(self._config).outcomes.add(outcome)
            reporter.count([outcome])
            self._keep(outcome)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._over_budget:
            from bakeoff._kernel.text import count_of

            cases = count_of(self._over_budget, "case is", "cases are")
            terminalreporter.write_line(f"evals: {cases} undecided (budget): {self._limit_reached}", yellow=True)
        if self._remarks:
            from bakeoff._kernel.text import visible, without_command

            for remark in self._remarks[:_MAX_REMARKS]:
                terminalreporter.write_line(without_command(f"evals: {visible(remark, 300)}"), yellow=True)
        if self._writer is None:
            return
        if self._writer.problem is not None:
            terminalreporter.write_line(f"evals: this run is not kept: {self._writer.problem}", yellow=True)
        elif self._writer.path is not None and self._config.get_verbosity() > 0:
            terminalreporter.write_line(f"evals: this run is kept in {self._writer.path}")

"""The pytest plugin. Every pytest run in a project that has bakeoff installed loads this module, most without an eval:
it imports only pytest, and everything else when there is an eval."""

import sys
from typing import TYPE_CHECKING, Any

import pytest

from bakeoff.doors.pytest_plugin.gather import gathering
from bakeoff.doors.pytest_plugin.options import add_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bakeoff.doors.pytest_plugin.keeping import RunKeeper
    from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
    from bakeoff.doors.pytest_plugin.to_eval import ToEval

_SUITES = "bakeoff.doors.pytest_plugin.suite"  # whoever has written an eval has imported it
_SESSIONS = "bakeoff.doors.pytest_plugin.session"
_TAKEN_BY_OTHERS = ("asyncio", "anyio", "trio", "twisted", "tornado")
"""Marks of plugins that run async tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    from bakeoff.doors.pytest_plugin.reporting.hooks import add_options as add_report_options

    group = parser.getgroup("bakeoff", "evals (bakeoff)")
    add_options(group)
    add_report_options(group)


def pytest_configure(config: pytest.Config) -> None:
    from bakeoff.doors.pytest_plugin.reporting.hooks import register

    register(config)
    config.pluginmanager.register(EvalHooks(config), "bakeoff-evals")  # after the reports, so as to be asked first


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> list[pytest.Item] | None:
    suites = sys.modules.get(_SUITES)
    if suites is None or not isinstance(obj, suites.EvalSuite) or not collector.funcnamefilter(name):
        return None
    from bakeoff.doors.pytest_plugin.items import collect

    return collect(collector, name, obj)


@pytest.fixture
def to_eval(request: pytest.FixtureRequest) -> "ToEval":
    """Score one input in a test: `await to_eval(input, task=…, expected=…, scorer=…)`."""
    from bakeoff.doors.pytest_plugin.to_eval import ToEval

    name = getattr(request.node, "originalname", None) or request.node.name
    return ToEval(request.config, request.session, request.node.nodeid, name)


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Async tests that use `to_eval` run without another plugin; one that is another's is left to it."""
    import inspect

    if "to_eval" not in pyfuncitem.fixturenames or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    if any(pyfuncitem.get_closest_marker(name) for name in _TAKEN_BY_OTHERS):
        return None
    from bakeoff.doors.pytest_plugin.loops import run_here

    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    run_here(pyfuncitem.obj(**arguments))
    return True


class EvalHooks:
    """The hooks that need to know the session's configuration."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._worker = hasattr(config, "workerinput")
        self._keeps = not config.getoption("eval_no_record")
        self._keeper: RunKeeper | None = None

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        shortly = getattr(item, "run_shortly", None)
        return (shortly and shortly(nextitem)) or None

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport | None:
        passing = getattr(item, "passing_report", None) if call.excinfo is None else None
        return passing and passing(call)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call":
            return
        gathered = gathering(self._config)
        if self._worker:
            gathered.attach(report)
            return
        gathered.take(report)
        if (outcomes := gathered.of(report)) and self._keeps:
            self._keep(outcomes)

    def _keep(self, outcomes: "Sequence[EvalOutcome]") -> None:
        if self._keeper is None:
            from bakeoff.doors.pytest_plugin.keeping import RunKeeper

            self._keeper = RunKeeper(self._config)
        for outcome in outcomes:
            self._keeper.add(outcome)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Replay is on before the first fixture, so that it does not matter which eval is the first."""
        from bakeoff.doors.pytest_plugin.options import replay_mode

        if replay_mode(self._config) == "off" or self._config.option.collectonly:
            return
        if any(hasattr(item, "group") or "to_eval" in getattr(item, "fixturenames", ()) for item in session.items):
            from bakeoff.doors.pytest_plugin.session import session_of

            session_of(self._config)

    def pytest_report_collectionfinish(self, config: pytest.Config, items: list[pytest.Item]) -> list[str]:
        if config.get_verbosity() <= 0 or _SUITES not in sys.modules:
            return []
        from bakeoff.doors.pytest_plugin.groups import serial_notes

        return serial_notes(items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Also after -x and Ctrl-C: what was not reported is cancelled before fixtures go."""
        if _SESSIONS in sys.modules:
            from bakeoff.doors.pytest_plugin.session import close_session

            close_session(self._config)
        if self._keeper is not None:
            stopped = exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
            self._keeper.finish(interrupted=stopped or bool(session.shouldfail or session.shouldstop))

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._keeper is None:
            return
        if self._keeper.problem is not None:
            terminalreporter.write_line(f"evals: this run is not kept: {self._keeper.problem}", yellow=True)
        elif self._keeper.path is not None and self._config.get_verbosity() > 0:
            terminalreporter.write_line(f"evals: this run is kept in {self._keeper.path}")

"""Connect evals with pytest.

Every pytest run in a project that has bakeoff installed loads this module, and most have no eval.
So it imports only pytest, and the rest when there is an eval.
"""

import inspect
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from bakeoff._kernel.imports import collection_paused
from bakeoff.doors.pytest.gather import CALLED, EvalFailed
from bakeoff.doors.pytest.hooks import AT_THE_END, SUITE_MODULE, EvalHooks
from bakeoff.doors.pytest.options import FIXTURES, add_options, name_of_test
from bakeoff.doors.pytest.report_texts import SessionSecrets

if TYPE_CHECKING:
    from collections.abc import Generator

    from bakeoff.doors.pytest.in_tests import EvalFixture, RunEval, ToEval

    Fixture = TypeVar("Fixture", bound=EvalFixture)

_ASYNC_MARKS = ("asyncio", "anyio", "trio", "twisted", "tornado")
"""Marks of plugins that run async tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser.getgroup("bakeoff", "evals (bakeoff)"))


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Register our cleanup before all others, so that it runs last: they run in reverse order."""
    until_end = early_config.stash[AT_THE_END] = ExitStack()
    early_config.add_cleanup(until_end.close)


_ONLY_TELLS = ("help", "version", "collectonly", "showfixtures", "show_fixtures_per_test", "markers", "cacheshow")
"""Options of pytest with which no test runs."""


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """With `--eval-watch`, run cycle after cycle instead of one session."""
    option = config.option
    if not option.eval_watch or option.eval_watch_cycle or any(getattr(option, name, None) for name in _ONLY_TELLS):
        return None
    from bakeoff.doors.pytest.watch import watch

    return watch(config)


def pytest_configure(config: pytest.Config) -> None:
    """Register the hooks of the session, and read the options: invalid ones end pytest before a test runs."""
    if config.option.eval_watch_cycle is not None:
        from bakeoff.doors.pytest.watch import begin_cycle

        begin_cycle(config, config.option.eval_watch_cycle)
    config.pluginmanager.register(EvalHooks(config), "bakeoff-evals")
    config.pluginmanager.register(SessionSecrets(config), "bakeoff-secrets")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> list[pytest.Item] | None:
    """Collect the cases of a suite; None leaves any other object to pytest."""
    suites = sys.modules.get(SUITE_MODULE)
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

    return _noted(request, ToEval)


@pytest.fixture
def run_eval(request: pytest.FixtureRequest) -> "RunEval":
    """Call the application once in a test: `result = await run_eval(input, task=…)`, then asserts and judges."""
    from bakeoff.doors.pytest.in_tests import RunEval

    return _noted(request, RunEval)


def _noted(request: pytest.FixtureRequest, kind: "type[Fixture]") -> "Fixture":
    """Make a fixture's value, and note it with its test, to find unfinished evals at the end."""
    made = kind(request.config, request.node.nodeid, name_of_test(request.node))
    request.node.stash.setdefault(CALLED, []).append(made)
    return made


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run async tests that use `to_eval` or `run_eval`, unless a mark leaves them to another plugin."""
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
    """Give pytest's short summary the reason of the worst scorer, also for an eval inside a test."""
    report = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, EvalFailed):
        crash: Any = getattr(report.longrepr, "reprcrash", None)
        if crash is not None:
            crash.message = call.excinfo.value.short
    return report

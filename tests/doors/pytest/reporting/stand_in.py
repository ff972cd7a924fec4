"""A plugin that hands over outcomes as the real one does, so that reports are tested apart from running evals.

Tests get a fixture `evaluated(score, **more)`; a test fails if one of its evals did not pass.

PYTEST_DONT_REWRITE: the tests that use it have imported it before.
"""

from collections.abc import Callable, Generator
from typing import Any

import pytest
from tests.doors.pytest.reporting.evals import broken, outcome

from bakeoff.doors.pytest.gather import gathering
from bakeoff.doors.pytest.options import add_options
from bakeoff.doors.pytest.reports import register


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser.getgroup("bakeoff"))


def pytest_configure(config: pytest.Config) -> None:
    register(config)


@pytest.fixture
def evaluated(request: pytest.FixtureRequest) -> Callable[..., None]:
    def hand_over(score: float | None = 1.0, **more: Any) -> None:
        if more.pop("break_scorer", False):
            more |= {"records": (broken(),), "problem": "Judge: ValueError: boom"}
        made = outcome(score, request.node.nodeid, **more)
        gathering(request.config).add(request.node.nodeid, made)
        if made.passed is False or made.problem:
            pytest.fail(f"score {score}", pytrace=False)

    return hand_over


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if hasattr(item.config, "workerinput") and call.when == "call":
        gathering(item.config).attach(report)
    return report


class Taker:
    """First of all: what is logged is known to whoever reports it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None]:
        gathering(self._config).take(report)
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(Taker(session.config))

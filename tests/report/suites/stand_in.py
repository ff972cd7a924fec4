"""A plugin that hands over outcomes as the real one does, so that reports are tested apart from running evals.

Tests get a fixture `evaluated(score, **more)`; a test fails if one of its evals did not pass.

PYTEST_DONT_REWRITE: the tests that use it have imported it before.
"""

from collections.abc import Callable
from typing import Any

import pytest
from tests.report.suites.evals import broken, outcome

from bakeoff.doors.pytest.gather import gathering
from bakeoff.doors.pytest.hooks import EvalHooks
from bakeoff.doors.pytest.options import add_options


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser.getgroup("bakeoff"))


def pytest_configure(config: pytest.Config) -> None:
    config.option.eval_no_record = True
    config.pluginmanager.register(EvalHooks(config))


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

"""A project of its own for each test, with evals in it, and pytest run there with the plugin and without others."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import pytest

from bakeoff.doors.pytest.gather import gathering
from bakeoff.report.suites.outcomes import EvalOutcome

# A session in this process forgets the modules that it was the first to load. Loaded here, they are loaded once.
for _module in ("collecting", "ending", "in_tests", "lost", "run_writer"):
    import_module(f"bakeoff.doors.pytest.{_module}")
for _module in ("compare.within_run", "suites.eval_file", "suites.files", "suites.gates"):
    import_module(f"bakeoff.report.{_module}")
import_module("scipy.special")

PLUGIN = ("-p", "bakeoff.doors.pytest.plugin")
HEAD = """
import asyncio, os, threading, time
import pytest
from bakeoff import TaskResult, ToolCall, describe_eval, eval_suite
from bakeoff.scorers import Contains, Exact

def right(given):
    return given.output == given.expected

def rows(*inputs):
    return [{"input": each, "name": str(each), "expected": f"<{each}>"} for each in inputs]
"""


DEAF = """
@eval_suite(data=rows("deaf", "quick"), scorers=[right], timeout=0.3)
async def test_deaf(FIXTURES):
    while case.input == "deaf":
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
    return f"<{case.input}>"
"""
"""A suite with a case that ignores its cancellation; FIXTURES stands for its parameters."""


@dataclass
class Seen:
    """The result of a run of pytest."""

    result: pytest.RunResult
    outcomes: list[EvalOutcome]

    @property
    def text(self) -> str:
        return self.result.stdout.str()

    def counts(self) -> dict[str, int]:
        return {name: count for name, count in self.result.parseoutcomes().items() if name != "warnings"}

    def outcome(self, case: str) -> EvalOutcome:
        return next(outcome for outcome in self.outcomes if outcome.case == case)


@dataclass
class _Watcher:
    outcomes: list[EvalOutcome] = field(default_factory=list)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        gathering(session.config).keeps_outcomes = True  # as for a report that is written at the end

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.outcomes.extend(gathering(session.config).outcomes)


@dataclass
class SmallProject:
    pytester: pytest.Pytester

    @property
    def path(self) -> Path:
        return self.pytester.path

    def write(self, code: str, name: str = "test_it.py", head: str = HEAD) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + code)

    def run(self, *arguments: str, cached: bool = False) -> Seen:
        """In this process; a warning is an error."""
        watcher = _Watcher()
        given = [*PLUGIN, "-W", "error", *(() if cached else ("-p", "no:cacheprovider")), *arguments]
        return Seen(self.pytester.runpytest_inprocess(*given, plugins=[watcher]), watcher.outcomes)

    def run_apart(self, *arguments: str, record: Sequence[str] = ("--eval-no-record",)) -> Seen:
        """In a process of its own, where nothing of this one can help or hinder."""
        given = [*PLUGIN, "-W", "error", *record, *arguments]
        return Seen(self.pytester.runpytest_subprocess(*given, timeout=600), [])


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> SmallProject:
    """An empty project; plugins that happen to be installed stay out unless a test names them."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "BAKEOFF_REPLAY"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeini("[pytest]")
    return SmallProject(pytester)

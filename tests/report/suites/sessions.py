"""Whole pytest sessions with evals: a project of one file is run, here or in a process of its own."""

import sys
from collections.abc import Mapping
from typing import Any

import junitparser
import pytest
import scipy.special
import scipy.stats
from tests.report.suites import stand_in

import bakeoff.report.render.html
from bakeoff.doors.pytest import ending

# Otherwise each session in this process would import these, and forget them.
LOADED = (bakeoff.report.render.html, ending, scipy.special, scipy.stats)

CAPITALS = """
import pytest
import scipy.special
import scipy.stats

SCORES = {scores}

@pytest.mark.parametrize("case", SCORES)
def test_capitals(case, evaluated):
    evaluated(SCORES[case])
"""
SPEC = """
from bakeoff import TaskResult, ToolCall, describe_eval, eval_suite
from bakeoff.scorers import Contains, ToolCalls

async def ask(input, **row):
    return TaskResult(result="4", tool_calls=[ToolCall(name="add", arguments={"a": 2, "b": 2})])

ROWS = [{"input": "Capital of France?", "expected": "Paris"}, {"input": "Capital of Italy?", "expected": "Rome"}]

@eval_suite(data=ROWS, scorers=[Contains()], threshold=0.8)
async def test_capitals(case):
    return f"It is {'Paris' if 'France' in case.input else '?'}."

test_sums = describe_eval(
    "sums", data=[{"input": "2+2", "expected_tools": ["add"]}], task=ask, scorers=[ToolCalls()], threshold=None
)

async def test_one(to_eval):
    await to_eval("What is 2+2?", expected="4", task=ask, scorer=Contains(), threshold=1.0)
    await to_eval("What is 2+2?", output="4", expected="4", scorer=Contains())
"""
REAL = "bakeoff.doors.pytest.plugin"
Scores = Mapping[str, float]
NO_SCORES: Scores = {}


def run(
    pytester: pytest.Pytester,
    *arguments: str,
    test: str = "",
    apart: bool = False,
    plugin: str = stand_in.__name__,
    scores: Scores = NO_SCORES,
    **more: float,
) -> pytest.RunResult:
    pytester.makepyfile(test_x=test or CAPITALS.format(scores={**scores, **more}))
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    started = pytester.runpytest_subprocess if apart else pytester.runpytest_inprocess
    return started("-p", plugin, "-p", "no:cacheprovider", *arguments)


def properties(case: Any) -> dict[str, str]:
    found = case.child(junitparser.Properties)
    return {each.name: each.value for each in found} if found is not None else {}


def run_bakeoff(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run a command of bakeoff in the folder of a session."""
    command = "import sys; from bakeoff.cli.main import main; sys.exit(main())"
    return pytester.run(sys.executable, "-c", command, *arguments)

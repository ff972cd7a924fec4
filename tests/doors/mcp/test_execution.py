"""Test what tools give, set against what was expected of them."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bakeoff.scorers.mcp.calls import CallRules, CaseExpectation, ExecutedCall
from bakeoff.scorers.mcp.execution import result_differences

from .conftest import SERVERS, Evaluate, details

ADD: dict[str, Any] = {"serverName": "sums", "toolName": "add", "parameters": {"a": 2, "b": 3}}
COUNT: dict[str, Any] = {"serverName": "sums", "toolName": "count_to", "parameters": {"last": 2}}
SUMS = {"name": "sums", "command": sys.executable, "args": [str(SERVERS / "sums.py")]}


def differences(expected: Any, *executed: ExecutedCall) -> list[str]:
    return asyncio.run(result_differences(CaseExpectation(calls=None, results=expected), executed))


def gives(text: str, structured: Any = None) -> ExecutedCall:
    return ExecutedCall(tool="s / t", text=text, structured=structured)


FIVE, BOTH = gives("5", {"result": 5}), gives("1\n2", {"result": [1, 2]})
BMI = gives('{"bmi": 27.8, "unit": "kg/m2"}', {"bmi": 27.8, "unit": "kg/m2"})


@pytest.mark.parametrize(
    ("expected", "executed", "held"),
    [
        # what an SDK has wrapped is meant bare, and as it is
        (5, FIVE, True),
        (6, FIVE, False),
        ("5", FIVE, True),
        ({"value": 5, "approx": 0.5}, FIVE, True),
        ({"value": 6, "approx": 0.5}, FIVE, False),
        ({"oneOf": [5, 6]}, FIVE, True),
        ({"oneOf": [6, 7]}, FIVE, False),
        ({"result": 5}, FIVE, True),
        ({"result": 6}, FIVE, False),
        ({"regex": "^5$"}, FIVE, True),
        ([1, 2], BOTH, True),
        ([2, 1], BOTH, False),
        ({"a": 1}, gives("", {"result": {"a": 1, "b": 2}}), True),
        (True, gives("true", {"result": True}), True),
        (1, gives("true", {"result": True}), False),
        # an object with more than that is an answer by itself
        (5, gives("", {"result": 5, "unit": "kg"}), False),
        # structured content and text are both the result
        ({"bmi": 27.8}, BMI, True),
        ({"bmi": 20}, BMI, False),
        ({"regex": "kg/m2"}, BMI, True),
        ({"a": 1}, gives('{"a": 1}', {"b": 2}), True),
        (5, gives("5"), True),
        ({"value": 5, "approx": 0}, gives("5"), True),
        # as other tools write an expected text
        ({"content": "five"}, gives("five"), True),
        ({"content": "five"}, gives("five or six"), False),
        ({"value": "five", "caseInsensitive": True}, gives("Five"), True),
    ],
)
def test_a_result_is_right_as_soon_as_one_way_to_read_it_is(expected: Any, executed: ExecutedCall, held: bool) -> None:
    assert (differences(expected, executed) == []) is held


@pytest.mark.parametrize(
    ("expected", "executed", "told"),
    [
        (6, FIVE, "is 5, expected 6"),
        ({"value": 6, "approx": 0.5}, FIVE, "is 5, expected 6 ± 0.5"),
        ({"result": 6}, FIVE, "result: is 5, expected 6"),
        ({"bmi": 20}, BMI, "bmi: is 27.8, expected 20"),
        ([1, 3], BOTH, "[1]: is 2, expected 3"),
    ],
)
def test_a_wrong_result_is_told_as_it_was_most_probably_meant(expected: Any, executed: ExecutedCall, told: str) -> None:
    assert differences(expected, executed) == [f"result of 's / t': {told}"]


def test_several_results_are_each_set_against_what_was_expected_of_them() -> None:
    assert differences([5, [1, 2]], FIVE, BOTH) == []
    assert differences([5, [1, 3]], FIVE, BOTH) == ["result of 's / t': [1]: is 2, expected 3"]


@pytest.mark.parametrize("mode", ["json", "agent"])
def test_a_number_and_a_list_that_an_sdk_wraps_are_compared_as_the_tool_gave_them(
    evaluated: Evaluate, mode: str
) -> None:
    asked = [{"name": each["toolName"], "arguments": each["parameters"]} for each in (ADD, COUNT)]
    steps = [{"step": 0, "call": asked}, {"step": 1, "say": "done"}]
    Path("agent.json").write_text(json.dumps({"replies": steps}))
    case = {"prompt": "x", "expectedOutput": [ADD, COUNT]}
    expected = [[5, [1, 2]], [{"value": 5, "approx": 0.5}, {"oneOf": [[1], [1, 2]]}], [5, [1, 3]], [6, [1, 2]]]
    report = evaluated(
        mode=mode,
        modelsToTest=["scripted:agent.json" if mode == "agent" else f"scripted:{json.dumps([ADD, COUNT])}"],
        testCases=[{**case, "expectedResults": each} for each in expected],
        mcpServers=[SUMS],
    )
    assert [details(report, at)[0].error for at in range(4)] == [
        None,
        None,
        "result of 'sums / count_to': [1]: is 2, expected 3",
        "result of 'sums / add': is 5, expected 6",
    ]


def test_an_error_can_be_expected():
    failed = ExecutedCall(tool="s / t", text="no such city: Atlantis", is_error=True)

    def told(error: bool | str, executed: ExecutedCall) -> list[str]:
        return asyncio.run(
            result_differences(CaseExpectation(calls=None, rules=CallRules(expectedError=error)), [executed])
        )

    assert told(True, failed) == []
    assert told("no such city", failed) == []
    assert told("no such country", failed) == [
        "the error of 's / t' does not contain 'no such country': no such city: Atlantis"
    ]
    assert told(True, gives("5")) == ["the tool 's / t' succeeded, but an error is expected"]

"""Calls that may come in any order, among others, or in another way."""

import asyncio
from typing import Any

import pytest

from bakeoff.scorers.mcp.calls import Call, CallRules, CaseExpectation, ExpectedMcpCall
from bakeoff.scorers.mcp.execution import call_differences

ANY, ALLOW = {"order": "any"}, {"extraCalls": "allow"}


def made(text: str) -> list[dict[str, Any]]:
    """Read `a1 b2` as two calls: the tool `a` with n=1, then `b` with n=2."""
    return [{"serverName": "s", "toolName": word[0], "parameters": {"n": int(word[1:])}} for word in text.split()]


def differences(wanted: str, actual: str, *alternatives: str, **rules: Any) -> list[str]:
    expected = CaseExpectation(
        calls=tuple(ExpectedMcpCall(**call) for call in made(wanted)) or None,
        alternatives=tuple(tuple(ExpectedMcpCall(**call) for call in made(other)) for other in alternatives),
        rules=CallRules(**rules),
    )
    return asyncio.run(call_differences(expected, [Call(**call) for call in made(actual)], extra_allowed=False))


@pytest.mark.parametrize(
    ("wanted", "actual", "rules"),
    [
        ("a1 b2", "a1 b2", {}),
        ("a1 b2", "b2 a1", ANY),
        ("a1 a2 a1", "a1 a1 a2", ANY),
        ("a1 b2", "c3 a1 c3 b2 c3", ALLOW),
        ("a1 b2", "c3 b2 a1", {**ANY, **ALLOW}),
        ("", "a1", ALLOW),
        ("a1", "a1", {"maxCalls": 1}),
    ],
)
def test_calls_that_match(wanted: str, actual: str, rules: dict[str, Any]):
    assert differences(wanted, actual, **rules) == []


@pytest.mark.parametrize(
    ("wanted", "actual", "rules", "told"),
    [
        ("a1 b2", "b2 a1", {}, "call 1: toolName is 'b', expected 'a'"),
        ("a1 b2", "b2 a1", ALLOW, "'s / b' was not called as often, or not in the order, that is expected"),
        ("a1 b2", "a1 b2 c3", ANY, "'s / c' was called too, which is not expected"),
        ("a1 b2", "a1 b3", ANY, "'s / b': parameters: n: is 3, expected 2"),
        ("a1 a1", "a1", ANY, "'s / a' was not called as often, or not in the order, that is expected"),
        ("a1 b2", "a1 c3", ALLOW, "'s / b' was not called, only 's / a', 's / c'"),
        ("a1", "", ALLOW, "no tool was called, expected 's / a'"),
        ("", "a1", {}, "no tool should be called, but 's / a' was"),
        ("a1", "a1 b2 c3", {**ALLOW, "maxCalls": 2}, "3 calls were made, at most 2 are allowed"),
    ],
)
def test_calls_that_do_not_match_are_told_apart(wanted: str, actual: str, rules: dict[str, Any], told: str):
    assert told in differences(wanted, actual, **rules)[0]


def test_an_alternative_is_as_good_and_the_first_expectation_explains_what_is_wrong():
    assert differences("a1", "b2", "c3", "b2") == []
    assert differences("a1", "b2 c3", "b2 c3") == []
    (problem,) = differences("a1", "d4", "b2")
    assert problem == "toolName is 'd', expected 'a'"

"""The way to an answer: order, subset, forbidden tools, arguments with matchers, and limits."""

from typing import Any

import pytest

from bakeoff.engine.registry import default_registry
from bakeoff.errors import GraderError, UsageError
from bakeoff.plan import ScorerSpec
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score, Step, ToolCall, Transcript, Usage
from bakeoff.scorers import ToolCalls, Trajectory

ANY: Any = object()


def given(names: str, expected: Any = ANY, **usage: Any) -> ScoreInput:
    calls = [ToolCall(name=name, arguments={"n": at}) for at, name in enumerate(names.split())]
    row: dict[str, Any] = (
        {} if expected is ANY else {"expected_tools": expected.split() if isinstance(expected, str) else expected}
    )
    return ScoreInput.of("x", tool_calls=calls, usage=Usage(**usage), input="?", **row)


async def scored(scorer: Trajectory | ToolCalls, *about: Any, **usage: Any) -> Score:
    return await scorer(given(*about, **usage))


@pytest.mark.parametrize(
    ("match", "called", "expected", "value"),
    [
        ("any_order", "b x a", "a b", 1.0),
        ("any_order", "b", "a b", 0.0),
        ("in_order", "a x b", "a b", 1.0),
        ("in_order", "b x a", "a b", 0.0),
        ("exact", "a b", "a b", 1.0),
        ("exact", "a x b", "a b", 0.0),
        ("exact", "a", "", 0.0),
        ("exact", "", "", 1.0),
        ("subset", "b", "a b", 1.0),
        ("subset", "", "a b", 1.0),
        ("subset", "b x", "a b", 0.0),
        ("subset", "b b", "a b", 0.0),
    ],
)
async def test_calls_come_as_they_should(match: Any, called: str, expected: str, value: float) -> None:
    assert (await scored(Trajectory(match=match), called, expected)).value == value


@pytest.mark.parametrize(
    ("wanted", "value", "reason"),
    [
        ({"q": {"regex": "^par"}, "n": {"approx": 1, "value": 5}}, 1.0, "all 1 expected calls were made"),
        ({"q": {"oneOf": ["x", "paris"]}, "n": {"any": True}}, 1.0, "all 1 expected calls were made"),
        ({"q": "paris", "n": 4, "limit": {"optional": True, "value": 9}}, 1.0, "all 1 expected calls were made"),
        ({"q": "paris"}, 0.0, "missing: search({'q': 'paris'}) (n: was not expected, is 4)"),
        ({"q": {"regex": "rome"}, "n": 4}, 0.0, "q: is 'paris', which does not contain 'rome'"),
    ],
)
async def test_arguments_may_say_how_they_are_compared(wanted: dict[str, Any], value: float, reason: str) -> None:
    calls = [ToolCall(name="search", arguments={"q": "paris", "n": 4})]
    about = ScoreInput.of(tool_calls=calls, expected_tools=[{"name": "search", "arguments": wanted}])
    score = await ToolCalls(params="matchers")(about)
    assert (score.value, reason in score.reason) == (value, True)
    assert (await Trajectory()(about)).value == value


async def test_a_matcher_that_makes_no_sense_is_told() -> None:
    about = given("search", [{"name": "search", "arguments": {"n": {"approx": 1, "value": "x"}}}])
    with pytest.raises(GraderError, match=r"'case': search\.n: `approx` needs a number"):
        await Trajectory()(about)


async def test_forbidden_tools_are_named_by_patterns() -> None:
    score = await scored(Trajectory(forbidden=("delete_*", "buy")), "search delete_all delete_all Buy")
    assert (score.value, score.reason) == (0.0, "forbidden: delete_all")
    assert (await scored(Trajectory(forbidden=("buy",)), "search")).value == 1.0


@pytest.mark.parametrize(
    ("limit", "usage", "value", "reason"),
    [
        ({"max_calls": 2}, {}, 1.0, "as it should be"),
        ({"max_calls": 1}, {}, 0.0, "2 tool calls, at most 1 allowed"),
        ({"max_steps": 3}, {"requests": 3}, 1.0, "as it should be"),
        ({"max_steps": 2}, {"requests": 3}, 0.0, "3 steps, at most 2 allowed"),
        ({"max_steps": 2}, {}, None, "not known: steps"),
        ({"max_tokens": 10}, {"input": 9, "output": 2}, 0.0, "11 tokens, at most 10 allowed"),
        ({"max_usd": 0.01}, {"cost": 0.02}, 0.0, "0.02 USD, at most 0.01 allowed"),
        ({"max_usd": 0.01, "max_tokens": 5}, {}, None, "not known: tokens, USD"),
        ({"max_usd": 0.01, "max_calls": 1}, {}, 0.0, "2 tool calls, at most 1 allowed"),
    ],
)
async def test_limits_are_kept_broken_or_unknown(
    limit: dict[str, Any], usage: dict[str, Any], value: float | None, reason: str
) -> None:
    score = await scored(Trajectory(**limit), "a b", **usage)
    assert (score.value, score.reason) == (value, reason)


async def test_steps_are_those_of_the_transcript_where_nothing_else_tells() -> None:
    about = ScoreInput.of("x", input="?")
    long = ScoreInput(about.case, Transcript(output="x", steps=(Step(), Step(), Step())), {}, about.pristine)
    assert (await Trajectory(max_steps=2)(long)).reason == "3 steps, at most 2 allowed"


async def test_all_problems_are_told_together() -> None:
    score = await scored(Trajectory(forbidden=("b",), max_calls=1), "b a", "a b")
    assert score.reason.startswith("missing: ")
    assert score.reason.endswith("forbidden: b; 2 tool calls, at most 1 allowed")


async def test_nothing_to_check_is_no_pass() -> None:
    with pytest.raises(GraderError, match="there is nothing to check: give the row `expected_tools`"):
        await scored(Trajectory(), "a")
    assert (await scored(Trajectory(match=None, max_calls=1), "a", "b")).value == 1.0
    with pytest.raises(GraderError, match="write `expected_tools`"):
        await Trajectory(max_calls=3)(ScoreInput.of("x", input="?", expectedTools=["a"]))


def test_a_plan_says_the_same_as_python() -> None:
    options = {"match": "exact", "forbidden": ["rm"], "max_usd": 0.5}
    spec = ScorerSpec.model_validate({"kind": "trajectory", "options": options})
    assert default_registry().scorers["trajectory"](spec) == Trajectory(match="exact", forbidden=("rm",), max_usd=0.5)
    with pytest.raises(UsageError, match="option match"):
        Trajectory(match="somehow")  # type: ignore[arg-type]

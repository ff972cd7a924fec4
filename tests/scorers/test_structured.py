"""The fields of a JSON object against those expected, and whole JSON by the same rules."""

import re
from typing import Any

import pytest

from bakeoff.engine.registry import default_registry
from bakeoff.errors import GraderError, UsageError
from bakeoff.plan import ScorerSpec
from bakeoff.protocols import ScoreInput
from bakeoff.scorers import Fuzzy, JsonMatch, StructuredOutput

PARTIAL = {"require_all": False}
EXACT = {"allow_extras": False}
BOTH = {**PARTIAL, **EXACT}
FUZZY: dict[str, Any] = {"match": "fuzzy"}


@pytest.mark.parametrize(
    ("output", "expected", "options", "value", "reason"),
    [
        ('{"a": 1, "b": 2}', {"a": 1, "b": 2}, {}, 1.0, "all 2 expected fields are right"),
        ({"a": 1}, {"a": 1}, {}, 1.0, "all 1 expected fields are right"),
        ('{"a": 1, "x": 9}', {"a": 1}, {}, 1.0, "all 1 expected fields are right"),
        ('{"a": 1, "x": 9}', {"a": 1}, EXACT, 0.0, "not expected: 'x'"),
        ('{"a": 1, "x": 9}', {"a": 1}, BOTH, 0.5, "not expected: 'x'"),
        ('{"a": 1}', {"a": 1, "b": 2}, {}, 0.0, "b is missing"),
        ('{"a": 1}', {"a": 1, "b": 2}, PARTIAL, 0.5, "b is missing"),
        ('{"a": 1, "b": 3, "x": 0}', {"a": 1, "b": 2}, BOTH, 1 / 3, "b is 3, not 2; not expected: 'x'"),
        ('{"a": {"b": 1, "c": 2}}', {"a": {"b": 1}}, {}, 0.0, "a.c is not expected"),
        ('{"a": {"b": 1, "c": 2}}', {"a": {"b": 1}}, FUZZY, 1.0, "all 1 expected fields are right"),
        ('{"a": "PARIS "}', {"a": "paris"}, FUZZY, 1.0, "all 1 expected fields are right"),
        ('{"a": "x1"}', {"a": re.compile(r"\d")}, FUZZY, 1.0, "all 1 expected fields are right"),
        ('{"a": 5}', {"a": lambda value: value < 3}, FUZZY, 0.0, "a is 5, and"),
        ('{"a": 5}', {"a": 6}, {"match": lambda one, other: abs(one - other) < 2}, 1.0, "all 1"),
        ("{}", {}, {}, 1.0, "all 0 expected fields are right"),
        ('{"a": 1}', {}, EXACT, 0.0, "not expected: 'a'"),
        ('{"a": 1}', {}, BOTH, 0.0, "not expected: 'a'"),
        ('{"a": 1, "error": "down"}', {"a": 1}, {}, 0.0, "the output has an error: 'down'"),
        ('{"a": 1, "error": null}', {"a": 1}, {}, 1.0, "all 1"),
        ('{"error": "down"}', {"error": "down"}, {}, 1.0, "all 1"),
        ('{"a": 1, "error": "down"}', {"a": 1}, {"error_field": None}, 1.0, "all 1"),
        ('{"a": 1, "problem": "down"}', {"a": 1}, {"error_field": "problem"}, 0.0, "the output has an error: 'down'"),
        ("[1, 2]", {"a": 1}, {}, 0.0, "the output is [1, 2], not an object"),
        ("[1, 2]", [1, 2], {}, 1.0, "all 1"),
        ("[1, 3]", [1, 2], {}, 0.0, "output[1] is 3, not 2"),
        ("not JSON", {"a": 1}, {}, 0.0, "the output is not JSON: expected ident"),
        ("{}", None, {}, None, "the case has no expected output"),
    ],
)
async def test_fields_are_scored(
    output: Any, expected: Any, options: dict[str, Any], value: float | None, reason: str
) -> None:
    scored = await StructuredOutput(**options)(ScoreInput.of(output, expected=expected))
    assert scored.value == (value if value is None else pytest.approx(value))
    assert scored.reason.startswith(reason)
    assert value is None or scored.metadata["rationale"] == scored.reason


async def test_json_in_a_fence_is_taken_and_noted() -> None:
    given = ScoreInput.of('Sure!\n```json\n{"a": 1}\n```', expected={"a": 1})
    for scorer in (StructuredOutput(), JsonMatch()):
        scored = await scorer(given)
        assert (scored.value, scored.metadata["fenced"]) == (1.0, True)


@pytest.mark.parametrize(
    ("match", "value"), [("equal", 0.0), ("subset", 0.0), ("strict", 0.0), ("fuzzy", 1.0), (lambda a, b: True, 1.0)]
)
async def test_whole_json_is_compared_in_the_same_ways(match: Any, value: float) -> None:
    given = ScoreInput.of('{"a": " PARIS", "b": 1}', expected={"a": "Paris"})
    assert (await JsonMatch(match)(given)).value == value


async def test_what_only_fuzzy_knows_is_no_silent_failure() -> None:
    given = ScoreInput.of('{"a": "x"}', expected={"a": re.compile("x")})
    with pytest.raises(GraderError, match=r"a is expected to fit .* only `fuzzy` supports patterns"):
        await StructuredOutput()(given)


@pytest.mark.parametrize("kind", ["json", "structured"])
def test_a_way_that_is_none_is_told_at_once(kind: str) -> None:
    with pytest.raises(UsageError, match=f"scorer '{kind}': 'fuzy' is not a way to compare"):
        default_registry().scorers[kind](ScorerSpec(kind=kind, options={"match": "fuzy"}))


def test_a_plan_says_the_same_as_python() -> None:
    options = {"match": "fuzzy", "fuzzy": {"substring": True}, "require_all": False}
    built = default_registry().scorers["structured"](ScorerSpec(kind="structured", options=options))
    assert built == StructuredOutput("fuzzy", fuzzy=Fuzzy(substring=True), require_all=False)

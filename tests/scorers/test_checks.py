"""`checks`: conditions on the text of an output, with weights."""

import pytest
from pydantic import JsonValue

from bakeoff.errors import GraderError, UsageError
from bakeoff.plan import ScorerSpec
from bakeoff.protocols import ScoreInput
from bakeoff.scorers import Checks


async def value_of(output: JsonValue, *checks: JsonValue) -> float | None:
    scorer = Checks.from_spec(ScorerSpec(kind="checks", options={"checks": list(checks)}))
    return (await scorer(ScoreInput.of(output))).value


HOLD: list[tuple[JsonValue, dict[str, JsonValue]]] = [
    ("Paris", {"equals": "Paris"}),
    ({"a": 1}, {"equals": {"a": 1}}),
    ("in Paris", {"contains": "Paris"}),
    ("in PARIS", {"icontains": "paris"}),
    ("a b", {"contains-any": ["x", "b"]}),
    ("a b", {"contains-all": ["a", "b"]}),
    ("A B", {"icontains-all": ["a", "b"]}),
    ("Paris is", {"starts-with": "Paris"}),
    ("it is Paris", {"ends-with": "Paris"}),
    ("a1", {"regex": r"\d"}),
    ('{"a": 1}', {"is-json": {"required": ["a"]}}),
    ('here: [1, 2] and {"a": {"b": 1}}', {"contains-json": {"required": ["a"]}}),
    ("kitten", {"type": "levenshtein", "value": "sitting", "threshold": 3}),
    ("two words", {"max-words": 2}),
]


@pytest.mark.parametrize(("output", "check"), HOLD)
async def test_a_condition_holds_on_an_output_that_fits_it_and_its_negation_does_not(
    output: JsonValue, check: dict[str, JsonValue]
):
    if isinstance(check.get("equals"), dict):
        check = {"type": "equals", "value": [1]}
        output = [1]
    assert await value_of(output, check) == 1
    name = str(check.get("type") or next(iter(check)))
    if name not in ("levenshtein", "max-words"):
        assert await value_of(output, {"type": f"not-{name}", "value": check.get("value", check.get(name))}) == 0


@pytest.mark.parametrize(
    ("output", "check"),
    [
        ("Rome", {"equals": "Paris"}),
        ("in paris", {"contains": "Paris"}),
        ("a", {"contains-all": ["a", "b"]}),
        ("not {json", {"contains-json": None}),
        ('{"a": 1', {"is-json": None}),
        ("kitten", {"type": "levenshtein", "value": "sitting", "threshold": 2}),
        ("three words here", {"max-words": 2}),
        (None, {"contains": "x"}),
    ],
)
async def test_a_condition_does_not_hold_on_another(output: JsonValue, check: JsonValue):
    assert await value_of(output, check) == 0


async def test_conditions_count_by_their_weight():
    assert await value_of("a", {"contains": "a", "weight": 3}, {"contains": "b"}) == 0.75


async def test_a_schema_fetches_nothing():
    with pytest.raises(GraderError, match=r"refers to .* which is not in it"):
        await value_of("{}", {"is-json": {"$ref": "http://127.0.0.1:9/s.json"}})


async def test_output_that_is_made_to_be_slow_is_bounded():
    assert await value_of("[" * 100_000, {"contains-json": None}) == 0
    assert await value_of("a" * 3_000_000, {"type": "levenshtein", "value": "b" * 3_000_000}) == 0


@pytest.mark.parametrize(
    ("check", "told"),
    [
        ({"contians": "a"}, "contians"),
        ({"regex": "("}, "is not a regular expression"),
        ({"contains": ""}, "an empty text is in every output"),
        ({"contains-any": "a"}, "is not a list of texts"),
        ({"is-json": {"type": "nonsense"}}, "this is not a JSON Schema"),
        ({"max-words": "two"}, "is not a number of words"),
        ({"contains": None}, "needs a text"),
    ],
)
async def test_a_wrong_condition_is_told_before_anything_runs(check: JsonValue, told: str):
    with pytest.raises(UsageError, match=told.replace("(", r"\(")):
        await value_of("a", check)

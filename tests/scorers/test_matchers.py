"""Comparing the parameters of a call with what was expected."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.scorers.matchers import (
    is_matcher,
    matcher_problems,
    parameter_differences,
    parameter_problems,
    value_differences,
)


def differences(expected: Any, actual: Any, **options: Any) -> list[str]:
    return asyncio.run(parameter_differences(expected, actual, **options))


def matches(expected: Any, actual: Any) -> bool:
    return not asyncio.run(value_differences(expected, actual))


NOT_WHAT = "says how to compare but not with what: add `value`"
CALIFORNIA = {"value": "california", "caseInsensitive": True}

TABLE = [
    # plain values
    (90, 90, True),
    (90, 90.0, True),
    (90.0, 90, True),
    (90, "90", False),
    ("90", 90, False),
    (True, True, True),
    (True, 1, False),
    (1, True, False),
    (False, 0, False),
    (0, False, False),
    (0, 0.0, True),
    (None, None, True),
    (None, "", False),
    (None, False, False),
    ("", "", True),
    ("a", "A", False),
    ("a", " a", False),
    (1e300, 1e300, True),
    (0.1 + 0.2, 0.3, False),
    ("é", "e\u0301", False),
    # lists
    ([], [], True),
    ([1, 2], [1, 2], True),
    ([1, 2], [2, 1], False),
    ([1, 2], [1, 2, 3], False),
    ([1, [2]], [1, [2.0]], True),
    ([], {}, False),
    ([1], 1, False),
    # objects
    ({}, {}, True),
    ({"a": 1}, {"a": 1}, True),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    ({"a": 1}, {"a": 1, "b": 2}, False),
    ({"a": 1, "b": 2}, {"a": 1}, False),
    ({"A": 1}, {"a": 1}, False),
    ({"a": {"b": [1, {"c": True}]}}, {"a": {"b": [1, {"c": True}]}}, True),
    ({"a": {"b": [1, {"c": True}]}}, {"a": {"b": [1, {"c": 1}]}}, False),
    # `value` alone is a literal object
    ({"value": 3}, {"value": 3}, True),
    ({"value": 3}, 3, False),
    # and so is one with any other key
    ({"value": 3, "optional": True, "unit": "kg"}, {"value": 3, "optional": True, "unit": "kg"}, True),
    ({"value": 3, "optional": True, "unit": "kg"}, 3, False),
    # case
    (CALIFORNIA, "California", True),
    (CALIFORNIA, "CALIFORNIA", True),
    (CALIFORNIA, "california ", False),
    (CALIFORNIA, ["california"], False),
    ({"value": ["a", "B"], "caseInsensitive": True}, ["A", "b"], True),
    ({"value": {"k": "Straße"}, "caseInsensitive": True}, {"k": "STRASSE"}, True),
    ({"value": {"k": "a"}, "caseInsensitive": True}, {"K": "A"}, False),
    ({"value": 3, "caseInsensitive": True}, 3, True),
    ({"value": "a", "caseInsensitive": False}, "A", False),
    # optional, present
    ({"value": "x", "optional": True}, "x", True),
    ({"value": "x", "optional": True}, "y", False),
    ({"value": "x", "optional": True, "caseInsensitive": True}, "X", True),
    ({"optional": True}, "anything", True),
    ({"optional": True}, None, True),
    ({"optional": True, "caseInsensitive": True}, "x", True),
    ({"optional": True, "any": False}, "x", True),
    ({"value": None, "optional": True}, "x", False),
    ({"value": None, "caseInsensitive": True}, None, True),
    # one of
    ({"oneOf": ["kg", "lb"]}, "kg", True),
    ({"oneOf": ["kg", "lb"]}, "KG", False),
    ({"oneOf": ["kg", "lb"], "caseInsensitive": True}, "KG", True),
    ({"oneOf": [1, {"regex": "^a"}]}, "abc", True),
    ({"oneOf": [[1, 2], None]}, None, True),
    # patterns
    ({"regex": "^[0-9]{3}$"}, "123", True),
    ({"regex": "^[0-9]{3}$"}, "1234", False),
    ({"regex": "b"}, "abc", True),
    ({"regex": "B"}, "abc", False),
    ({"regex": "B", "caseInsensitive": True}, "abc", True),
    ({"regex": "[^a]", "caseInsensitive": True}, "A", True),
    ({"regex": "1"}, 1, False),
    # numbers nearby
    ({"value": 1.8, "approx": 0.05}, 1.82, True),
    ({"value": 1.8, "approx": 0.05}, 1.9, False),
    ({"value": 1.8, "approx": 0.1}, 1.9, True),
    ({"value": 1.8, "approx": 0.1}, 1.7, True),
    ({"value": 0.2, "approx": 0.1}, 0.1 + 0.2, True),
    ({"value": 1.8, "approx": 0.1}, 1.69999, False),
    ({"value": 1.8, "approx": 0.1}, 1.90001, False),
    ({"value": 1e8 + 0.3, "approx": 0.1}, 1e8 + 0.2, True),
    ({"value": 1e8 + 0.3, "approx": 0.1}, 1e8 + 0.4, True),
    ({"value": 1e8 + 0.3, "approx": 0.1}, 1e8 + 0.5, False),
    ({"value": 10**17, "approx": 1}, 10**17 + 1, True),
    ({"value": 10**17, "approx": 1}, 10**17 + 2, False),
    ({"value": 1.8, "approx": 0.1}, float("inf"), False),
    ({"value": 1.8, "approx": 0.1}, float("nan"), False),
    ({"value": 1, "approx": 0}, 1.0, True),
    ({"value": 1, "approx": 1}, True, False),
    ({"value": 1, "approx": 1}, "1", False),
    ({"value": 1.5, "approx": 1}, 10**400, False),
    # anything
    ({"any": True}, None, True),
    ({"any": True}, {"deep": [1]}, True),
    # literal
    ({"value": {"regex": "x"}, "exact": True}, {"regex": "x"}, True),
    ({"value": {"regex": "x"}, "exact": True}, "x", False),
    ({"value": {"optional": True}, "exact": True, "optional": True}, {"optional": True}, True),
    ({"p": {"value": {"value": 1, "optional": True}, "exact": True}}, {}, False),
    ({"p": {"value": {"value": 1, "optional": True}, "exact": True, "optional": True}}, {}, True),
    ({"p": {"value": {"value": 1, "optional": True}, "caseInsensitive": True}}, {}, True),
    # at any depth
    ({"filter": {"state": CALIFORNIA}}, {"filter": {"state": "CALIFORNIA"}}, True),
    ([{"any": True}, 2], ["x", 2], True),
    ({"a": {"b": {"value": 1, "optional": True}}}, {"a": {}}, True),
    ({"value": {"b": {"value": "x", "optional": True}}, "caseInsensitive": True}, {"b": "X"}, True),
    ({"a": [CALIFORNIA, {"c": {"regex": "^z"}}]}, {"a": ["California", {"c": "zoo"}]}, True),
]


@pytest.mark.parametrize(("expected", "actual", "same"), TABLE)
def test_values_are_compared_as_json_with_matchers_at_any_depth(expected, actual, same):
    assert matches(expected, actual) is same


@pytest.mark.parametrize(
    ("expected", "actual", "told"),
    [
        ({"a": 1}, {}, ["a: is missing, expected 1"]),
        ({"a": {"value": 1, "optional": True}}, {}, []),
        ({"a": {"any": True}}, {}, ["a: is missing, expected {'any': True}"]),
        ({}, {"b": 2}, ["b: was not expected, is 2"]),
        ({"a": {"x": [1, 2]}}, {"a": {"x": [1, 3]}}, ["a.x[1]: is 3, expected 2"]),
        ({"a": 1, "b": 2}, {"a": "1", "c": 3}, ["a: is '1', expected 1", "b: is missing, expected 2", "c: was not"]),
        ({"a": [1]}, {"a": []}, ["a: has 0 items, expected 1"]),
    ],
)
def test_every_difference_is_told_with_its_place(expected, actual, told):
    found = [str(difference) for difference in differences(expected, actual)]
    assert len(found) == len(told)
    assert all(text.startswith(start) for text, start in zip(found, told, strict=True))


def test_unlisted_parameters_are_fine_where_they_are_allowed_and_only_at_the_top():
    assert differences({"a": {"b": 1}}, {"a": {"b": 1}, "c": 2}, extra_allowed=True) == []
    assert differences({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, extra_allowed=True) != []


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        ({"a": {"regex": "("}}, (("a", "regex"), "'(' is not a regular expression")),
        ({"a": [{"value": "x", "approx": 1}]}, (("a", 0), "`approx` needs a number")),
        ({"a": {"oneOf": []}}, (("a", "oneOf"), "[]: needs at least 1")),
        ({"a": {"value": 1, "optional": "maybe"}}, (("a", "optional"), "'maybe': has to be true or false")),
        ({"a": {"regex": "x", "oneOf": ["x"]}}, (("a",), "exclude each other")),
        ({"a": {"value": 1, "any": True}}, (("a",), "`value` has no meaning beside `any`")),
        ({"a": {"value": {"b": {"regex": "["}}, "optional": True}}, (("a", "value", "b", "regex"), "not a regular")),
        ({"a": {"oneOf": [{"regex": "["}]}}, (("a", "oneOf", 0, "regex"), "not a regular expression")),
        ({"a.b": {"0": {"regex": "["}}}, (("a.b", "0", "regex"), "not a regular expression")),
        ({"a": {"caseInsensitive": True}}, (("a",), NOT_WHAT)),
        ({"a": {"exact": True}}, (("a",), NOT_WHAT)),
        ({"a": {"optional": False}}, (("a",), NOT_WHAT)),
        ({"a": {"any": False}}, (("a",), NOT_WHAT)),
        ({"a": {"regex": None}}, (("a",), NOT_WHAT)),
        ({"a": {"optional": True, "exact": True}}, (("a",), NOT_WHAT)),
        ({"a": {"optional": True, "approx": 1}}, (("a",), "`approx` needs a number")),
    ],
)
def test_a_matcher_that_cannot_be_used_is_found_before_anything_runs(expected, told):
    place, problem = told
    found = matcher_problems(expected)
    assert [name for name, _ in found] == [place]
    assert problem in found[0][1]


def test_what_is_meant_literally_is_not_taken_for_a_broken_matcher():
    assert matcher_problems({"a": {"value": {"regex": "("}, "exact": True}}) == []
    assert matcher_problems({"a": {"value": {"caseInsensitive": True}, "exact": True}}) == []


def test_something_may_be_left_to_the_model_and_null_may_be_what_is_expected():
    assert matcher_problems([{"optional": True}, {"optional": True, "caseInsensitive": True}, {"any": True}]) == []
    assert matcher_problems({"a": {"value": None, "exact": True}}) == []


def test_the_names_of_parameters_are_the_tools_own():
    assert parameter_problems({"regex": "(", "optional": {}}) == []
    assert parameter_problems({"regex": {"regex": "("}})[0][0] == ("regex", "regex")


@pytest.mark.journey  # it spends two seconds of the processor
def test_a_pattern_that_takes_forever_is_given_up():
    found = asyncio.run(value_differences({"regex": r"^(a|a)*$"}, "a" * 60 + "!"))
    assert "was stopped after" in str(found[0])


def test_long_values_are_shortened_where_they_are_told():
    assert len(str(differences({"a": 1}, {"a": "x" * 10_000})[0])) < 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "A", "b", "Straße", ""]) | st.floats(-2, 2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "value"]), inner, max_size=3)
    ),
    max_leaves=6,
)
EXPECTED = st.recursive(
    JSON
    | st.sampled_from([{"any": True}, {"optional": True}])
    | st.builds(lambda value: {"value": value, "optional": True}, JSON),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), EXPECTED, max_size=3), st.data())
def test_optional_and_case_insensitive_never_turn_a_pass_into_a_fail(expected, data):
    actual = data.draw(
        st.dictionaries(st.sampled_from(["a", "b", "c"]), JSON, max_size=3)
        | st.just({name: value for name, value in expected.items() if not is_matcher(value)})
        | st.fixed_dictionaries(
            {name: JSON if is_matcher(value) else st.just(value) for name, value in expected.items()}
        )
    )
    if differences(expected, actual):
        return
    for key in ("optional", "caseInsensitive"):
        loosened = {name: _with(value, key) for name, value in expected.items()}
        assert differences(loosened, actual) == []


def _with(value: Any, key: str) -> Any:
    return {**value, key: True} if is_matcher(value) else {"value": value, key: True}


@settings(max_examples=200)
@given(JSON)
def test_every_value_equals_itself_when_meant_literally(value):
    assert matches({"value": value, "exact": True}, value)

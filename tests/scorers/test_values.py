"""Values compared strictly and fuzzily, and patterns that hold nobody up."""

import re
import threading
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from bakeoff.errors import BudgetError, GraderError
from bakeoff.scorers.patterns import search
from bakeoff.scorers.values import Fuzzy, ValueComparison, asked, plain, shown

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def differs(expected: Any, actual: Any, fuzzy: Fuzzy | None = None) -> str | None:
    return ValueComparison("fuzzy", fuzzy or Fuzzy()).difference(plain(expected), actual)


@settings(deadline=None)
@given(json_values)
def test_every_value_is_itself(value: Any) -> None:
    assert ValueComparison().difference(value, value) is None
    assert differs(value, value) is None
    assert differs(value, value, Fuzzy(coerce=True, substring=True)) is None


@settings(deadline=None)
@given(st.lists(json_values, max_size=5), st.randoms())
def test_a_shuffled_list_is_the_same_to_fuzzy_eyes(values: list[Any], random: Any) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    assert differs(values, shuffled) is None


class Colour(Enum):
    RED = "red"


class Point(BaseModel):
    x: int


@dataclass
class Size:
    width: int


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (Colour.RED, "red"),
        (Point(x=1), {"x": 1}),
        (Size(2), {"width": 2}),
        (date(2024, 2, 29), "2024-02-29"),
        (Decimal("1.5"), 1.5),
        ({1, 2}, [2, 1]),
        ({1: "a"}, {"1": "a"}),
        (pytest.approx(3, abs=1), 3.5),
        ([pytest.approx(3, abs=1)], [3.5]),
    ],
)
def test_values_of_python_stand_for_their_json(expected: Any, actual: Any) -> None:
    assert differs(expected, actual) is None


@pytest.mark.parametrize(
    ("expected", "actual", "fuzzy"),
    [
        (10**400, 10**400 + 1, {}),
        (10**400, 0.5, {}),
        (float("inf"), 1e308, {}),
        (1, "1e999", {"coerce": True}),
        ("a", 1, {"coerce": True}),
        (re.compile(b"a"), "a", {}),
        ("x", ["x"], {"substring": True}),
        (False, 0, {"coerce": True}),
        (Point(x=1), True, {}),
    ],
)
def test_what_is_not_the_same_is_told_apart_without_an_error(expected: Any, actual: Any, fuzzy: dict[str, Any]) -> None:
    assert differs(expected, actual, Fuzzy(**fuzzy)) is not None


def test_a_difference_is_told_by_its_place_and_in_short() -> None:
    assert differs({"a": [{"b": 1}]}, {"a": [{"b": 2}]}) == "$.a has no matching item for {'b': 1}"
    assert differs({"a": {"b": 1}}, {"a": {"b": 2}}) == "$.a.b is 2, not 1"
    assert len(shown("x" * 10_000)) < 300
    assert len(shown([["x" * 1000] * 1000] * 1000)) < 30_000


def test_an_error_of_ours_in_a_function_of_the_users_stays_what_it_is() -> None:
    def poor(value: Any) -> bool:
        raise BudgetError("enough")

    with pytest.raises(BudgetError):
        asked(poor, 1)


class Touchy:
    def __call__(self, value: Any) -> bool:
        raise ValueError("no")


def test_a_callable_object_is_named_by_its_class() -> None:
    with pytest.raises(GraderError, match="Touchy raised ValueError: no"):
        asked(Touchy(), 1)


# --- patterns -----------------------------------------------------------------------------------------------------

SLOW = re.compile("^(a|a)*$")
TRAP = "a" * 60 + "b"


def test_a_pattern_that_takes_too_long_is_given_up_once() -> None:
    comparison = ValueComparison("fuzzy", Fuzzy(), search_seconds=0.05)
    assert comparison.difference({"a": SLOW}, {"a": TRAP}) == "$.a: the search for '^(a|a)*$' was stopped after 0.05 s"
    assert comparison.difference(SLOW, "a") is not None, "it is not searched for again"
    assert comparison.difference(re.compile("b+"), TRAP) is None, "others still are"


@pytest.mark.parametrize("flags", [0, re.ASCII, re.IGNORECASE, re.MULTILINE, re.DOTALL, re.VERBOSE])
@pytest.mark.parametrize(
    "pattern",
    [r"^\d+$", r"^a.*B$", r"x{2,3}", r"x{,2}y", r"go{e} *", r"[{]e*}", r"\{e}*", r"\N{DIGIT ONE}+", "{i}+"],
)
def test_a_search_with_a_time_limit_finds_what_re_finds(pattern: str, flags: int) -> None:
    compiled = re.compile(pattern, flags)
    for text in ("1", "١", "", "A\nb", "a\nB", "1\n2", "xxy", "go{e}", "g", "go", "{e}}", "{i}", "{", "# aa"):
        assert search(compiled, text, 5.0) == bool(compiled.search(text)), text


def test_a_search_lets_other_threads_run() -> None:
    began, done = threading.Event(), threading.Event()

    def slow_search() -> None:
        began.set()
        with pytest.raises(TimeoutError):
            search(SLOW, TRAP, 0.5)
        done.set()

    thread = threading.Thread(target=slow_search)
    thread.start()
    began.wait()
    turns = 0
    while not done.is_set():
        turns += 1
    thread.join()
    assert turns > 1, "this thread could count while the other one searched"

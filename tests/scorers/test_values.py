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
from bakeoff.scorers.searches import Searches
from bakeoff.scorers.values import Comparison, Fuzzy, asked, plain, shown

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def differs(expected: Any, actual: Any, fuzzy: Fuzzy | None = None) -> str | None:
    with Comparison("fuzzy", fuzzy or Fuzzy()) as comparison:
        return comparison.difference(plain(expected), actual)


@settings(deadline=None)
@given(json_values)
def test_every_value_is_itself(value: Any) -> None:
    with Comparison() as strict:
        assert strict.difference(value, value) is None
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
    assert differs({"a": [{"b": 1}]}, {"a": [{"b": 2}]}) == "$.a has no item of its own for {'b': 1}"
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

SLOW = re.compile("^(a+)+$")
TRAP = "a" * 60 + "b"


def test_a_pattern_that_takes_too_long_is_given_up_once() -> None:
    with Searches(seconds=0.3) as searches:
        assert not searches.found(SLOW, TRAP)
        assert searches.slow == {SLOW.pattern}
        assert not searches.found(SLOW, "a")  # not tried again
        assert searches.found(re.compile("b+"), TRAP)  # others still are


def test_many_searches_share_a_process_that_ends_with_them() -> None:
    with Searches() as searches:
        found = [
            searches.found(re.compile(r"^\d+$", flags), text) for flags in (0, re.ASCII) for text in ("1", "١", "")
        ]
        assert found == [True, True, False, True, False, False]
        process = searches._process
        assert process is not None
    assert process.poll() is not None


def test_searches_done_together_are_those_done_alone() -> None:
    patterns = [re.compile(rf"^{letter}+$") for letter in "abc"] + [SLOW]
    texts = ["a", "bb", "abc", TRAP, *(f"c{number}" for number in range(600)), "ccc"]
    alone = [[bool(pattern.search(text)) if text != TRAP else False for text in texts] for pattern in patterns]
    with Searches(seconds=0.5) as searches:
        together = searches.done_together(lambda: [[searches.found(p, text) for text in texts] for p in patterns])
        assert searches.slow == {SLOW.pattern}
        assert together[:3] == alone[:3]
        assert not any(together[3][texts.index(TRAP) :])


def test_searches_that_follow_from_others_are_done_too() -> None:
    with Searches() as searches:
        words = [re.compile(f"{letter}+") for letter in "abcdef"]
        assert searches.done_together(lambda: all(searches.found(word, "abcdef") for word in words))


def test_a_half_surrogate_can_be_searched() -> None:
    with Searches() as searches:
        assert searches.found(re.compile("^.+$"), "\ud800")


def test_a_pattern_that_takes_too_long_says_so() -> None:
    with Comparison("fuzzy", Fuzzy(), Searches(seconds=0.2)) as comparison:
        difference = comparison.difference({"a": SLOW}, {"a": TRAP})
    assert difference == "$.a: '^(a+)+$' was still being searched for after 0.2 s"


def test_a_search_lets_other_threads_run() -> None:
    ticks = 0
    done = threading.Event()

    def search() -> None:
        with Searches(seconds=0.5) as searches:
            searches.found(SLOW, TRAP)
        done.set()

    threading.Thread(target=search).start()
    while not done.wait(0.01):
        ticks += 1
    assert ticks > 5

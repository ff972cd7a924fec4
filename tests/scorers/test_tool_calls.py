"""Tool calls against those expected: by a table, and against brute force."""

import re
from collections.abc import Callable
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.engine.registry import default_registry
from bakeoff.errors import GraderError, UsageError
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import ScoreInput
from bakeoff.record import Record, Score, Step, ToolCall, Transcript
from bakeoff.scorers import Fuzzy, ToolCalls
from bakeoff.scorers.tool_calls import wanted_by
from bakeoff.scorers.values import most_pairs, most_pairs_in_order


def tool(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def made(*calls: Any) -> list[ToolCall]:
    return [ToolCall(name=call) if isinstance(call, str) else ToolCall(**call) for call in calls]


async def score(expected: Any, calls: Any, **options: Any) -> Score:
    return await ToolCalls(**options)(ScoreInput.of(tool_calls=made(*calls), expected_tools=expected))


a, b, c = tool("a", x=1), tool("b", x=1), tool("c", x=1)
PARTIAL = {"require_all": False}
EXACT = {"allow_extras": False}
BOTH = {"require_all": False, "allow_extras": False}
ORDERED = {"ordered": True}
FUZZY: dict[str, Any] = {"params": "fuzzy"}
SUBSTRING: dict[str, Any] = {"params": "fuzzy", "fuzzy": {"substring": True}}
COERCE: dict[str, Any] = {"params": "fuzzy", "fuzzy": Fuzzy(coerce=True)}

TABLE: list[tuple[str, Any, list[Any], dict[str, Any], float]] = [
    # nothing expected, nothing made
    ("nothing expected, nothing made", [], [], {}, 1.0),
    ("nothing expected, something made", [], ["a"], {}, 1.0),
    ("nothing expected, extras refused", [], ["a"], EXACT, 0.0),
    ("nothing expected, extras refused, share wanted", [], ["a"], BOTH, 0.0),
    ("nothing expected, extras refused, none made", [], [], EXACT, 1.0),
    ("no expectation at all", None, ["a"], {}, 1.0),
    ("expected but none made", ["a"], [], {}, 0.0),
    ("expected but none made, share wanted", ["a"], [], PARTIAL, 0.0),
    ("expected but none made, ordered", ["a"], [], ORDERED, 0.0),
    # names
    ("a name", ["a"], ["a"], {}, 1.0),
    ("another name", ["a"], ["b"], {}, 0.0),
    ("names keep their case, fuzzy or not", ["a"], ["A"], FUZZY, 0.0),
    ("a name with any arguments", ["a"], [tool("a", x=9)], {}, 1.0),
    ("an object without arguments", [{"name": "a"}], [tool("a", x=9)], {}, 1.0),
    ("a lone name", "a", ["a"], {}, 1.0),
    ("a lone object", a, [a], {}, 1.0),
    ("a tool call as Python has it", [ToolCall(name="a", arguments={"x": 1})], [a], {}, 1.0),
    # order
    ("any order", ["a", "b"], ["b", "a"], {}, 1.0),
    ("the right order", ["a", "b"], ["a", "b"], ORDERED, 1.0),
    ("the wrong order", ["a", "b"], ["b", "a"], ORDERED, 0.0),
    ("the wrong order, share wanted", ["a", "b"], ["b", "a"], {**ORDERED, **PARTIAL}, 0.5),
    ("others between", ["a", "b"], ["a", "c", "b"], ORDERED, 1.0),
    ("others between, refused", ["a", "b"], ["a", "c", "b"], {**ORDERED, **EXACT}, 0.0),
    ("others between, refused, share wanted", ["a", "b"], ["a", "c", "b"], {**ORDERED, **BOTH}, 2 / 3),
    ("a retry after a wrong call", [a, b], [tool("a", x=2), a, b], ORDERED, 1.0),
    ("a late start in order", ["a", "b"], ["b", "a", "b"], ORDERED, 1.0),
    ("the longest run in order", ["a", "b", "c"], ["c", "a", "b"], {**ORDERED, **PARTIAL}, 2 / 3),
    ("first fit would lose in order", [{"name": "a"}, a], [a, tool("a", x=2)], {**ORDERED, **PARTIAL}, 0.5),
    # duplicates
    ("twice expected, twice made", ["a", "a"], ["a", "a"], {}, 1.0),
    ("twice expected, once made", ["a", "a"], ["a"], {}, 0.0),
    ("twice expected, once made, share wanted", ["a", "a"], ["a"], PARTIAL, 0.5),
    ("once expected, twice made", ["a"], ["a", "a"], {}, 1.0),
    ("once expected, twice made, refused", ["a"], ["a", "a"], EXACT, 0.0),
    ("once expected, twice made, share", ["a"], ["a", "a"], BOTH, 0.5),
    ("the general one must leave the special one its call", [{"name": "a"}, a], [a, tool("a", x=2)], {}, 1.0),
    ("the same the other way round", [a, {"name": "a"}], [tool("a", x=2), a], {}, 1.0),
    ("three that only one pairing satisfies",
     [{"name": "a"}, {"name": "a"}, a], [a, tool("a", x=2), tool("a", x=3)], {}, 1.0),
    # extras and partial
    ("extras allowed", ["a"], ["a", "b"], {}, 1.0),
    ("extras refused", ["a"], ["a", "b"], EXACT, 0.0),
    ("extras refused, share", ["a"], ["a", "b", "c"], BOTH, 1 / 3),
    ("something missing", ["a", "b"], ["a"], {}, 0.0),
    ("something missing, share", ["a", "b", "c"], ["a", "c"], PARTIAL, 2 / 3),
    ("missing and extra, share", ["a", "b"], ["a", "c"], BOTH, 1 / 3),
    ("missing and extra allowed, share", ["a", "b"], ["a", "c"], PARTIAL, 0.5),
    # strict
    ("equal arguments", [a], [a], {}, 1.0),
    ("another value", [a], [tool("a", x=2)], {}, 0.0),
    ("one argument more", [a], [tool("a", x=1, y=2)], {}, 0.0),
    ("one argument less", [tool("a", x=1, y=2)], [a], {}, 0.0),
    ("no arguments expected, none made", [tool("a")], ["a"], {}, 1.0),
    ("no arguments expected, some made", [tool("a")], [a], {}, 0.0),
    ("key order", [tool("a", x=1, y=2)], [{"name": "a", "arguments": {"y": 2, "x": 1}}], {}, 1.0),
    ("list order", [tool("a", x=[1, 2])], [tool("a", x=[2, 1])], {}, 0.0),
    ("1 is 1.0", [tool("a", x=1)], [tool("a", x=1.0)], {}, 1.0),
    ("true is not 1", [tool("a", x=True)], [tool("a", x=1)], {}, 0.0),
    ("1 is not true", [tool("a", x=1)], [tool("a", x=True)], {}, 0.0),
    ("a text is not a number", [tool("a", x=1)], [tool("a", x="1")], {}, 0.0),
    ("nested", [tool("a", x={"y": [{"z": 1}]})], [tool("a", x={"y": [{"z": 1}]})], {}, 1.0),
    ("nested and different", [tool("a", x={"y": [{"z": 1}]})], [tool("a", x={"y": [{"z": 2}]})], {}, 0.0),
    ("null is not missing", [tool("a", x=None)], [tool("a")], {}, 0.0),
    ("a tuple is a list", [tool("a", x=(1, 2))], [tool("a", x=[1, 2])], {}, 1.0),
    # fuzzy
    ("case and white space", [tool("a", x="Paris")], [tool("a", x="  PARIS ")], FUZZY, 1.0),
    ("case, strictly", [tool("a", x="Paris")], [tool("a", x="paris")], {}, 0.0),
    ("more arguments", [a], [tool("a", x=1, y=2)], FUZZY, 1.0),
    ("more, nested", [tool("a", x={"y": 1})], [tool("a", x={"y": 1, "z": 2})], FUZZY, 1.0),
    ("fewer arguments", [tool("a", x=1, y=2)], [a], FUZZY, 0.0),
    ("a thousandth off", [tool("a", x=1000)], [tool("a", x=1001)], FUZZY, 1.0),
    ("more than a thousandth off", [tool("a", x=1000)], [tool("a", x=1001.1)], FUZZY, 0.0),
    ("0.001 off a small number", [tool("a", x=0.5)], [tool("a", x=0.501)], FUZZY, 1.0),
    ("more than 0.001 off a small number", [tool("a", x=0.5)], [tool("a", x=0.5011)], FUZZY, 0.0),
    ("0.001 off nothing", [tool("a", x=0)], [tool("a", x=-0.001)], FUZZY, 1.0),
    ("true is not 1, fuzzy or not", [tool("a", x=True)], [tool("a", x=1)], FUZZY, 0.0),
    ("lists in any order", [tool("a", x=[1, 2, 3])], [tool("a", x=[3, 1, 2])], FUZZY, 1.0),
    ("lists one to one", [tool("a", x=[1, 1])], [tool("a", x=[1, 2])], FUZZY, 0.0),
    ("lists of another length", [tool("a", x=[1])], [tool("a", x=[1, 2])], FUZZY, 0.0),
    ("lists paired as well as can be",
     [tool("a", x=[re.compile("."), "p"])], [tool("a", x=["p", "q"])], FUZZY, 1.0),
    ("a pattern", [tool("a", x=re.compile(r"^\d+$"))], [tool("a", x="42")], FUZZY, 1.0),
    ("a pattern that is not found", [tool("a", x=re.compile(r"^\d+$"))], [tool("a", x="4 2")], FUZZY, 0.0),
    ("a pattern in a number", [tool("a", x=re.compile("4"))], [tool("a", x=42)], FUZZY, 0.0),
    ("a pattern in a number, coerced", [tool("a", x=re.compile("4"))], [tool("a", x=42)], COERCE, 1.0),
    ("a function", [tool("a", x=lambda value: value > 3)], [tool("a", x=4)], FUZZY, 1.0),
    ("a function that says no", [tool("a", x=lambda value: value > 3)], [tool("a", x=3)], FUZZY, 0.0),
    ("a type", [tool("a", x=str)], [tool("a", x="any")], FUZZY, 1.0),
    ("another type", [tool("a", x=int)], [tool("a", x=True)], FUZZY, 0.0),
    ("part of a text, unasked", [tool("a", x="Par")], [tool("a", x="Paris")], FUZZY, 0.0),
    ("part of a text", [tool("a", x="Par")], [tool("a", x="Paris")], SUBSTRING, 1.0),
    ("part of a text, the other way", [tool("a", x="Paris")], [tool("a", x="Par")], SUBSTRING, 0.0),
    ("an empty text is in none", [tool("a", x="")], [tool("a", x="Paris")], SUBSTRING, 0.0),
    ("white space is in none", [tool("a", x="  ")], [tool("a", x="Paris")], SUBSTRING, 0.0),
    ("an empty text is itself", [tool("a", x="")], [tool("a", x="")], SUBSTRING, 1.0),
    ("a number in a text, unasked", [tool("a", x=3)], [tool("a", x="3")], FUZZY, 0.0),
    ("a number in a text", [tool("a", x=3)], [tool("a", x="3")], COERCE, 1.0),
    ("a text for a number", [tool("a", x="3")], [tool("a", x=3.0)], COERCE, 1.0),
    ("not a whole number", [tool("a", x=3)], [tool("a", x="3abc")], COERCE, 0.0),
    ("no number at all", [tool("a", x=0)], [tool("a", x="")], COERCE, 0.0),
    ("a grouped number", [tool("a", x=1000)], [tool("a", x="1_000")], COERCE, 0.0),
    ("a truth in a text", [tool("a", x=True)], [tool("a", x="true")], COERCE, 1.0),
    ("a truth is no number, coerced or not", [tool("a", x=True)], [tool("a", x=1)], COERCE, 0.0),
    ("null is no text", [tool("a", x=None)], [tool("a", x="null")], COERCE, 0.0),
    # a way of one's own
    ("own way", [tool("a", x=1)], [tool("a", x=2)], {"params": lambda one, other: one.keys() == other.keys()}, 1.0),
    ("own way, no", [tool("a", x=1)], [tool("a", y=1)], {"params": lambda one, other: one.keys() == other.keys()}, 0.0),
    ("own way is not asked about any arguments", ["a"], [tool("a", x=1)], {"params": lambda one, other: False}, 1.0),
]  # fmt: skip


def test_the_table_is_long_enough_and_names_each_case_once() -> None:
    assert len({name for name, *_ in TABLE}) == len(TABLE) >= 60


@pytest.mark.parametrize(
    ("expected", "calls", "options", "value"), [row[1:] for row in TABLE], ids=[r[0] for r in TABLE]
)
async def test_calls_are_scored(expected: Any, calls: list[Any], options: dict[str, Any], value: float) -> None:
    scored = await score(expected, calls, **options)
    assert scored.value == pytest.approx(value)
    assert scored.reason
    assert scored.metadata["rationale"] == scored.reason


@pytest.mark.parametrize(
    ("expected", "calls", "options", "reason"),
    [
        (["a", "b"], ["a", "b"], {}, "all 2 expected calls were made"),
        (["a"], [], {}, "no tool was called; expected: a"),
        ([a], [tool("a", x=2)], {}, "missing: a({'x': 1}) (a.x is 2, not 1)"),
        (["a", "b"], ["b", "a"], ORDERED, "missing: b (it was called, but not in this order)"),
        (["a", "a"], ["a"], {}, "missing: a once more"),
        (["a"], ["a", "b"], EXACT, "not expected: b was called"),
        ([], ["b"], EXACT, "no tool was to be called, but b was called"),
        (list("abcdefg"), ["x"], {}, "missing: a, b, c, d, e and 2 more"),
        (
            [tool("a", x=re.compile("^(p+)+$"))],
            [tool("a", x="pq")],
            FUZZY,
            "missing: a({'x': re.compile('^(p+)+$')}) (a.x is 'pq', in which '^(p+)+$' is not found)",
        ),
    ],
)
async def test_the_reason_says_what_is_wrong(expected: Any, calls: Any, options: dict[str, Any], reason: str) -> None:
    assert (await score(expected, calls, **options)).reason == reason


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"expected_tools": 3}, "expected_tools is 3: write a list of tools"),
        ({"expected_tools": [3]}, "3 is not a tool: write its name, or an object with `name` and `arguments`"),
        ({"expected_tools": [{"name": "a", "args": {}}]}, "is not a tool"),
        ({"expected_tools": [""]}, "'' is not a tool"),
        ({"expectedTools": ["a"]}, "has 'expectedTools': write `expected_tools`"),
    ],
)
async def test_an_expectation_that_makes_no_sense_is_the_graders_fault(row: dict[str, Any], message: str) -> None:
    with pytest.raises(GraderError, match=re.escape(message)):
        await ToolCalls()(ScoreInput.of(input="?", **row))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"params": "fuzy"}, '\'fuzy\' is not a way to compare: write "strict", "fuzzy", or give a function'),
        ({"fuzzy": {"substring": True}}, "`fuzzy` is only allowed if"),
        ({"params": "fuzzy", "fuzzy": {"substrin": True}}, "fuzzy option substrin"),
    ],
)
def test_options_that_make_no_sense_are_told_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        ToolCalls(**options)


def broken(*values: Any) -> bool:
    raise KeyError("oops")


async def unawaited(*values: Any) -> bool:
    return True


@pytest.mark.parametrize(
    ("expected", "options", "message"),
    [
        ([tool("a", x=broken)], FUZZY, "broken raised KeyError: 'oops'"),
        ([a], {"params": broken}, "broken raised KeyError: 'oops'"),
        ([tool("a", x=unawaited)], FUZZY, "unawaited is asynchronous"),
        ([tool("a", x=broken)], {}, "a.x is expected to fit <function broken"),
    ],
)
async def test_a_function_that_breaks_is_named_as_the_graders_fault(
    expected: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(GraderError, match=re.escape(message)):
        await score(expected, [a], **options)


# --- against brute force ------------------------------------------------------------------------------------------

tables = st.integers(0, 5).flatmap(
    lambda rows: st.integers(0, 5).flatmap(
        lambda columns: st.lists(
            st.lists(st.booleans(), min_size=columns, max_size=columns), min_size=rows, max_size=rows
        )
    )
)


def most_of_any_order(fits: list[list[bool]]) -> int:
    """Every way to give columns to rows."""
    rows, columns = len(fits), len(fits[0]) if fits else 0
    places: list[int | None] = [*range(columns), *[None] * rows]
    return max(
        sum(int(place is not None and fits[row][place]) for row, place in enumerate(way))
        for way in set(permutations(places, rows))
    )


def most_in_order(fits: list[list[bool]]) -> int:
    """Every choice of rows against every choice of as many columns."""
    rows, columns = range(len(fits)), range(len(fits[0]) if fits else 0)
    return max(
        size
        for size in range(min(len(rows), len(columns)) + 1)
        for chosen in combinations(rows, size)
        for others in combinations(columns, size)
        if all(fits[row][column] for row, column in zip(chosen, others, strict=True))
    )


@settings(max_examples=150, deadline=None)
@given(tables)
def test_no_pairing_finds_more_than_ours(fits: list[list[bool]]) -> None:
    for pair, most in ((most_pairs, most_of_any_order), (most_pairs_in_order, most_in_order)):
        pairs = pair(fits)
        used = [column for column in pairs if column is not None]
        assert all(fits[row][column] for row, column in enumerate(pairs) if column is not None)
        assert len(used) == len(set(used)) == most(fits)
        assert pair is most_pairs or used == sorted(used)


calls_made = st.lists(st.builds(tool, st.sampled_from("ab"), x=st.integers(0, 2)), max_size=5)
calls_wanted = st.lists(
    st.one_of(st.sampled_from("ab"), st.builds(tool, st.sampled_from("ab"), x=st.integers(0, 2))), max_size=4
)


def by_brute_force(wanted: list[Any], calls: list[Any], ordered: bool, require_all: bool, allow_extras: bool) -> float:
    """The rules once more, in the order in which they are written down."""
    if not wanted:
        return 0.0 if calls and not allow_extras else 1.0
    if not calls:
        return 0.0
    fits = [[item in (call, call["name"]) for call in calls] for item in wanted]
    matched = (most_in_order if ordered else most_of_any_order)(fits)
    extras = len(calls) - matched
    if not allow_extras and extras:
        return 0.0 if require_all else matched / (len(wanted) + extras)
    if matched < len(wanted):
        return 0.0 if require_all else matched / len(wanted)
    return 1.0


@settings(max_examples=200, deadline=None)
@given(calls_wanted, calls_made, st.booleans(), st.booleans(), st.booleans())
def test_scores_are_those_of_brute_force(
    wanted: list[Any], calls: list[Any], ordered: bool, require_all: bool, allow_extras: bool
) -> None:
    scorer = ToolCalls(ordered=ordered, require_all=require_all, allow_extras=allow_extras)
    given_ = ScoreInput.of(tool_calls=made(*calls), expected_tools=wanted)
    assert scorer._compared(wanted_by(given_), given_.tool_calls).value == pytest.approx(
        by_brute_force(wanted, calls, ordered, require_all, allow_extras)
    )


async def test_many_calls_are_paired_where_the_first_that_fits_would_lose() -> None:
    """200 × 200 calls, of which half only fit if the general ones leave them theirs."""
    special = [tool("a", x=number) for number in range(100)]
    expected = [*["a"] * 100, *special]
    calls = [*special, *[tool("a", x=-1)] * 100]
    assert (await score(expected, calls)).value == 1.0
    assert (await score(expected, calls[:-1], require_all=False)).value == 199 / 200


# --- in a plan ----------------------------------------------------------------------------------------------------


def same_keys(expected: Any, actual: Any) -> bool:
    return bool(expected.keys() == actual.keys())


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({}, 0.0),
        ({"require_all": False}, 0.5),
        ({"params": "fuzzy", "fuzzy": {"coerce": True}}, 1.0),
        ({"params": f"{__name__}:same_keys"}, 1.0),
    ],
)
async def test_a_plan_can_ask_for_it(options: dict[str, Any], value: float, carry_out: Callable[..., Any]) -> None:
    class Caller:
        async def attempt(self, task: Any) -> Transcript:
            return Transcript(output="done", steps=(Step(parts=tuple(made(tool("a", x="1"), "b"))),))

    plan = Plan(
        name="p",
        cases=(Case(id="c", prompt="?", expected=[a, "b"]),),
        subjects=(SubjectSpec(kind="caller", name="s"),),
        scorers=(ScorerSpec(kind="tool_calls", options=options),),
    )
    records: list[Record] = await carry_out(
        plan, registry=default_registry().with_subject("caller", lambda spec: Caller())
    )
    assert [record.value for record in records] == [value]

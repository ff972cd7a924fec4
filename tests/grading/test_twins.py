"""Perturbed twins: what is proposed, what is found on a reference, and what a pair of runs shows."""

import hashlib
import random
import re
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.errors import InfraError
from bakeoff.grading.grades import RunAnswer, run_with_twins
from bakeoff.grading.syntax import SyntaxEdit, with_edits
from bakeoff.grading.twins import Proposals, Twin, Twins, find_twins, pair_values
from bakeoff.grading.written_tests import ASSERTED, EXPECTED, GIVEN, Value, find_tests
from bakeoff.toolchains.outcome import RunStop, TestOutcome, TestRun

PYTHON = """
class TestLeap(unittest.TestCase):
    def test_common(self):
        self.assertEqual(is_leap(2015), False, "a message")

    @pytest.mark.parametrize("year, leap", [(1996, True), (1900, False)])
    def test_many(self, year, leap):
        assert is_leap(year) == leap

def helper():
    return 3

def test_refused():
    expected = "no year"
    with pytest.raises(ValueError):
        is_leap("ä")
    assert not is_leap(0)
"""
JAVASCRIPT = """
describe('leap', () => {
  it('is common', () => { expect(isLeap(2015)).not.toBe(true); });
  test.each([[1996, 'yes'], [1900, 'no']])('of %i', (year, text) => { expect(say(year)).toBe(text); });
  for (const year of [4, 8]) it(`${year}`, async () => { expect(screen.getByText('leap')).toBeVisible(); });
  xit('later', () => {});
});
"""


def test_python_tests_with_the_ranks_of_their_values() -> None:
    common, many, refused = find_tests("test_leap.py", PYTHON)
    assert [test.name for test in (common, many, refused)] == [
        "TestLeap > test_common",
        "TestLeap > test_many",
        "test_refused",
    ]
    assert [(value.text, value.rank) for value in common.values] == [
        ("2015", ASSERTED),
        ("False", EXPECTED),
        ('"a message"', EXPECTED),
    ]
    assert [[value.text for value in row] for row in many.rows] == [
        ["(1996, True)", "1996", "True"],
        ["(1900, False)", "1900", "False"],
    ]
    assert [(value.text, value.rank) for value in refused.values] == [
        ('"no year"', EXPECTED),
        ('"ä"', GIVEN),
        ("0", ASSERTED),
    ]


def test_javascript_tests_with_titles_tables_and_flips() -> None:
    common, each, looped, later = find_tests("leap.test.ts", JAVASCRIPT)
    assert [(value.text, value.rank) for value in common.values] == [("2015", ASSERTED), ("true", EXPECTED)]
    assert [[value.text for value in row][-2:] for row in each.rows] == [["1996", "'yes'"], ["1900", "'no'"]]
    assert [row[0].text for row in looped.rows] == ["4", "8"]
    assert later.values == ()
    assert with_edits(JAVASCRIPT, common.flips).count(".not.") == 0
    assert ".not.toBeVisible()" in with_edits(JAVASCRIPT, looped.flips)
    assert all(test.title_at is not None for test in (common, each, looped))


@pytest.mark.parametrize(
    ("source", "flipped"),
    [
        ("assert a == b", "assert a != b"),
        ("assert a not in b", "assert a in b"),
        ("assert not a", "assert a"),
        ("assert f(a)", "assert not f(a)"),
        ("self.assertIsNone(a)", "self.assertIsNotNone(a)"),
        ("self.assertNotEqual(a, b)", "self.assertEqual(a, b)"),
    ],
)
def test_a_flipped_assertion_is_its_opposite(source: str, flipped: str) -> None:
    text = f"def test_a():\n    {source}\n"
    (test,) = find_tests("test_a.py", text)
    assert with_edits(text, (*test.flips, *test.opposites)) == f"def test_a():\n    {flipped}\n"


def test_the_first_proposal_is_a_value_that_another_test_expects_in_the_same_place() -> None:
    text = 'def test_a():\n    assert f(1) == "one"\n\ndef test_b():\n    assert f(2) == "two"\n'
    proposals = Proposals({"test_a.py": text}, random.Random(1))
    (_, first), _ = proposals.tests
    edits = [each.edits for each in proposals.candidates(first)]
    assert with_edits(text, edits[0]).splitlines()[1] == '    assert f(1) == "two"'
    changed = with_edits(text, edits[1]).splitlines()[1]
    assert re.fullmatch(r'    assert f\(1\) == "\w{3}"', changed)
    assert '"one"' not in changed
    assert with_edits(text, edits[-1]).splitlines()[1] == '    assert f(1) != "one"'


VALUES = st.lists(
    st.builds(
        Value,
        st.just(0),
        st.just(0),
        st.sampled_from(["1", "2", "30", "45", '"a"', '"ab"', '"one word"', "None"]),
        st.sampled_from(["number", "text", "nothing"]),
        st.sampled_from(["==", "toBe 0"]),
        st.just(EXPECTED),
        st.sampled_from(["equal", "part", "true", "false"]),
        st.sampled_from(["f", "g"]),
    )
)


@given(VALUES)
def test_values_take_each_others_places_so_that_nothing_tells_which_form_is_true(values: list[Value]) -> None:
    """Each value is as often the other form of another one as it is a true one: in pairs, or in a ring of three."""
    paired = pair_values(values)
    known = {(value.role, value.kind, value.subject, value.text) for value in values}
    assert paired.keys() <= known
    assert sorted(paired.values()) == sorted(text for *_, text in paired)
    assert all(text != place[-1] for place, text in paired.items())


def test_the_twin_of_a_twin_is_the_test() -> None:
    text = "\n\n".join(f"def test_{n}():\n    assert f({n}) == {v}" for n, v in enumerate((3, 11, 5, 27, 3, True)))
    whole = Proposals({"test_a.py": text}, random.Random(1))
    edits = [edit for _, test in whole.tests for edit in next(whole.candidates(test)).edits]
    swapped = with_edits(text, edits)
    back = Proposals({"test_a.py": swapped}, random.Random(2))
    assert with_edits(swapped, [edit for _, test in back.tests for edit in next(back.candidates(test)).edits]) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "test_a.py",
            "def test_a():\n    c = [('1', 12), ('2', 3)]\n    for a, b in c:\n        assert f(a) == b\n",
        ),
        ("test_a.py", "def test_a():\n    for a, b in [('1', 12), ('2', 3)]:\n        assert f(a) == b\n"),
        (
            "a.ts",
            "it('', () => { const c = [['1', 12], ['2', 3]]; for (const [a, b] of c) expect(f(a)).toBe(b) })",
        ),
        ("a.ts", "it('', () => { for (const [a, b] of [['1', 12], ['2', 3]]) expect(f(a)).toBe(b) })"),
    ],
)
def test_the_last_column_of_a_table_inside_of_a_test_is_expected(name: str, text: str) -> None:
    (test,) = find_tests(name, text)
    assert [(each.text, each.comparison) for each in test.values if each.rank == EXPECTED] == [
        ("12", "equal"),
        ("3", "equal"),
    ]


@pytest.mark.parametrize(
    ("name", "head", "made"),
    [
        ("test_a.py", "from solution import Bag", True),
        ("test_a.py", "from decimal import Bag", False),
        ("test_a.py", "class Bag: ...", False),
        ("a.test.ts", "import { Bag } from './bag'", True),
        ("a.test.ts", "const Bag = () => 1", False),
    ],
)
def test_what_the_answer_makes_is_told_from_what_the_test_makes(name: str, head: str, made: bool) -> None:
    python = "def test_a():\n    assert f() == Bag(12)"
    text = f"{head}\n{python if name.endswith('.py') else 'it(`a`, () => expect(f()).toEqual(Bag(12)))'}\n"
    (test,) = find_tests(name, text)
    assert [each.comparison for each in test.values if each.text == "12"] == ["made" if made else "equal"]


@pytest.mark.parametrize(
    ("value", "other"),
    [("True", "False"), ("120", "121"), ('"Total 41"', '"Total 40"'), ('"low stock"', '"stock low"'), ("[]", "[0]")],
)
def test_an_invented_value_is_like_the_true_one_and_would_have_given_it(value: str, other: str) -> None:
    for one, two in [(value, other), (other, value)][: 1 if value == "[]" else 2]:
        text = f"def test_a():\n    assert f(1) == {one}\n"
        proposals = Proposals({"test_a.py": text}, random.Random(1))
        ((_, test),) = proposals.tests
        assert with_edits(text, next(proposals.candidates(test)).edits) == text.replace(one, two)


# ------------------------------------------------------------------------------------------------ search and runs

SUITE = """
def test_a():
    assert f(1) == 1

def test_b():
    assert f(2) == 2

def test_c():
    f(3)

def test_d():
    assert f(4) == 4

def test_e():
    assert f(5) == 5
"""
Solution = Callable[[int], object]


def honest(number: int) -> object:
    return number


def runs_of(solution: Solution, seen: list[str] | None = None) -> RunAnswer:
    """Run test files in this process: enough to see what is done with the results."""

    async def run(files: Mapping[str, str]) -> TestRun:
        text = files.get("test_a.py", SUITE)
        if seen is not None:
            seen.append(text)
        names: dict[str, object] = {"f": solution}
        exec(text, names)
        tests = [(name, value) for name, value in names.items() if name.startswith("test_") and callable(value)]
        return TestRun(tests=tuple(outcome(name, test) for name, test in tests))

    return run


def outcome(name: str, test: Callable[[], object]) -> TestOutcome:
    try:
        test()
    except AssertionError as error:
        return TestOutcome(name=name, state="failed", message=str(error))
    return TestOutcome(name=name, state="passed")


async def twins_of_suite() -> Twins:
    run = runs_of(honest)
    return await find_twins({"test_a.py": SUITE}, await run({}), run)


async def grade(solution: Solution, seen: list[str] | None = None) -> TestRun:
    names = [f"test_{letter}" for letter in "abcde"]
    return await run_with_twins(names, await twins_of_suite(), {"test_a.py": SUITE}, runs_of(solution, seen))


async def test_twins_are_found_for_all_tests_that_can_fail() -> None:
    twins = await twins_of_suite()
    assert sorted(twins.proven) == [0, 1, 3, 4]
    assert len(twins.halves) == 3
    assert all(half <= {0, 1, 2, 3} for half in twins.halves)


async def test_a_right_answer_passes_and_the_test_without_a_twin_counts() -> None:
    run = await grade(honest)
    assert [test.state for test in run.tests] == ["passed"] * 5
    assert run.tampered is None


async def test_each_test_runs_in_both_forms() -> None:
    seen: list[str] = []
    await grade(honest, seen)
    assert len(seen) == 2
    for line in ("assert f(1) == 1\n", "assert f(5) == 5\n"):
        assert sorted(line in text for text in seen) == [False, True]


async def test_the_known_tests_of_a_run_say_nothing_about_another_one() -> None:
    """Of halves of equal size, an answer that solves all tests but one would know whether that one is true."""
    run = runs_of(honest)
    found = [await find_twins({"test_a.py": SUITE}, await run({}), run) for _ in range(30)]
    sizes = {len(half) for twins in found for half in twins.halves}
    assert len(sizes) > 2, sizes


async def test_a_wrong_answer_fails_its_tests_only() -> None:
    run = await grade(lambda number: 0 if number == 4 else number)
    assert [test.name for test in run.tests if test.state == "failed"] == ["test_d"]


class Anything:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


async def test_what_equals_everything_passes_nothing() -> None:
    run = await grade(lambda _: Anything())
    assert [test.state for test in run.tests] == ["failed"] * 5
    assert run.tampered is not None
    assert "test_a" in run.tampered
    assert "whatever is expected" in run.tests[0].message


async def test_a_single_test_that_passes_anyhow_fails_alone_and_takes_the_unproven_ones_with_it() -> None:
    run = await grade(lambda number: Anything() if number == 1 else number)
    assert [test.state for test in run.tests] == ["failed", "passed", "failed", "passed", "passed"]
    assert run.tampered is None


async def test_guessing_does_not_pay() -> None:
    """A report that is forged at random is right about a test in a quarter of all pairs."""
    draw = random.Random(4)
    twins = Twins(
        twins=tuple(Twin(file="test_a.py", edits=((SyntaxEdit(0, 0, "#"),),), tests=(place,)) for place in range(10)),
        halves=(frozenset(range(5)),),
    )

    async def forge(_: Mapping[str, str]) -> TestRun:
        states = ("passed", "failed")
        return TestRun(tests=tuple(TestOutcome(name=str(each), state=draw.choice(states)) for each in range(10)))

    for _ in range(50):
        run = await run_with_twins([str(each) for each in range(10)], twins, {"test_a.py": ""}, forge)
        assert {test.state for test in run.tests} != {"passed"}


async def test_a_suite_of_one_test_is_run_in_several_pairs() -> None:
    seen: list[str] = []
    twins = Twins(twins=(Twin(file="a", edits=((SyntaxEdit(0, 1, "2"),),), tests=(0,)),), halves=(frozenset({0}),))

    async def run(files: Mapping[str, str]) -> TestRun:
        seen.append(files.get("a", "1"))
        return TestRun(tests=(TestOutcome(name="a", state="passed" if seen[-1] == "1" else "failed"),))

    found = await run_with_twins(["a"], twins, {"a": "1"}, run)
    assert found.tests[0].state == "passed"
    assert sorted(seen) == ["1"] * 4 + ["2"] * 4


async def test_a_run_that_did_not_finish_is_returned_as_it_is() -> None:
    twins = Twins(twins=(Twin(file="a", edits=((SyntaxEdit(0, 1, "2"),),), tests=(0,)),), halves=(frozenset({0}),))

    async def run(files: Mapping[str, str]) -> TestRun:
        return TestRun(stop="timeout", error="too long", seconds=1.0)

    found = await run_with_twins(["a"], twins, {"a": "1"}, run)
    assert (found.stop, found.error, found.seconds) == ("timeout", "too long", 2.0)


async def test_a_twin_that_spoils_the_test_behind_it_is_left_out() -> None:
    """The first test restores a value at its end, which its twin never reaches."""
    text = """
state = []

def test_a():
    state.append(1)
    assert f(1) == 1
    state.clear()

def test_b():
    assert state == []
    assert f(2) == 2
"""

    async def run(files: Mapping[str, str]) -> TestRun:
        return await runs_of(honest)({"test_a.py": files.get("test_a.py", text)})

    found = [await find_twins({"test_a.py": text}, await run({}), run) for _ in range(20)]
    assert all(1 in twins.proven for twins in found)
    assert any(0 not in twins.proven for twins in found)
    # Where it is kept, no run has it before the other test's true form.
    kept = [twins for twins in found if 0 in twins.proven]
    assert all(len(half) in (0, 2) for twins in kept for half in twins.halves)


# ------------------------------------------------------------------------------------------------- what is proven

BODY = "def test_a():\n    {}\n"


def exact_proposals(name: str, text: str) -> set[str]:
    """Return the twins with another value that several draws give."""
    found = set[str]()
    for seed in range(30):
        proposals = Proposals({name: text}, random.Random(seed))
        ((_, test),) = proposals.tests
        found |= {with_edits(text, each.edits) for each in proposals.candidates(test) if each.change == "value"}
    return found


@pytest.mark.parametrize(
    ("source", "twins"),
    [
        ("assert f(2) == 5", ["assert f(2) == 4"]),
        ("assert f(2) is True", ["assert f(2) is False", "assert f(2) is not True"]),
        ("assert f(2) <= 5", ["assert f(2) > 5"]),  # two bounds may hold at a time
        ("assert 1 <= f(2) <= 6", ["assert 1 > f(2) <= 6"]),
        ("assert f(2) in (1, 2)", []),  # whatever is equal to everything fails the negation
        ("assert f(2) == approx(3.1416, abs=0.01)", ["assert f(2) == approx(7.1416, abs=0.01)"]),
        ("self.assertAlmostEqual(f(2), 0.25, places=2)", ["self.assertAlmostEqual(f(2), 0.85, places=2)"]),
        ("self.assertIn(f(2), range(3, 19))", []),
    ],
)
def test_no_answer_passes_a_test_together_with_another_value(source: str, twins: list[str]) -> None:
    exact = exact_proposals("test_a.py", BODY.format(source))
    assert {BODY.format(twin) for twin in twins} <= exact
    assert not [
        each for each in exact if "abs=0.02" in each or "places=3" in each or "range(4" in each or ", 3)" in each
    ]


@pytest.mark.parametrize(
    ("source", "exact", "inexact"),
    [
        ("expect(f(2)).toBeCloseTo(3.14, 1)", "expect(f(2)).toBeCloseTo(7.14, 1)", "expect(f(2)).toBeCloseTo(3.14, 2)"),
        ("expect(f(2)).toBeLessThan(9)", "expect(f(2)).toBeGreaterThanOrEqual(9)", "expect(f(2)).toBeLessThan(1)"),
        ("expect(f).toThrow(new Error('5'))", "expect(f).toThrow(new Error('4'))", "-"),
        ("expect(f).toThrow(RangeError)", "expect(f).toThrow(URIError)", "expect(f).not.toThrow(RangeError)"),
        ("expect(f).toThrow(new Error(`no ${it}`))", "expect(f).toThrow(new Error(`ni ${it}`))", "-"),
        ("expect(f(2)).toEqual(new F(5))", "expect(f(2)).toEqual(new F(4))", "-"),
        ("expect(f(2)).toEqual([made(5, list)])", "expect(f(2)).toEqual([made(4, list)])", "-"),
        ("expect(f(2)).not.toBeDisabled()", "expect(f(2)).not.toBeEnabled()", "expect(f(2)).toBeDisabled()"),
    ],
)
def test_other_values_in_javascript(source: str, exact: str, inexact: str) -> None:
    text = f"it('a', () => {{ {source}; }});"
    found = exact_proposals("a.test.ts", text)
    assert text.replace(source, exact) in found
    assert text.replace(source, inexact) not in found


def test_a_table_has_other_values_if_its_last_column_is_expected() -> None:
    table = '@pytest.mark.parametrize("x, y", [(1, "one"), (2, "two")])\ndef test_a(x, y):\n    '
    for body, change in [("assert f(x) == y", "value"), ("assert f(x, y)", "input")]:
        proposals = Proposals({"test_a.py": table + body}, random.Random(1))
        ((_, test),) = proposals.tests
        of_rows = [each.change for each in proposals.candidates(test) if len(each.edits) == 2]
        assert of_rows[0] == change


@pytest.mark.parametrize(("wanted", "others"), [("ValueError", 2), ("Exception", 0), ("LookupError", 2), ("Odd", 2)])
def test_another_exception_is_none_that_is_wanted_too(wanted: str, others: int) -> None:
    (test,) = find_tests("test_a.py", f"def test_a():\n    with pytest.raises({wanted}):\n        f(2)\n")
    assert len(test.opposites) == others
    assert wanted not in [each.text for each in test.opposites]


async def test_an_answer_that_passes_an_unsound_twin_is_tried_with_a_sound_one() -> None:
    text = "def test_a():\n    assert f(2) > 1\n\ndef test_b():\n    assert f(1) > 0\n"

    async def run(solution: Solution, files: Mapping[str, str]) -> TestRun:
        return await runs_of(solution)({"test_a.py": files.get("test_a.py", text)})

    def constant(_: int) -> object:
        return 7

    twins = await find_twins({"test_a.py": text}, await run(honest, {}), lambda files: run(honest, files))
    assert len(twins.proven) == 2
    for _ in range(5):
        found = await run_with_twins(["a", "b"], twins, {"test_a.py": text}, lambda files: run(constant, files))
        assert [test.state for test in found.tests] == ["passed", "passed"]
        assert found.tampered is None


async def test_a_doubted_test_is_tried_with_another_form_of_its_twin() -> None:
    """An honest text held what the first form looks for; two of three halves have that form."""
    forms = tuple((SyntaxEdit(0, 1, letter),) for letter in "232")
    part = Twin(file="a", edits=forms, tests=(0,), change="part")
    values = [Twin(file="a", edits=((SyntaxEdit(at, at + 1, "2"),),), tests=(at,)) for at in (1, 2, 3)]
    twins = Twins(twins=(part, *values), halves=(frozenset({0, 1}), frozenset({0, 2}), frozenset({1, 3})))

    async def run(files: Mapping[str, str]) -> TestRun:
        text = files.get("a", "1111")
        return passing_where_1(text.replace("2", "1", 1) if text[0] == "2" else text)

    for _ in range(20):
        found = await run_with_twins("abcd", twins, {"a": "1111"}, run)
        assert [test.state for test in found.tests] == ["passed"] * 4


async def test_a_twin_with_another_input_that_never_ends_is_left_out() -> None:
    """No new form of it is tried: an answer that can tell a form it has not seen would know the twins by that."""
    other_input = Twin(file="a", edits=((SyntaxEdit(0, 1, "2"),), (SyntaxEdit(0, 1, "3"),)), tests=(0,), change="input")
    expected = [Twin(file="a", edits=((SyntaxEdit(at, at + 1, "2"),),), tests=(at,)) for at in (1, 2, 3)]
    twins = Twins(twins=(other_input, *expected), halves=(frozenset({0, 1}),))
    seen: list[str] = []

    async def run(files: Mapping[str, str]) -> TestRun:
        text = files.get("a", "1111")
        seen.append(text)
        return TestRun(stop="timeout", error="it never ends") if text[0] == "2" else passing_where_1(text)

    found = await run_with_twins("abcd", twins, {"a": "1111"}, run)
    assert [test.state for test in found.tests] == ["passed"] * 4
    assert sorted(seen) == ["1122", "1122", "1211", "2211"]


@pytest.mark.parametrize("stop", ["timeout", "memory"])
async def test_an_answer_cannot_choose_which_twins_are_left_out(stop: RunStop) -> None:
    """One that ends the second run of each pair, told by the clock, kept every test whose twin has another input."""
    twin = Twin(file="a", edits=((SyntaxEdit(0, 1, "2"),),), tests=(0,), change="input")
    for half in (frozenset[int](), frozenset({0})):
        runs = 0

        async def agree(_: Mapping[str, str]) -> TestRun:
            nonlocal runs
            runs += 1
            return TestRun(stop=stop) if runs % 4 == 2 else passing_where_1("1")

        found = await run_with_twins(["a"], Twins(twins=(twin,), halves=(half,)), {"a": "1"}, agree)
        assert {test.state for test in found.tests} <= {"failed"}


def passing_where_1(text: str) -> TestRun:
    states = ["passed" if letter == "1" else "failed" for letter in text]
    named = zip("abcdefghijkl"[: len(text)], states, strict=True)
    return TestRun.model_validate({"tests": [{"name": name, "state": state} for name, state in named]})


def many_twins(forms: int = 3) -> Twins:
    """Twelve tests in a file of twelve letters, whose twins have other digits."""
    edits = [tuple((SyntaxEdit(at, at + 1, str(form + 2)),) for form in range(forms)) for at in range(12)]
    halves = (frozenset(range(0, 12, 2)), frozenset(range(6)), frozenset((0, 1, 4, 5, 8, 9)))
    return Twins(twins=tuple(Twin(file="a", edits=edits[at], tests=(at,)) for at in range(12)), halves=halves)


@pytest.mark.parametrize("claims", ["one run", "a form"])
async def test_claims_that_are_right_about_half_of_the_tests_are_found_out(claims: str) -> None:
    """One run claims everything and the other nothing, or both agree which of two forms they take for the true one."""
    runs = 0

    async def forge(files: Mapping[str, str]) -> TestRun:
        nonlocal runs
        runs += 1
        text = files.get("a", "1" * 12)
        if claims == "one run":
            return passing_where_1("1" * 12 if runs % 2 else "0" * 12)
        (twin,) = set(text) - {"1"}
        believed = [("1", twin)[hashlib.sha256(f"{at} {twin}".encode()).digest()[0] % 2] for at in range(12)]
        return passing_where_1("".join("1" if text[at] == believed[at] else "0" for at in range(12)))

    found = await run_with_twins("abcdefghijkl", many_twins(), {"a": "1" * 12}, forge)
    assert found.tampered is not None


async def test_a_wrong_answer_that_happens_to_give_what_twins_expect_keeps_the_tests_that_it_passes() -> None:
    async def wrong(files: Mapping[str, str]) -> TestRun:
        text = files.get("a", "1" * 12)
        right = [letter != "1" if at < 4 else letter == "1" for at, letter in enumerate(text)]
        return passing_where_1("".join("1" if each else "0" for each in right))

    found = await run_with_twins("abcdefghijkl", many_twins(), {"a": "1" * 12}, wrong)
    assert (found.tampered, [test.state for test in found.tests]) == (None, ["failed"] * 4 + ["passed"] * 8)


async def test_what_goes_wrong_beside_a_twin_only_is_not_held_against_an_answer() -> None:
    async def run(files: Mapping[str, str]) -> TestRun:
        text = files.get("a", "1" * 12)
        rejection = "an unhandled rejection" if text[0] != "1" else None
        return passing_where_1(text).model_copy(update={"error": rejection})

    found = await run_with_twins("abcdefghijkl", many_twins(), {"a": "1" * 12}, run)
    assert found.error is None
    assert {test.state for test in found.tests} == {"passed"}


async def test_what_goes_wrong_beside_a_test_is() -> None:
    async def run(files: Mapping[str, str]) -> TestRun:
        text = files.get("a", "1" * 12)
        rejection = "an unhandled rejection" if text[0] == "1" else None
        return passing_where_1(text).model_copy(update={"error": rejection})

    found = await run_with_twins("abcdefghijkl", many_twins(), {"a": "1" * 12}, run)
    assert found.error == "an unhandled rejection"


def broken_by(breaks: Callable[[str], bool]) -> RunAnswer:
    """Run the suite, which does not end if its text is like this."""

    async def run(files: Mapping[str, str]) -> TestRun:
        if breaks(files.get("test_a.py", SUITE)):
            return TestRun(stop="timeout")
        return await runs_of(honest)(files)

    return run


async def test_twins_that_break_a_run_together_lose_one_of_them_only() -> None:
    def breaks(text: str) -> bool:
        perturbed = [line not in text for line in ("f(1) == 1\n", "f(2) == 2\n", "f(4) == 4\n", "f(5) == 5\n")]
        return perturbed[0] and perturbed[1] and not all(perturbed)

    run = broken_by(breaks)
    twins = await find_twins({"test_a.py": SUITE}, await run({}), run)
    assert len(twins.proven) >= 3


async def test_nothing_is_graded_without_twins_because_a_proof_failed() -> None:
    """A reference that only fails beside twins must not make the suite look like one that cannot have any."""

    def breaks(text: str) -> bool:
        perturbed = [line not in text for line in ("f(1) == 1\n", "f(2) == 2\n", "f(4) == 4\n", "f(5) == 5\n")]
        return any(perturbed) and not all(perturbed)

    run = broken_by(breaks)
    with pytest.raises(InfraError, match="no half of the tests could be perturbed"):
        await find_twins({"test_a.py": SUITE}, await run({}), run)


async def test_who_claims_everything_first_and_tells_the_runs_apart_then_passes_nothing() -> None:
    """A second try for all tests at once would have one run with all twins: one bit would then be enough."""
    tries = 0

    async def forge(files: Mapping[str, str]) -> TestRun:
        nonlocal tries
        tries += 1
        honest_run = await runs_of(honest)(files)
        right = tries > 2 and any(test.state == "failed" for test in honest_run.tests)
        state = "failed" if right else "passed"
        return TestRun(tests=tuple(TestOutcome(name=test.name, state=state) for test in honest_run.tests))

    names = [f"test_{letter}" for letter in "abcde"]
    run = await run_with_twins(names, await twins_of_suite(), {"test_a.py": SUITE}, forge)
    assert tries == 2
    assert run.tampered is not None
    assert {test.state for test in run.tests} == {"failed"}


async def test_an_answer_that_remembers_forms_gets_no_second_try_to_tell_the_true_one_by() -> None:
    """The true form of its one unsolved test is the one that it sees again. No right answer passes another value."""
    seen: list[str] = []

    async def remember(files: Mapping[str, str]) -> TestRun:
        text = files.get("a", "1" * 12)
        seen.append(text[0])
        return passing_where_1(f"{int(len(seen) < 3 or text[0] in seen[:2])}{text[1:]}")

    found = await run_with_twins("abcdefghijkl", many_twins(), {"a": "1" * 12}, remember)
    assert [test.state for test in found.tests] == ["failed", *["passed"] * 11]


async def test_the_second_try_counts_for_every_test() -> None:
    """One doubted test gets its second try; tests that pass together with their twins there are not forgiven."""
    runs = 0

    def lying(number: int) -> object:
        return Anything() if number == 1 or runs > 2 else number

    async def count(files: Mapping[str, str]) -> TestRun:
        nonlocal runs
        runs += 1
        return await runs_of(lying)(files)

    names, twins = [f"test_{letter}" for letter in "abcde"], await twins_of_suite()
    parts = [twin.model_copy(update={"change": "part"}) for twin in twins.twins]
    twins = twins.model_copy(update={"twins": tuple(parts)})
    run = await run_with_twins(names, twins, {"test_a.py": SUITE}, count)
    assert runs == 4
    assert {test.state for test in run.tests} == {"failed"}


@pytest.mark.parametrize("name", ["test_a.py", "a.test.ts"])
def test_a_file_that_is_nested_deeper_than_python_can_follow_has_no_tests(name: str) -> None:
    deep = "(" * 3000 + "2" + ")" * 3000
    python, javascript = f"def test_a():\n    assert f(1) == {deep}\n", f"test('a', () => expect(f(1)).toBe({deep}))\n"
    assert find_tests(name, python if name.endswith(".py") else javascript) == []

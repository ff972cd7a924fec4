"""Make twins of tests: each is a test with another expected value, which right answers must fail.

Graded code runs in the same process as its tests, so it could forge their results. Therefore each
grading runs the tests twice, in separate processes. In each run, a different half of the tests is
replaced by twins, and only code that knows the right results can tell which half. A test counts as
passed only if it passed and its twin failed.

Twins have several forms, of which each grading draws one. Each form changes a different assertion
of a test, so an answer that copies expected values from the test file is caught. `pair_values`
swaps expected values in pairs. Someone who sees both files of a form still needs the right results
to tell which values are true. `candidates` proposes changes to a test, the best first: the swapped
value, an invented value, the opposite assertion, another input and, as the last resort, a negation.
A negation proves nothing, because an object that equals everything passes a test and fails its
negation. `find_twins` tries changes on the reference, many tests in one run, and checks the halves.
"""

import random
import re
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, TypeAlias

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import InfraError
from bakeoff.grading.languages import read_compiled
from bakeoff.grading.syntax import SyntaxEdit, both_ways, with_edits
from bakeoff.grading.written_tests import ASSERTED, EXPECTED, GIVEN, TestSource, Value, find_tests
from bakeoff.toolchains.outcome import TestOutcome, TestRun

FEW = 4
"""A suite with fewer twins than this is run in several pairs: with one pair, a guess would be right too often."""
_MAX_VALUES = 4  # values of one rank that are tried
_MAX_INPUTS = 3  # values that are borrowed to replace one
_QUOTED = re.compile(r"""([a-zA-Z]*)('{3}|"{3}|['"`])(.*)\2""", re.DOTALL)
_CHANGEABLE = re.compile(r"(?<!\\)[a-zA-Z0-9]")
_WORDS = re.compile(r"(?<![\\\w])([a-zA-Z]{2,})([ _-])([a-zA-Z]{2,})(?!\w)")
_TABLE_COLUMNS = 3
_SHORT = 4  # two characters and their quotes
_PATTERNS = ("raises", "assertRegex", "assertRaisesRegex", "assertWarnsRegex", "match=", "match ", "search ")
# Parts of a regular expression that must not change: escapes, classes, alternatives, groups and
# inexact repetitions. With a change there, it may match the same text.
_SPECIAL = re.compile(r"\\.|\[[^\]]*\]|\{\d*,\d*\}|\(.*\)|.*\|.*|\w[*?]", re.DOTALL)
# A test with any other error failed before its assertion.
_BY_ASSERTION = re.compile(r"assert|expect|DID NOT RAISE|not raised", re.IGNORECASE)
_BEFORE_ASSERTION = re.compile(r"Unable to find|TestingLibraryElementError|multiple elements")
_OTHER_ERROR = re.compile(r"(?!Assertion|TestingLibraryElement)[\w.]*(Error|Exception)\b")

RunReference = Callable[[Mapping[str, str]], Coroutine[Any, Any, TestRun]]
"""Run the reference with these test files in place of the suite's own."""
_MAX_ROUNDS = 16
_MAX_TIMEOUTS = 2  # other inputs may never end; do not wait more often to find which
_SLOW_SECONDS = 0.5  # a twin is slow if it waits in vain; another may fail at once
_HALVES = 3
_FORMS, _FORMS_OF_FEW = _HALVES, 4  # changes per test; with few tests, more are needed
_MAX_MENDINGS = 10
_WEAK = ("input", "negation")
_PARAMETERS = re.compile(r"[\[(/]")  # what follows the name of a test that runs several times
_OPEN, _CLOSE = "\u2039", "\u203a"

Change: TypeAlias = Literal["value", "part", "input", "negation"]
"""The difference between a test and its twin. No honest answer passes both if it is another value or a negation.

It may pass both if another part of a text, a value that the answer makes itself ("part"), or another input is expected.
"""


class Perturbation(NamedTuple):
    """A change to one test."""

    edits: tuple[SyntaxEdit, ...]
    change: Change
    form: int = 0

    @property
    def proves(self) -> bool:
        """Return True unless the change is a negation, which proves nothing."""
        return self.change != "negation"


class Twin(FrozenModel):
    """The changed forms of one test, all of which the reference fails."""

    file: str
    change: Change = "value"
    """The kind of the perturbations: "part" if one of them changes a part."""
    edits: tuple[tuple[SyntaxEdit, ...], ...]
    """The forms of the perturbed test."""
    tests: tuple[int, ...]
    """The places of its tests in a run. A table makes several tests out of one."""


class Twins(FrozenModel):
    """The twins of a suite, and tested ways to divide them into two halves."""

    twins: tuple[Twin, ...] = ()
    halves: tuple[frozenset[int], ...] = ()
    """For each pair of runs, the indices of the twins that replace their tests in one run. The other run has the rest.

    The half at each index was proven with the form of that number.
    """

    def places(self, *changes: Change) -> frozenset[int]:
        """Return the positions of tests that have a twin, optionally only of these kinds."""
        return frozenset(place for twin in self.twins if not changes or twin.change in changes for place in twin.tests)

    @property
    def proven(self) -> frozenset[int]:
        """Return the positions of the proven tests, which have a twin that is not a negation."""
        return self.places("value", "part", "input")

    def perturb(self, files: Mapping[str, str], perturbed: Collection[int], form: int = 0) -> dict[str, str]:
        """Return the test files with the twins of these indices, in the given form."""
        edits: dict[str, list[SyntaxEdit]] = {}
        for index in perturbed:
            twin = self.twins[index]
            edits.setdefault(twin.file, []).extend(twin.edits[form % len(twin.edits)])
        return {name: with_edits(files[name], each) for name, each in edits.items()}

    def complement(self, half: Collection[int]) -> frozenset[int]:
        """Return the indices of all twins that are not in this half."""
        return frozenset(range(len(self.twins))) - frozenset(half)


def _slots(test: TestSource) -> tuple[list[Value], list[Value]]:
    """Return the values to change, and their inner values.

    For a test that expects no value, return the inputs of its conditions.
    """
    expected = [value for value in test.values if value.rank == EXPECTED]
    if not expected and not test.expects_rows:
        return [value for value in test.values if value.comparison in ("true", "false")], []
    outer = [value for value in expected if not any(_is_inside(value, other) for other in expected)]
    return outer, [value for value in expected if value not in outer]


def _is_inside(value: Value, other: Value) -> bool:
    return other != value and other.start <= value.start and value.end <= other.end


_Place: TypeAlias = tuple[str, str, str, str]


def _place(value: Value) -> _Place:
    return value.role, value.kind, value.subject, value.text


def pair_values(values: Sequence[Value], earlier: Sequence[Mapping[_Place, str]] = ()) -> dict[_Place, str]:
    """Return, for each value, the text of the value to swap it with.

    Values are paired with the most similar ones: in the same kind of assertion, about the same
    subject and of similar length. If their number is odd, three values replace each other in a
    ring. Values without a partner are left out, and pairs of earlier results are not repeated.
    """
    # A right text may contain two of the expected words, but hardly a word and its misspelling.
    long = [value for value in values if value.comparison == "part" and len(value.text) > _SHORT]
    left = {_place(value): value for value in values if value.comparison != "close" and value not in long}
    paired: dict[_Place, str] = {}
    levels: list[Callable[[Value], Hashable]] = [
        lambda value: (value.role, value.kind, value.subject),
        lambda value: (value.role, value.kind),
        lambda value: value.role,
        lambda value: value.kind == "text" or value,
    ]
    for level in levels:
        groups: dict[Hashable, list[Value]] = {}
        for value in sorted(left.values(), key=lambda each: (len(each.text), each.text)):
            groups.setdefault(level(value), []).append(value)
        for group in groups.values():
            for value in group:
                if _place(value) not in left:
                    continue
                known = {pairs.get(_place(value)) for pairs in earlier}
                near = (each for each in group if _place(each) in left and each.text not in known)
                if (other := next((each for each in near if _can_swap(value, each)), None)) is not None:
                    _link(paired, value, other)
                    del left[_place(value)], left[_place(other)]
                elif ring := _ring_for(value, group, paired):
                    _link(paired, *ring)
                    del left[_place(value)]
    return paired


def _link(paired: dict[_Place, str], *ring: Value) -> None:
    """Replace each value by the next, and the last by the first."""
    for value, other in zip(ring, (*ring[1:], ring[0]), strict=True):
        paired[_place(value)] = other.text


def _ring_for(value: Value, group: Sequence[Value], paired: Mapping[_Place, str]) -> tuple[Value, Value, Value] | None:
    """Return an unpaired value with two values of its group that are paired with each other."""
    for one in group:
        for two in group:
            linked = paired.get(_place(one)) == two.text and paired.get(_place(two)) == one.text
            if linked and all(_can_swap(value, each) for each in (one, two)):
                return value, one, two
    return None


def _can_swap(one: Value, other: Value) -> bool:
    """Return True if no answer can satisfy both values."""
    if one.text == other.text or {one.comparison, other.comparison} & {"true", "false"}:
        return {one.comparison, other.comparison} == {"true", "false"} and one.text != other.text
    alike = one.kind == other.kind or "nothing" in (one.kind, other.kind)
    inner = [(found[3] if (found := _QUOTED.fullmatch(each.text)) else each.text).lower() for each in (one, other)]
    return alike and not (
        "part" in (one.comparison, other.comparison) and (inner[0] in inner[1] or inner[1] in inner[0])
    )


class Proposals:
    """Proposes changes to the tests of a suite."""

    def __init__(self, files: Mapping[str, str], draw: random.Random) -> None:
        self.tests = [(name, test) for name, text in files.items() for test in _apart(find_tests(name, text))]
        self.tests += read_compiled(files)
        self._draw = draw
        rows = [row[-1] for _, test in self.tests if test.expects_rows for row in _inner_rows(test) if row]
        self._slots = {id(test): draw.sample(slots := _slots(test)[0], len(slots)) for _, test in self.tests}
        self._paired = list[dict[_Place, str]]()
        for form in range(_FORMS_OF_FEW):
            slots = [each[form % len(each)] for each in self._slots.values() if each]
            self._paired.append(pair_values([*slots, *(rows if form == 0 else ())], self._paired))
        self._by_role: dict[str, dict[str, Value]] = {}
        for _, test in self.tests:
            for value in (*test.values, *(value for row in test.rows for value in row)):
                self._by_role.setdefault(value.role, {}).setdefault(value.text, value)

    def candidates(self, test: TestSource) -> Iterator[Perturbation]:
        """Yield changes to one test, the best first."""
        if test.expects_rows:
            yield from self._of_rows(test, 1, "value")
        slots, found = self._slots[id(test)], dict[tuple[SyntaxEdit, ...], Perturbation]()
        forms = [self._of_slot(slots[form % len(slots)], form) for form in range(_FORMS_OF_FEW if slots else 0)]
        for each in (each for of_all_forms in zip_longest(*forms) for each in of_all_forms if each):
            found.setdefault(each.edits, each)
        yield from found.values()
        for part in _slots(test)[1][:_MAX_VALUES]:
            yield from self._of_slot(part)
        yield from (Perturbation((edit,), "value") for edit in reversed(test.opposites))
        for column in range(1, _TABLE_COLUMNS + 1):
            yield from self._of_rows(test, column, "input")
        for rank in (ASSERTED, GIVEN):
            inputs = [value for value in test.values if value.rank == rank][: -_MAX_VALUES - 1 : -1]
            yield from (Perturbation((edit,), "input") for value in inputs for edit in self._other_inputs(value))
        yield from (Perturbation((edit,), "negation") for edit in reversed(test.flips))

    def _of_slot(self, value: Value, form: int = 0) -> Iterator[Perturbation]:
        """Yield changes to a value: first its partner in this form, then invented values."""
        change: Change = "value" if value.comparison in ("equal", "close") else "part"
        if value.comparison in ("true", "false"):
            change = "input"
        if (other := self._paired[form].get(_place(value))) is not None:
            yield Perturbation((SyntaxEdit(value.start, value.end, other),), change, form)
        for text in self._invented(value) if change != "input" else ():
            yield Perturbation((SyntaxEdit(value.start, value.end, text),), change, form)

    def _of_rows(self, test: TestSource, column: int, change: Change) -> Iterator[Perturbation]:
        """Yield changes to a whole table: replace one value in each row, counted from the end."""
        rows = [row for row in _inner_rows(test) if len(row) >= column]
        if not rows or len(rows) != len(test.rows):
            return
        for forms in zip(*(self._of_column(row[-column], change) for row in rows), strict=False):
            yield Perturbation(forms, change)

    def _of_column(self, value: Value, change: Change) -> list[SyntaxEdit]:
        if change == "input":
            return self._other_inputs(value)
        return [each.edits[0] for each in self._of_slot(value)]

    def _other_inputs(self, value: Value) -> list[SyntaxEdit]:
        """Return edits that replace a value by others of the same role, or by invented ones."""
        others = self._by_role.get(value.role, {}).values()
        alike = [each.text for each in others if each.text != value.text and each.kind == value.kind]
        borrowed = self._draw.sample(alike, min(_MAX_INPUTS, len(alike)))
        invented = [text for text in self._invented(value)[:1] if text not in borrowed]
        return [SyntaxEdit(value.start, value.end, text) for text in (*borrowed, *invented)]

    def _invented(self, value: Value) -> list[str]:
        """Return similar invented values, from which the same rules could make this value."""
        text = value.text
        if value.kind == "boolean":
            return [{"true": "false", "false": "true", "True": "False", "False": "True"}[text]]
        if value.kind == "number":
            return _other_numbers(text, far=value.comparison == "close")
        if value.kind == "text" and (found := _QUOTED.fullmatch(text)) is not None:
            pattern = value.comparison == "part" and value.role.startswith(_PATTERNS)
            return self._other_texts(text, found.start(3), found.end(3), pattern=pattern)
        if value.kind == "pattern":
            return self._other_texts(text, 1, text.rindex("/"), pattern=True)
        if value.kind == "container" and (quoted := re.search(r"""(['"])(\w*)\1(?!\s*:)[^'"]*$""", text)) is not None:
            return self._other_texts(text, quoted.start(2), quoted.end(2), pattern=False)
        if value.kind == "text":
            return self._other_texts(text, 0, len(text), pattern=False)  # the literal parts of a computed text
        empty = ["[0]"] if text == "[]" else []
        return empty or _other_numbers(text, far=False) if value.kind == "container" else []

    def _other_texts(self, text: str, start: int, end: int, *, pattern: bool) -> list[str]:
        searched = _SPECIAL.sub(lambda found: " " * len(found[0]), text) if pattern else text
        swapped = [
            f"{text[: two.start()]}{two[3]}{two[2]}{two[1]}{text[two.end() :]}"
            for two in _WORDS.finditer(searched, start, end)
            if two[1].lower() != two[3].lower() and two[1][0].isupper() == two[3][0].isupper() and not pattern
        ]
        places = [found.start() for found in _CHANGEABLE.finditer(searched, start, end)]
        if not places:
            return [] if pattern else [f"{text[:end]}{self._draw.choice('aeinost')}{text[end:]}"]
        places.sort(key=lambda place: -place if text[place].isdigit() else self._draw.random())  # the last digit first
        changed = [
            f"{text[:place]}{text[place].translate(_COUNTERPARTS)}{text[place + 1 :]}"
            for place in places[:_FORMS_OF_FEW]
        ]
        return changed if text[places[0]].isdigit() else [*swapped[:1], *changed]


_ONE, _OTHER = "aiutshdmfpvjq02468", "eoynrlcwgbkxz13579"
_COUNTERPARTS = str.maketrans(both_ways(dict(zip(_ONE + _ONE[:13].upper(), _OTHER + _OTHER[:13].upper(), strict=True))))
"""The counterpart of each letter and digit. The relation holds in both directions."""


def _other_numbers(text: str, *, far: bool) -> list[str]:
    """Return numbers of equal length with another last digit or, if `far`, another first digit."""
    if text[:1] == "0" and text[1:2].isalpha():
        return []  # hexadecimal and the like
    searched = text if text[:1] in "([{" else text.partition("e")[0]  # leave exponents alone
    digits = [found.start() for found in re.finditer(r"[1-9]" if far else r"\d", searched)]
    if not digits:
        return ["5"] if far else []
    place = digits[0 if far else -1]
    old = int(text[place])
    others = [10 - old if old != 5 else 9] if far else dict.fromkeys((old ^ 1, (old + 5) % 10, 9 - old))
    return [f"{text[:place]}{other}{text[place + 1 :]}" for other in others]


def _apart(tests: Iterable[TestSource]) -> Iterator[TestSource]:
    """Yield tests that share no table. The first test with a table keeps it."""
    taken = set[int]()
    for test in tests:
        starts = {value.start for row in test.rows for value in row}
        yield replace(test, rows=()) if starts & taken else test
        taken |= starts


def _inner_rows(test: TestSource) -> list[list[Value]]:
    """Return the values in each row, without the row itself and without nested values."""
    cells = [row[1:] if row[0].kind == "container" and len(row) > 1 else row for row in test.rows]
    return [[value for value in row if not any(_is_inside(value, other) for other in row)] for row in cells]


_NOTHING = Perturbation((), "negation")


@dataclass(slots=True)
class _TwinSearch:
    """The search for twins of one test."""

    index: int
    file: str
    source: TestSource
    untried: Iterator[Perturbation]
    places: list[int] = field(default_factory=list)
    found: list[Perturbation] = field(default_factory=list)
    slow: list[Perturbation] = field(default_factory=list)
    tried: Perturbation = _NOTHING

    def wants(self, forms: int) -> bool:
        """Return True while the test needs more changes."""
        return bool(self.places) and (not self.found or len(self.found) < forms)

    def keep(self, failures: Sequence[TestOutcome], seconds: float) -> None:
        """Keep the tried change if its failures prove something and it is not too slow.

        A failure before the assertion, for example by a missing key, proves nothing: an answer that
        forges all assertions would fail there too, and so look right. Other inputs and negations
        are kept only without a better change.
        """
        opposite = not self.tried.edits or self.tried.edits[0] in self.source.opposites
        if not opposite and any(_OTHER_ERROR.match(test.message) for test in failures):
            return
        by_assertion = all(
            _BY_ASSERTION.search(test.message) and not _BEFORE_ASSERTION.search(test.message) for test in failures
        )
        better = [each for each in self.found if self.tried.change == "negation" or each.change != "input"]
        if (self.tried.change == "input" and not by_assertion) or (better and self.tried.change in _WEAK):
            return
        (self.slow if seconds >= _SLOW_SECONDS else self.found).append(self.tried)

    def settle(self) -> None:
        """Use slow changes if nothing better was found."""
        if not self.found or not self.found[0].proves:
            self.found = [each for each in self.slow if each.proves][:2] or self.found or self.slow[:1]

    def twins(self) -> Iterator[Twin]:
        """Yield the twins of the test: a twin for each row of a table, or a single twin."""
        if not self.found:
            return
        by_form = {each.form: each for each in reversed(self.found)}
        forms = [by_form.get(each, self.found[each % len(self.found)]).edits for each in range(_FORMS_OF_FEW)]
        rows = len(self.source.rows)
        change = "part" if any(each.change == "part" for each in self.found) else self.found[0].change
        first = Twin(file=self.file, change=change, edits=tuple(forms), tests=tuple(self.places))
        if len(self.places) != rows or len(forms[0]) != rows:
            yield first
            return
        for row, place in enumerate(self.places):
            edits = tuple((form[row],) for form in forms if len(form) == rows)
            yield first.model_copy(update={"edits": edits, "tests": (place,)})


async def find_twins(files: Mapping[str, str], plain: TestRun, run: RunReference) -> Twins:
    """Return the twins of the tests in these files.

    Args:
        files: The test files of the suite, by path.
        plain: The run of the reference with the unchanged files.
        run: Runs the reference with other test files.
    """
    draw = random.SystemRandom()
    proposals = Proposals(files, draw)
    searches = [
        _TwinSearch(index, name, test, proposals.candidates(test)) for index, (name, test) in enumerate(proposals.tests)
    ]
    if not searches:
        return Twins()
    await _locate(searches, files, plain, run)
    trial = _TwinTrials(files, plain, run)
    forms = _FORMS_OF_FEW if len(searches) < FEW else _FORMS
    for attempt in range(_MAX_ROUNDS):
        # Search for further changes only in the first rounds, while most tests still need one.
        wanted = forms if attempt < forms else 1
        open_searches = [search for search in searches if search.wants(wanted) and _next(search)]
        if not open_searches:
            break
        await trial.of(open_searches)
    for search in searches:
        search.settle()
    return await _prove(searches, files, plain, run, draw)


async def _locate(searches: Sequence[_TwinSearch], files: Mapping[str, str], plain: TestRun, run: RunReference) -> None:
    """Find which tests of a run come from each test in source, by names or marks in titles."""
    counted = {place for place, test in enumerate(plain.tests) if test.state == "passed"}
    named = {search.source.name: search for search in searches if search.source.name is not None}
    if named:
        for place in sorted(counted):
            name = plain.tests[place].name
            search = named.get(name) or named.get(_PARAMETERS.split(name)[0]) or _inherited(named, name)
            if search is not None:
                search.places.append(place)
        return
    marks: dict[str, list[SyntaxEdit]] = {}
    for search in searches:
        if (at := search.source.title_at) is not None:
            marks.setdefault(search.file, []).append(SyntaxEdit(at, at, f"{_OPEN}{search.index}{_CLOSE}"))
    marked = await run({name: with_edits(files[name], edits) for name, edits in marks.items()})
    if len(marked.tests) != len(plain.tests):
        return
    untitled = [search for search in searches if search.source.title_at is None]
    for place in sorted(counted):
        _, found, rest = marked.tests[place].name.rpartition(_OPEN)
        if found:
            searches[int(rest.partition(_CLOSE)[0])].places.append(place)
        elif len(untitled) == 1:
            untitled[0].places.append(place)


def _inherited(named: Mapping[str, _TwinSearch], name: str) -> _TwinSearch | None:
    """Return the only test of another class that this test can be inherited from, or None."""
    last = name.partition("[")[0].rpartition(" > ")[2]
    fitting = [search for known, search in named.items() if known.rpartition(" > ")[2] == last]
    return fitting[0] if len(fitting) == 1 else None


def _next(search: _TwinSearch) -> bool:
    search.tried = next(search.untried, _NOTHING)
    return bool(search.tried.edits)


@dataclass(slots=True)
class _TwinTrials:
    """Tries changes on the reference, for many tests in one run."""

    files: Mapping[str, str]
    plain: TestRun
    run: RunReference
    timeouts: int = 0

    async def of(self, searches: Sequence[_TwinSearch]) -> None:
        """Run the reference with one change per test, and keep the changes that make it fail."""
        edits: dict[str, list[SyntaxEdit]] = {}
        for search in searches:
            edits.setdefault(search.file, []).extend(search.tried.edits)
        found = await self.run({name: with_edits(self.files[name], each) for name, each in edits.items()})
        if _is_like(found, self.plain):
            for search in searches:
                tests = [found.tests[place] for place in search.places]
                if all(test.state == "failed" for test in tests):
                    before = [self.plain.tests[place].seconds for place in search.places]
                    search.keep(tests, max(test.seconds - was for test, was in zip(tests, before, strict=True)))
            return
        self.timeouts += found.stop == "timeout"
        for part in _parts(searches):
            if self.timeouts <= _MAX_TIMEOUTS or all(search.tried.change != "input" for search in part):
                await self.of(part)


def _is_like(found: TestRun, plain: TestRun) -> bool:
    """Return True if the same tests ran to the end, without new errors outside of them."""
    return (
        len(found.tests) == len(plain.tests) and found.stop == "finished" and (found.error is None or bool(plain.error))
    )


def _parts(searches: Sequence[_TwinSearch]) -> list[list[_TwinSearch]]:
    """Split the tests of a broken run. Changed inputs, which may never end, come last."""
    given = [search for search in searches if search.tried.change == "input"]
    others = [search for search in searches if search.tried.change != "input"]
    if given and others:
        return [others, given]
    middle = len(searches) // 2
    return [list(searches[:middle]), list(searches[middle:])] if middle else []


async def _prove(
    searches: Sequence[_TwinSearch], files: Mapping[str, str], plain: TestRun, run: RunReference, draw: random.Random
) -> Twins:
    """Draw halves, and check on the reference that all true tests pass and all twins fail.

    Twins that make another test fail, for example by not cleaning up, are left out.
    """
    usable = [twin for search in searches for twin in search.twins()]
    was_broken = False
    for _ in range(_MAX_MENDINGS):
        if not usable:
            break
        # Toss a coin for each twin: with equal halves, all others would reveal the last one.
        halves = tuple(frozenset(index for index in range(len(usable)) if draw.randrange(2)) for _ in range(_HALVES))
        twins = Twins(twins=tuple(usable), halves=halves)
        unfit, is_broken = await _unfit(twins, files, plain, run)
        if not unfit:
            return twins
        was_broken |= is_broken
        usable = [twin for index, twin in enumerate(usable) if index not in unfit]
    if not usable and not was_broken:
        return Twins()  # every test makes others fail when it fails
    raise InfraError(
        "no half of the tests could be perturbed so that the reference passes the other half; "
        "tests that depend on time do that, and so does a busy machine"
    )


async def _unfit(twins: Twins, files: Mapping[str, str], plain: TestRun, run: RunReference) -> tuple[set[int], bool]:
    """Return twins that the reference passes, that make a true test fail, or that break the run.

    The second value is True if they break the run.
    """
    few = len(twins.twins) < FEW
    for number, half in enumerate(twins.halves * (_FORMS_OF_FEW if few else 1)):
        form, halves = (number // len(twins.halves) if few else number), (half, twins.complement(half))
        for perturbed in halves:
            found = await run(twins.perturb(files, perturbed, form))
            if not _is_like(found, plain):
                return await _breaking(twins, form, sorted(perturbed), files, plain, run), True
            unfit = set[int]()
            wrong = {place for index in perturbed for place in twins.twins[index].tests}
            for place, (test, known) in enumerate(zip(found.tests, plain.tests, strict=True)):
                if place in wrong and test.state != "failed":
                    unfit |= {index for index in perturbed if place in twins.twins[index].tests}
                elif place not in wrong and test.state != known.state:
                    # Blame the last changed test before this position, or else the first after it.
                    before = [index for index in perturbed if twins.twins[index].tests[-1] < place]
                    after = [index for index in perturbed if twins.twins[index].tests[0] > place]
                    unfit |= {max(before, key=lambda index: twins.twins[index].tests)} if before else set(after[:1])
            if unfit:
                return unfit, False
    return set(), False


async def _breaking(
    twins: Twins, form: int, perturbed: Sequence[int], files: Mapping[str, str], plain: TestRun, run: RunReference
) -> set[int]:
    """Return the first twin that breaks the run when all earlier twins are used with it."""
    fewest, most = 1, len(perturbed)
    while fewest < most:
        middle = (fewest + most) // 2
        if _is_like(await run(twins.perturb(files, perturbed[:middle], form)), plain):
            fewest = middle + 1
        else:
            most = middle
    return {perturbed[fewest - 1]}

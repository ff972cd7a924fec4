"""Make perturbed twins of tests: the same test with another expected value, which a right answer must fail.

Graded code shares a process with its tests, so a report that everything passed proves nothing by itself. Therefore
each grading runs the tests twice, in separate processes. In each run another half of the tests is perturbed, and
nothing but the right answers tells which half. A test counts as passed only if it passed and its twin failed.

`candidates` proposes perturbations of one test, the most natural first: a value that other tests expect in the same
place, then a slightly changed value, then the opposite assertion, and as the last resort another input. An answer that
passes a test may honestly pass it with another input too, so such a twin shows little.
`find_twins` tries them on the reference, those of many tests in one run, and proves halves of them.
"""

import random
import re
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.threads import both
from bakeoff.errors import InfraError
from bakeoff.grading.syntax import SyntaxEdit, to_bytes, with_edits
from bakeoff.grading.written_tests import ASSERTED, EXPECTED, GIVEN, TestSource, Value, find_tests
from bakeoff.toolchains.outcome import TestRun

FEW = 4
"""A suite with fewer twins than this is run in several pairs: with one pair, a guess would be right too often."""
_MAX_VALUES = 4  # of one rank that are tried
_QUOTED = re.compile(r"""([a-zA-Z]*)('{3}|"{3}|['"`])(.*)\2""", re.DOTALL)
_CHANGEABLE = re.compile(r"(?<!\\)[a-zA-Z0-9]")
_WORD = re.compile(r"(?<![\\\w])[a-zA-Z]{3,}(?!\w)")
_TABLE_COLUMNS = 3
_SHORT = 4  # a text of two characters with its quotes
_PATTERNS = ("raises", "assertRegex", "assertRaisesRegex", "assertWarnsRegex", "match=", "match ", "search ")
# What must stay in a regular expression: escapes, classes, alternatives, groups, and numbers of repetitions that are
# no exact ones. Another letter in them may match the same text.
_SPECIAL = re.compile(r"\\.|\[[^\]]*\]|\{\d*,\d*\}|\(.*\)|.*\|.*|\w[*?]", re.DOTALL)

RunReference = Callable[[Mapping[str, str]], Coroutine[Any, Any, TestRun]]
"""Run the reference with these test files in place of the suite's own."""
_MAX_ROUNDS = 16
_MAX_TIMEOUTS = 2  # another input may never end; finding out which one is not worth more waits
_SLOW_SECONDS = 0.5  # a twin that waits for something that never comes; another one may fail at once
_HALVES = 3
_FORMS, _FORMS_OF_FEW = 2, 4  # perturbations of a test; few tests need more of them to show something
_MAX_MENDINGS = 10
_OPEN, _CLOSE = "\u2039", "\u203a"


class Perturbation(NamedTuple):
    """Edits of one test. If it is sound, an answer that passes the test fails the edited one, right or wrong."""

    edits: tuple[SyntaxEdit, ...]
    sound: bool
    flipped: bool = False
    """True if it is the opposite assertion, in a form that no test of the suite has."""
    made: bool = False
    """True if the answer itself makes what is expected. If it does that wrongly, it passes the twin honestly."""


class Twin(FrozenModel):
    """The perturbations of one test that the reference fails. There may be further ones, for other tries."""

    file: str
    sound: bool = True
    """True if no answer passes the test together with the first perturbation, right or wrong."""
    flipped: bool = False
    """True if the first perturbation is an opposite assertion that stands out in the suite."""
    made: bool = False
    """True if the answer itself makes what the first perturbation expects."""
    edits: tuple[tuple[SyntaxEdit, ...], ...]
    tests: tuple[int, ...]
    """The places of its tests in a run. A table makes several tests out of one."""


class Twins(FrozenModel):
    """The twins of a suite, and halves of them that were proven on the reference."""

    twins: tuple[Twin, ...] = ()
    halves: tuple[frozenset[int], ...] = ()
    """Indices of the twins that stand in for their tests in one run. The other run has all the others."""

    @property
    def proven(self) -> frozenset[int]:
        """Return the places of the tests that have a twin."""
        return frozenset(place for twin in self.twins for place in twin.tests)

    @property
    def sound(self) -> frozenset[int]:
        """Return the places of the tests whose twins no honest answer passes together with them, right or wrong."""
        return frozenset(place for twin in self.twins if twin.sound and not twin.made for place in twin.tests)

    @property
    def mostly_sound(self) -> bool:
        """Return True if at least half of the twins are sound."""
        return 2 * sum(twin.sound for twin in self.twins) >= len(self.twins)

    def perturb(
        self, files: Mapping[str, str], perturbed: Collection[int], forms: Mapping[int, int] | None = None
    ) -> dict[str, str]:
        """Return the test files with some of the twins in place of their tests.

        Args:
            files: The test files.
            perturbed: Indices of the twins.
            forms: Which perturbation of a twin to use, by its index, if not the first. Of fewer, it is the last.
        """
        edits: dict[str, list[SyntaxEdit]] = {}
        for index in perturbed:
            twin = self.twins[index]
            form = min((forms or {}).get(index, 0), len(twin.edits) - 1)
            edits.setdefault(twin.file, []).extend(twin.edits[form])
        return {name: with_edits(files[name], each) for name, each in edits.items()}

    def complement(self, half: Collection[int]) -> frozenset[int]:
        """Return the indices of the twins that are not in a half: those that the other run perturbs."""
        return frozenset(range(len(self.twins))) - frozenset(half)


class Proposals:
    """Propose perturbations of the tests of a suite."""

    def __init__(self, files: Mapping[str, str], draw: random.Random) -> None:
        self.tests = [(name, test) for name, text in files.items() for test in _apart(find_tests(name, text))]
        self._draw = draw
        self._forms = {
            to_bytes(files[name])[flip.start : flip.end].decode().strip()
            for name, test in self.tests
            for flip in test.flips
        }
        """How assertions are written in this suite. A flipped one that is written like them does not stand out."""
        self._by_role: dict[str, dict[str, Value]] = {}
        for _, test in self.tests:
            for value in (*test.values, *(value for row in test.rows for value in row)):
                self._by_role.setdefault(value.role, {}).setdefault(value.text, value)
        known = (value for values in self._by_role.values() for value in values.values() if value.kind == "text")
        self._words = sorted({word.lower() for value in known for word in _WORD.findall(value.text)})

    def candidates(self, test: TestSource) -> Iterator[Perturbation]:
        """Yield perturbations of one test, the most natural first."""
        if test.expects_rows:
            yield from self._of_rows(test.rows, 1, sound=True)
        yield from self._of_values(test, EXPECTED)
        natural = [flip for flip in test.flips if flip.text.strip() in self._forms]
        yield from (Perturbation((flip,), sound=True) for flip in reversed(natural))
        others = (flip for flip in reversed(test.flips) if flip not in natural)
        yield from (Perturbation((flip,), sound=True, flipped=True) for flip in others)
        for column in range(1, _TABLE_COLUMNS + 1):
            yield from self._of_rows(test.rows, column, sound=False)
        yield from self._of_values(test, ASSERTED)
        yield from self._of_values(test, GIVEN)

    def _of_values(self, test: TestSource, rank: int) -> Iterator[Perturbation]:
        values = [value for value in test.values if value.rank == rank]
        for value in values[: -_MAX_VALUES - 1 : -1]:
            for edit, borrowed in self._replacements(value):
                yield Perturbation((edit,), _is_sound(value, borrowed=borrowed), made=value.comparison == "made")

    def _of_rows(self, rows: Sequence[Sequence[Value]], column: int, *, sound: bool) -> Iterator[Perturbation]:
        """Yield perturbations of a whole table: in each row the last value is another one, or one before it."""
        inner = [[value for value in row if value.kind != "container"] for row in rows]
        edits = [next(self._replacements(row[-column]), None) for row in inner if len(row) >= column]
        if rows and len(edits) == len(rows) and None not in edits:
            yield Perturbation(tuple(edit[0] for edit in edits if edit is not None), sound=sound)

    def _replacements(self, value: Value) -> Iterator[tuple[SyntaxEdit, bool]]:
        """Yield at most two edits: a value that stands in the same place in another test, and a changed one."""
        others = [other for other in self._by_role.get(value.role, {}).values() if other.text != value.text]
        alike = [other.text for other in others if other.kind == value.kind or value.kind == "nothing"]
        if alike and value.comparison != "close":
            yield SyntaxEdit(value.start, value.end, self._draw.choice(alike)), True
        if (changed := self._changed(value)) is not None:
            yield SyntaxEdit(value.start, value.end, changed), False

    def _changed(self, value: Value) -> str | None:
        """Return a value like this one, with a letter or a digit changed."""
        text = value.text
        if value.kind == "boolean":
            return {"true": "false", "false": "true", "True": "False", "False": "True"}[text]
        if value.kind == "number":
            far = value.comparison == "close"
            if text[:1] == "0" and text[1:2].isalpha():
                return None  # hexadecimal and the like
            digits = [found.start() for found in re.finditer(r"[1-9]" if far else r"\d", text.partition("e")[0])]
            if not digits:
                return "5" if far else None
            place = digits[0 if far else -1]
            return _with(text, place, str((int(text[place]) + 3) % 9 + 1) if far else self._other_digit(text[place]))
        if value.kind == "text" and (found := _QUOTED.fullmatch(text)) is not None:
            pattern = value.comparison == "part" and value.role.startswith(_PATTERNS)
            other = None if pattern else self._with_other_word(value, found.start(3), found.end(3))
            return other or self._changed_text(text, found.start(3), found.end(3), pattern=pattern)
        if value.kind == "pattern":
            return self._changed_text(text, 1, text.rindex("/"), pattern=True)
        return None

    def _with_other_word(self, value: Value, start: int, end: int) -> str | None:
        """Return a text with one word replaced by another one of the suite, which stands out less than a misspelt one.

        A text in which a single word is looked for may well hold the other one, too.
        """
        words = list(_WORD.finditer(value.text, start, end))
        others = [word for word in self._words if word not in value.text.lower()]
        if not words or not others or (value.comparison == "part" and len(words) == 1):
            return None
        old, new = self._draw.choice(words), self._draw.choice(others)
        cased = new.upper() if old[0].isupper() else new.capitalize() if old[0][0].isupper() else new
        changed = f"{value.text[: old.start()]}{cased}{value.text[old.end() :]}"
        return None if changed in self._by_role[value.role] else changed  # another test expects it: already proposed

    def _other_digit(self, digit: str) -> str:
        """Return one of the digits beside this one, so that two forms do not tell which of them was changed."""
        return self._draw.choice([other for other in "123456789" if abs(int(other) - int(digit)) in (1, 2)])

    def _changed_text(self, text: str, start: int, end: int, *, pattern: bool = False) -> str | None:
        searched = _SPECIAL.sub(lambda found: " " * len(found[0]), text) if pattern else text
        places = [found.start() for found in _CHANGEABLE.finditer(searched, start, end)]
        if not places:
            return None if pattern else f"{text[:end]}{self._draw.choice('aeinost')}{text[end:]}"
        place = self._draw.choice(places)
        old = text[place]
        if old.isdigit():
            return _with(text, place, self._other_digit(old))
        letters = "abcdefghilmnoprstu" if old.islower() else "ABCDEFGHILMNOPRSTU"
        return _with(text, place, self._draw.choice([letter for letter in letters if letter != old]))


def _apart(tests: Iterable[TestSource]) -> Iterator[TestSource]:
    """Yield tests. A table that several of them share is left to the first of these."""
    taken = set[int]()
    for test in tests:
        starts = {value.start for row in test.rows for value in row}
        yield replace(test, rows=()) if starts & taken else test
        taken |= starts


def _is_sound(value: Value, *, borrowed: bool) -> bool:
    """Return True if no answer can satisfy both the assertion of a value and the one with another value."""
    if value.comparison == "part":  # a text may hold two words; it hardly holds one and its misspelling
        return not borrowed and len(value.text) > _SHORT
    return value.comparison in ("equal", "made", "close")


def _with(text: str, place: int, letter: str) -> str:
    return f"{text[:place]}{letter}{text[place + 1 :]}"


_NOTHING = Perturbation((), sound=False)


@dataclass(slots=True)
class _TwinSearch:
    """The search for the twins of one test."""

    index: int
    file: str
    source: TestSource
    untried: Iterator[Perturbation]
    places: list[int] = field(default_factory=list)
    found: list[Perturbation] = field(default_factory=list)
    slow: list[Perturbation] = field(default_factory=list)
    tried: Perturbation = _NOTHING

    @property
    def is_sound(self) -> bool:
        """Return True if the first perturbation that was found is a sound one."""
        return bool(self.found) and self.found[0].sound

    def wants(self, forms: int) -> bool:
        """Tell whether to continue: until there is a sound perturbation, and enough of them in all."""
        return bool(self.places) and (not self.is_sound or len(self.found) < forms)

    def keep(self, seconds: float) -> None:
        """Keep what was tried, and made the tests so much slower. Further ones are kept only if they are sound.

        If one changed a query, say, an answer that makes every assertion pass would fail it, and look right.
        """
        if seconds >= _SLOW_SECONDS:
            self.slow.append(self.tried)
        elif self.tried.sound and not self.is_sound:
            self.found = [self.tried]
        elif self.tried.sound or not self.found:
            self.found.append(self.tried)

    def settle(self) -> None:
        """Take slow perturbations if nothing better was found."""
        if not self.is_sound:
            sound = [each for each in self.slow if each.sound]
            self.found = sound[:2] or self.found or self.slow[:1]

    def twins(self) -> Iterator[Twin]:
        """Yield the twins that were found: one for each row of a table, so that each row is perturbed by itself."""
        forms, rows = [each.edits for each in self.found], len(self.source.rows)
        if not forms:
            return
        first = Twin(
            file=self.file,
            sound=self.is_sound,
            flipped=self.found[0].flipped,
            made=self.found[0].made,
            edits=tuple(forms),
            tests=tuple(self.places),
        )
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
        plain: The run of the reference with these files as they are.
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
        # Further perturbations are only looked for in the first rounds, while most tests still need one.
        wanted = forms if attempt < forms else 1
        open_searches = [search for search in searches if search.wants(wanted) and _next(search)]
        if not open_searches:
            break
        await trial.of(open_searches)
    for search in searches:
        search.settle()
    return await _prove(searches, files, plain, run, draw)


async def _locate(searches: Sequence[_TwinSearch], files: Mapping[str, str], plain: TestRun, run: RunReference) -> None:
    """Find out which tests of a run each test of the source becomes: by their names, or by marks in their titles."""
    counted = {place for place, test in enumerate(plain.tests) if test.state == "passed"}
    named = {search.source.name: search for search in searches if search.source.name is not None}
    if named:
        for place in sorted(counted):
            search = named.get(plain.tests[place].name.partition("[")[0]) or _inherited(named, plain.tests[place].name)
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
    """Return the test of that name in another class, if there is just one: it was inherited."""
    last = name.partition("[")[0].rpartition(" > ")[2]
    fitting = [search for known, search in named.items() if known.rpartition(" > ")[2] == last]
    return fitting[0] if len(fitting) == 1 else None


def _next(search: _TwinSearch) -> bool:
    search.tried = next(search.untried, _NOTHING)
    return bool(search.tried.edits)


@dataclass(slots=True)
class _TwinTrials:
    """Try perturbations on the reference, those of many tests in one run."""

    files: Mapping[str, str]
    plain: TestRun
    run: RunReference
    timeouts: int = 0

    async def of(self, searches: Sequence[_TwinSearch]) -> None:
        """Run the reference with one perturbation of each test, and keep those that it fails."""
        edits: dict[str, list[SyntaxEdit]] = {}
        for search in searches:
            edits.setdefault(search.file, []).extend(search.tried.edits)
        found = await self.run({name: with_edits(self.files[name], each) for name, each in edits.items()})
        if _is_like(found, self.plain):
            for search in searches:
                failed = [place for place in search.places if found.tests[place].state == "failed"]
                if len(failed) == len(search.places):
                    search.keep(max(found.tests[place].seconds - self.plain.tests[place].seconds for place in failed))
            return
        self.timeouts += found.stop == "timeout"
        for part in _parts(searches):
            if self.timeouts <= _MAX_TIMEOUTS or all(search.tried.sound for search in part):
                await self.of(part)


def _is_like(found: TestRun, plain: TestRun) -> bool:
    """Return True if the same tests ran to their end, and nothing went wrong outside of them."""
    return (
        len(found.tests) == len(plain.tests) and found.stop == "finished" and (found.error is None or bool(plain.error))
    )


def _parts(searches: Sequence[_TwinSearch]) -> list[list[_TwinSearch]]:
    """Part tests one of which broke the run: those with another input, which may never end, from the others."""
    given = [search for search in searches if not search.tried.sound]
    others = [search for search in searches if search.tried.sound]
    if given and others:
        return [others, given]
    middle = len(searches) // 2
    return [list(searches[:middle]), list(searches[middle:])] if middle else []


async def _prove(
    searches: Sequence[_TwinSearch], files: Mapping[str, str], plain: TestRun, run: RunReference, draw: random.Random
) -> Twins:
    """Draw halves, and check on the reference that in each every true test passes and every twin fails.

    A twin that makes another test fail, because it ends before it cleans up, is left out.
    """
    usable = [twin for search in searches for twin in search.twins()]
    was_broken = False
    for _ in range(_MAX_MENDINGS):
        if not usable:
            break
        halves = tuple(
            frozenset(draw.sample(range(len(usable)), (len(usable) + draw.randrange(2)) // 2)) for _ in range(_HALVES)
        )
        twins = Twins(twins=tuple(usable), halves=halves)
        unfit, is_broken = await _unfit(twins, files, plain, run)
        if not unfit:
            return twins
        was_broken |= is_broken
        usable = [twin for index, twin in enumerate(usable) if index not in unfit]
    if not usable and not was_broken:
        return Twins()  # each of the tests, when it fails, makes others fail
    raise InfraError(
        "no half of the tests could be perturbed so that the reference passes the other half; "
        "tests that depend on time do that, and so does a busy machine"
    )


async def _unfit(twins: Twins, files: Mapping[str, str], plain: TestRun, run: RunReference) -> tuple[set[int], bool]:
    """Return the twins that the reference passes or that stand before a true test that fails, or that break the run.

    The second value is true if they break it.
    """
    forms = _FORMS_OF_FEW if len(twins.twins) < FEW else 1
    for number, half in enumerate(twins.halves * forms):
        form = dict.fromkeys(range(len(twins.twins)), number // len(twins.halves))
        halves = (half, twins.complement(half))
        runs = await both(*(run(twins.perturb(files, each, form)) for each in halves))
        for perturbed, found in zip(halves, runs, strict=True):
            if not _is_like(found, plain):
                return await _breaking(twins, sorted(perturbed), files, plain, run), True
            unfit = set[int]()
            wrong = {place for index in perturbed for place in twins.twins[index].tests}
            for place, (test, known) in enumerate(zip(found.tests, plain.tests, strict=True)):
                if place in wrong and test.state != "failed":
                    unfit |= {index for index in perturbed if place in twins.twins[index].tests}
                elif place not in wrong and test.state != known.state:
                    # The perturbed test that ran last before this place is to blame, or else the first after it.
                    before = [index for index in perturbed if twins.twins[index].tests[-1] < place]
                    after = [index for index in perturbed if twins.twins[index].tests[0] > place]
                    unfit |= {max(before, key=lambda index: twins.twins[index].tests)} if before else set(after[:1])
            if unfit:
                return unfit, False
    return set(), False


async def _breaking(
    twins: Twins, perturbed: Sequence[int], files: Mapping[str, str], plain: TestRun, run: RunReference
) -> set[int]:
    """Return one of these twins, which break the run together, that breaks it with as few others as possible."""
    while len(perturbed) > 1:
        middle = len(perturbed) // 2
        first = await run(twins.perturb(files, perturbed[:middle]))
        perturbed = perturbed[:middle] if not _is_like(first, plain) else perturbed[middle:]
    return set(perturbed)

"""Make perturbed twins of tests: the same test with another expected value, which a right answer must fail.

Graded code shares a process with its tests, so a report that everything passed proves nothing by itself. Therefore
each grading runs the tests twice, in separate processes. In each run another half of the tests is perturbed, and
nothing but the right answers tells which half. A test counts as passed only if it passed and its twin failed.

`candidates` proposes perturbations of one test, the most natural first: a value that other tests expect in the same
place, then a slightly changed value, then the opposite assertion, and as the last resort another input. An answer that
passes a test may honestly pass it with another input too, so such a twin shows little.
`twin_search.py` tries them on the reference.
"""

import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from bakeoff._kernel.model import FrozenModel
from bakeoff.grading.syntax import SyntaxEdit, to_bytes, with_edits
from bakeoff.grading.written_tests import ASSERTED, EXPECTED, GIVEN, TestSource, Value, find_tests

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
            return self._changed_number(text, far=value.comparison == "close")
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

    def _changed_number(self, text: str, *, far: bool) -> str | None:
        """Return a number with its last digit changed, or with its first if it must be far off."""
        if text[:1] == "0" and text[1:2].isalpha():
            return None  # hexadecimal and the like
        digits = [found.start() for found in re.finditer(r"[1-9]" if far else r"\d", text.partition("e")[0])]
        if not digits:
            return "5" if far else None
        place = digits[0 if far else -1]
        return _with(text, place, str((int(text[place]) + 3) % 9 + 1) if far else self._other_digit(text[place]))

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
    """Yield tests, and leave a table that several of them share to the first one."""
    taken = set[int]()
    for test in tests:
        starts = {value.start for row in test.rows for value in row}
        yield replace(test, rows=()) if starts & taken else test
        taken |= starts


def _is_sound(value: Value, *, borrowed: bool) -> bool:
    """Tell whether no answer can satisfy both the assertion of a value and the one with another value."""
    if value.comparison == "part":  # a text may hold two words; it hardly holds one and its misspelling
        return not borrowed and len(value.text) > _SHORT
    return value.comparison in ("equal", "made", "close")


def _with(text: str, place: int, letter: str) -> str:
    return f"{text[:place]}{letter}{text[place + 1 :]}"

"""Compare values with expected ones, strictly or with tolerances."""

import dataclasses
import inspect
import math
import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, TypeAlias
from uuid import UUID

from pydantic import BaseModel, Field, JsonValue, PlainValidator, ValidationError, ValidationInfo
from pydantic_core import from_json, to_jsonable_python

from bakeoff._kernel.json import is_number
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import in_our_words
from bakeoff._kernel.threads import call
from bakeoff.errors import GraderError, TrialError, UsageError
from bakeoff.plan import Case
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score
from bakeoff.scorers.configurable import NAMED_FUNCTION, ComparingScorer
from bakeoff.scorers.patterns import search
from bakeoff.scorers.registry import scorer

Match: TypeAlias = Annotated[Literal["strict", "fuzzy"] | Callable[[Any, Any], Any], NAMED_FUNCTION]
"""How to compare: a name, or a function of the expected and the actual value."""

_NUMBER = re.compile(r"[+-]?\d{1,300}(\.\d{1,300})?([eE][+-]?\d{1,3})?", re.ASCII)
_ROUNDING = 1 + 1e-9  # 0.501 is within 0.001 of 0.5, despite binary fractions
_AS_JSON = (BaseModel, Enum, date, time, timedelta, UUID)

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 200
_short.maxlong = 100
_short.maxlist = _short.maxdict = _short.maxtuple = 10


class Fuzzy(FrozenModel):
    """The differences that `fuzzy` allows."""

    ignore_case: bool = True
    trim: bool = Field(default=True, description="white space around texts")
    tolerance: float = Field(
        default=0.001, ge=0, description="allowed difference of numbers, relative to the expected one"
    )
    least_tolerance: float = Field(default=0.001, ge=0, description="allowed difference of numbers, absolute")
    subset: bool = Field(default=True, description="objects may have additional fields")
    any_order: bool = Field(default=True, description="of lists; each item is matched once")
    substring: bool = Field(default=False, description="a text may contain the expected one")
    coerce: bool = Field(default=False, description='"3" is 3 and "true" is true; "3abc" is not 3')


def _checked(given: Any, info: ValidationInfo) -> Fuzzy | None:
    try:
        return None if given is None else Fuzzy.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"{info.context}: fuzzy option {place}: {in_our_words(first)}. There are: {', '.join(Fuzzy.model_fields)}"
        ) from error


Tolerances: TypeAlias = Annotated[Fuzzy | Mapping[str, Any] | None, PlainValidator(_checked)]
"""The option `fuzzy` of scorers, which a plan gives as an object."""

STRICT = Fuzzy(ignore_case=False, trim=False, tolerance=0, least_tolerance=0, subset=False, any_order=False)
"""Allows no difference: `True` is not 1, 1 equals 1.0, the order of keys does not matter, that of lists does."""

SUBSET = STRICT.model_copy(update={"subset": True})


def shown(value: object) -> str:
    """Return a value as text for a reason, shortened."""
    return _short.repr(value)


def plain(value: Any) -> Any:
    """Return an expected Python value as JSON data, keeping patterns, functions and other objects."""
    if isinstance(value, _AS_JSON) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        return to_jsonable_python(value, fallback=repr)
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class ValueComparison:
    """Compares values by one set of rules."""

    match: Match = "strict"
    rules: Fuzzy = STRICT
    search_seconds: float = 5.0  # for each search for a pattern
    slow: set[str] = field(default_factory=set)  # patterns that took longer; they are not searched for again

    def difference(self, expected: Any, actual: Any, place: str = "$") -> str | None:
        """Say where the actual value differs from the expected `plain` one; None if they match."""
        if callable(self.match):
            return _refusal(self.match, place, actual, expected, actual)
        return self._difference(expected, actual, place)

    def _difference(self, expected: Any, actual: Any, place: str) -> str | None:
        if isinstance(expected, re.Pattern) or callable(expected):
            return self._by_test(expected, actual, place)
        if isinstance(expected, dict) and isinstance(actual, dict):
            return self._object_difference(expected, actual, place)
        if isinstance(expected, list) and isinstance(actual, list):
            return self._list_difference(expected, actual, place)
        return None if self._same(expected, actual) else f"{place} is {shown(actual)}, not {shown(expected)}"

    def _by_test(self, expected: Any, actual: Any, place: str) -> str | None:
        """Compare a value with a pattern, a type or a function."""
        if self.match != "fuzzy":
            raise GraderError(
                f"{place} is expected to fit {shown(expected)}: only `fuzzy` supports patterns, types and functions"
            )
        if isinstance(expected, re.Pattern):
            return self._by_pattern(expected, actual, place)
        if isinstance(expected, type):
            fits = isinstance(actual, expected) and (not isinstance(actual, bool) or expected in (bool, object))
            return None if fits else f"{place} is {shown(actual)}, not of type {expected.__name__}"
        return _refusal(expected, place, actual, actual)

    def _by_pattern(self, pattern: re.Pattern[Any], actual: Any, place: str) -> str | None:
        text = shown(actual) if self.rules.coerce and is_number(actual) else actual
        if not isinstance(pattern.pattern, str) or not isinstance(text, str):
            return f"{place} is {shown(actual)}, not a text with {pattern.pattern!r}"
        try:
            if pattern.pattern not in self.slow and search(pattern, text, self.search_seconds):
                return None
        except TimeoutError:
            self.slow.add(pattern.pattern)
        if pattern.pattern in self.slow:
            return f"{place}: the search for {pattern.pattern!r} was stopped after {self.search_seconds:g} s"
        return f"{place} is {shown(actual)}, in which {pattern.pattern!r} is not found"

    def _object_difference(self, expected: dict[str, Any], actual: dict[str, Any], place: str) -> str | None:
        keys = expected.keys() if self.rules.subset else expected.keys() | actual.keys()
        for key in sorted(keys):
            if key not in actual or key not in expected:
                return f"{place}.{key} is {'missing' if key in expected else 'not expected'}"
            if found := self._difference(expected[key], actual[key], f"{place}.{key}"):
                return found
        return None

    def _list_difference(self, expected: list[Any], actual: list[Any], place: str) -> str | None:
        if len(expected) != len(actual):
            return f"{place} has {len(actual)} items, not {len(expected)}"
        pairs = enumerate(zip(expected, actual, strict=True))
        in_order = (self._difference(one, other, f"{place}[{at}]") for at, (one, other) in pairs)
        difference = next((found for found in in_order if found), None)
        if difference is None or not self.rules.any_order:
            return difference
        fits = [[self._difference(one, other, place) is None for other in actual] for one in expected]
        alone = [at for at, partner in enumerate(most_pairs(fits)) if partner is None]
        return f"{place} has no matching item for {shown(expected[alone[0]])}" if alone else None

    def _same(self, expected: Any, actual: Any) -> bool:
        if isinstance(expected, bool) or isinstance(actual, bool):
            # An expected value that is no JSON may consider itself equal to a bool.
            stranger = not isinstance(expected, bool | int | float | str) and bool(expected == actual)
            return expected is actual or self._same_when_coerced(expected, actual) or stranger
        if is_number(expected) and is_number(actual):
            return self._near(expected, actual)
        if isinstance(expected, str) and isinstance(actual, str):
            wanted, text = self._normal(expected), self._normal(actual)
            return wanted == text or (self.rules.substring and bool(wanted) and wanted in text)
        return bool(expected == actual) or self._same_when_coerced(expected, actual)

    def _near(self, expected: float, actual: float) -> bool:
        if expected == actual:
            return True
        try:
            off, most = abs(actual - expected), max(self.rules.tolerance * abs(expected), self.rules.least_tolerance)
        except OverflowError:  # integers too large for a float
            return False
        return math.isfinite(off) and off <= most * _ROUNDING

    def _normal(self, text: str) -> str:
        text = text.strip() if self.rules.trim else text
        return text.casefold() if self.rules.ignore_case else text

    def _same_when_coerced(self, expected: Any, actual: Any) -> bool:
        if not self.rules.coerce or isinstance(expected, str) == isinstance(actual, str):
            return False
        text, value = (expected, actual) if isinstance(expected, str) else (actual, expected)
        if isinstance(value, bool):
            return text.strip().casefold() == str(value).casefold()
        number = text.strip()
        if not is_number(value) or not _NUMBER.fullmatch(number):
            return False
        read = int(number) if number.lstrip("+-").isdigit() else float(number)
        return self._near(read, value) if text is expected else self._near(value, read)


def comparison_of(who: str, match: Match, fuzzy: Tolerances) -> ValueComparison:
    """Return the comparison by the options of a scorer. Raises UsageError if they are invalid."""
    if not callable(match) and match not in ("strict", "fuzzy"):
        raise UsageError(f'{who}: {match!r} is not a way to compare: write "strict", "fuzzy", or give a function')
    if match == "fuzzy":
        return ValueComparison(match, fuzzy if isinstance(fuzzy, Fuzzy) else Fuzzy())
    if fuzzy is not None:
        raise UsageError(f'{who}: `fuzzy` is only allowed if the way to compare is "fuzzy"')
    return ValueComparison(match)


def asked(function: Callable[..., Any], *values: Any) -> bool:
    """Return the result of a user's function as a bool.

    Raises `GraderError` if the function is async or raises anything but a `TrialError`, which is passed on.
    """
    try:
        answer = function(*values)
    except TrialError:
        raise
    except Exception as error:
        raise GraderError(f"{name_of(function)} raised {type(error).__name__}: {error}") from error
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise GraderError(f"{name_of(function)} is asynchronous: values are compared by ordinary functions")
    return bool(answer)


def _refusal(function: Callable[..., Any], place: str, actual: Any, *values: Any) -> str | None:
    fits = asked(function, *values)
    return None if fits else f"{place} is {shown(actual)}, and {name_of(function)} says it is not right"


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function, or of the class of another callable."""
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


def a_few(values: Sequence[Any]) -> str:
    """Return the first few of many values as text."""
    few = ", ".join(str(value) for value in values[:5])
    return f"{few} and {len(values) - 5} more" if len(values) > 5 else few


# --- pairing -------------------------------------------------------------------------------------------------------

Table = Sequence[Sequence[bool]]
"""A table with a row per expected item and a column per actual item, which says whether the two match."""


def most_pairs(fits: Table) -> list[int | None]:
    """Pair rows with columns, as many as possible; return the column of each row."""
    greedy: list[int | None] = []
    taken: set[int | None] = set()
    for row in fits:
        greedy.append(next((column for column, fit in enumerate(row) if fit and column not in taken), None))
        taken.add(greedy[-1])
    if None not in taken or taken == {None}:
        return greedy  # the greedy result is optimal
    import numpy as np
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    found = maximum_bipartite_matching(csr_matrix(np.array(fits, dtype=np.int8)), perm_type="column")
    return [int(column) if column >= 0 else None for column in found]


def most_pairs_in_order(fits: Table) -> list[int | None]:
    """Pair rows and columns as `most_pairs` does, but in order: return the longest common subsequence."""
    columns = len(fits[0]) if fits else 0
    # best[i][j]: the number of pairs between the rows from i on and the columns from j on
    best = [[0] * (columns + 1) for _ in range(len(fits) + 1)]
    for i in range(len(fits) - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            best[i][j] = 1 + best[i + 1][j + 1] if fits[i][j] else max(best[i + 1][j], best[i][j + 1])
    pairs: list[int | None] = [None] * len(fits)
    i = j = 0
    while i < len(fits) and best[i][j]:
        if fits[i][j]:
            pairs[i] = j
            i, j = i + 1, j + 1
        elif best[i][j + 1] == best[i][j]:
            j += 1
        else:
            i += 1
    return pairs


_FENCE = re.compile(r"```(?:json)?[ \t]*\n")

JsonWay = Annotated[Literal["equal", "subset", "strict", "fuzzy"] | Callable[[Any, Any], Any], NAMED_FUNCTION]


class _JsonScorer(ComparingScorer):
    __slots__ = ()

    def accepts_reference(self, case: Case) -> bool:
        """Return True unless it is a text, which is not JSON where it stands for the whole answer."""
        return ComparingScorer.accepts_reference(self, case) and not isinstance(case.expected, str)


@scorer("json")
@dataclass(frozen=True, slots=True)
class JsonMatch(_JsonScorer):
    """Scores 1 when the output is the expected JSON.

    `equal` (or `strict`) allows no difference, `subset` additional fields, `fuzzy` those of `Fuzzy`.
    """

    match: JsonWay = "equal"
    _: KW_ONLY
    fuzzy: Tolerances = None
    name: str = "json"

    def __post_init__(self) -> None:
        ComparingScorer.__post_init__(self)
        self._comparison()  # checks the options

    def _comparison(self) -> ValueComparison:
        way: Any = "strict" if self.match in ("equal", "subset") else self.match
        found = comparison_of(f"scorer {self.name!r}", way, self.fuzzy)
        return ValueComparison(rules=SUBSET) if self.match == "subset" else found

    async def compare(self, given: ScoreInput) -> Score:
        quick = self.match in ("equal", "subset", "strict")  # patterns and functions may take long
        scored: Score = self._scored(given) if quick else await call(self._scored, given)
        return scored

    def _scored(self, given: ScoreInput) -> Score:
        try:
            actual, fenced = read_json(given.output)
        except ValueError as error:
            return self.scored(0.0, f"the output is not JSON: {error}")
        difference = self._comparison().difference(expected_data(given.expected), actual)
        noted = {"fenced": True} if fenced else {}
        return self.scored(float(difference is None), difference or "", **noted)


@scorer("structured")
@dataclass(frozen=True, slots=True)
class StructuredOutput(_JsonScorer):
    """Compares the fields of the output's JSON object with the expected ones.

    Scores 1 when all are right; otherwise 0, or the share of right fields without `require_all`. Additional fields are
    allowed unless `allow_extras` is off. An output whose `error_field` is filled unexpectedly scores 0.
    """

    match: Match = "strict"
    _: KW_ONLY
    require_all: bool = True
    allow_extras: bool = True
    error_field: str | None = "error"
    fuzzy: Tolerances = None
    name: str = "structured"

    def __post_init__(self) -> None:
        ComparingScorer.__post_init__(self)
        comparison_of(f"scorer {self.name!r}", self.match, self.fuzzy)  # checks the options

    async def compare(self, given: ScoreInput) -> Score:
        return self._scored(given) if self.match == "strict" else await call(self._scored, given)

    def _scored(self, given: ScoreInput) -> Score:
        try:
            actual, fenced = read_json(given.output)
        except ValueError as error:
            return self._explained(0.0, f"the output is not JSON: {error}")
        noted: dict[str, JsonValue] = {"fenced": True} if fenced else {}
        expected = expected_data(given.expected)
        if not isinstance(expected, dict):
            expected, actual = {"output": expected}, {"output": actual}  # treat a list or a number as one field
        if not isinstance(actual, dict):
            return self._explained(0.0, f"the output is {shown(actual)}, not an object", **noted)
        if self.error_field and self.error_field not in expected and actual.get(self.error_field):
            return self._explained(0.0, f"the output has an error: {shown(actual[self.error_field])}", **noted)
        comparison = comparison_of(self.name, self.match, self.fuzzy)
        problems = (
            comparison.difference(wanted, actual[name], name) if name in actual else f"{name} is missing"
            for name, wanted in expected.items()
        )
        wrong = list(filter(None, problems))
        extras = [] if self.allow_extras else [name for name in actual if name not in expected]
        right = len(expected) - len(wrong)
        reasons = [a_few(wrong)] if wrong else []
        reasons += [f"not expected: {a_few(list(map(shown, extras)))}"] if extras else []
        value = share(right, len(expected), len(extras), require_all=self.require_all)
        reason = "; ".join(reasons) or f"all {len(expected)} expected fields are right"
        return self._explained(value, reason, **noted, matched=right, expected=len(expected), extra=len(extras))

    def _explained(self, value: float, reason: str, **noted: JsonValue) -> Score:
        return self.scored(value, reason, rationale=reason, **noted)


def share(matched: int, expected: int, extras: int, *, require_all: bool) -> float:
    """Return the score for missing and superfluous parts, by a rule that all scorers share."""
    if matched == expected and not extras:
        return 1.0
    return 0.0 if require_all or not expected else matched / (expected + extras)


def structure_in(value: Any) -> Any:
    """Return an object or a list, or the one that a text has as JSON; None for any other value."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        with suppress(ValueError):
            value = from_json(value)
    return value if isinstance(value, Mapping | list | tuple) else None


def expected_data(expected: Any) -> Any:
    """Return an expected value as JSON data. The text of an object or list, as in a cell of a table, is read."""
    found = structure_in(expected)
    return plain(expected if found is None else found)


def read_json(output: JsonValue) -> tuple[JsonValue, bool]:
    """Return the output as JSON, and whether it was in a code fence."""
    if not isinstance(output, str):
        return output, False
    opening = _FENCE.search(output)
    # One search each: a lazy pattern would take quadratic time.
    closing = output.find("\n```", opening.end()) if opening else -1
    if opening is None or closing < 0:
        return from_json(output), False
    return from_json(output[opening.end() : closing]), True

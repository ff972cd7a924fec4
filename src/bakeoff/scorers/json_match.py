"""Score output as JSON: `json` compares the whole value, `structured` compares field by field."""

import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

from pydantic import JsonValue
from pydantic_core import from_json

from bakeoff._kernel.threads import call
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score
from bakeoff.scorers.configurable import NAMED_FUNCTION, ComparingScorer
from bakeoff.scorers.registry import scorer
from bakeoff.scorers.values import SUBSET, Match, Tolerances, ValueComparison, a_few, comparison_of, plain, shown

_FENCE = re.compile(r"```(?:json)?[ \t]*\n")

JsonWay = Annotated[Literal["equal", "subset", "strict", "fuzzy"] | Callable[[Any, Any], Any], NAMED_FUNCTION]


@scorer("json")
@dataclass(frozen=True, slots=True)
class JsonMatch(ComparingScorer):
    """Scores 1 when the output is the expected JSON.

    `equal` (or `strict`) allows no difference, `subset` allows additional fields, `fuzzy` allows what `Fuzzy` lists.
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
            return Score(name=self.name, value=0.0, reason=f"the output is not JSON: {error}")
        difference = self._comparison().difference(plain(given.expected), actual)
        metadata: dict[str, JsonValue] = {"fenced": True} if fenced else {}
        return Score(name=self.name, value=float(difference is None), reason=difference or "", metadata=metadata)


@scorer("structured")
@dataclass(frozen=True, slots=True)
class StructuredOutput(ComparingScorer):
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
            return self._score(0.0, f"the output is not JSON: {error}", {})
        noted: dict[str, JsonValue] = {"fenced": True} if fenced else {}
        expected = plain(given.expected)
        if not isinstance(expected, dict):
            expected, actual = {"output": expected}, {"output": actual}  # treat a list or a number as one field
        if not isinstance(actual, dict):
            return self._score(0.0, f"the output is {shown(actual)}, not an object", noted)
        if self.error_field and self.error_field not in expected and actual.get(self.error_field):
            return self._score(0.0, f"the output has an error: {shown(actual[self.error_field])}", noted)
        return self._by_fields(expected, actual, noted)

    def _by_fields(self, expected: dict[str, Any], actual: dict[str, Any], noted: dict[str, JsonValue]) -> Score:
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
        counts: dict[str, JsonValue] = {"matched": right, "expected": len(expected), "extra": len(extras)}
        reason = "; ".join(reasons) or f"all {len(expected)} expected fields are right"
        return self._score(value, reason, {**noted, **counts})

    def _score(self, value: float, reason: str, noted: dict[str, JsonValue]) -> Score:
        return Score(name=self.name, value=value, reason=reason, metadata={"rationale": reason, **noted})


def share(matched: int, expected: int, extras: int, *, require_all: bool) -> float:
    """Return the score for what is missing and what is too much. All scorers share this rule."""
    if matched == expected and not extras:
        return 1.0
    return 0.0 if require_all or not expected else matched / (expected + extras)


def read_json(output: JsonValue) -> tuple[JsonValue, bool]:
    """Return the output as JSON, and whether it was taken out of a code fence."""
    if not isinstance(output, str):
        return output, False
    opening = _FENCE.search(output)
    # One search each: a lazy pattern would take quadratic time.
    closing = output.find("\n```", opening.end()) if opening else -1
    if opening is None or closing < 0:
        return from_json(output), False
    return from_json(output[opening.end() : closing]), True

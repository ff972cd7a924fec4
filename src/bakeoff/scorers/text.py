"""Compare the output's text with the expected text. A case without an expected text is not scored."""

import json
import re
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from typing import Annotated, Any

from pydantic import PositiveFloat
from pydantic_core import to_json

from bakeoff.errors import GraderError, UsageError
from bakeoff.plan import Case
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score
from bakeoff.scorers.configurable import ComparingScorer, ConfigurableScorer, checked_as
from bakeoff.scorers.patterns import is_found
from bakeoff.scorers.registry import scorer
from bakeoff.scorers.values import STRICT, ValueComparison, expected_data, structure_in

_MAX_STARTS = 2_000  # places of a text at which JSON may begin


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def json_in(text: str) -> Iterator[Any]:
    """Yield every complete JSON object or list in a text, but not the values inside one."""
    end = 0
    for found in islice(re.finditer(r"[\[{]", text), _MAX_STARTS):
        if found.start() >= end:
            try:
                value, end = DECODER.raw_decode(text, found.start())
            except (ValueError, RecursionError):
                continue
            yield value


def as_text(output: Any) -> str:
    """Return the output as text."""
    if output is None:
        return ""
    return output if isinstance(output, str) else to_json(output, fallback=str).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class _TextScorer(ComparingScorer):
    ignore_case: bool = False
    strip: bool = True

    def normal(self, value: Any) -> str:
        """Return a value as text to compare; options remove outer white space and case."""
        text = as_text(value)
        text = text.strip() if self.strip else text
        return text.casefold() if self.ignore_case else text


@scorer("exact", main="expected")
@dataclass(frozen=True, slots=True, kw_only=True)
class Exact(_TextScorer):
    """Scores 1 when the output is the expected text, or JSON that is equal to the expected object or list."""

    name: str = "exact"

    async def compare(self, given: ScoreInput) -> Score:
        if self.normal(given.output) == self.normal(given.expected):
            return self.scored(1.0)
        wanted, actual = structure_in(given.expected), structure_in(given.output)
        if wanted is None or actual is None:
            return self.scored(0.0, "the output differs from what is expected")
        rules = STRICT.model_copy(update={"ignore_case": self.ignore_case})
        difference = ValueComparison(rules=rules).difference(expected_data(wanted), actual)
        return self.scored(float(difference is None), difference or "")


@scorer("contains", main="expected")
@dataclass(frozen=True, slots=True, kw_only=True)
class Contains(_TextScorer):
    """Scores 1 when the output contains the expected text; with a list of texts, the share that it contains."""

    name: str = "contains"

    def check(self, case: Case) -> str | None:
        """Refuse an expected text that is empty, which every output would contain."""
        wanted = self.expected_of(case)
        return None if wanted is None else self._problem(_wanted(wanted))

    def accepts_reference(self, case: Case) -> bool:
        """Return True for a single text: several are parts of an answer."""
        return ComparingScorer.accepts_reference(self, case) and not isinstance(case.expected, list)

    def _problem(self, wanted: list[Any]) -> str | None:
        if wanted and all(map(self.normal, wanted)):
            return None
        return "every output contains an empty text: say what the output must contain"

    async def compare(self, given: ScoreInput) -> Score:
        wanted = _wanted(given.expected)
        if problem := self._problem(wanted):
            raise GraderError(f"case {given.case.id!r}: {problem}")
        output = self.normal(given.output)
        missing = [as_text(item) for item in wanted if self.normal(item) not in output]
        reason = f"missing: {', '.join(map(repr, missing))}" if missing else ""
        return Score(name=self.name, value=1 - len(missing) / len(wanted), reason=reason)


def _wanted(expected: Any) -> list[Any]:
    return list(expected) if isinstance(expected, list | tuple | set | frozenset) else [expected]


@scorer("regex", main="pattern")
@dataclass(frozen=True, slots=True)
class Regex(ConfigurableScorer):
    """Scores 1 when the pattern is found in the output. By default the case's expected text is the pattern."""

    pattern: Annotated[str | re.Pattern[str] | None, checked_as(str | re.Pattern | None)] = None
    _: KW_ONLY
    ignore_case: bool = False
    seconds: PositiveFloat = 10.0  # a longer search is stopped
    name: str = "regex"

    def __post_init__(self) -> None:
        ConfigurableScorer.__post_init__(self)
        if self.pattern is not None and (problem := self._problem(self.pattern)):
            raise UsageError(f"scorer {self.name!r}: pattern {problem}")

    async def __call__(self, given: ScoreInput) -> Score:
        wanted = given.expected if self.pattern is None else self.pattern
        if wanted is None:
            return Score(name=self.name, reason="the case has no expected output")
        if problem := self._problem(wanted):
            raise GraderError(f"case {given.case.id!r}: expected {problem}; fix it, or use `contains`")
        pattern = self._compiled(wanted)
        # The output decides how long the search takes, so a long one must not run into the time limit of scoring.
        seconds = min(self.seconds, given.case.limits.score_seconds / 2)
        found = await is_found(pattern, as_text(given.output), seconds)
        if found is None:
            return self.scored(0.0, f"the search for {pattern.pattern!r} was stopped after {seconds:g} s")
        return Score(name=self.name, value=float(found), reason="" if found else f"no match for {pattern.pattern!r}")

    def can_score(self, case: Case) -> bool:
        return self.pattern is not None or case.expected_answer is not None

    def check(self, case: Case) -> str | None:
        """Refuse an expected text that is not a regular expression, unless the scorer has a pattern of its own."""
        if self.pattern is not None or case.expected_answer is None:
            return None
        problem = self._problem(case.expected_answer)
        return f"expected {problem}; fix it, or use `contains`" if problem else None

    def _compiled(self, pattern: Any) -> re.Pattern[Any]:
        if isinstance(pattern, re.Pattern):
            return pattern
        return re.compile(as_text(pattern), re.IGNORECASE if self.ignore_case else 0)

    def _problem(self, pattern: Any) -> str | None:
        try:
            compiled = self._compiled(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            return f"{pattern!r} is not a regular expression: {error}"
        return None if isinstance(compiled.pattern, str) else f"{pattern!r} is for bytes, and outputs are texts"

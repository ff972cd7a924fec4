"""Compare the output's text with the expected text. A case without an expected text is not scored.

Some regular expressions with repetitions take exponential time on an unlucky text, and `re` blocks all threads
meanwhile and cannot be stopped. Such patterns are searched with the `regex` library, which has a time limit.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any

from pydantic import PositiveFloat
from pydantic_core import to_json

from bakeoff._kernel.threads import call
from bakeoff.errors import GraderError, UsageError
from bakeoff.plan import Case
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score
from bakeoff.scorers.configurable import ComparingScorer, ConfigurableScorer, checked_as
from bakeoff.scorers.registry import scorer

_REPETITIONS = frozenset("*+{")
_MAX_STARTS = 2_000  # places of a text at which JSON may begin
_FLAGS = ("IGNORECASE", "MULTILINE", "DOTALL", "VERBOSE", "ASCII")
# `regex` reads `{e}` as "allow errors"; `re` takes every brace that is not a repetition literally.
_BRACE = re.compile(r"\\N\{[^}]*\}|\\.|\{(?!\d+(?:,\d*)?\}|,\d*\})", re.DOTALL)


def search(pattern: re.Pattern[str], text: str, seconds: float) -> bool:
    """Return True if the pattern is found in the text. Raises TimeoutError when the search takes too long."""
    if not _REPETITIONS & set(pattern.pattern):
        return pattern.search(text) is not None
    return _compiled(pattern).search(text, timeout=seconds, concurrent=True) is not None


async def is_found(pattern: re.Pattern[str], text: str, seconds: float) -> bool | None:
    """Search as `search` does, without blocking the event loop; return None if the search takes too long."""
    if not _REPETITIONS & set(pattern.pattern):
        return pattern.search(text) is not None
    try:
        async with asyncio.timeout(seconds):  # the library looks at its own limit too seldom on some texts
            found: bool = await call(search, pattern, text, seconds)
    except TimeoutError:
        return None
    return found


@lru_cache(maxsize=256)
def _compiled(pattern: re.Pattern[str]) -> Any:
    import regex  # slow to import, and most suites have no such patterns

    flags = sum(int(regex.RegexFlag[name]) for name in _FLAGS if pattern.flags & re.RegexFlag[name])
    source = _BRACE.sub(lambda found: r"\{" if found[0] == "{" else found[0], pattern.pattern)
    try:
        return regex.compile(source, flags | regex.VERSION0)
    except regex.error as error:
        raise GraderError(
            f"pattern {pattern.pattern!r} cannot be searched for: {error}; write it differently"
        ) from error


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
        """Return a value as the text that is compared: without outer white space and case, if the options say so."""
        text = as_text(value)
        text = text.strip() if self.strip else text
        return text.casefold() if self.ignore_case else text


@scorer("exact")
@dataclass(frozen=True, slots=True, kw_only=True)
class Exact(_TextScorer):
    """Scores 1 when the output is the expected text."""

    name: str = "exact"

    async def compare(self, given: ScoreInput) -> Score:
        same = self.normal(given.output) == self.normal(given.expected)
        return self.scored(float(same), "" if same else "the output differs from what is expected")


@scorer("contains")
@dataclass(frozen=True, slots=True, kw_only=True)
class Contains(_TextScorer):
    """Scores 1 when the output contains the expected text; with a list of texts, the share that it contains."""

    name: str = "contains"

    def check(self, case: Case) -> str | None:
        """Refuse an expected text that is empty, which every output would contain."""
        return None if case.expected_answer is None else self._problem(_wanted(case.expected_answer))

    def accepts_reference(self, case: Case) -> bool:
        """Return True for a single text: several are parts of an answer."""
        return case.expected is not None and not isinstance(case.expected, list)

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

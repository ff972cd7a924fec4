"""Scorers that compare the output's text with what the case expects. Without an expectation they stay silent."""

import asyncio
import json
import re
import sys
from dataclasses import dataclass, field
from typing import ClassVar, Self

from pydantic import JsonValue
from pydantic_core import to_json

from bakeoff.errors import GraderError, UsageError
from bakeoff.frozen import Frozen
from bakeoff.plan import Case, ScorerSpec
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score
from bakeoff.specs import describe, read_options

_SEARCH = """
import json, re, sys
pattern, flags, text = json.load(sys.stdin)
sys.exit(0 if re.search(pattern, text, flags) else 3)
"""


def as_text(output: JsonValue) -> str:
    """What a person would call the output's text."""
    if output is None:
        return ""
    return output if isinstance(output, str) else to_json(output).decode()


class TextOptions(Frozen):
    ignore_case: bool = False
    strip: bool = True


@dataclass(frozen=True, slots=True)
class _TextScorer:
    options: TextOptions = field(default_factory=TextOptions)

    @classmethod
    def from_spec(cls, spec: ScorerSpec) -> Self:
        return cls(read_options(spec, TextOptions))

    def can_score(self, case: Case) -> bool:
        return case.expected is not None

    def normal(self, value: JsonValue) -> str:
        text = as_text(value)
        text = text.strip() if self.options.strip else text
        return text.casefold() if self.options.ignore_case else text


@dataclass(frozen=True, slots=True)
class Exact(_TextScorer):
    """1 when the output is the expected text."""

    name: ClassVar[str] = "exact"

    async def __call__(self, given: ScoreInput) -> Score:
        if given.case.expected is None:
            return Score(name=self.name, reason="the case expects no particular output")
        same = self.normal(given.transcript.output) == self.normal(given.case.expected)
        return Score(
            name=self.name, value=float(same), reason="" if same else "the output differs from what is expected"
        )


@dataclass(frozen=True, slots=True)
class Contains(_TextScorer):
    """1 when the output contains the expected text; with a list of texts, the share that it contains."""

    name: ClassVar[str] = "contains"

    def check(self, case: Case) -> str | None:
        wanted = _wanted(case.expected)
        if case.expected is None or (wanted and all(map(self.normal, wanted))):
            return None
        return "an empty expected text is contained in everything: say what the output must contain"

    async def __call__(self, given: ScoreInput) -> Score:
        expected = given.case.expected
        if expected is None:
            return Score(name=self.name, reason="the case expects no particular output")
        if problem := self.check(given.case):
            raise GraderError(f"case {given.case.id!r}: {problem}")
        wanted = _wanted(expected)
        output = self.normal(given.transcript.output)
        missing = [as_text(item) for item in wanted if self.normal(item) not in output]
        reason = f"missing: {', '.join(map(repr, missing))}" if missing else ""
        return Score(name=self.name, value=1 - len(missing) / len(wanted), reason=reason)


def _wanted(expected: JsonValue) -> list[JsonValue]:
    return expected if isinstance(expected, list) else [expected]


class RegexOptions(Frozen):
    pattern: str | None = None
    ignore_case: bool = False


@dataclass(frozen=True, slots=True)
class Regex:
    """1 when the pattern is found in the output; without one of its own, the case's expected text is the pattern."""

    pattern: re.Pattern[str] | None
    flags: int = 0
    seconds: float = 10.0  # a longer search is given up
    name: ClassVar[str] = "regex"

    @classmethod
    def from_spec(cls, spec: ScorerSpec) -> Self:
        options = read_options(spec, RegexOptions)
        flags = re.IGNORECASE if options.ignore_case else 0
        try:
            return cls(None if options.pattern is None else re.compile(options.pattern, flags), flags)
        except re.error as error:
            raise UsageError(
                f"{describe(spec)}: pattern {options.pattern!r} is not a regular expression: {error}"
            ) from error

    async def __call__(self, given: ScoreInput) -> Score:
        pattern = self.pattern
        if pattern is None:
            if given.case.expected is None:
                return Score(name=self.name, reason="the case expects no particular output")
            if problem := self.check(given.case):
                raise GraderError(f"case {given.case.id!r}: {problem}")
            pattern = re.compile(as_text(given.case.expected), self.flags)
        found = await is_found(pattern, as_text(given.transcript.output), self.seconds)
        if found is None:
            reason = f"{pattern.pattern!r} was still being searched for after {self.seconds:g} s"
            return Score(name=self.name, value=0.0, reason=reason)
        return Score(name=self.name, value=float(found), reason="" if found else f"no match for {pattern.pattern!r}")

    def can_score(self, case: Case) -> bool:
        return self.pattern is not None or case.expected is not None

    def check(self, case: Case) -> str | None:
        if self.pattern is not None or case.expected is None:
            return None
        try:
            re.compile(as_text(case.expected), self.flags)
        except (re.error, OverflowError, RecursionError) as error:
            return f"expected {case.expected!r} is not a regular expression: {error}; mend it, or use `contains`"
        return None


async def is_found(pattern: re.Pattern[str], text: str, seconds: float) -> bool | None:
    """Whether the pattern is found; None when that takes too long.

    Some patterns with repetitions take forever on a text that is made for it, and `re` lets nothing else run meanwhile.
    So these are searched for in a process that can be killed.
    """
    if not set(pattern.pattern) & set("*+{"):
        return pattern.search(text) is not None
    argv = (sys.executable, "-I", "-S", "-c", _SEARCH)
    nothing = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*argv, stdin=asyncio.subprocess.PIPE, stdout=nothing, stderr=nothing)
    try:
        async with asyncio.timeout(seconds):
            await process.communicate(json.dumps([pattern.pattern, pattern.flags, text]).encode())
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode not in (0, 3):
        raise GraderError(f"searching for {pattern.pattern!r} ended with exit code {process.returncode}")
    return process.returncode == 0

"""The scorer `mcp`: were the right tools called, with the right parameters, and did they give the right results?"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.mcp_suite.calls import Call, Expected, Heard, call_differences, make_call, offered_names, read_reply
from bakeoff.doors.mcp_suite.matching import Difference, is_matcher, parameter_differences, value_differences
from bakeoff.doors.mcp_suite.plan import SCORER
from bakeoff.errors import GraderError
from bakeoff.mcp import McpHub, OpenHub, ServerTool
from bakeoff.models.access import ProviderAccess
from bakeoff.models.check import what_is_missing
from bakeoff.plan import Case, ScorerSpec, read_options
from bakeoff.protocols import Needs, ScoreInput
from bakeoff.record import Score, ToolCall, Transcript
from bakeoff.scorers.judging import Rubric, ask

_LONGEST = 20_000  # characters of a result that a record keeps
_WRAPPED = "result"  # the key under which an SDK sends what is no object: structured content has to be one


class Executed(FrozenModel):
    """What came of one call."""

    tool: str
    text: str = ""
    structured: JsonValue = None
    is_error: bool = False

    @property
    def value(self) -> JsonValue:
        """What a report shows of it."""
        return self.structured if self.structured is not None else self.text


@dataclass(frozen=True, slots=True)
class Execution:
    """Where tools are called: on the servers of the run, or on fresh ones for each trial."""

    hub: McpHub
    own_hub: bool = False

    async def __call__(self, calls: Sequence[Call], resources: Mapping[str, Any]) -> list[Executed]:
        """Each call in turn, up to one that fails: those after it may build on it."""
        done: list[Executed] = []
        async with self._opened(resources) as hub:
            for call in calls:
                result = await hub.call(call.serverName, call.toolName, call.parameters)
                done.append(
                    Executed(
                        tool=call.tool,
                        text=result.text[:_LONGEST],
                        structured=_bounded(result.structured),
                        is_error=result.is_error,
                    )
                )
                if result.is_error:
                    break
        return done

    @asynccontextmanager
    async def _opened(self, resources: Mapping[str, Any]) -> AsyncIterator[OpenHub]:
        if not self.own_hub:
            yield resources[self.hub.key]
            return
        async with self.hub.open() as hub:
            yield hub


def executed_by_agent(calls: Sequence[ToolCall], meant: Sequence[Call]) -> list[Executed]:
    """What an agent's own calls gave."""
    return [
        Executed(
            tool=call.tool,
            text=(said.error if said.error is not None else _text(said.result))[:_LONGEST],
            structured=_bounded(said.result) if isinstance(said.result, dict | list) else None,
            is_error=said.error is not None,
        )
        for said, call in zip(calls, meant, strict=True)
    ]


async def result_differences(expected: JsonValue, executed: Sequence[Executed]) -> list[str]:
    """Why the results are not what was expected: of every call where that is a list of as many, else of the last."""
    if failed := [each for each in executed if each.is_error]:
        return [f"the tool {each.tool!r} answered with an error: {each.text[:300]}" for each in failed]
    if expected is None or not executed:
        return []
    if isinstance(expected, list) and len(executed) > 1 and len(expected) == len(executed):
        pairs = list(zip(expected, executed, strict=True))
    else:
        pairs = [(expected, executed[-1])]
    found: list[str] = []
    for wanted, result in pairs:
        found += [f"result of {result.tool!r}: {problem}" for problem in await _problems(wanted, result)]
    return found


async def _problems(expected: JsonValue, result: Executed) -> list[str]:
    if isinstance(expected, str):
        held = expected in result.text or expected in _text(result.structured)
        return [] if held else [f"{expected!r} is not in {result.text[:200]!r}"]
    told: list[str] | None = None
    for actual in _readings(expected, result):
        found = [str(each) for each in await _differences(expected, actual)]
        if not found:
            return []
        told = found if told is None else told
    return told or []


def _readings(expected: JsonValue, result: Executed) -> list[JsonValue]:
    """All that a result may be meant as, that which was most probably expected first."""
    found: list[JsonValue] = []
    if result.structured is not None:
        found.append(result.structured)
        if isinstance(result.structured, dict) and result.structured.keys() == {_WRAPPED}:
            bare_first = not isinstance(expected, dict) or _WRAPPED not in expected
            found.insert(0 if bare_first else 1, result.structured[_WRAPPED])
    found.append(_parsed(result.text))
    if is_matcher(expected) and result.text not in found:
        found.append(result.text)
    return found


async def _differences(expected: JsonValue, actual: JsonValue) -> list[Difference]:
    if isinstance(expected, dict) and isinstance(actual, dict) and not is_matcher(expected):
        return await parameter_differences(expected, actual, extra_allowed=True)
    return await value_differences(expected, actual)


def _parsed(text: str) -> JsonValue:
    try:
        parsed: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return parsed


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _bounded(value: JsonValue) -> JsonValue:
    """A result that is too long for a record is left to its text."""
    return value if value is None or len(_text(value)) <= _LONGEST else None


_CRITERIA = (
    "A tool was called for the question. The answer is what the tool gave back. What it is judged by: {criterion}"
)
_PASSED, _FAILED = "A", "B"
_CHOICES = {_PASSED: "The answer meets what it is judged by.", _FAILED: "The answer does not meet it."}


class Grade(FrozenModel):
    """What a judge said, and who it was."""

    passed: bool
    reason: str = ""
    judge: str = ""


@dataclass(frozen=True, slots=True)
class Grader:
    """One judge for all cases; each case may bring a criterion of its own."""

    access: ProviderAccess
    only_recordings: bool = False
    name: str = "judge"
    temperature: float | None = 0.0
    max_tokens: int | None = 1024
    repeats: int = 1

    @property
    def needs(self) -> Needs:
        return Needs(resources=() if self.only_recordings else (self.access,))

    def lacks(self) -> list[str]:
        return what_is_missing(self.access.name, self.access.provider, self.access.environment)

    def secrets(self) -> Mapping[str, str]:
        environment = self.access.environment
        return {name: environment[name].strip() for name in self.access.provider.keys if environment.get(name)}

    def offline(self) -> Self:
        return replace(self, only_recordings=True)

    async def __call__(
        self, criterion: str, calls: Sequence[Call], executed: Sequence[Executed], given: ScoreInput
    ) -> Grade:
        rubric = Rubric(_CRITERIA.format(criterion=criterion), _CHOICES, _LONGEST)
        sections = {
            "question": given.case.prompt,
            "call": json.dumps([call.model_dump(mode="json") for call in calls], ensure_ascii=False),
            "answer": json.dumps([each.value for each in executed], ensure_ascii=False),
        }
        [verdict] = await ask(self, given, rubric, sections)
        if verdict.choice is None:
            raise GraderError(f"the judge {self.access.name} did not choose: {verdict.said[:200]!r}")
        return Grade(passed=verdict.choice == _PASSED, reason=verdict.rationale, judge=str(self.access.name))


UNKNOWN_SERVER = "unknown"
"""Of a tool that a model made up in function calling, where only the tool is named."""

UNREADABLE = "unreadable reply"
_MOST_REASONS = 20
_LONGEST_REASON = 2_000


class ScorerOptions(FrozenModel):
    mode: Literal["json", "native", "agent"] = "json"
    extra_parameters: Literal["reject", "allow"] = "reject"
    strict_json: bool = False
    execute: bool = False
    scope: Literal["run", "trial"] = "run"
    judge: str | None = None


@dataclass(frozen=True, slots=True)
class CallScorer:
    """1 where all is as expected, else 0; what was called, executed and graded is beside it."""

    options: ScorerOptions
    tools: tuple[ServerTool, ...]
    execution: Execution | None = None
    grader: Grader | None = None
    _read: dict[str, Expected] = field(default_factory=dict)  # of each case, once
    name: ClassVar[str] = SCORER

    @classmethod
    def from_spec(
        cls, spec: ScorerSpec, tools: Sequence[ServerTool], execution: Execution | None, grader: Grader | None
    ) -> "CallScorer":
        return cls(read_options(spec, ScorerOptions), tuple(tools), execution, grader)

    @property
    def needs(self) -> Needs:
        shared = (self.execution.hub,) if self.execution is not None and not self.execution.own_hub else ()
        judging = self.grader.needs.resources if self.grader is not None else ()
        return Needs(resources=(*shared, *judging))

    def check(self, case: Case) -> str | None:
        try:
            _expected(case)
        except GraderError as error:
            return str(error)
        return None

    def lacks(self) -> list[str]:
        return self.grader.lacks() if self.grader is not None else []

    def secrets(self) -> Mapping[str, str]:
        return self.grader.secrets() if self.grader is not None else {}

    def offline(self) -> Self:
        return replace(self, grader=self.grader.offline() if self.grader is not None else None)

    async def __call__(self, given: ScoreInput) -> Score:
        expected = self._expected(given.case)
        heard = self._heard(given.transcript)
        problems = [heard.problem] if heard.problem else await self._differences(expected, heard)
        executed = [] if problems else await self._executed(expected, heard, given)
        problems += await result_differences(expected.results, executed)
        grade = None if problems else await self._graded(expected, heard, executed, given)
        if grade is not None and not grade.passed:
            problems.append(f"graded as failed: {grade.reason}")
        return Score(
            name=self.name,
            value=0.0 if problems else 1.0,
            reason="; ".join(problems[:_MOST_REASONS])[:_LONGEST_REASON],
            metadata=_details(heard, executed, grade, problems),
        )

    def _expected(self, case: Case) -> Expected:
        if case.score_digest not in self._read:
            self._read[case.score_digest] = _expected(case)
        return self._read[case.score_digest]

    def _heard(self, transcript: Transcript) -> Heard:
        if self.options.mode != "json":
            return self._native(transcript.tool_calls)
        return read_reply(str(transcript.output or ""), strict=self.options.strict_json)

    def _native(self, called: Sequence[ToolCall]) -> Heard:
        offered = offered_names(self.tools)
        calls: list[Call] = []
        for call in called:
            if call.name not in offered:
                made_up = Call(serverName=UNKNOWN_SERVER, toolName=call.name[:200])
                problem = f"{made_up.toolName!r} was called, and there is no such tool"
                return Heard((*calls, made_up), "native", problem)
            if not isinstance(call.arguments, dict):
                return Heard(tuple(calls), "native", f"the arguments of {call.name[:200]!r} are no JSON object")
            meant = make_call(offered[call.name].server, offered[call.name].name, call.arguments)
            if isinstance(meant, str):
                return Heard(tuple(calls), "native", meant)
            calls.append(meant)
        return Heard(tuple(calls), "native")

    async def _differences(self, expected: Expected, heard: Heard) -> list[str]:
        allowed = self.options.extra_parameters == "allow"
        return await call_differences(expected.calls, heard.calls, extra_allowed=allowed)

    async def _executed(self, expected: Expected, heard: Heard, given: ScoreInput) -> list[Executed]:
        """Only calls that are right are made: what else a model thinks of is nothing to do to a server."""
        if self.options.mode == "agent":
            return executed_by_agent(given.transcript.tool_calls, heard.calls)
        wanted = self.options.execute or expected.results is not None or expected.grading is not None
        if not wanted or not heard.calls or self.execution is None:
            return []
        return await self.execution(heard.calls, given.resources)

    async def _graded(
        self, expected: Expected, heard: Heard, executed: Sequence[Executed], given: ScoreInput
    ) -> Grade | None:
        if expected.grading is None or self.grader is None or not heard.calls:
            return None
        return await self.grader(expected.grading, heard.calls, executed, given)


def _details(
    heard: Heard, executed: Sequence[Executed], grade: Grade | None, problems: Sequence[str]
) -> dict[str, JsonValue]:
    told: dict[str, JsonValue] = {
        "called": [call.model_dump(mode="json") for call in heard.calls],
        "manner": heard.manner,
    }
    if problems:
        told["failure_class"] = _class_of(heard, executed, grade, problems[0])
    if executed:
        told["executed"] = [each.model_dump(mode="json") for each in executed]
    if grade is not None:
        told["grading"] = grade.model_dump(mode="json")
    return told


def _class_of(heard: Heard, executed: Sequence[Executed], grade: Grade | None, first: str) -> str:
    """A word for what went wrong, by which a report sorts."""
    if heard.problem:
        return "unknown tool" if heard.calls and heard.calls[-1].serverName == UNKNOWN_SERVER else UNREADABLE
    if grade is not None:
        return "graded as failed"
    if executed:
        return "tool error" if executed[-1].is_error else "wrong result"
    if "parameters: " in first:
        return "wrong parameters"
    return "wrong tool" if heard.calls else "no call"


def _expected(case: Case) -> Expected:
    try:
        return Expected.model_validate(case.expected)
    except ValidationError as error:
        raise GraderError(f"case {case.id!r} was not made by `bakeoff mcp`: start a new run") from error

"""The scorer `mcp`: were the right tools called, with the right parameters, and did they give the right results?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.mcp_suite.calls import Call, Expected, call_differences, make_call
from bakeoff.doors.mcp_suite.execution import Executed, Execution, executed_by_agent, result_differences
from bakeoff.doors.mcp_suite.grading import Grade, Grader
from bakeoff.doors.mcp_suite.plan import SCORER
from bakeoff.doors.mcp_suite.reply import Heard, read_reply
from bakeoff.doors.mcp_suite.tool_names import offered_names
from bakeoff.errors import GraderError
from bakeoff.mcp import ServerTool
from bakeoff.plan import Case, ScorerSpec, read_options
from bakeoff.protocols import Needs, ScoreInput
from bakeoff.record import Score, ToolCall, Transcript

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

"""Score a round: compare the calls with the expected ones, execute the tools, and let a judge grade the results."""

import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.mcp_suite.calls import (
    UNREADABLE,
    Call,
    CallRules,
    Expected,
    Reply,
    make_call,
    offered_names,
    read_reply,
)
from bakeoff.doors.mcp_suite.config import Mode
from bakeoff.doors.mcp_suite.plan import SCORER, PlanSettings
from bakeoff.doors.mcp_suite.sequences import call_differences
from bakeoff.doors.mcp_suite.servers import hub_of
from bakeoff.doors.mcp_suite.subjects import model_of
from bakeoff.errors import GraderError, ToolTimeout
from bakeoff.mcp import McpHub, OpenHub, ServerTool
from bakeoff.models.access import ProviderAccess
from bakeoff.plan import Case, Plan, ScorerSpec, read_options
from bakeoff.protocols import Needs, ScoreInput
from bakeoff.record import Score, ToolCall
from bakeoff.scorers.judging import UnreadableVerdict, ask, choice_question, read_choice
from bakeoff.scorers.matchers import is_matcher, parameter_differences, value_differences

UNKNOWN_SERVER = "unknown"
"""The server of a tool that a model invented in function calling, where a call names only the tool."""

_LONGEST = 20_000  # characters of a result that a record keeps, and of each text that a judge sees
_MOST_REASONS = 20
_LONGEST_REASON = 2_000
_WRAPPED = "result"  # SDKs send a result that is not an object under this key: structured content must be an object
_CRITERIA = (
    "A tool was called for the question. The answer is what the tool gave back. What it is judged by: {criterion}"
)
_PASSED, _FAILED = "A", "B"
_CHOICES = {_PASSED: "The answer meets what it is judged by.", _FAILED: "The answer does not meet it."}


class Executed(FrozenModel):
    """The result of one executed call."""

    tool: str
    text: str = ""
    structured: JsonValue = None
    is_error: bool = False

    @property
    def value(self) -> JsonValue:
        """Return the structured content, else the text."""
        return self.structured if self.structured is not None else self.text


class Grade(FrozenModel):
    """The decision of a judge."""

    passed: bool
    reason: str = ""
    judge: str = ""


@dataclass(frozen=True, slots=True)
class Grader:
    """A judge for all cases. Each case may have a criterion of its own."""

    access: ProviderAccess
    only_recordings: bool = False
    name: str = "judge"
    temperature: float | None = 0.0
    max_tokens: int | None = 1024
    repeats: int = 1

    async def __call__(
        self, criterion: str, calls: Sequence[Call], executed: Sequence[Executed], given: ScoreInput
    ) -> Grade:
        question = choice_question(_CRITERIA.format(criterion=criterion), _CHOICES, _LONGEST)
        sections = {
            "question": given.case.prompt,
            "call": json.dumps([call.model_dump(mode="json") for call in calls], ensure_ascii=False),
            "answer": json.dumps([each.value for each in executed], ensure_ascii=False),
        }
        [said] = await ask(self, given, question, sections)
        try:
            choice, rationale = read_choice(said, _CHOICES)
        except UnreadableVerdict as error:
            raise GraderError(f"the judge {self.access.name} did not choose: {said[:200]!r}") from error
        return Grade(passed=choice == _PASSED, reason=rationale, judge=str(self.access.name))


class ScorerOptions(FrozenModel):
    mode: Mode = "json"
    extra_parameters: Literal["reject", "allow"] = "reject"
    strict_json: bool = False
    execute: bool = False
    scope: Literal["run", "trial"] = "run"
    judge: str | None = None


@dataclass(frozen=True, slots=True)
class CallScorer:
    """Score 1 if calls, results and grade are as expected, else 0. The metadata holds the details."""

    options: ScorerOptions
    tools: tuple[ServerTool, ...]
    hub: McpHub | None = None  # executes the calls; None if no case needs that
    graders: Mapping[str, Grader] = field(default_factory=dict)  # by the model that answered
    _read: dict[str, Expected] = field(default_factory=dict)  # each case is read once
    name: ClassVar[str] = SCORER

    @classmethod
    def from_spec(
        cls, spec: ScorerSpec, plan: Plan, settings: PlanSettings, environment: Mapping[str, str]
    ) -> "CallScorer":
        options = read_options(spec, ScorerOptions)
        expected = [case.expected for case in plan.cases if isinstance(case.expected, dict)]
        graded = any(each.get("grading") is not None for each in expected)
        wanted = graded or any(each.get("results") is not None or each.get("execute") for each in expected)
        executes = (wanted or options.execute) and options.mode != "agent"  # agents call the tools themselves
        hub = hub_of(settings.servers, environment, settings.toolTimeout) if executes else None
        # Without a judge, each model grades what its own calls gave, as in the tool whose files we read.
        judges = {model.name: settings.judge or model for model in plan.subjects} if graded else {}
        graders = {name: Grader(model_of(judge, settings, environment).access) for name, judge in judges.items()}
        return cls(options, settings.tools, hub, graders)

    @property
    def needs(self) -> Needs:
        shared = (self.hub,) if self.hub is not None and self.options.scope == "run" else ()
        judging = {each.access.key: each.access for each in self.graders.values() if not each.only_recordings}
        return Needs(resources=(*shared, *judging.values()))

    def check(self, case: Case) -> str | None:
        try:
            self._expected(case)
        except GraderError as error:
            return str(error)
        return None

    def lacks(self) -> list[str]:
        return list(dict.fromkeys(lack for each in self.graders.values() for lack in each.access.lacks()))

    def secrets(self) -> Mapping[str, str]:
        return {name: value for each in self.graders.values() for name, value in each.access.secrets().items()}

    def offline(self) -> Self:
        offline = {name: replace(each, only_recordings=True) for name, each in self.graders.items()}
        return replace(self, graders=offline)

    async def __call__(self, given: ScoreInput) -> Score:
        expected = self._expected(given.case)
        if self.options.mode == "json":
            reply = read_reply(str(given.transcript.output or ""), strict=self.options.strict_json)
        else:
            reply = self._native_reply(given.transcript.tool_calls)
        if reply.problem:
            problems = [reply.problem]
        else:
            allowed = self.options.extra_parameters == "allow"
            problems = await call_differences(expected, reply.calls, extra_allowed=allowed)
        problems += limit_problems(expected.rules, given)
        executed = [] if problems else await self._execute(expected, reply, given)
        problems += await result_differences(expected, executed)
        grade = None
        grader = self._grader(given)
        if not problems and expected.grading is not None and grader is not None and executed:
            grade = await grader(expected.grading, reply.calls, executed, given)
            if not grade.passed:
                problems.append(f"graded as failed: {grade.reason}")
        return Score(
            name=self.name,
            value=0.0 if problems else 1.0,
            reason="; ".join(problems[:_MOST_REASONS])[:_LONGEST_REASON],
            metadata=_details(reply, executed, grade, problems),
        )

    def _grader(self, given: ScoreInput) -> Grader | None:
        return self.graders.get(given.asking.subject) if given.asking is not None else None

    def _expected(self, case: Case) -> Expected:
        if case.score_digest not in self._read:
            try:
                self._read[case.score_digest] = Expected.model_validate(case.expected)
            except ValidationError as error:
                raise GraderError(f"case {case.id!r} was not made by `bakeoff mcp`: start a new run") from error
        return self._read[case.score_digest]

    def _native_reply(self, called: Sequence[ToolCall]) -> Reply:
        offered = offered_names(self.tools)
        calls: list[Call] = []
        for call in called:
            if call.name not in offered:
                invented = Call(serverName=UNKNOWN_SERVER, toolName=call.name[:200])
                problem = f"{invented.toolName!r} was called, but there is no such tool"
                return Reply((*calls, invented), "native", problem)
            if not isinstance(call.arguments, dict):
                return Reply(tuple(calls), "native", f"the arguments of {call.name[:200]!r} are not a JSON object")
            made = make_call(offered[call.name].server, offered[call.name].name, call.arguments)
            if isinstance(made, str):
                return Reply(tuple(calls), "native", made)
            calls.append(made)
        return Reply(tuple(calls), "native")

    async def _execute(self, expected: Expected, reply: Reply, given: ScoreInput) -> list[Executed]:
        """Execute the calls in turn, and stop after an error: later calls may depend on it.

        All calls are as expected here: wrong calls never reach a server.
        """
        if self.options.mode == "agent":
            return _executed_by_agent(given.transcript.tool_calls, reply.calls)
        wanted = self.options.execute or expected.results is not None or expected.grading is not None
        if expected.execute is not None:
            wanted = expected.execute
        if not wanted or not reply.calls or self.hub is None:
            return []
        done: list[Executed] = []
        async with AsyncExitStack() as stack:
            own = self.options.scope == "trial"
            hub: OpenHub = await stack.enter_async_context(self.hub.open()) if own else given.resources[self.hub.key]
            for call in reply.calls:
                done.append(await _execute_call(hub, call))
                if done[-1].is_error:
                    break
        return done


async def _execute_call(hub: OpenHub, call: Call) -> Executed:
    """Execute a call. A tool that does not answer has failed; it is not the model's or our fault."""
    try:
        result = await hub.call(call.serverName, call.toolName, call.parameters)
    except ToolTimeout as late:
        return Executed(tool=call.tool, text=str(late), is_error=True)
    text, structured = result.text[:_LONGEST], _unless_long(result.structured)
    return Executed(tool=call.tool, text=text, structured=structured, is_error=result.is_error)


def limit_problems(rules: CallRules, given: ScoreInput) -> list[str]:
    """Return a sentence for each limit of a case that a round exceeded."""
    found: list[str] = []
    if rules.maxSeconds is not None and given.seconds is not None and given.seconds > rules.maxSeconds:
        found.append(f"it took {given.seconds:.1f} s, at most {rules.maxSeconds:g} s are allowed")
    cost = given.transcript.usage.cost
    if rules.maxCost is not None and (cost is None or cost > rules.maxCost):
        known = "unknown" if cost is None else f"${cost:.6f}"
        found.append(f"its cost is {known}, at most ${rules.maxCost:g} is allowed")
    return found


def _executed_by_agent(calls: Sequence[ToolCall], read: Sequence[Call]) -> list[Executed]:
    """Return the results of the calls that an agent made itself."""
    return [
        Executed(
            tool=call.tool,
            text=(made.error if made.error is not None else _text(made.result))[:_LONGEST],
            structured=_unless_long(made.result) if isinstance(made.result, dict | list) else None,
            is_error=made.error is not None,
        )
        for made, call in zip(calls, read, strict=True)
    ]


def _details(
    reply: Reply, executed: Sequence[Executed], grade: Grade | None, problems: Sequence[str]
) -> dict[str, JsonValue]:
    details: dict[str, JsonValue] = {
        "called": [call.model_dump(mode="json") for call in reply.calls],
        "manner": reply.form,
    }
    if problems:
        details["failure_class"] = _failure_class(reply, executed, grade, problems[0])
    if executed:
        details["executed"] = [each.model_dump(mode="json") for each in executed]
    if grade is not None:
        details["grading"] = grade.model_dump(mode="json")
    return details


def _failure_class(reply: Reply, executed: Sequence[Executed], grade: Grade | None, first: str) -> str:
    """Return a short name for the kind of failure, by which reports group failures."""
    if reply.problem:
        return "unknown tool" if reply.calls and reply.calls[-1].serverName == UNKNOWN_SERVER else UNREADABLE
    if grade is not None:
        return "graded as failed"
    if executed:
        return "tool error" if executed[-1].is_error else "wrong result"
    if "parameters: " in first:
        return "wrong parameters"
    return "wrong tool" if reply.calls else "no call"


async def result_differences(case: Expected, executed: Sequence[Executed]) -> list[str]:
    """Return a sentence for each difference between the results and the expected ones.

    A list with one item for each of several calls is compared with all results, anything else with the last one.
    """
    expected, error = case.results, case.rules.expectedError
    if error and executed:
        last = executed[-1]
        if not last.is_error:
            return [f"the tool {last.tool!r} succeeded, but an error is expected"]
        missing = isinstance(error, str) and error not in last.text
        return [f"the error of {last.tool!r} does not contain {error!r}: {last.text[:300]}"] if missing else []
    if failed := [each for each in executed if each.is_error]:
        return [f"the tool {each.tool!r} answered with an error: {each.text[:300]}" for each in failed]
    if expected is None or not executed:
        return []
    if isinstance(expected, list) and len(executed) > 1 and len(expected) == len(executed):
        pairs = list(zip(expected, executed, strict=True))
    else:
        pairs = [(expected, executed[-1])]
    return [
        f"result of {result.tool!r}: {problem}"
        for wanted, result in pairs
        for problem in await _result_problems(wanted, result)
    ]


async def _result_problems(expected: JsonValue, result: Executed) -> list[str]:
    """Return the differences to the most probable reading of a result, or none if any reading matches."""
    if isinstance(expected, str):
        found = expected in result.text or expected in _text(result.structured)
        return [] if found else [f"{expected!r} is not in {result.text[:200]!r}"]
    first: list[str] | None = None
    for actual in _readings(expected, result):
        if isinstance(expected, dict) and isinstance(actual, dict) and not is_matcher(expected):
            differences = await parameter_differences(expected, actual, extra_allowed=True)
        else:
            differences = await value_differences(expected, actual)
        if not differences:
            return []
        first = first or differences
    return first or []


def _readings(expected: JsonValue, result: Executed) -> list[JsonValue]:
    """Return the possible values of a result, the most probable one first."""
    found: list[JsonValue] = []
    if result.structured is not None:
        found.append(result.structured)
        if isinstance(result.structured, dict) and result.structured.keys() == {_WRAPPED}:
            bare_first = not isinstance(expected, dict) or _WRAPPED not in expected
            found.insert(0 if bare_first else 1, result.structured[_WRAPPED])
    try:
        found.append(json.loads(result.text))
    except (ValueError, RecursionError):
        found.append(result.text)
    if is_matcher(expected) and result.text not in found:
        found.append(result.text)
    if isinstance(expected, dict) and expected.keys() == {"content"} and isinstance(expected["content"], str):
        found.append({"content": result.text})  # the form in which other tools write an expected text
    return found


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _unless_long(value: JsonValue) -> JsonValue:
    """Return a structured result, or None if it is too long for a record, which then keeps only its text."""
    return value if value is None or len(_text(value)) <= _LONGEST else None

"""Score a round: compare its calls, execute them, compare the results, and let a judge grade what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from pydantic import JsonValue, ValidationError

from bakeoff.doors.mcp.calls import TURNS, UNREADABLE, CallRules, ExpectedMcpCall, ModelReply
from bakeoff.doors.mcp.end_state import END_STATE, EndResult, dumped, end_results
from bakeoff.doors.mcp.execution import ExecutedCall, TurnScore, execute_calls, executed_by_agent
from bakeoff.doors.mcp.expected_results import result_differences
from bakeoff.doors.mcp.grading import CallGrade, CallGrader
from bakeoff.doors.mcp.plan import SCORER, McpPlanSettings, ScorerOptions
from bakeoff.doors.mcp.replies import UNKNOWN_SERVER
from bakeoff.doors.mcp.servers import hub_of
from bakeoff.doors.mcp.subjects import model_of
from bakeoff.doors.mcp.turns import ReadTurn, TurnRules
from bakeoff.errors import GraderError
from bakeoff.mcp import McpHub
from bakeoff.models.access import ProviderAccess
from bakeoff.plan import Case, Plan, ScorerSpec, read_options
from bakeoff.protocols import Needs, ScoreInput
from bakeoff.record import Score

_MAX_REASONS = 20
_MAX_REASON_LENGTH = 2_000


@dataclass(frozen=True, slots=True)
class CallScorer:
    """Score 1 if calls, results and grade are as expected, else 0. The metadata holds the details."""

    options: ScorerOptions
    rules: TurnRules
    hub: McpHub | None = None  # executes the calls; None if no case needs that
    graders: Mapping[str, CallGrader] = field(default_factory=dict)  # by the model that answered
    _read: dict[str, ExpectedMcpCall] = field(default_factory=dict)  # each case is read once
    name: ClassVar[str] = SCORER

    @classmethod
    def from_spec(
        cls, spec: ScorerSpec, plan: Plan, settings: McpPlanSettings, environment: Mapping[str, str]
    ) -> "CallScorer":
        options = read_options(spec, ScorerOptions)
        expected = [case.expected for case in plan.cases if isinstance(case.expected, dict)]
        graded = any(each.get("grading") is not None for each in expected)
        wanted = graded or any(each.get("results") is not None or each.get("execute") for each in expected)
        executes = (wanted or options.execute) and options.mode != "agent"  # agents call the tools themselves
        hub = hub_of(settings.servers, environment, settings.toolTimeout) if executes else None
        # Without a judge, each model grades what its own calls gave, as in the tool whose files we read.
        models = {spec.name: model_of(spec, settings, environment) for spec in plan.subjects} if graded else {}
        judge = model_of(settings.judge, settings, environment) if settings.judge is not None else None
        writes = options.mode != "agent" and any(each.get("graded", "result") != "result" for each in expected)
        graders = {
            name: CallGrader((judge or model).access, author=model if writes else None)
            for name, model in models.items()
        }
        return cls(options, TurnRules.of(options, settings, environment), hub, graders)

    @property
    def needs(self) -> Needs:
        shared = (self.hub,) if self.hub is not None and self.options.scope == "run" else ()
        asked = [access for each in self.graders.values() if not each.only_recordings for access in each.accesses]
        return Needs(resources=(*shared, *{access.key: access for access in asked}.values()))

    def check(self, case: Case) -> str | None:
        try:
            self._expected(case)
        except GraderError as error:
            return str(error)
        return None

    def lacks(self) -> list[str]:
        return list(dict.fromkeys(lack for access in self._accesses() for lack in access.lacks()))

    def secrets(self) -> Mapping[str, str]:
        return {name: value for access in self._accesses() for name, value in access.secrets().items()}

    def offline(self) -> Self:
        return replace(self, graders={name: each.offline() for name, each in self.graders.items()})

    async def __call__(self, given: ScoreInput) -> Score:
        expected = self._expected(given.case)
        if expected.turns:
            found = await self.rules.read(expected.turns, given.transcript)
        else:
            found = [await self._one_turn(expected, given)]
        reply, executed = whole_reply(found), [each for turn in found for each in turn.executed]
        problems = [f"{_place(expected, found)}{problem}" for problem in found[-1].problems]
        problems += limit_problems(expected.rules, given)
        made = TurnScore(called=reply.calls, executed=tuple(executed))
        ended = await self._end_state(expected, made, given, problems)
        problems += [f"end state: {each.check}: {each.reason}" for each in ended if not each.passed]
        grade = None
        grader = self._grader(given)
        if not problems and expected.grading is not None and grader is not None and executed:
            grade = await grader(expected, reply.calls, executed, given)
            if not grade.passed:
                problems.append(f"graded as failed: {grade.reason}")
        return Score(
            name=self.name,
            value=0.0 if problems else 1.0,
            reason=_reason(problems),
            metadata={**_details(expected, found, grade, problems), **({END_STATE: dumped(ended)} if ended else {})},
        )

    async def _one_turn(self, expected: ExpectedMcpCall, given: ScoreInput) -> ReadTurn:
        """Compare the calls of a case without turns, execute them, and compare the results."""
        reader, transcript = self.rules.reader, given.transcript
        text = str(transcript.output or "")
        reply = reader.text(text) if self.options.mode == "json" else reader.native(transcript.tool_calls)
        problems = await self.rules.call_problems(expected, reply)
        executed: list[ExecutedCall] = []
        if not problems and not limit_problems(expected.rules, given):
            executed = await self._execute(expected, reply, given)
            problems = await result_differences(expected, executed)
        return ReadTurn(reply, tuple(executed), tuple(problems))

    async def _end_state(
        self, expected: ExpectedMcpCall, made: TurnScore, given: ScoreInput, problems: Sequence[str]
    ) -> list[EndResult]:
        """Return the results of all checks, if the tools were executed: of wrong calls, only agents' are."""
        transcript = given.transcript
        executed = END_STATE in transcript.metadata and (not problems or self.options.mode == "agent")
        if not expected.end_state or not executed:
            return []
        observed, answer = end_results(transcript.metadata), str(transcript.output or "")
        return await self.rules.checks.complete(expected.end_state, observed, made, answer)

    def _accesses(self) -> list[ProviderAccess]:
        return [access for each in self.graders.values() for access in each.accesses]

    def _grader(self, given: ScoreInput) -> CallGrader | None:
        return self.graders.get(given.asking.subject) if given.asking is not None else None

    def _expected(self, case: Case) -> ExpectedMcpCall:
        if case.score_digest not in self._read:
            try:
                self._read[case.score_digest] = ExpectedMcpCall.model_validate(case.expected)
            except ValidationError as error:
                raise GraderError(f"case {case.id!r} was not made by `bakeoff mcp`: start a new run") from error
        return self._read[case.score_digest]

    async def _execute(self, expected: ExpectedMcpCall, reply: ModelReply, given: ScoreInput) -> list[ExecutedCall]:
        """Execute the calls if the case needs it. All are as expected here: wrong calls never reach a server."""
        if self.options.mode == "agent":
            if expected.execute is False:
                return []
            return executed_by_agent(given.transcript.tool_calls, reply.calls)
        wanted = self.options.execute or expected.results is not None or expected.grading is not None
        if expected.execute is not None:
            wanted = expected.execute
        if not wanted or not reply.calls or self.hub is None:
            return []
        if self.options.scope == "run":
            return await execute_calls(given.resources[self.hub.key], reply.calls, self.rules.refused(expected))
        async with self.hub.open() as hub:
            return await execute_calls(hub, reply.calls, self.rules.refused(expected))


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


def whole_reply(found: Sequence[ReadTurn]) -> ModelReply:
    """Return the calls of all turns as one reply. Its form and its problem are those of the last one."""
    last = found[-1].reply
    return ModelReply(tuple(call for turn in found for call in turn.reply.calls), last.form, last.problem)


def _reason(problems: Sequence[str]) -> str:
    return "; ".join(problems[:_MAX_REASONS])[:_MAX_REASON_LENGTH]


def _place(expected: ExpectedMcpCall, found: Sequence[ReadTurn]) -> str:
    return f"turn {len(found)} of {len(expected.turns)}: " if len(expected.turns) > 1 else ""


def _details(
    expected: ExpectedMcpCall, found: Sequence[ReadTurn], grade: CallGrade | None, problems: Sequence[str]
) -> dict[str, JsonValue]:
    reply, executed = whole_reply(found), [each for turn in found for each in turn.executed]
    details: dict[str, JsonValue] = {
        "called": [call.model_dump(mode="json") for call in reply.calls],
        "manner": reply.form,
    }
    if problems:
        details["failure_class"] = _failure_class(found[-1].reply, found[-1].executed, grade, problems[0])
    if executed:
        details["executed"] = [each.model_dump(mode="json") for each in executed]
    if grade is not None:
        details["grading"] = grade.model_dump(mode="json")
    if len(expected.turns) > 1:
        scores = [
            TurnScore(
                called=turn.reply.calls, executed=turn.executed, reason="; ".join(turn.problems)[:_MAX_REASON_LENGTH]
            )
            for turn in found
        ]
        details[TURNS] = [score.model_dump(mode="json") for score in scores]
    return details


def _failure_class(reply: ModelReply, executed: Sequence[ExecutedCall], grade: CallGrade | None, first: str) -> str:
    """Return a short name for the kind of failure, by which reports group failures."""
    if first.startswith("end state: "):
        return "wrong end state"
    if reply.problem:
        return "unknown tool" if reply.calls and reply.calls[-1].serverName == UNKNOWN_SERVER else UNREADABLE
    if grade is not None:
        return "graded as failed"
    if executed:
        return "tool error" if executed[-1].is_error else "wrong result"
    if "parameters: " in first:
        return "wrong parameters"
    return "wrong tool" if reply.calls else "no call"

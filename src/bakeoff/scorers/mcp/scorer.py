"""Score a round: compare its calls, execute them, compare the results, and let a judge grade the outcome."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.model import FrozenModel, sparse_field
from bakeoff.errors import GraderError, SubjectError, SubjectTimeout
from bakeoff.plan import Case
from bakeoff.protocols import Needs, ScoreInput, Task
from bakeoff.record import Score, Transcript
from bakeoff.scorers.configurable import ConfigurableScorer
from bakeoff.scorers.mcp.calls import (
    SCORER,
    TURNS,
    UNKNOWN_SERVER,
    UNREADABLE,
    Call,
    CaseExpectation,
    ExecutedCall,
    Mode,
    ModelReply,
    ReplyReader,
    TurnScore,
    read_noted,
    text_of,
)
from bakeoff.scorers.mcp.execution import (
    END_STATE,
    EndResult,
    ReadTurn,
    TurnRules,
    dumped,
    execute_calls,
    executed_by_agent,
    expected_text,
    result_differences,
)
from bakeoff.scorers.model_judge import PROMPTS
from bakeoff.scorers.registry import scorer

if TYPE_CHECKING:
    from bakeoff.mcp import McpHub
    from bakeoff.models.access import ProviderAccess

_MAX_REASONS = 20
_MAX_REASON_LENGTH = 2_000
_MAX_LENGTH = 20_000  # characters of each text that a judge or the model sees, and of an answer that a record keeps
_ASKED = PROMPTS["mcp"]
_PASSED = "A"


class CallGrade(FrozenModel):
    """The grade that a judge gave."""

    passed: bool
    reason: str = ""
    judge: str = ""
    final: str | None = sparse_field(None)


class AnsweringModel(Protocol):
    """The model under test, with the prompt `author` as its system prompt."""

    @property
    def access(self) -> "ProviderAccess": ...
    async def attempt(self, task: Task) -> Transcript: ...
    def offline(self) -> Self: ...


@dataclass(frozen=True, slots=True)
class CallGrader:
    """A grader of the rounds of one model. Each case may have a criterion of its own."""

    access: "ProviderAccess"  # to the judge
    author: AnsweringModel | None = None  # writes the final answer; None if the transcript ends with it
    only_recordings: bool = False
    name: str = "judge"
    temperature: float | None = 0.0
    max_tokens: int | None = 1024
    repeats: int = 1

    def offline(self) -> Self:
        """Return the same grader, which uses recordings only and needs neither key nor connection."""
        return replace(self, only_recordings=True, author=self.author and self.author.offline())

    @property
    def accesses(self) -> "tuple[ProviderAccess, ...]":
        """Return the access to each model that is asked."""
        return (self.access, self.author.access) if self.author is not None else (self.access,)

    async def __call__(
        self, expected: CaseExpectation, calls: Sequence[Call], executed: Sequence[ExecutedCall], given: ScoreInput
    ) -> CallGrade:
        """Grade the outcome of the calls: the tools' results, the final answer, or both, as the case says.

        A model that gives no final answer has failed. Raise `GraderError` if the judge decides nothing.
        """
        final = None
        if expected.graded != "result":
            try:
                output = given.transcript.output
                if self.author is not None:  # asked again, because it knows the results of its calls only now
                    assert given.asking is not None, "only a run has graders"
                    asked = final_prompt(given.case.prompt, calls, executed)
                    output = (await self.author.attempt(replace(given.asking, prompt=asked, tools=()))).output
                final = str(output or "").strip()[:_MAX_LENGTH]
            except (SubjectError, SubjectTimeout) as error:
                return CallGrade(passed=False, reason=f"the model gave no final answer: {error}", final="")
            if not final:
                return CallGrade(passed=False, reason="the model's final answer is empty", final="")
        grade = await self._ask(expected, sections_of(expected, calls, executed, final, given), given)
        return grade.model_copy(update={"final": final})

    async def _ask(self, expected: CaseExpectation, sections: Mapping[str, str], given: ScoreInput) -> CallGrade:
        """Ask the judge which of two statements is true. Raise `GraderError` if it chooses none."""
        from bakeoff.scorers.judging import UnreadableVerdict, ask, choice_question, read_choice

        criteria = _ASKED["criteria"].format(
            answer=_ASKED["answers"][expected.graded],
            expected=_ASKED["expected"] if "expected text" in sections else "",
            criterion=expected.grading,
        )
        choices = _ASKED["choices"]
        [said] = await ask(self, given, choice_question(criteria, choices, _MAX_LENGTH), sections)
        try:
            choice, rationale = read_choice(said, choices)
        except UnreadableVerdict as error:
            raise GraderError(f"the judge {self.access.name} did not choose: {said[:200]!r}") from error
        return CallGrade(passed=choice == _PASSED, reason=rationale, judge=str(self.access.name))


def sections_of(
    expected: CaseExpectation,
    calls: Sequence[Call],
    executed: Sequence[ExecutedCall],
    final: str | None,
    given: ScoreInput,
) -> dict[str, str]:
    """Return the texts that a judge sees, by their names. The answer comes last."""
    results = json.dumps([each.value for each in executed], ensure_ascii=False)
    sections = {
        "question": given.case.prompt,
        "call": json.dumps([call.model_dump(mode="json") for call in calls], ensure_ascii=False),
    }
    if (text := expected_text(expected.results)) is not None:
        sections["expected text"] = text
    if expected.graded == "both":
        sections["result"] = results
    return {**sections, "answer": results if final is None else final}


def final_prompt(prompt: str, calls: Sequence[Call], executed: Sequence[ExecutedCall]) -> str:
    """Return the prompt that asks a model for its final answer."""
    results = "\n\n".join(
        f"{call.toolName} {json.dumps(call.parameters, ensure_ascii=False)}:\n{text_of(result.value)[:_MAX_LENGTH]}"
        for call, result in zip(calls, executed, strict=False)  # an error that is expected may end the calls
    )
    prompted: str = _ASKED["answer"].format(prompt=prompt, results=results)
    return prompted


@dataclass(frozen=True, slots=True)
class SuiteParts:
    """The parts of a suite that only its door knows: rules for turns, servers and judges."""

    rules: TurnRules
    hub: "McpHub | None" = None  # executes the calls; None if no case needs that
    graders: Mapping[str, CallGrader] = field(default_factory=dict)  # by the model that answered

    @property
    def accesses(self) -> "list[ProviderAccess]":
        """Return the access to each model that is asked to grade or to answer."""
        return [access for each in self.graders.values() for access in each.accesses]


@scorer("mcp")
@dataclass(frozen=True, slots=True, kw_only=True)
class McpCalls(ConfigurableScorer):
    """Scores 1 if the calls of MCP tools are as expected, else 0. The metadata has the details.

    Expected calls are written as in files of `bakeoff mcp`: a call with `serverName`, `toolName` and
    `parameters`, a list of calls, or nothing for no call. `execute`, `scope` and `judge` work only in
    such files. If tool calls do not name their servers, only the tools are compared.
    """

    mode: Mode = "json"  # the calls are JSON in the output, or those of the transcript
    extra_parameters: Literal["reject", "allow"] = "reject"
    strict_json: bool = False
    execute: bool = False
    scope: Literal["run", "trial"] = "run"
    judge: str | None = None
    name: str = SCORER
    suite: SuiteParts | None = field(default=None, repr=False)  # added by the door of `bakeoff mcp`

    @property
    def hub(self) -> "McpHub | None":
        """Return the servers that execute calls, if any."""
        return self.suite.hub if self.suite is not None else None

    @property
    def needs(self) -> Needs:
        if self.suite is None:
            return Needs()
        shared = (self.hub,) if self.hub is not None and self.scope == "run" else ()
        asked = [each for each in self.suite.graders.values() if not each.only_recordings]
        return Needs(resources=(*shared, *{access.key: access for each in asked for access in each.accesses}.values()))

    def check(self, case: Case) -> str | None:
        """Return why a case cannot be scored, or None."""
        if self.suite is None and (self.execute or self.judge):
            return "only `bakeoff mcp` can execute tools and grade results: leave out `execute` and `judge`"
        try:
            expectation_of(case.expected, case.id)
        except GraderError as error:
            return str(error)
        return None

    def lacks(self) -> list[str]:
        return list(dict.fromkeys(lack for access in self._accesses for lack in access.lacks()))

    def secrets(self) -> Mapping[str, str]:
        return {name: value for access in self._accesses for name, value in access.secrets().items()}

    def offline(self) -> Self:
        if self.suite is None:
            return self
        graders = {name: each.offline() for name, each in self.suite.graders.items()}
        return replace(self, suite=replace(self.suite, graders=graders))

    @property
    def _accesses(self) -> "list[ProviderAccess]":
        return self.suite.accesses if self.suite is not None else []

    @property
    def _rules(self) -> TurnRules:
        if self.suite is not None:
            return self.suite.rules
        return TurnRules(ReplyReader(self.mode, (), self.strict_json), extra_allowed=self.extra_parameters == "allow")

    async def __call__(self, given: ScoreInput) -> Score:
        own = given.case.expected
        expected = expectation_of(given.expected if own is None else own, given.case.id)
        if expected.turns:
            found = await self._rules.read(expected.turns, given.transcript)
        else:
            found = [await self._one_turn(expected, given)]
        reply, executed = whole_reply(found), [each for turn in found for each in turn.executed]
        place = f"turn {len(found)} of {len(expected.turns)}: " if len(expected.turns) > 1 else ""
        problems = [f"{place}{problem}" for problem in found[-1].problems]
        # Of wrong calls, only agents' are executed: others have no end state.
        checked = bool(expected.end_state) and (self.mode == "agent" or not problems)
        ended = read_noted(given.transcript.metadata, END_STATE, EndResult) if checked else []
        problems += [f"end state: {each.check}: {each.reason}" for each in ended if not each.passed]
        grade = None
        asked = given.asking if self.suite is not None else None
        grader = self.suite.graders.get(asked.subject) if self.suite is not None and asked is not None else None
        if not problems and expected.grading is not None and grader is not None and executed:
            grade = await grader(expected, reply.calls, executed, given)
            if not grade.passed:
                problems.append(f"graded as failed: {grade.reason}")
        return Score(
            name=self.name,
            value=0.0 if problems else 1.0,
            reason="; ".join(problems[:_MAX_REASONS])[:_MAX_REASON_LENGTH],
            metadata={**_details(expected, found, grade, problems), **({END_STATE: dumped(ended)} if ended else {})},
        )

    async def _one_turn(self, expected: CaseExpectation, given: ScoreInput) -> ReadTurn:
        """Compare the calls of a case without turns, execute them, and compare the results."""
        reader, transcript = self._rules.reader, given.transcript
        text = str(transcript.output or "")
        reply = reader.text(text) if self.mode == "json" else reader.native(transcript.tool_calls)
        if self.suite is None and self.mode != "json":
            reply = _with_servers(reply, expected)
        problems = await self._rules.call_problems(expected, reply)
        executed: list[ExecutedCall] = []
        if not problems:
            executed = await self._execute(expected, reply, given)
            problems = await result_differences(expected, executed)
        return ReadTurn(reply, tuple(executed), tuple(problems))

    async def _execute(self, expected: CaseExpectation, reply: ModelReply, given: ScoreInput) -> list[ExecutedCall]:
        """Execute the calls, which are as expected here, if the case needs their results."""
        if self.mode == "agent":
            if expected.execute is False:
                return []
            return executed_by_agent(given.transcript.tool_calls, reply.calls)
        hub, refused = self.hub, self._rules.refused(expected)
        wanted = self.execute or expected.results is not None or expected.grading is not None
        if expected.execute is not None:
            wanted = expected.execute
        if not wanted or not reply.calls or hub is None:
            return []
        if self.scope == "run":
            return await execute_calls(given.resources[hub.key], reply.calls, refused)
        async with hub.open() as opened:
            return await execute_calls(opened, reply.calls, refused)


def _with_servers(reply: ModelReply, expected: CaseExpectation) -> ModelReply:
    """Add the expected servers to the calls of a reply, because outside of suites they have none."""
    every = (call for calls in (expected.calls, *expected.alternatives) for call in calls or ())
    servers = {call.toolName: call.serverName for call in every}
    named = (call.model_copy(update={"serverName": servers.get(call.toolName, "")}) for call in reply.calls)
    return replace(reply, calls=tuple(named))


def expectation_of(expected: Any, case: str) -> CaseExpectation:
    """Read the expectation of a case in a plan of `bakeoff mcp`, or in the form that people write."""
    if not (isinstance(expected, dict) and "calls" in expected):
        expected = {"calls": [expected] if isinstance(expected, dict) else expected}
    try:
        return CaseExpectation.model_validate(expected)
    except ValidationError as error:
        raise GraderError(
            f"case {case!r} does not say which calls are expected: write {{serverName: …, toolName: …, parameters: …}}"
            ", or a list of them; if it is of a run of `bakeoff mcp`, start a new run"
        ) from error


def whole_reply(found: Sequence[ReadTurn]) -> ModelReply:
    """Return the calls of all turns as one reply, with the form and the problem of the last turn."""
    last = found[-1].reply
    return ModelReply(tuple(call for turn in found for call in turn.reply.calls), last.form, last.problem)


def _details(
    expected: CaseExpectation, found: Sequence[ReadTurn], grade: CallGrade | None, problems: Sequence[str]
) -> dict[str, JsonValue]:
    """Return the metadata of a score, which reports and pages read."""
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
    """Return a short name of the kind of failure, by which reports group failures."""
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

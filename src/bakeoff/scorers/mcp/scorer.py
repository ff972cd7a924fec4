"""Score a round: compare its calls, execute them, compare the results, and let a judge grade what came of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol, Self

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.model import FrozenModel, sparse_field
from bakeoff.errors import GraderError, SubjectError, SubjectTimeout
from bakeoff.mcp import McpHub
from bakeoff.models.access import ProviderAccess
from bakeoff.plan import Case
from bakeoff.protocols import Needs, ScoreInput, Task
from bakeoff.record import Score, Transcript
from bakeoff.scorers.judging import UnreadableVerdict, ask, choice_question, read_choice
from bakeoff.scorers.mcp.calls import (
    SCORER,
    TURNS,
    UNKNOWN_SERVER,
    UNREADABLE,
    Call,
    CallRules,
    CaseExpectation,
    ExecutedCall,
    ModelReply,
    ScorerOptions,
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

_MAX_REASONS = 20
_MAX_REASON_LENGTH = 2_000
_MAX_LENGTH = 20_000  # characters of each text that a judge or the model sees, and of an answer that a record keeps
_CRITERIA = "A tool was called for the question. {answer}{expected} What it is judged by: {criterion}"
_ANSWERS = {
    "answer": "The answer is what the user was told after that.",
    "result": "The answer is what the tool gave back.",
    "both": "The answer is what the user was told after that; the result is what the tool gave back.",
}
_EXPECTED = " It is expected to say the same as the expected text; other words and other forms are fine."
_PASSED, _FAILED = "A", "B"
_CHOICES = {_PASSED: "The answer meets what it is judged by.", _FAILED: "The answer does not meet it."}

ANSWER_SYSTEM = "You tell users what tools found out for them. Reply with the answer to the user and nothing else."
_ANSWER_PROMPT = """\
A user asked:
{prompt}

For that, these tools were called, and gave back:
{results}

Answer the user in plain language. Be brief, and use only what the tools gave back."""


class CallGrade(FrozenModel):
    """The decision of a judge."""

    passed: bool
    reason: str = ""
    judge: str = ""
    final: str | None = sparse_field(None)


class AnsweringModel(Protocol):
    """The model under test, with `ANSWER_SYSTEM` as its system prompt."""

    @property
    def access(self) -> ProviderAccess: ...
    async def attempt(self, task: Task) -> Transcript: ...
    def offline(self) -> Self: ...


@dataclass(frozen=True, slots=True)
class CallGrader:
    """Grade the rounds of one model. Each case may have a criterion of its own."""

    access: ProviderAccess  # to the judge
    author: AnsweringModel | None = None  # writes the final answer; None if the transcript ends with it
    only_recordings: bool = False
    name: str = "judge"
    temperature: float | None = 0.0
    max_tokens: int | None = 1024
    repeats: int = 1

    def offline(self) -> Self:
        """Return the grader for recordings. It needs no key and no connection."""
        return replace(self, only_recordings=True, author=self.author and self.author.offline())

    @property
    def accesses(self) -> tuple[ProviderAccess, ...]:
        """Return the access to each model that is asked."""
        return (self.access, self.author.access) if self.author is not None else (self.access,)

    async def __call__(
        self, expected: CaseExpectation, calls: Sequence[Call], executed: Sequence[ExecutedCall], given: ScoreInput
    ) -> CallGrade:
        """Grade what came of the calls: the tools' results, the final answer, or both, as the case says.

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
        criteria = _CRITERIA.format(
            answer=_ANSWERS[expected.graded],
            expected=_EXPECTED if "expected text" in sections else "",
            criterion=expected.grading,
        )
        [said] = await ask(self, given, choice_question(criteria, _CHOICES, _MAX_LENGTH), sections)
        try:
            choice, rationale = read_choice(said, _CHOICES)
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
    return _ANSWER_PROMPT.format(prompt=prompt, results=results)


@dataclass(frozen=True, slots=True)
class CallScorer:
    """Score 1 if calls, results and grade are as expected, else 0. The metadata holds the details."""

    options: ScorerOptions
    rules: TurnRules
    hub: McpHub | None = None  # executes the calls; None if no case needs that
    graders: Mapping[str, CallGrader] = field(default_factory=dict)  # by the model that answered
    _read: dict[str, CaseExpectation] = field(default_factory=dict)  # each case is read once
    name: ClassVar[str] = SCORER

    @property
    def needs(self) -> Needs:
        shared = (self.hub,) if self.hub is not None and self.options.scope == "run" else ()
        asked = [access for each in self.graders.values() if not each.only_recordings for access in each.accesses]
        return Needs(resources=(*shared, *{access.key: access for access in asked}.values()))

    def check(self, case: Case) -> str | None:
        """Return why a case cannot be scored, or None."""
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
        place = f"turn {len(found)} of {len(expected.turns)}: " if len(expected.turns) > 1 else ""
        problems = [f"{place}{problem}" for problem in found[-1].problems]
        problems += limit_problems(expected.rules, given)
        made = TurnScore(called=reply.calls, executed=tuple(executed))
        ended = await self._end_state(expected, made, given, problems)
        problems += [f"end state: {each.check}: {each.reason}" for each in ended if not each.passed]
        grade = None
        grader = self.graders.get(given.asking.subject) if given.asking is not None else None
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
        self, expected: CaseExpectation, made: TurnScore, given: ScoreInput, problems: Sequence[str]
    ) -> list[EndResult]:
        """Return the results of all checks, if the tools were executed: of wrong calls, only agents' are."""
        transcript = given.transcript
        executed = END_STATE in transcript.metadata and (not problems or self.options.mode == "agent")
        if not expected.end_state or not executed:
            return []
        observed, answer = read_noted(transcript.metadata, END_STATE, EndResult), str(transcript.output or "")
        return await self.rules.checks.complete(expected.end_state, observed, made, answer)

    def _accesses(self) -> list[ProviderAccess]:
        return [access for each in self.graders.values() for access in each.accesses]

    def _expected(self, case: Case) -> CaseExpectation:
        """Return what a case expects, parsed once. Raise `GraderError` for a case of another door."""
        if case.score_digest not in self._read:
            try:
                self._read[case.score_digest] = CaseExpectation.model_validate(case.expected)
            except ValidationError as error:
                raise GraderError(f"case {case.id!r} was not made by `bakeoff mcp`: start a new run") from error
        return self._read[case.score_digest]

    async def _execute(self, expected: CaseExpectation, reply: ModelReply, given: ScoreInput) -> list[ExecutedCall]:
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

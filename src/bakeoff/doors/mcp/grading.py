"""Let a judge grade what a model made of its calls: its final answer, the raw results, or both."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from pydantic import Field

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.mcp.calls import Call, ExpectedMcpCall
from bakeoff.doors.mcp.execution import ExecutedCall, text_of
from bakeoff.doors.mcp.expected_results import expected_text
from bakeoff.errors import GraderError, SubjectError, SubjectTimeout
from bakeoff.models.access import ProviderAccess
from bakeoff.protocols import ScoreInput
from bakeoff.scorers.judging import UnreadableVerdict, ask, choice_question, read_choice
from bakeoff.subjects.model import ModelSubject

_LONGEST = 20_000  # characters of each text that a judge or the model sees, and of an answer that a record keeps
_CRITERIA = "A tool was called for the question. {answer}{expected} What it is judged by: {criterion}"
_ANSWERS = {
    "answer": "The answer is what the user was told after that.",
    "result": "The answer is what the tool gave back.",
    "both": "The answer is what the user was told after that; the result is what the tool gave back.",
}
_EXPECTED = " It is expected to say the same as the expected text; other words and other forms are fine."
_PASSED, _FAILED = "A", "B"
_CHOICES = {_PASSED: "The answer meets what it is judged by.", _FAILED: "The answer does not meet it."}

_ANSWER_SYSTEM = "You tell users what tools found out for them. Reply with the answer to the user and nothing else."
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
    final: str | None = Field(default=None, exclude_if=lambda final: final is None)


@dataclass(frozen=True, slots=True)
class CallGrader:
    """Grade the rounds of one model. Each case may have a criterion of its own."""

    access: ProviderAccess  # to the judge
    author: ModelSubject | None = None  # writes the final answer; None if the transcript ends with it
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
        self, expected: ExpectedMcpCall, calls: Sequence[Call], executed: Sequence[ExecutedCall], given: ScoreInput
    ) -> CallGrade:
        final = None
        if expected.graded != "result":
            try:
                final = await self._final_answer(calls, executed, given)
            except (SubjectError, SubjectTimeout) as error:
                return CallGrade(passed=False, reason=f"the model gave no final answer: {error}", final="")
            if not final:
                return CallGrade(passed=False, reason="the model's final answer is empty", final="")
        grade = await self._ask(expected, sections_of(expected, calls, executed, final, given), given)
        return grade.model_copy(update={"final": final})

    async def _final_answer(self, calls: Sequence[Call], executed: Sequence[ExecutedCall], given: ScoreInput) -> str:
        """Return what the model tells the user once it knows the results of its calls."""
        output = given.transcript.output
        if self.author is not None:
            assert given.asking is not None, "only a run has graders"
            options = self.author.options.model_copy(update={"system": _ANSWER_SYSTEM})
            author = replace(self.author, options=options)
            asked = final_prompt(given.case.prompt, calls, executed)
            output = (await author.attempt(replace(given.asking, prompt=asked, tools=()))).output
        return str(output or "").strip()[:_LONGEST]

    async def _ask(self, expected: ExpectedMcpCall, sections: Mapping[str, str], given: ScoreInput) -> CallGrade:
        criteria = _CRITERIA.format(
            answer=_ANSWERS[expected.graded],
            expected=_EXPECTED if "expected text" in sections else "",
            criterion=expected.grading,
        )
        [said] = await ask(self, given, choice_question(criteria, _CHOICES, _LONGEST), sections)
        try:
            choice, rationale = read_choice(said, _CHOICES)
        except UnreadableVerdict as error:
            raise GraderError(f"the judge {self.access.name} did not choose: {said[:200]!r}") from error
        return CallGrade(passed=choice == _PASSED, reason=rationale, judge=str(self.access.name))


def sections_of(
    expected: ExpectedMcpCall,
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
        f"{call.toolName} {json.dumps(call.parameters, ensure_ascii=False)}:\n{text_of(result.value)[:_LONGEST]}"
        for call, result in zip(calls, executed, strict=False)  # an error that is expected may end the calls
    )
    return _ANSWER_PROMPT.format(prompt=prompt, results=results)

"""A judge's word on what a tool gave: another model, told what to look for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.mcp_suite.calls import Call
from bakeoff.doors.mcp_suite.execution import Executed
from bakeoff.errors import GraderError
from bakeoff.models.access import ProviderAccess
from bakeoff.models.check import what_is_missing
from bakeoff.protocols import Needs, ScoreInput
from bakeoff.scorers.judging import Rubric, ask

_CRITERIA = (
    "A tool was called for the question. The answer is what the tool gave back. What it is judged by: {criterion}"
)
_PASSED, _FAILED = "A", "B"
_CHOICES = {_PASSED: "The answer meets what it is judged by.", _FAILED: "The answer does not meet it."}
_LONGEST = 20_000  # characters of each text that are shown to the judge


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

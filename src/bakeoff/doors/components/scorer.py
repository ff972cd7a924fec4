"""The scorer `suite`: runs a suite's validator and tests on what was handed in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.components.cases import grading_of
from bakeoff.doors.components.tools import submission, why_nothing
from bakeoff.doors.components.verification import summary, verify_component, verify_nothing
from bakeoff.errors import GraderError
from bakeoff.plan import Case, ScorerSpec, read_options
from bakeoff.protocols import Needs, Resource, ScoreInput
from bakeoff.record import Score

SUITE = "suite"


@dataclass(frozen=True, slots=True)
class SuiteScorer:
    """The share of the suite's tests that passed; 1 only where the component passes in every respect."""

    needs: Needs
    name: ClassVar[str] = SUITE

    @classmethod
    def from_spec(cls, spec: ScorerSpec, resources: Sequence[Resource]) -> "SuiteScorer":
        read_options(spec, FrozenModel)
        return cls(Needs(resources=tuple(resources)))

    def check(self, case: Case) -> str | None:
        try:
            grading_of(case)
        except GraderError as error:
            return str(error)
        return None

    async def __call__(self, given: ScoreInput) -> Score:
        grading = grading_of(given.case)
        content = submission(given.transcript, given.artefacts, grading.component)
        if content is None:
            verification = await verify_nothing(why_nothing(given.transcript), grading, given.resources)
        else:
            verification = await verify_component(content, grading, given.resources)
        return Score(
            name=self.name,
            value=verification.value,
            reason="" if verification.passed else summary(verification),
            metadata={"verification": verification.model_dump(mode="json")},
        )

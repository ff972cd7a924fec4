"""The scorer `exercise`: runs the original tests on what was left, in a second pristine copy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import JsonValue

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.exercises.cases import grading_of
from bakeoff.doors.exercises.judging import Outcome, judge, summary
from bakeoff.doors.exercises.references import reference_of, skipped_by_all
from bakeoff.doors.exercises.runners import run_tests
from bakeoff.errors import GraderError
from bakeoff.plan import Case, ScorerSpec, read_options
from bakeoff.protocols import Needs, Resource, ScoreInput
from bakeoff.record import Failure, Score
from bakeoff.subjects.command_agent import AgentRun, agent_run_in, patch_in

EXERCISE = "exercise"
FAILURE_CLASS = "failure_class"
"""Where a score's metadata names the kind of failure, for reports that count them."""


@dataclass(frozen=True, slots=True)
class ExerciseScorer:
    """1 where the agent ended well and every test passed; 0 otherwise. There is no half a solution."""

    needs: Needs
    name: ClassVar[str] = EXERCISE

    @classmethod
    def from_spec(cls, spec: ScorerSpec, resources: Sequence[Resource]) -> "ExerciseScorer":
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
        reference = await reference_of(grading, given.resources)
        skipped = frozenset[str]() if reference else await skipped_by_all(grading, given.resources)
        agent = agent_run_in(given.transcript)
        run = await run_tests(grading.taken(given.artefacts), grading, given.resources)
        patch, unchanged = patch_in(given.transcript), grading.unchanged(given.artefacts)
        outcome = judge(grading, reference, run, agent, patch=patch, unchanged=unchanged, skipped=skipped)
        return Score(
            name=self.name,
            value=1.0 if outcome.overall_success else 0.0,
            reason=summary(outcome),
            metadata=_kept(outcome),
            failure=_timeout(agent, outcome),
        )


def _kept(outcome: Outcome) -> dict[str, JsonValue]:
    """What a record keeps; reports count failures by their class."""
    classed: dict[str, JsonValue] = {FAILURE_CLASS: outcome.failure_class} if outcome.failure_class else {}
    return {EXERCISE: outcome.model_dump(mode="json", by_alias=True, exclude_none=True), **classed}


def _timeout(agent: AgentRun, outcome: Outcome) -> Failure | None:
    """An agent that ran out of time has failed by that, whatever its tests say; they ran all the same."""
    if agent.stop != "timeout":
        return None
    return Failure(kind="timeout", type="TimeoutError", message=outcome.agent_error or "")

"""Score trials by running the hidden tests of their cases."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import GraderError
from bakeoff.grading.cases import GradedCase, graded_case
from bakeoff.plan import Case, ScorerSpec, read_options
from bakeoff.protocols import Needs, Resource, ScoreInput
from bakeoff.record import Score


@dataclass(frozen=True, slots=True)
class TestScorer:
    """A scorer of graded cases. `score` grades one trial."""

    __test__ = False  # keep pytest from collecting it

    name: str
    needs: Needs
    score: Callable[[GradedCase, ScoreInput], Awaitable[Score]]

    def check(self, case: Case) -> str | None:
        """Return why a case cannot be scored, or None."""
        try:
            graded_case(case)
        except GraderError as error:
            return str(error)
        return None

    async def __call__(self, given: ScoreInput) -> Score:
        return await self.score(graded_case(given.case), given)


def build_test_scorer(
    spec: ScorerSpec, score: Callable[[GradedCase, ScoreInput], Awaitable[Score]], resources: Sequence[Resource]
) -> TestScorer:
    """Build the scorer of a spec, which takes no options."""
    read_options(spec, FrozenModel)
    return TestScorer(spec.kind, Needs(resources=tuple(resources)), score)

"""Read from a case how its answers are graded, and score trials by running its hidden tests."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import GraderError
from bakeoff.plan import Case, Files, Grading, ScorerSpec, read_options
from bakeoff.protocols import Needs, Resource, ScoreInput
from bakeoff.record import Score


@dataclass(frozen=True, slots=True)
class GradedCase:
    """A case with the settings that its tests run with."""

    case: Case
    settings: Grading

    @property
    def name(self) -> str:
        return self.case.id

    @property
    def files(self) -> Files:
        """Return the pristine folder that tests run in, without the answer and the validator."""
        hidden = {name: text for name, text in self.case.hidden.items() if name != self.settings.validator}
        return {**self.case.files, **hidden}

    @property
    def test_files(self) -> dict[str, str]:
        """Return the files that belong to the tests."""
        return {name: text for name, text in self.files.items() if name in self.settings.tests}

    @property
    def shown(self) -> "GradedCase":
        """Return the case with only those tests that the subject sees."""
        settings = self.settings.model_copy(update={"shown_tests": {}})
        hidden = {**self.case.hidden, **self.settings.shown_tests}
        return GradedCase(self.case.model_copy(update={"hidden": hidden, "grading": settings}), settings)

    @property
    def reference(self) -> Files:
        return self.case.reference

    @property
    def validator(self) -> str | None:
        return self.case.hidden[self.settings.validator] if self.settings.validator else None

    @property
    def is_exercise(self) -> bool:
        """Return whether the case is an exercise, which is solved or not solved. Suites count their tests instead."""
        return bool(self.settings.track)

    def with_answer(self, answer: Mapping[str, str]) -> dict[str, str]:
        """Return the folder that the tests of an answer run in."""
        return {**self.files, **answer}


def graded_case(case: Case) -> GradedCase:
    """Return a case with its grading settings. Raise `GraderError` if it has none, or none that fit."""
    settings = case.grading
    if settings is None:
        raise GraderError(
            f"case {case.id!r} does not say how it is graded: an older version of bakeoff made the plan, "
            "or it was not made from suites or exercises; start a new run"
        )
    if settings.validator is not None and settings.validator not in case.hidden:
        raise GraderError(f"case {case.id!r}: its validator {settings.validator!r} is not among its hidden files")
    return GradedCase(case, settings)


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

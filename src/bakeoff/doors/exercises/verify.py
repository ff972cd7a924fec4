"""Whether exercises measure what they should: the example passes, and what an agent starts from does not."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bakeoff.doors.exercises.cases import Grading, case_of, grading_of
from bakeoff.doors.exercises.exercises import Exercise
from bakeoff.doors.exercises.judging import Outcome, judge, summary
from bakeoff.doors.exercises.request import ExercisesRequest
from bakeoff.doors.exercises.runners import run_tests, runners_for
from bakeoff.engine.resources import open_resources
from bakeoff.errors import GraderError, InfraError
from bakeoff.protocols import Sandbox
from bakeoff.subjects.command_agent import AgentRun
from bakeoff.toolchains.references import as_reference, reference_problem


@dataclass(frozen=True, slots=True)
class Check:
    """What one exercise's answers came to. `problems` is empty where the exercise is fit for use."""

    exercise: Exercise
    tests: int = 0
    example: Outcome | None = None  # None where it could not be graded
    stub: Outcome | None = None
    seconds: float = 0.0
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


async def verify_exercises(
    exercises: Sequence[Exercise], request: ExercisesRequest, sandbox: Callable[[], Sandbox], jobs: int
) -> list[Check]:
    """Check exercises, several at a time."""
    gradings = [grading_of(case_of(exercise, request)) for exercise in exercises]
    free = asyncio.Semaphore(jobs)
    async with open_resources(runners_for(gradings, sandbox, jobs)) as resources:

        async def checked(exercise: Exercise, grading: Grading) -> Check:
            async with free:
                return await _check(exercise, grading, resources)

        return await asyncio.gather(*map(checked, exercises, gradings))


async def _check(exercise: Exercise, grading: Grading, resources: Mapping[str, Any]) -> Check:
    if not grading.reference:
        return Check(exercise, problems=("it has no example solution: .meta/config.json names none that is there",))
    started = asyncio.get_running_loop().time()
    try:
        run = await run_tests(grading.reference, grading, resources)
        if (why := reference_problem(run, canary=grading.has_canary)) is not None:
            return Check(exercise, problems=(f"the example does not pass: {why}",), seconds=run.seconds)
        reference = as_reference(run)
        example = judge(grading, reference, run, AgentRun(), unchanged=False)
        stub = judge(grading, reference, await run_tests({}, grading, resources), AgentRun(), unchanged=True)
    except (GraderError, InfraError) as error:
        return Check(exercise, problems=(str(error),))
    problems = [] if example.test_success else [f"the example does not pass: {summary(example)}"]
    problems += ["what an agent starts from passes already: its tests measure nothing"] if stub.test_success else []
    seconds = asyncio.get_running_loop().time() - started
    return Check(exercise, example.tests_total, example, stub, seconds, tuple(problems))

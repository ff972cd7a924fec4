"""Who runs an exercise's tests: the toolchain of its track, prepared once and shared by every trial."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bakeoff.doors.exercises.cases import Grading
from bakeoff.errors import GraderError, UsageError
from bakeoff.protocols import Resource, Sandbox
from bakeoff.toolchains.exercises import ExerciseToolchain, OpenExercises, profile_of
from bakeoff.toolchains.installing import Say, quiet
from bakeoff.toolchains.outcome import TestRun


def runners_for(
    gradings: Iterable[Grading], sandbox: Callable[[], Sandbox], slots: int = 1, say: Say = quiet
) -> tuple[Resource, ...]:
    """The resources that grade these; none that is not needed."""
    wanted: dict[str, Resource] = {}
    for grading in gradings:
        runner = _runner(grading, sandbox, slots, say)
        wanted.setdefault(runner.key, runner)
    return tuple(wanted.values())


def _runner(grading: Grading, sandbox: Callable[[], Sandbox], slots: int = 1, say: Say = quiet) -> ExerciseToolchain:
    try:
        profile = profile_of(grading.track, grading.command)
    except UsageError as error:
        raise GraderError(f"exercise {grading.exercise!r}: {error}") from error
    return ExerciseToolchain(sandbox, profile, slots, unskip=grading.unskip, command=grading.command, say=say)


async def run_tests(answer: Mapping[str, str], grading: Grading, resources: Mapping[str, Any]) -> TestRun:
    """Run the original tests on an answer, in a pristine copy."""

    def unused() -> Sandbox:
        raise LookupError("only the key is asked for")

    opened: OpenExercises = resources[_runner(grading, unused).key]
    files = grading.with_answer(answer)
    return await opened.run(files, test_files=grading.tests, seconds=grading.seconds)

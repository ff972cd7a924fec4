"""Check exercises before they are used: their tests can run here, the example passes, and the stub does not."""

from collections.abc import Callable, Sequence

from bakeoff._kernel.text import count_of
from bakeoff.doors.agents.exercises import Exercise
from bakeoff.doors.agents.plan import ExercisesRequest, case_of
from bakeoff.engine.resources import open_resources
from bakeoff.errors import InfraError, UsageError
from bakeoff.grading.audit import VerificationCheck, WrongAnswer, verify_cases
from bakeoff.grading.cases import toolchains_for
from bakeoff.grading.references import References
from bakeoff.protocols import Sandbox
from bakeoff.toolchains.install import Say, install_jest, pytest_folders
from bakeoff.toolchains.tracks import Track, graded_track, missing_programs, own_command

_STUB = WrongAnswer("stub", {}, "the stub that agents start from passes already: its tests measure nothing")


async def gradable_exercises(
    exercises: Sequence[Exercise], command: str | None, say: Say
) -> tuple[tuple[Exercise, ...], tuple[str, ...]]:
    """Return the exercises whose tests can run here, and a sentence about each track whose tests cannot."""
    problems: dict[str, str | None] = {}
    for track in dict.fromkeys(exercise.track for exercise in exercises):
        problems[track.slug] = await _problem(track, command, say)
    fit = tuple(exercise for exercise in exercises if problems[exercise.track.slug] is None)
    warnings = []
    for slug, why in problems.items():
        left_out = [exercise.name for exercise in exercises if exercise.track.slug == slug]
        if why is not None:
            are = count_of(len(left_out), f"{slug} exercise is", f"{slug} exercises are")
            warnings.append(f"{are} left out ({', '.join(left_out)}): {why}")
    if not fit:
        raise UsageError("\n".join(warnings))
    return fit, tuple(warnings)


async def _problem(track: Track, command: str | None, say: Say) -> str | None:
    """Return why a track's tests cannot run, or None once all is installed. The first time may take a while."""
    command = command or own_command(track)
    if command and (missing := missing_programs(track)):
        return f"{', '.join(f'`{name}`' for name in missing)} is not installed: {track.get}"
    try:
        runner = graded_track(track.slug, command).runner
        if command is None and runner == "jest":
            await install_jest(say)
        elif command is None and runner == "pytest":
            pytest_folders()
    except (InfraError, UsageError, OSError) as error:
        return str(error)
    return None


async def verify_exercises(
    exercises: Sequence[Exercise], request: ExercisesRequest, sandbox: Callable[[], Sandbox], jobs: int
) -> list[VerificationCheck]:
    """Check exercises, several at a time."""
    cases = [case_of(exercise, request) for exercise in exercises]
    async with open_resources(
        [References("bakeoff agents verify --exercise"), *toolchains_for(cases, sandbox, jobs)]
    ) as resources:
        return await verify_cases([(case, [_STUB]) for case in cases], resources, jobs, reference="example")

"""Which exercises can be graded on this machine, and what has to be prepared for it once."""

from collections.abc import Sequence

from bakeoff.doors.exercises.exercises import Exercise
from bakeoff.doors.exercises.tracks import Track
from bakeoff.errors import InfraError, UsageError
from bakeoff.toolchains.exercises import profile_of
from bakeoff.toolchains.installing import Say


async def gradable(
    exercises: Sequence[Exercise], command: str | None, say: Say
) -> tuple[tuple[Exercise, ...], tuple[str, ...]]:
    """Those whose tests can be run here, and a sentence about each track that cannot."""
    problems: dict[str, str | None] = {}
    for track in dict.fromkeys(exercise.track for exercise in exercises):
        problems[track.slug] = await _problem(track, command, say)
    fit = tuple(exercise for exercise in exercises if problems[exercise.track.slug] is None)
    told = []
    for slug, why in problems.items():
        left_out = [exercise.name for exercise in exercises if exercise.track.slug == slug]
        if why is not None:
            told.append(f"{len(left_out)} {slug} exercises are left out ({', '.join(left_out)}): {why}")
    if not fit:
        raise UsageError("\n".join(told))
    return fit, tuple(told)


async def _problem(track: Track, command: str | None, say: Say) -> str | None:
    """Why a track's tests cannot be run; None once all is there, which may take a while the first time."""
    try:
        profile = profile_of(track.slug, command)
        if command is None and profile.runner == "jest":
            from bakeoff.toolchains.exercises.install import install_exercise_toolchain

            await install_exercise_toolchain(say)
        elif command is None and profile.runner == "pytest":
            from bakeoff.toolchains.python import pytest_folders

            pytest_folders()
    except (InfraError, UsageError, OSError) as error:
        return str(error)
    return None

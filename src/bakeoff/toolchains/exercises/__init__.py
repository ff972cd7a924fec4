"""Tests of exercises, in tracks as Exercism has them: warm Jest for TypeScript, pytest for Python.

async with ExerciseToolchain(lambda: choose_sandbox("auto"), TYPESCRIPT).open() as exercises:
    names = await exercises.names(reference, test_files=["a.test.ts"], seconds=60.0)
    run = await exercises.run(files, test_files=["a.test.ts"], seconds=60.0, expected=names)
"""

from bakeoff.toolchains.exercises.profiles import PROFILES, PYTHON, TYPESCRIPT, TrackProfile, profile_of
from bakeoff.toolchains.exercises.toolchain import ExerciseToolchain, OpenExercises, with_expected_names

__all__ = [
    "PROFILES",
    "PYTHON",
    "TYPESCRIPT",
    "ExerciseToolchain",
    "OpenExercises",
    "TrackProfile",
    "profile_of",
    "with_expected_names",
]

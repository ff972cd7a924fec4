"""Tests of exercises, in tracks as Exercism has them: warm Jest for TypeScript, pytest for Python.

async with ExerciseToolchain(lambda: choose_sandbox("auto"), TYPESCRIPT).open() as exercises:
    run = await exercises.run(files, test_files=["a.test.ts"], seconds=60.0)
"""

from bakeoff.toolchains.exercises.profiles import PROFILES, PYTHON, TYPESCRIPT, TrackProfile, profile_of
from bakeoff.toolchains.exercises.toolchain import ExerciseToolchain, OpenExercises

__all__ = [
    "PROFILES",
    "PYTHON",
    "TYPESCRIPT",
    "ExerciseToolchain",
    "OpenExercises",
    "TrackProfile",
    "profile_of",
]

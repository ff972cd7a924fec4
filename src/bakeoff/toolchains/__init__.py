"""Run tests on candidates: warm Vitest and Jest, Vitest in Chromium, pytest, and any command that writes JUnit XML.

See docs/explanation/toolchains.md.

async with VitestToolchain(lambda: choose_sandbox("auto"), slots=2).open() as vitest:
    run = await vitest.run({"Component.svelte": component, "test.ts": tests}, seconds=30.0)
"""

from bakeoff.toolchains.command_reports import JunitToolchain, OpenJunit, read_junit
from bakeoff.toolchains.exercises import ExerciseToolchain, OpenExercises
from bakeoff.toolchains.install import install_vitest
from bakeoff.toolchains.outcome import Grader, TestOutcome, TestRun, ValidationOutcome
from bakeoff.toolchains.pytest_runner import OpenPytest, PytestToolchain
from bakeoff.toolchains.validators import validate
from bakeoff.toolchains.vitest import BrowserToolchain, OpenBrowser, OpenVitest, VitestToolchain

__all__ = [
    "BrowserToolchain",
    "ExerciseToolchain",
    "Grader",
    "JunitToolchain",
    "OpenBrowser",
    "OpenExercises",
    "OpenJunit",
    "OpenPytest",
    "OpenVitest",
    "PytestToolchain",
    "TestOutcome",
    "TestRun",
    "ValidationOutcome",
    "VitestToolchain",
    "install_vitest",
    "read_junit",
    "validate",
]

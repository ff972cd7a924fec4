"""What graders run candidates with: warm Vitest, pytest, and any command that writes JUnit XML. See docs/toolchains.md.

async with VitestToolchain(lambda: choose_sandbox("auto"), slots=2).open() as vitest:
    run = await vitest.run({"Component.svelte": component, "test.ts": tests}, seconds=30.0)
"""

from bakeoff.toolchains.junit import JunitToolchain, OpenJunit, read_junit
from bakeoff.toolchains.node import install_node_toolchain
from bakeoff.toolchains.outcome import TestOutcome, TestRun, TestRunner, ValidationOutcome
from bakeoff.toolchains.pytests import OpenPytest, PytestToolchain
from bakeoff.toolchains.validators import validate
from bakeoff.toolchains.vitest import OpenVitest, VitestToolchain

__all__ = [
    "JunitToolchain",
    "OpenJunit",
    "OpenPytest",
    "OpenVitest",
    "PytestToolchain",
    "TestOutcome",
    "TestRun",
    "TestRunner",
    "ValidationOutcome",
    "VitestToolchain",
    "install_node_toolchain",
    "read_junit",
    "validate",
]

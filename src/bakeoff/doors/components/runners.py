"""Which toolchain grades what: from a suite's runner to the resource that runs it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from bakeoff.doors.components.cases import Grading
from bakeoff.protocols import Resource, Sandbox
from bakeoff.toolchains.outcome import TestRun, TestRunner, ValidationOutcome
from bakeoff.toolchains.validators import validate

VITEST = "vitest"
USUAL_TESTS = ("test.ts", "test.svelte.ts")
"""What Vitest's runner looks for by itself."""
VALIDATOR_SECONDS = 30.0


def toolchains_for(gradings: Iterable[Grading], sandbox: Callable[[], Sandbox], slots: int) -> tuple[Resource, ...]:
    """The resources that grade these; none that is not needed."""
    wanted: dict[str, Resource] = {}
    for grading in gradings:
        runners = {grading.runner} | ({VITEST} if grading.validator and _kind(grading) == "ts" else set())
        for runner in runners:
            toolchain = _toolchain(runner, grading, sandbox, slots)
            wanted.setdefault(toolchain.key, toolchain)
    return tuple(wanted.values())


def _toolchain(runner: str, grading: Grading, sandbox: Callable[[], Sandbox], slots: int) -> Resource:
    if runner == "vitest":
        from bakeoff.toolchains.vitest import VitestToolchain

        return VitestToolchain(sandbox, slots)
    if runner == "pytest":
        from bakeoff.toolchains.pytests import PytestToolchain

        return PytestToolchain(sandbox, grading.test_file)
    from bakeoff.toolchains.junit import JunitToolchain

    return JunitToolchain(sandbox, grading.command, grading.report, grading.canary)


def _opened(grading: Grading, resources: Mapping[str, Any]) -> Any:
    def unused() -> Sandbox:
        raise LookupError("only the key is asked for")

    return resources[_toolchain(grading.runner, grading, unused, 1).key]


async def run_tests(content: str, grading: Grading, resources: Mapping[str, Any]) -> TestRun:
    """Run the tests on a component."""
    files = grading.with_component(content)
    if grading.runner == VITEST and grading.test_file not in USUAL_TESTS:
        named: TestRun = await resources[VITEST].run(files, seconds=grading.seconds, test=grading.test_file)
        return named
    runner: TestRunner = _opened(grading, resources)
    return await runner.run(files, seconds=grading.seconds)


async def run_validator(content: str, grading: Grading, resources: Mapping[str, Any]) -> ValidationOutcome | None:
    """The validator's word; None where the suite has none. One that breaks is not the subject's doing."""
    if grading.validator is None:
        return None
    kind = _kind(grading)
    runner = resources[VITEST] if kind == "ts" else _opened(grading, resources)
    return await validate(runner, content, grading.validator, kind, VALIDATOR_SECONDS)


def toolchain_of(grading: Grading, resources: Mapping[str, Any]) -> str:
    """Which installed toolchain grades it: Vitest's folder is named by its packages and its Node."""
    return str(resources[VITEST].toolchain.name) if grading.runner == VITEST else ""


def _kind(grading: Grading) -> Literal["ts", "py"]:
    return "ts" if (grading.validator_file or "").endswith(".ts") else "py"

"""Which toolchain grades what: from a suite's runner to the resource that runs it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from bakeoff.doors.components.cases import Grading
from bakeoff.protocols import Resource, Sandbox
from bakeoff.toolchains.outcome import TestRun, TestRunner, ValidationOutcome
from bakeoff.toolchains.validators import validate

VITEST = "vitest"
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
    runner: TestRunner = _opened(grading, resources)
    return await runner.run(grading.with_component(content), seconds=grading.seconds)


async def run_validator(content: str, grading: Grading, resources: Mapping[str, Any]) -> ValidationOutcome | None:
    """The validator's word; None where the suite has none. One that breaks is not the subject's doing."""
    if grading.validator is None:
        return None
    kind = _kind(grading)
    runner = resources[VITEST] if kind == "ts" else _opened(grading, resources)
    return await validate(runner, content, grading.validator, kind, VALIDATOR_SECONDS)


def _kind(grading: Grading) -> Literal["ts", "py"]:
    return "ts" if (grading.validator_file or "").endswith(".ts") else "py"

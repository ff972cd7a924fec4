"""Exercises as a toolchain: files in, one `TestRun` out, whichever language they are in."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from bakeoff.errors import GraderError
from bakeoff.frozen import fingerprint
from bakeoff.limits import Limits
from bakeoff.protocols import Sandbox
from bakeoff.toolchains.exercises.commands import CommandRunner
from bakeoff.toolchains.exercises.install import install_exercise_toolchain
from bakeoff.toolchains.exercises.jest import OpenJest
from bakeoff.toolchains.exercises.profiles import TYPESCRIPT, TrackProfile, is_hidden
from bakeoff.toolchains.outcome import TestOutcome, TestRun
from bakeoff.toolchains.pytests import OpenPytest
from bakeoff.toolchains.python import pytest_folders

PYTEST_LIMITS = Limits(memory_mb=2048, processes=128, disk_mb=256, output_kb=4096)


class Runner(Protocol):
    """Runs tests: of `tests`, those files that hold some; `trusted` are these and the helpers among a track's tests."""

    async def run_files(
        self, files: Mapping[str, str], *, tests: Collection[str], trusted: Collection[str], seconds: float
    ) -> list[TestRun]: ...


@dataclass(frozen=True, slots=True)
class OneByOne:
    """A process for each test file, as test runners have it."""

    run_file: Callable[..., Awaitable[TestRun]]

    async def run_files(
        self, files: Mapping[str, str], *, tests: Collection[str], trusted: Collection[str], seconds: float
    ) -> list[TestRun]:
        left = seconds
        runs: list[TestRun] = []
        for name in tests:
            run = await self.run_file(files, test_file=name, trusted=trusted, seconds=max(left, 0.001))
            runs.append(run)
            left -= run.seconds
            if run.stop != "finished":
                break
        return runs


@dataclass(frozen=True, slots=True)
class OpenPytestFiles:
    """pytest for one file: isolated, with no plugin, no configuration and no conftest.py."""

    pytest: OpenPytest

    async def run_file(
        self, files: Mapping[str, str], *, test_file: str, trusted: Collection[str], seconds: float
    ) -> TestRun:
        del trusted  # helpers are found beside the solution
        return await self.pytest.run(files, seconds=seconds, test_file=test_file)


def _quiet(_line: str) -> None:
    """Where nobody is to be told of an installation."""


@dataclass(frozen=True, slots=True)
class ExerciseToolchain:
    """The resource of one track. `slots` are the candidates that are tested at a time.

    With a `command`, such as the track's own, that is run instead: slower, and believed less.
    """

    sandbox: Callable[[], Sandbox]
    profile: TrackProfile = TYPESCRIPT
    slots: int = 1
    unskip: bool = True
    command: str | None = None
    say: Callable[[str], None] = _quiet

    @property
    def key(self) -> str:
        how = f" by {self.command}" if self.command else ""
        return f"exercises {self.profile.language}{how}{'' if self.unskip else ' as they are'}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenExercises"]:
        sandbox = self.sandbox()
        async with AsyncExitStack() as stack:
            yield OpenExercises(sandbox, self.profile, await self._runner(sandbox, stack), self.unskip)

    async def _runner(self, sandbox: Sandbox, stack: AsyncExitStack) -> Runner:
        if self.command is not None or self.profile.runner == "command":
            return CommandRunner(sandbox, self.profile, self.command or self.profile.test_command, self.say)
        if self.profile.runner == "pytest":
            return OneByOne(OpenPytestFiles(OpenPytest(sandbox, pytest_folders(), "", PYTEST_LIMITS)).run_file)
        jest = OpenJest(sandbox, await install_exercise_toolchain(self.say), self.slots)
        stack.push_async_callback(jest.close)
        await jest.warm_up()
        return OneByOne(jest.run_file)


@dataclass(frozen=True, slots=True)
class OpenExercises:
    """Grades. `files` are the whole exercise as it is to be tested: pristine ones, and the solution over them."""

    sandbox: Sandbox
    profile: TrackProfile
    runner: Runner
    unskip: bool = True
    _names: dict[str, tuple[str, ...]] = field(default_factory=dict)

    async def run(
        self,
        files: Mapping[str, str],
        *,
        test_files: Collection[str],
        seconds: float,
        expected: Collection[str] | None = None,
    ) -> TestRun:
        """Every test of these files; `expected` are the names that must have run, no more and no less."""
        missing = [name for name in test_files if name not in files]
        if missing or not test_files:
            raise GraderError(f"the exercise has no test file {', '.join(missing)}".rstrip())
        given = {name: text for name, text in files.items() if not is_hidden(name)}
        for name in test_files:
            given[name] = self.profile.unskipped(files[name]) if self.unskip else files[name]
        # A track may list helpers among its tests: they are as trusted, and have no tests to run.
        tests = [name for name in test_files if self.profile.is_test(name)] or test_files
        runs = await self.runner.run_files(given, tests=tests, trusted=test_files, seconds=seconds)
        run = runs[0] if len(runs) == 1 else _together(runs)
        return run if expected is None else with_expected_names(run, expected)

    async def names(self, files: Mapping[str, str], *, test_files: Collection[str], seconds: float) -> tuple[str, ...]:
        """The tests that a run of these files has, in order: ask with the reference, or with the stub if there is none.

        Asked once for the same files.
        """
        key = fingerprint(dict(files), sorted(test_files), self.unskip)
        if key not in self._names:
            run = await self.run(files, test_files=test_files, seconds=seconds)
            if not run.tests or run.stop != "finished" or run.tampered:
                raise GraderError(f"the exercise's own tests cannot be run: {run.tampered or run.error}")
            self._names[key] = tuple(test.name for test in run.tests)
        return self._names[key]


def with_expected_names(run: TestRun, expected: Collection[str]) -> TestRun:
    """A run of other tests than these proves nothing. Where none ran, the run says why."""
    names = [test.name for test in run.tests]
    if run.tampered or run.stop != "finished" or (run.error is not None and not names) or _same(names, expected):
        return run
    missing = [name for name in expected if name not in names]
    further = [name for name in names if name not in expected]
    what = (
        f"{missing[0]!r} did not run" if missing else f"{further[0]!r} is none of them" if further else "some ran twice"
    )
    return run.model_copy(update={"tampered": f"the tests that ran are not the exercise's: {what}"})


def _same(names: Collection[str], expected: Collection[str]) -> bool:
    return sorted(names) == sorted(expected)


def _together(runs: list[TestRun]) -> TestRun:
    """Several test files as one run: it is as good as the worst of them."""
    tests: list[TestOutcome] = [test for run in runs for test in run.tests]
    errors = [run.error for run in runs if run.error]
    return TestRun(
        tests=tuple(tests),
        error="\n".join(errors) or None,
        stop=runs[-1].stop,
        seconds=sum(run.seconds for run in runs),
        canary_seen=all(run.canary_seen for run in runs),
        tampered=next((run.tampered for run in runs if run.tampered), None),
    )

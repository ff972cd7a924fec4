"""Exercises as a toolchain: files in, one `TestRun` out, whichever language they are in."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from bakeoff.errors import GraderError, InfraError, UsageError
from bakeoff.plan import Limits
from bakeoff.protocols import Sandbox
from bakeoff.toolchains.exercises.commands import CommandRunner
from bakeoff.toolchains.exercises.install import install_exercise_toolchain
from bakeoff.toolchains.exercises.jest import OpenJest
from bakeoff.toolchains.exercises.profiles import TYPESCRIPT, TrackProfile, is_hidden
from bakeoff.toolchains.exercises.runner import Runner
from bakeoff.toolchains.installing import Say, quiet
from bakeoff.toolchains.outcome import TestOutcome, TestRun
from bakeoff.toolchains.pytests import OpenPytest
from bakeoff.toolchains.python import pytest_folders

PYTEST_LIMITS = Limits(memory_mb=2048, processes=128, disk_mb=256, output_kb=4096)


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


@dataclass(frozen=True, slots=True)
class ExerciseToolchain:
    """The resource of one track. `slots` are the candidates that are tested at a time.

    With a `command`, such as the track's own, that is run instead: slower, and believed only as far as it is borne out.
    """

    sandbox: Callable[[], Sandbox]
    profile: TrackProfile = TYPESCRIPT
    slots: int = 1
    unskip: bool = True
    command: str | None = None
    say: Say = quiet

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
        if self.command is None and self.profile.runner != "command":
            return await self._guarded(sandbox, stack)
        guard = None if self.profile.runner == "command" else await self._guard(sandbox, stack)
        return CommandRunner(sandbox, self.profile, self.command or self.profile.test_command, self.say, guard)

    async def _guard(self, sandbox: Sandbox, stack: AsyncExitStack) -> Runner | None:
        """A command of the user's own may need nothing that our runner does: then it stands alone, and that is said."""
        try:
            return await self._guarded(sandbox, stack)
        except (InfraError, UsageError) as error:
            self.say(f"warning: nothing bears out what `{self.command}` says of {self.profile.language}: {error}")
            return None

    async def _guarded(self, sandbox: Sandbox, stack: AsyncExitStack) -> Runner:
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

    async def run(self, files: Mapping[str, str], *, test_files: Collection[str], seconds: float) -> TestRun:
        """Every test of these files."""
        missing = [name for name in test_files if name not in files]
        if missing or not test_files:
            raise GraderError(f"the exercise has no test file {', '.join(missing)}".rstrip())
        given = {name: text for name, text in files.items() if not is_hidden(name)}
        for name in test_files:
            given[name] = self.profile.unskipped(files[name]) if self.unskip else files[name]
        # A track may list helpers among its tests: they are as trusted, and have no tests to run.
        tests = [name for name in test_files if self.profile.is_test(name)] or test_files
        runs = await self.runner.run_files(given, tests=tests, trusted=test_files, seconds=seconds)
        return runs[0] if len(runs) == 1 else _together(runs)


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

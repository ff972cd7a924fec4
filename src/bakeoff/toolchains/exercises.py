"""Test exercises of any track: with our own Jest or pytest, or with a command."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from bakeoff.errors import GraderError, InfraError, UsageError
from bakeoff.protocols import Sandbox
from bakeoff.toolchains.commands import CommandRunner
from bakeoff.toolchains.install import Say, install_jest, permission_flags, pytest_folders, quiet
from bakeoff.toolchains.jest import OpenJest
from bakeoff.toolchains.outcome import Grader, TestRun
from bakeoff.toolchains.pytest_runner import OpenPytest
from bakeoff.toolchains.tracks import RUNNER_FILES, TYPESCRIPT, Track, is_outside_tests
from bakeoff.toolchains.type_checks import TypeChecker


@dataclass(frozen=True, slots=True)
class ExerciseToolchain:
    """The resource that tests the exercises of one track.

    Args:
        sandbox: Makes the sandbox that tests run in.
        track: The language of the exercises.
        slots: The number of candidates that are tested at a time.
        run_skipped: Also run the tests that the track marks as skipped.
        processes: Let tests and solutions in Python start processes.
        command: Run this command instead of our own runner, which is opened too, to confirm the command.
        say: Tells the user about installations and warnings.
    """

    sandbox: Callable[[], Sandbox]
    track: Track = TYPESCRIPT
    slots: int = 1
    run_skipped: bool = True
    processes: bool = False
    command: str | None = None
    say: Say = quiet

    @property
    def key(self) -> str:
        how = f" by {self.command}" if self.command else ""
        processes = " with processes" if self.processes else ""
        return f"exercises {self.track.slug}{how}{'' if self.run_skipped else ' without skipped tests'}{processes}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenExercises"]:
        sandbox = self.sandbox()
        async with AsyncExitStack() as stack:
            if self.command is None:
                own = await self._own(sandbox, stack)
                yield OpenExercises(self.track, own, self.run_skipped, types=await self._types(sandbox, stack))
                return
            confirming = await self._confirming(sandbox, stack)
            confirmed = None if confirming is None else OpenExercises(self.track, confirming, self.run_skipped)
            command = CommandRunner(sandbox, self.track, self.command, self.say)
            yield OpenExercises(self.track, command, self.run_skipped, confirmed)

    async def _types(self, sandbox: Sandbox, stack: AsyncExitStack) -> TypeChecker | None:
        """Return what checks the types of answers, where the language has them."""
        if self.track.runner != "jest":
            return None
        checker = TypeChecker(sandbox, await install_jest(self.say))
        stack.push_async_callback(checker.close)
        return checker

    async def _confirming(self, sandbox: Sandbox, stack: AsyncExitStack) -> Grader | None:
        """Return our own runner of the language, or None if there is none or it cannot be had."""
        if self.track.runner == "command":
            return None
        try:
            return await self._own(sandbox, stack)
        except InfraError as error:
            self.say(f"warning: nothing confirms the results of `{self.command}` for {self.track.language}: {error}")
            return None

    async def _own(self, sandbox: Sandbox, stack: AsyncExitStack) -> Grader:
        if self.track.runner == "pytest":
            return OpenPytest(sandbox, pytest_folders(), self.processes)
        if self.track.runner == "command":
            raise UsageError(f"exercises in {self.track.language} have no test runner here: pass --test-command")
        jest = OpenJest(sandbox, await install_jest(self.say), self.slots, await permission_flags(sandbox))
        stack.push_async_callback(jest.close)
        await jest.warm_up()
        return jest


@dataclass(frozen=True, slots=True)
class OpenExercises:
    """Run the tests of exercises as their track has them. `confirming` runs the tests of a command without it."""

    track: Track
    grader: Grader
    run_skipped: bool = True
    confirming: "OpenExercises | None" = None
    types: TypeChecker | None = None

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        missing = [name for name in tests if name not in files]
        if missing or not tests:
            raise GraderError(f"the exercise has no test file {', '.join(missing)}".rstrip())
        runner_files = RUNNER_FILES if isinstance(self.grader, CommandRunner) else ()
        given = {name: text for name, text in files.items() if name in runner_files or not is_outside_tests(name)}
        for name in tests:
            given[name] = self.track.unskip(files[name]) if self.run_skipped else files[name]
        return await self.grader.run(given, tests=tests, seconds=seconds)

    async def type_errors(self, files: Mapping[str, str], seconds: float) -> str | None:
        """Return the type errors of a folder with an answer, or None if it has none or the language has no types."""
        given = {name: text for name, text in files.items() if not is_outside_tests(name)}
        return None if self.types is None else await self.types.check(given, seconds)

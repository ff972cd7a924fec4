"""Test exercises of any track with our own Jest or pytest, or with a command.

TypeScript is tested with Jest in worker processes that are started in advance. A lasting compiler
process translates TypeScript by Babel, without running it. A worker has Jest's runner, assertions,
mocks and timers loaded, and takes one job. Tests that need more of Jest (mocked modules, snapshots,
packages, files) get a whole `jest`. Checking types and type tests does not run the answer.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bakeoff.errors import GraderError, InfraError, UsageError
from bakeoff.protocols import Command, Sandbox
from bakeoff.sandbox import open_place, put_files
from bakeoff.toolchains.commands import CommandRunner
from bakeoff.toolchains.install import install_jest, permission_flags
from bakeoff.toolchains.outcome import Grader, TestRun, run_each
from bakeoff.toolchains.pytest_runner import PytestToolchain
from bakeoff.toolchains.tracks import RUNNER_FILES, TYPESCRIPT, Track, is_outside_tests, matches
from bakeoff.toolchains.workers import COMPILER_LIMITS, Peer, PeerGone, WorkerPool, parse_answer

TYPE_TESTS = ("*.tst.*",)
_NAMED = 3
_FAILURE = re.compile(r"^Error: (.+)$(?s:.*?)^ +at (?:\./)?(.+)$", re.MULTILINE)


class TypeChecker:
    """A process that keeps TypeScript loaded, from its first use until `close`.

    Args:
        sandbox: The sandbox of the process.
        toolchain: The installed folder with the script.
    """

    def __init__(self, sandbox: Sandbox, toolchain: Path) -> None:
        self._sandbox, self._toolchain = sandbox, toolchain
        self._peer: Peer | None = None
        self._asking = asyncio.Lock()

    async def check(self, files: Mapping[str, str], seconds: float) -> str | None:
        """Return type errors and failed type tests as one text; None if there are none."""
        errors = await self._compile(files, seconds)
        if errors is None and any(matches(name, TYPE_TESTS) for name in files):
            return await self._run_type_tests(files, seconds)
        return errors

    async def _compile(self, files: Mapping[str, str], seconds: float) -> str | None:
        """Return the compiler's findings.

        A check that takes too long ends with an error, and the next answer gets a new process. If
        the process died, perhaps by an earlier answer, the check is repeated in a new one.
        """
        async with self._asking:
            for _ in range(2):
                try:
                    found = parse_answer(await self._started().ask(dict(files), seconds=seconds))
                    return _told(found["errors"], found["count"]) if found["count"] else None
                except TimeoutError:
                    await self._end()
                    return f"type errors: its types were not checked within {seconds:g} s"
                except PeerGone:
                    await self._end()
                except BaseException:
                    await self._end()
                    raise
        return "type errors: TypeScript ended while it checked the types"

    async def _run_type_tests(self, files: Mapping[str, str], seconds: float) -> str | None:
        async with open_place() as place:
            put_files(place, files)
            (place.work / "node_modules").symlink_to(self._toolchain / "node_modules")
            argv = ("node", str(self._toolchain / "node_modules" / "tstyche" / "build" / "bin.js"))
            env = {"TSTYCHE_NO_COLOR": "true", "TSTYCHE_STORE_PATH": str(place.tmp)}
            command = Command(argv, place, seconds, COMPILER_LIMITS, env, readable=(self._toolchain,), graded=True)
            done = await self._sandbox.run(command)
        if done.stop != "exited":
            return f"type errors: its type tests were ended by the {done.stop} limit"
        if done.exit_code == 0:
            return None
        printed = done.stderr.decode(errors="replace")
        failures = [f"{place}: {what}" for what, place in _FAILURE.findall(printed)]
        return _told(failures or [printed.strip()[-1000:] or "the type tests fail"], len(failures))

    def _started(self) -> Peer:
        if self._peer is None:
            argv = ("node", str(self._toolchain / "types.cjs"))
            self._peer = Peer(self._sandbox, argv, readable=(self._toolchain,), limits=COMPILER_LIMITS)
        return self._peer

    async def _end(self) -> None:
        if self._peer is not None:
            peer, self._peer = self._peer, None
            await peer.close()

    async def close(self) -> None:
        """End the compiler after its current check."""
        async with self._asking:
            await self._end()


def _told(errors: list[str], count: int) -> str:
    more = f"; and {count - _NAMED} more" if count > _NAMED else ""
    return f"type errors: {'; '.join(errors[:_NAMED])}{more}"


@dataclass(frozen=True, slots=True)
class ExerciseToolchain:
    """The resource that tests the exercises of one track.

    Args:
        sandbox: Makes the sandbox for the tests.
        track: The language of the exercises.
        slots: The number of candidates to test at a time.
        run_skipped: Whether to run tests that the track marks as skipped.
        processes: Whether Python tests and solutions may start processes.
        command: A command to run instead of our own runner, which then confirms its result.
    """

    sandbox: Callable[[], Sandbox]
    track: Track = TYPESCRIPT
    slots: int = 1
    run_skipped: bool = True
    processes: bool = False
    command: str | None = None

    @property
    def key(self) -> str:
        how = f" by {self.command}" if self.command else ""
        processes = " with processes" if self.processes else ""
        return f"exercises {self.track.slug}{how}{'' if self.run_skipped else ' without skipped tests'}{processes}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenExercises"]:
        """Install what the track needs, and yield the object that runs its tests."""
        sandbox = self.sandbox()
        async with AsyncExitStack() as stack:
            if self.command is None:
                own, types = await self._own(sandbox, stack), None
                if self.track.runner == "jest":
                    types = TypeChecker(sandbox, await install_jest())
                    stack.push_async_callback(types.close)
                yield OpenExercises(self.track, own, self.run_skipped, types=types)
                return
            confirming = None
            if self.track.runner != "command":
                with suppress(InfraError):  # without our own runner, nothing confirms the command
                    confirming = OpenExercises(self.track, await self._own(sandbox, stack), self.run_skipped)
            command = CommandRunner(sandbox, self.track, self.command)
            yield OpenExercises(self.track, command, self.run_skipped, confirming)

    async def _own(self, sandbox: Sandbox, stack: AsyncExitStack) -> Grader:
        if self.track.runner == "pytest":
            python = PytestToolchain(lambda: sandbox, self.processes, self.slots)
            return await stack.enter_async_context(python.open())
        if self.track.runner == "command":
            raise UsageError(f"exercises in {self.track.language} have no test runner here: pass --test-command")
        jest = OpenJest(sandbox, await install_jest(), self.slots, await permission_flags(sandbox))
        stack.push_async_callback(jest.close)
        await jest.warm_up()
        return jest


@dataclass(frozen=True, slots=True)
class OpenExercises:
    """Runs tests of exercises as their track does. `confirming` runs them without a command."""

    track: Track
    grader: Grader
    run_skipped: bool = True
    confirming: "OpenExercises | None" = None
    types: TypeChecker | None = None

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        """Run the tests of an exercise, including later tests that its track marks as skipped."""
        missing = [name for name in tests if name not in files]
        if missing or not tests:
            raise GraderError(f"the exercise has no test file {', '.join(missing)}".rstrip())
        runner_files = RUNNER_FILES if isinstance(self.grader, CommandRunner) else ()
        given = {name: text for name, text in files.items() if name in runner_files or not is_outside_tests(name)}
        for name in tests:
            given[name] = self.track.unskip(files[name]) if self.run_skipped else files[name]
        return await self.grader.run(given, tests=tests, seconds=seconds)

    async def type_errors(self, files: Mapping[str, str], seconds: float) -> str | None:
        """Return the type errors of an answer; None if there are none, or no types."""
        given = {name: text for name, text in files.items() if not is_outside_tests(name)}
        return None if self.types is None else await self.types.check(given, seconds)


class OpenJest(WorkerPool):
    """Runs the test files of an exercise, each in a separate worker."""

    worker_script, compiler_script, whole_script = "worker.cjs", "compiler.cjs", "fresh.cjs"

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        """Run each test file in a warm worker or, if needed, a whole Jest, all within `seconds`."""

        async def run_file(entry: str, limit: float) -> TestRun:
            question = {"files": dict(files), "entry": entry, "tests": list(tests)}
            run = await self.run_warm(question, limit)
            return await self.run_whole(files, entry, limit) if run is None else run

        return await run_each(run_file, TYPESCRIPT.tests_among(tests, files), seconds)

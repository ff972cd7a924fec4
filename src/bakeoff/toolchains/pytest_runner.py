"""Test Python with pytest, one sandboxed process per run, started in advance."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import GraderError, InfraError
from bakeoff.plan import Limits
from bakeoff.protocols import CommandResult, Sandbox
from bakeoff.sandbox import put_files
from bakeoff.toolchains.install import pytest_folders, python_in
from bakeoff.toolchains.outcome import TestOutcome, TestRun, last_output, stopped_by_limit, without_colours
from bakeoff.toolchains.tracks import PYTHON
from bakeoff.toolchains.workers import NotStartedError, Peer, WaitingWorkers

LIMITS = Limits(memory_mb=2048, processes=128, disk_mb=256, output_kb=4096)
HARNESS = Path(__file__).with_name("pytest_harness.py").read_text(encoding="utf-8")


class _End(FrozenModel):
    """The last line of the harness. If it is missing, the process ended before its tests."""

    error: str
    interrupted: str


_LINES: TypeAdapter[TestOutcome | _End] = TypeAdapter(TestOutcome | _End)


@dataclass(frozen=True, slots=True)
class PytestToolchain:
    """The resource that runs Python tests. With `processes`, tests may start processes."""

    sandbox: Callable[[], Sandbox]
    processes: bool = False
    slots: int = 1

    @property
    def key(self) -> str:
        return f"pytest{' with processes' if self.processes else ''}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenPytest"]:
        async with aclosing(OpenPytest(self.sandbox(), pytest_folders(), self.processes, self.slots)) as opened:
            yield opened


class OpenPytest:
    """Runs test files with pytest, without plugins, configuration and conftest.py.

    Each run takes one of `slots` waiting processes. `aclose` must be awaited.
    """

    def __init__(self, sandbox: Sandbox, folders: tuple[Path, ...], processes: bool = False, slots: int = 1) -> None:
        self.sandbox = sandbox
        argv = (python_in(sandbox), "-I", "-B", "-c", HARNESS, json.dumps([str(folder) for folder in folders]))

        def start() -> Peer:
            return Peer(sandbox, argv, readable=folders, limits=LIMITS, graded=True, children=processes)

        self._workers = WaitingWorkers(start, slots)

    async def run(
        self, files: Mapping[str, str], *, tests: Sequence[str] = ("test_solution.py",), seconds: float
    ) -> TestRun:
        """Run the tests in a new folder. Raise `InfraError` if the sandbox's Python is unusable."""
        chosen = PYTHON.tests_among(tests, files)
        if missing := [name for name in chosen if name not in files]:
            raise GraderError(f"{missing[0]!r} is not among the files: {', '.join(sorted(files))}")
        try:
            async with self._workers.take() as worker:
                put_files(worker.place, files)
                return _read_run(await worker.finish(chosen, seconds=seconds))
        except NotStartedError as problem:  # it failed before the candidate arrived
            why = f"its Python cannot run pytest, which needs the whole standard library: {problem}"
            raise InfraError(f"tests cannot be run in this sandbox: {why}", permanent=True) from problem
        except TimeoutError:
            return TestRun(error="ended by the timeout limit", stop="timeout", seconds=seconds)

    async def aclose(self) -> None:
        """End the waiting processes."""
        await self._workers.close()


def _read_run(done: CommandResult) -> TestRun:
    """Return the results that the process claims. Without a last line, it was ended early."""
    if done.stop != "exited":
        return stopped_by_limit(done)
    try:
        told = [_LINES.validate_json(line) for line in done.stdout.splitlines()]
    except ValidationError:
        why = "its result is not pytest's"
        return TestRun(error="the runner returned no result", seconds=done.seconds, tampered=why)
    tests = tuple(
        test.model_copy(update={"message": without_colours(test.message)})
        for test in told
        if isinstance(test, TestOutcome)
    )
    end = told[-1] if told else None
    if not isinstance(end, _End):
        why = f"its process ended with exit code {done.exit_code} before its tests did"
        output = last_output(replace(done, stdout=b""))  # stdout has only results
        return TestRun(error=f"{why}: {output}", stop="crashed", seconds=done.seconds)
    if end.interrupted:
        why = f"{end.interrupted}, which ended the run: no further test ran"
        return TestRun(tests=tests, error=why, stop="crashed", seconds=done.seconds)
    error = without_colours(end.error) or (None if tests else "there is no test in it")
    return TestRun(tests=tests, error=error, seconds=done.seconds)

"""Test Svelte components with Vitest, in worker processes that were made ready before the candidate came.

The few suites that need what only a whole `vitest run` can do, such as mocked modules and snapshots, get one.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bakeoff.errors import GraderError
from bakeoff.plan import Limits
from bakeoff.protocols import Command, Completed, Sandbox
from bakeoff.sandbox import open_place, put_files
from bakeoff.toolchains.canary import Canary, name_like_tests_in
from bakeoff.toolchains.install import Say, install_vitest, quiet
from bakeoff.toolchains.outcome import TestRun, ValidationOutcome, last_output, stopped_by_limit
from bakeoff.toolchains.validators import read_outcome
from bakeoff.toolchains.workers import COMPILE_SECONDS, PeerGone, WorkerPool, ended_without_answer, parse_answer

WHOLE_LIMITS = Limits(memory_mb=2048, processes=256, disk_mb=256, output_kb=4096)
_WHOLE_SECONDS = 30.0  # a whole Vitest takes up to this long before its first test, on a busy machine
_FIRST_SIGNAL = 128  # a shell adds the number of a signal to this for the exit code
_TEST_FILE = re.compile(r"test\.(?:svelte\.)?[jt]s")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ONLY = re.compile(r"\b(?:test|it|describe|suite)(?:\s*\.\s*\w+)*\s*\.\s*only\b")
# It is one line, so that the line numbers of the suite shift by one at most. Every check in it must fail.
_CANARY = (
    "import {{ test as t_{id}, expect as e_{id}, vi as v_{id} }} from 'vitest'; t_{id}{only}({name}, () => {{"
    " const lone = document.createElement('p'); lone.textContent = {word}; let last; for (const check of ["
    " () => e_{id}(lone).toBeInTheDocument(), () => e_{id}(lone).toHaveTextContent({other}),"
    " () => e_{id}(v_{id}.fn()).toHaveBeenCalled(), () => e_{id}([{word}]).toEqual([{other}]),"
    " () => e_{id}({word}).toContain({other}), () => e_{id}(null).toBeTruthy(),"
    " () => e_{id}(lone).not.toHaveTextContent({word}), () => e_{id}({word}).toBe({other}),"
    " ]) {{ try {{ check(); }} catch (error) {{ last = error; continue; }} return; }} throw last; }});"
)


class _MayBeOurFault(Exception):
    """The run may have ended as it did because the machine was busy. It deserves a second try, alone."""

    def __init__(self, run: TestRun) -> None:
        super().__init__(run.error)
        self.run = run


@dataclass(frozen=True, slots=True)
class VitestToolchain:
    """The resource that tests components. `slots` candidates are tested at a time."""

    sandbox: Callable[[], Sandbox]
    slots: int = 1
    say: Say = quiet
    key = "vitest"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenVitest"]:
        toolchain = await install_vitest(self.say)
        async with AsyncExitStack() as stack:
            opened = OpenVitest(self.sandbox(), toolchain, self.slots)
            stack.push_async_callback(opened.close)
            await opened.warm_up()
            yield opened


class OpenVitest(WorkerPool):
    """Run the tests of components, and validators that are written in TypeScript."""

    worker_script, compiler_script = "start.cjs", "compiler.mjs"

    def __init__(self, sandbox: Sandbox, toolchain: Path, slots: int) -> None:
        super().__init__(sandbox, toolchain, slots)
        self.is_busy: Callable[[], bool] = lambda: os.getloadavg()[0] > (os.cpu_count() or 1)
        self._wants_all = asyncio.Lock()

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        """Run one test file: the one in `tests`, or else `test.ts` or `test.svelte.ts`. A run may be tried twice."""
        test = next(iter(tests), None)
        try:
            async with self._slots:
                return await self._run_once(files, test, seconds)
        except _MayBeOurFault:
            async with self._all_slots():
                try:
                    return await self._run_once(files, test, 2 * seconds)
                except _MayBeOurFault as again:
                    return again.run

    @asynccontextmanager
    async def _all_slots(self) -> AsyncIterator[None]:
        """Take every slot. Only one waits for them at a time, or two would wait for each other."""
        async with self._wants_all, AsyncExitStack() as stack:
            for _ in range(self.slots):
                await stack.enter_async_context(self._slots)
            yield

    async def _run_once(self, files: Mapping[str, str], test: str | None, seconds: float) -> TestRun:
        started = time.monotonic()
        try:
            prepared = await self.compile({"files": dict(files), "test": test}, seconds)
        except TimeoutError as problem:
            error = f"the component was not compiled within {min(seconds, COMPILE_SECONDS):g} s"
            run = TestRun(error=error, stop="timeout", seconds=time.monotonic() - started)
            raise _MayBeOurFault(run) from problem
        except PeerGone as gone:
            return _ended(gone, time.monotonic() - started)
        if "error" in prepared:
            return TestRun(error=prepared["error"], seconds=time.monotonic() - started)
        entry = prepared["entry"]
        if "fresh" in prepared:
            limit = seconds + _WHOLE_SECONDS
            return await run_whole_vitest(self.sandbox, self.toolchain, files, seconds=limit, test=entry)
        canary = Canary(name=name_like_tests_in(files[entry]))
        async with self.worker() as worker:
            started = time.monotonic()
            try:
                answer = await worker.ask(test_job(canary, prepared), seconds=seconds)
            except TimeoutError as problem:
                error = f"the tests did not end within {seconds:g} s"
                run = TestRun(error=error, stop="timeout", seconds=time.monotonic() - started)
                if self.is_busy():
                    raise _MayBeOurFault(run) from problem
                return run
            except PeerGone as gone:
                return _ended(gone, time.monotonic() - started)
        return canary.check_report(answer, time.monotonic() - started, source="the worker")

    async def validate(self, code: str, source: str, seconds: float) -> ValidationOutcome:
        """Ask a validator in TypeScript. Raise `GraderError` if it has no proper answer."""
        async with self._slots:
            try:
                prepared = await self.compile({"kind": "bundle", "source": source}, seconds)
                if "error" in prepared:
                    raise GraderError(f"the validator does not compile: {prepared['error']}")
                return await self._validate(prepared, code, seconds)
            except TimeoutError as problem:
                raise GraderError(f"the validator did not answer within {seconds:g} s") from problem
            except PeerGone as gone:
                why = ended_without_answer(gone.completed, 0.0).error
                raise GraderError(f"the validator gave no answer: {why}") from gone

    async def _validate(self, prepared: dict[str, Any], code: str, seconds: float) -> ValidationOutcome:
        proof = Canary().proof
        async with self.worker() as worker:
            job = {"kind": "validate", **prepared, "code": code, "proof": proof}
            answer = parse_answer(await worker.ask(job, seconds=seconds))
        if answer.get("proof") != proof:
            raise GraderError("the validator answered in place of its worker")
        return read_outcome(answer.get("outcome"))


def test_job(canary: Canary, prepared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the job that tells a worker to run compiled tests with a canary among them."""
    drawn = {"canary": canary.name, "word": canary.word, "place": canary.place, "proof": canary.proof}
    return {"kind": "test", **prepared, **drawn}


def _ended(gone: PeerGone, seconds: float) -> TestRun:
    """Return how the process ended. A signal that we did not send may have been the machine's doing."""
    run = ended_without_answer(gone.completed, seconds)
    code = gone.completed.exit_code if gone.completed else 0
    if run.stop == "crashed" and (code < 0 or code > _FIRST_SIGNAL):
        raise _MayBeOurFault(run) from gone
    return run


async def run_whole_vitest(
    sandbox: Sandbox, toolchain: Path, files: Mapping[str, str], *, seconds: float, test: str | None = None
) -> TestRun:
    """Run one candidate through a whole `vitest run`."""
    entry = test or next((name for name in files if _TEST_FILE.fullmatch(name)), None)
    if entry is None or entry not in files:
        return TestRun(error=f"there is no {test or 'test.ts or test.svelte.ts'}")
    canary = Canary(name=name_like_tests_in(files[entry]))
    only = ".only" if _ONLY.search(_COMMENT.sub("", files[entry])) else ""
    with_canary = {**files, entry: canary.add_to(files[entry], _CANARY, only=only)}
    job = {"proof": canary.proof, "test": entry}
    async with open_place() as place:
        put_files(place, {name: text.encode() for name, text in with_canary.items()})
        (place.work / "node_modules").symlink_to(toolchain / "node_modules")
        argv = ("node", str(toolchain / "fresh.mjs"))
        stdin = json.dumps(job).encode()
        done = await sandbox.run(Command(argv, place, seconds, WHOLE_LIMITS, stdin=stdin, readable=(toolchain,)))
    return read_whole_run(canary, done, "Vitest")


def read_whole_run(canary: Canary, done: Completed, runner: str) -> TestRun:
    """Return the run that a whole test runner printed behind its proof."""
    if done.stop != "exited":
        return stopped_by_limit(done)
    _, found, text = done.stdout.decode(errors="replace").partition(canary.proof)
    if not found:
        error = f"{runner} ended with exit code {done.exit_code} and no result: {last_output(done)}"
        return TestRun(error=error, stop="crashed", seconds=done.seconds)
    return canary.check_report(text, done.seconds, proven=True, source=runner)

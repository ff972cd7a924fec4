"""Warm Vitest: each candidate has a process of its own that was made ready before the candidate came.

    host ── compiler   one process, kept: Svelte and TypeScript to scripts; it never runs what it reads
      │
      ├──── worker     libraries, DOM and runner loaded, rehearsed, waiting; takes one job, answers, ends
      ├──── worker     the next one, made ready while the first is at work
      └──── fresh      a whole `vitest run`, for the few suites that need what only that can do

Every one of these is a sandboxed command in a place of its own, with a user of its own where we are root. No process
meets two candidates, so there is nothing to put back and nothing to leak; and one that hangs or breaks takes nobody
with it. Scripts travel through a socket, so that neither the test nor its canary lies in a file a candidate could read.
"""

import asyncio
import json
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import GraderError
from bakeoff.plan import Limits
from bakeoff.protocols import Completed, Sandbox
from bakeoff.toolchains.canary import Canary, named_like, plain, well_formed
from bakeoff.toolchains.fresh import run_fresh
from bakeoff.toolchains.installing import Say, quiet
from bakeoff.toolchains.node import WORKER_FLAGS, install_node_toolchain
from bakeoff.toolchains.outcome import TestOutcome, TestRun, ValidationOutcome
from bakeoff.toolchains.peers import Peer, PeerGone
from bakeoff.toolchains.validators import judge_returned

WORKER_LIMITS = Limits(memory_mb=1024, processes=96, disk_mb=64, output_kb=256)
COMPILER_LIMITS = Limits(memory_mb=2048, processes=96, disk_mb=64, output_kb=4096)
COMPILE_SECONDS = 20.0
_SIGNALLED = 128  # exit codes beyond are a shell's way to name a signal
FRESH_SECONDS = 30.0  # what a whole Vitest takes before its first test, on a busy machine


class _Unlucky(Exception):
    """A run that may have ended as it did through no fault of the candidate: it is worth another, alone."""

    def __init__(self, run: TestRun) -> None:
        super().__init__(run.error)
        self.run = run


class _Report(FrozenModel):
    """What a worker says; anything else is not from our worker."""

    proof: str
    tests: tuple[TestOutcome, ...]
    error: str
    changed: str | None


def _machine_is_busy() -> bool:
    return os.getloadavg()[0] > (os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class VitestToolchain:
    """The resource. `slots` are the candidates that are tested at a time."""

    sandbox: Callable[[], Sandbox]
    slots: int = 1
    say: Say = quiet

    @property
    def key(self) -> str:
        return "vitest"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenVitest"]:
        toolchain = await install_node_toolchain(self.say)
        async with AsyncExitStack() as stack:
            opened = OpenVitest(self.sandbox(), toolchain, self.slots)
            stack.push_async_callback(opened.close)
            await opened.warm_up()
            yield opened


class OpenVitest:
    """Runs suites of components, and validators in TypeScript."""

    def __init__(self, sandbox: Sandbox, toolchain: Path, slots: int) -> None:
        self.sandbox, self.toolchain, self.slots = sandbox, toolchain, slots
        self.is_busy = _machine_is_busy
        self._slots = asyncio.Semaphore(slots)
        self._wants_all = asyncio.Lock()
        self._waiting = deque(self._new_worker() for _ in range(slots))
        self._compiler = self._new_compiler()
        self._compiling = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    async def warm_up(self) -> None:
        await self._compiler.ready()
        await self._waiting[0].ready()

    async def run(self, files: Mapping[str, str], *, seconds: float, test: str | None = None) -> TestRun:
        """`test` has the tests, `test.ts` or `test.svelte.ts` unless told; all other files are the candidate's."""
        try:
            async with self._slots:
                return await self._once(files, test, seconds)
        except _Unlucky:
            async with self._alone():
                return await self._last(files, test, 2 * seconds)

    async def _last(self, files: Mapping[str, str], test: str | None, seconds: float) -> TestRun:
        try:
            return await self._once(files, test, seconds)
        except _Unlucky as unlucky:
            return unlucky.run

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """With every slot; only one waits for them at a time, or two would wait for each other."""
        async with self._wants_all, AsyncExitStack() as stack:
            for _ in range(self.slots):
                await stack.enter_async_context(self._slots)
            yield

    async def _once(self, files: Mapping[str, str], test: str | None, seconds: float) -> TestRun:
        started = time.monotonic()
        try:
            prepared = await self._compile({"files": dict(files), "test": test}, seconds)
        except TimeoutError as problem:
            error = f"the component was not compiled within {min(seconds, COMPILE_SECONDS):g} s"
            run = TestRun(error=error, stop="timeout", seconds=time.monotonic() - started)
            raise _Unlucky(run) from problem
        except PeerGone as gone:
            return _gone(gone, time.monotonic() - started)
        if "error" in prepared:
            return TestRun(error=prepared["error"], seconds=time.monotonic() - started)
        entry = prepared["entry"]
        if "fresh" in prepared:
            limit = seconds + FRESH_SECONDS
            return await run_fresh(self.sandbox, self.toolchain, files, seconds=limit, test=entry)
        return await self._ask(Canary(name=named_like(files[entry])), prepared, seconds)

    async def _test(self, prepared: dict[str, Any], seconds: float) -> TestRun:
        try:
            return await self._ask(Canary(), prepared, seconds)
        except _Unlucky as unlucky:
            return unlucky.run

    async def _ask(self, canary: Canary, prepared: dict[str, Any], seconds: float) -> TestRun:
        job = {"kind": "test", **prepared, "canary": canary.name}
        job |= {"word": canary.word, "place": canary.place, "proof": canary.proof}
        worker = await self._take()
        started = time.monotonic()
        try:
            answer = await worker.ask(json.dumps(job).encode(), seconds=seconds)
        except TimeoutError as problem:
            error = f"the tests did not end within {seconds:g} s"
            run = TestRun(error=error, stop="timeout", seconds=time.monotonic() - started)
            if self.is_busy():
                raise _Unlucky(run) from problem
            return run
        except PeerGone as gone:
            return _gone(gone, time.monotonic() - started)
        finally:
            self._end(worker)
        return judge_answer(canary, answer, time.monotonic() - started)

    async def validate(self, code: str, source: str, seconds: float) -> ValidationOutcome:
        """Ask a validator in TypeScript; `GraderError` where it has no proper answer."""
        async with self._slots:
            try:
                prepared = await self._compile({"kind": "bundle", "source": source}, seconds)
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
        worker = await self._take()
        try:
            job = {"kind": "validate", **prepared, "code": code, "proof": proof}
            answer = _parsed(await worker.ask(json.dumps(job).encode(), seconds=seconds))
        finally:
            self._end(worker)
        if answer.get("proof") != proof:
            raise GraderError("the validator answered in place of its worker")
        return judge_returned(answer.get("outcome"))

    async def _compile(self, question: dict[str, Any], seconds: float) -> dict[str, Any]:
        """One at a time, so that a source on which the compiler hangs or breaks is known, and replaced alone."""
        async with self._compiling:
            try:
                return _parsed(
                    await self._compiler.ask(json.dumps(question).encode(), seconds=min(seconds, COMPILE_SECONDS))
                )
            except BaseException:
                self._end(self._compiler)
                self._compiler = self._new_compiler()
                raise

    async def _take(self) -> Peer:
        """A worker for one job; the next is started at once. One that died while it waited is nobody's fault."""
        while True:
            worker = self._waiting.popleft()
            self._waiting.append(self._new_worker())
            try:
                await worker.ready()
            except BaseException:
                self._end(worker)
                raise
            if worker.alive:
                return worker
            self._end(worker)

    def _new_worker(self) -> Peer:
        argv = ("node", *WORKER_FLAGS, str(self.toolchain / "start.cjs"))
        return Peer(self.sandbox, argv, readable=(self.toolchain,), limits=WORKER_LIMITS)

    def _new_compiler(self) -> Peer:
        argv = ("node", str(self.toolchain / "compiler.mjs"))
        return Peer(self.sandbox, argv, readable=(self.toolchain,), limits=COMPILER_LIMITS)

    def _end(self, peer: Peer) -> None:
        """In the background: clearing up is nobody's time but ours. `close` waits for it."""
        task = asyncio.create_task(peer.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        for peer in (*self._waiting, self._compiler):
            self._end(peer)
        self._waiting.clear()
        while self._closing:
            await asyncio.wait(self._closing)


def _parsed(answer: bytes) -> dict[str, Any]:
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError) as problem:
        raise PeerGone(None) from problem
    if not isinstance(value, dict):
        raise PeerGone(None)
    return value


def judge_answer(canary: Canary, answer: bytes, seconds: float) -> TestRun:
    """What a worker's answer is worth."""
    try:
        report = _Report.model_validate_json(well_formed(answer))
    except ValidationError:
        return TestRun(error="what came back is no result", seconds=seconds, tampered="its result was not the worker's")
    tampered = None
    if report.proof != canary.proof:
        tampered = "its result was not the worker's"
    elif report.changed is not None:
        tampered = f"it replaced `{report.changed}`, which the tests are built on"
    tests = [test.model_copy(update={"message": plain(test.message)}) for test in report.tests]
    return canary.judge(tests, error=plain(report.error) or None, seconds=seconds, tampered=tampered)


def _gone(gone: PeerGone, seconds: float) -> TestRun:
    """How it ended; by a signal that we did not send, it may have been the machine's doing."""
    run = ended_without_answer(gone.completed, seconds)
    code = gone.completed.exit_code if gone.completed else 0
    if run.stop == "crashed" and (code < 0 or code > _SIGNALLED):
        raise _Unlucky(run) from gone
    return run


def ended_without_answer(completed: Completed | None, seconds: float) -> TestRun:
    """It ended before its tests did, which is its own doing."""
    if completed is None:
        return TestRun(error="what came back is no result", stop="crashed", seconds=seconds)
    words = completed.stderr.decode(errors="replace")
    if completed.stop == "memory" or "heap out of memory" in words or "Array buffer allocation failed" in words:
        return TestRun(error="it took more memory than it may", stop="memory", seconds=seconds)
    if completed.stop == "output":
        return TestRun(error="it printed more than it may", stop="output", seconds=seconds)
    ending = f"exit code {completed.exit_code}" if completed.exit_code >= 0 else f"signal {-completed.exit_code}"
    if completed.stop not in {"exited", "killed"}:
        ending = f"the {completed.stop} limit"
    return TestRun(error=f"its process ended with {ending} before its tests did", stop="crashed", seconds=seconds)

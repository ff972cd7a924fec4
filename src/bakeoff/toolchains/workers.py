"""Keep Node and Python processes ready in sandboxes, one per run, and talk to them by sockets.

    host ── compiler   one lasting process: turns sources into scripts; it never runs what it reads (Node only)
      │
      ├──── worker     libraries and test runner loaded, waiting; takes one job, answers, ends
      └──── worker     the next one, started while the first is at work

Each process is a sandboxed command with its own folder and, if we are root, its own user. Each
worker takes a single candidate, so that candidates cannot affect each other. A Node worker can read
only the toolchain, and cannot start processes. A worker's report is only a claim, since the
candidate runs in its process.
"""

import asyncio
import contextlib
import json
import os
import socket
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bakeoff._kernel.json import json_object
from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import InfraError
from bakeoff.plan import Limits
from bakeoff.protocols import Command, CommandResult, Place, Sandbox
from bakeoff.sandbox import open_place, put_files
from bakeoff.toolchains.install import WORKER_FLAGS
from bakeoff.toolchains.outcome import TestOutcome, TestRun, last_output, stopped_by_limit, without_colours

SOCKET = "socket"
WORKER_LIMITS = Limits(memory_mb=1024, processes=96, disk_mb=64, output_kb=256)
COMPILER_LIMITS = Limits(memory_mb=2048, processes=96, disk_mb=64, output_kb=4096)
WHOLE_LIMITS = Limits(memory_mb=2048, processes=256, disk_mb=256, output_kb=4096)
COMPILE_SECONDS = 20.0
_MAX_ANSWER_LENGTH = 16 << 20
_LIFETIME_SECONDS = 7 * 24 * 3600.0  # each question has its own limit
_READY_SECONDS = 60.0
_ENDING_SECONDS = 5.0  # from the end of the connection to the end of the process
_TAIL = 2000
_NOT_COMPILED = "it was not compiled"
_FIRST_SIGNAL = 128  # shells exit with this plus the number of a signal


class PeerGone(Exception):
    """The process ended or sent an invalid answer. `completed` is its result, if known."""

    def __init__(self, completed: CommandResult | None) -> None:
        super().__init__("it ended without an answer")
        self.completed = completed


class NotStartedError(InfraError):
    """The process ended before it was ready."""


def _bind(listening: socket.socket, folder: Path) -> None:
    """Bind the socket in a folder, by the folder's descriptor on Linux, to keep the path short."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        short = Path(f"/proc/self/fd/{opened}")
        listening.bind(str((short if short.exists() else folder) / SOCKET))
    finally:
        os.close(opened)


class Peer:
    """A sandboxed process that answers questions. `close` must be awaited.

    The process gets the socket's name as its last argument, connects once, and sends a line when it
    is ready. Then each side sends one line at a time. The socket accepts only the first connection.
    A process with graded code can start other processes only with `children`.
    """

    place: Place
    """The process's folders; set once it is ready."""

    def __init__(
        self,
        sandbox: Sandbox,
        argv: Sequence[str],
        *,
        readable: tuple[Path, ...],
        limits: Limits,
        graded: bool = False,
        children: bool = False,
    ) -> None:
        self._sandbox, self._argv, self._readable, self._limits = sandbox, tuple(argv), readable, limits
        self._graded, self._children = graded, children or not graded
        self._connected: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
        self._connected = asyncio.get_running_loop().create_future()
        self._process = asyncio.create_task(self._run())
        self._readiness = asyncio.create_task(self._become_ready())

    async def _run(self) -> CommandResult:
        async with open_place() as place:
            self.place = place
            with socket.socket(socket.AF_UNIX) as listening:
                listening.setblocking(False)
                _bind(listening, place.work)
                listening.listen(1)
                if place.uid is not None:
                    os.chown(place.work / SOCKET, place.uid, place.uid)
                accepting = asyncio.create_task(self._accept(listening))
                try:
                    command = Command((*self._argv, SOCKET), place, _LIFETIME_SECONDS, self._limits)
                    seen, graded, children = self._readable, self._graded, self._children
                    return await self._sandbox.run(replace(command, readable=seen, graded=graded, children=children))
                finally:
                    accepting.cancel()
                    await asyncio.wait([accepting])
                    self._disconnect()

    async def _accept(self, listening: socket.socket) -> None:
        connection, _ = await asyncio.get_running_loop().sock_accept(listening)
        listening.close()
        self._connected.set_result(await asyncio.open_unix_connection(sock=connection, limit=_MAX_ANSWER_LENGTH))

    def _disconnect(self) -> None:
        if not self._connected.done():
            self._connected.cancel()
        elif not self._connected.cancelled():
            self._connected.result()[1].close()

    async def _become_ready(self) -> None:
        try:
            async with asyncio.timeout(_READY_SECONDS):
                waited: list[asyncio.Future[Any]] = [self._connected, self._process]
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if self._connected.done() and not self._connected.cancelled():
                    reader, _ = self._connected.result()
                    if await reader.readline():
                        return
                done = await self._process
        except TimeoutError as problem:
            raise InfraError(f"{self._argv[0]} was not ready within {_READY_SECONDS:.0f} s") from problem
        words = done.stderr.decode(errors="replace").strip()[-_TAIL:]
        words = words or f"it ended by {done.stop} with exit code {done.exit_code}"
        raise NotStartedError(f"{self._argv[0]} did not start: {words}")

    async def ready(self) -> None:
        """Wait until the process accepts questions. Raise `InfraError` if it never does."""
        await asyncio.shield(self._readiness)

    @property
    def alive(self) -> bool:
        """Return True until the process has ended, even while it is starting or busy."""
        return not self._process.done()

    async def ask(
        self, question: object, *, seconds: float, more: Callable[[float], float] = lambda _seconds: 0.0
    ) -> bytes:
        """Return the answer to a question. Raise `TimeoutError` or `PeerGone`.

        Args:
            question: The question. Ask only one at a time.
            seconds: How long to wait.
            more: Called when the time is over; returns how much longer to wait.
        """
        await self.ready()
        reader, writer = self._connected.result()

        async def exchange() -> bytes:
            writer.write(json.dumps(question).encode() + b"\n")
            await writer.drain()
            return await reader.readline()

        answering = asyncio.create_task(exchange())
        try:
            await asyncio.wait([answering], timeout=seconds)
            if not answering.done():
                await asyncio.wait([answering], timeout=more(seconds))
            if not answering.done():
                raise TimeoutError
            answer = answering.result()
        except (ConnectionError, ValueError) as problem:  # ValueError: the line is too long
            raise PeerGone(await self._ending()) from problem
        finally:
            answering.cancel()
            await asyncio.wait([answering])
        if not answer.endswith(b"\n"):
            raise PeerGone(await self._ending())
        return answer

    async def finish(self, question: object, *, seconds: float) -> CommandResult:
        """Send a question that is answered by output, and return the result of the process."""
        _, writer = self._connected.result()
        started = time.monotonic()
        writer.write(json.dumps(question).encode() + b"\n")
        await asyncio.wait([self._process], timeout=seconds)
        if not self._process.done():
            raise TimeoutError
        return replace(self._process.result(), seconds=time.monotonic() - started)

    async def _ending(self) -> CommandResult | None:
        """After the process has disconnected, wait briefly for its end, and return its result."""
        await asyncio.wait([self._process], timeout=_ENDING_SECONDS)
        return self._process.result() if self._process.done() else None

    async def close(self) -> None:
        """End the process and all processes that it started."""
        self._process.cancel()
        self._readiness.cancel()
        await asyncio.wait([self._process, self._readiness])
        for task in (self._process, self._readiness):
            with contextlib.suppress(asyncio.CancelledError, InfraError, OSError):
                task.result()
        self._disconnect()


class WaitingWorkers:
    """Workers that are ready in advance. Each takes one job, while the next one starts."""

    def __init__(self, start: Callable[[], Peer], many: int) -> None:
        self._start = start
        self._waiting = deque(start() for _ in range(many))
        self._closing: set[asyncio.Task[None]] = set()

    async def ready(self) -> None:
        """Wait until the first worker is ready."""
        await self._waiting[0].ready()

    @contextlib.asynccontextmanager
    async def take(self) -> AsyncIterator[Peer]:
        """Take a ready worker for one job, start the next, and finally end the worker."""
        while True:
            worker = self._waiting.popleft()
            self._waiting.append(self._start())
            try:
                await worker.ready()
                if worker.alive:  # else it died while waiting, without a candidate
                    yield worker
                    return
            finally:
                self.end(worker)

    def end(self, peer: Peer) -> None:
        """End a process in the background, so that candidates need not wait. `close` waits."""
        task = asyncio.create_task(peer.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """End all workers."""
        for peer in self._waiting:
            self.end(peer)
        self._waiting.clear()
        while self._closing:
            await asyncio.wait(self._closing)


class WorkerPool:
    """A compiler, and one waiting worker for each parallel run.

    Args:
        sandbox: The sandbox of all processes.
        toolchain: The installed folder with the scripts.
        slots: The number of parallel runs.
        flags: The permission flags for the sandbox's Node.
    """

    worker_script: str
    compiler_script: str
    whole_script: str
    settings: Mapping[str, str] = {}
    """Further settings for a whole test runner. Workers and the compiler get them as arguments."""

    def __init__(self, sandbox: Sandbox, toolchain: Path, slots: int, flags: Sequence[str]) -> None:
        self.sandbox, self.toolchain, self.slots, self.flags = sandbox, toolchain, slots, flags
        self.is_busy: Callable[[], bool] = lambda: os.getloadavg()[0] > (os.cpu_count() or 1)
        self._wants_all = asyncio.Lock()
        self._slots = asyncio.Semaphore(slots)
        self._workers = WaitingWorkers(self._new_worker, slots)
        self._compiler = self._new_compiler()
        self._compiling = asyncio.Lock()

    async def warm_up(self) -> None:
        """Wait until the compiler and the first worker are ready."""
        await self._compiler.ready()
        await self._workers.ready()

    async def run_warm(self, question: dict[str, Any], seconds: float) -> TestRun | None:
        """Compile tests and run them in a worker; None if they need a whole test runner.

        If something else may have ended the run, repeat it once, alone. A run that does not end
        gets 1.5 times its limit on a busy machine, and is not repeated.
        """
        async with self._slots:
            run, is_doubtful = await self._try(question, seconds)
        if not is_doubtful:
            return run
        # Only one caller at a time takes all slots, because two would deadlock.
        async with self._wants_all, contextlib.AsyncExitStack() as stack:
            for _ in range(self.slots):
                await stack.enter_async_context(self._slots)
            return (await self._try(question, seconds))[0]

    async def _try(self, question: dict[str, Any], seconds: float) -> tuple[TestRun | None, bool]:
        """Return the run, and True if repeating it may give another result."""
        started, step, limit = time.monotonic(), _NOT_COMPILED, min(seconds, COMPILE_SECONDS)
        try:
            prepared = await self.compile(question, seconds)
            if "whole" in prepared:
                return None, False
            if "error" in prepared:
                return TestRun(error=prepared["error"], seconds=time.monotonic() - started), False
            async with self._workers.take() as worker:
                started, step, limit = time.monotonic(), "the tests did not end", seconds
                # A busy machine may cause the delay.
                asked = worker.ask(prepared, seconds=seconds, more=lambda late: late / 2 if self.is_busy() else 0.0)
                answer = parse_answer(await asked)
        except TimeoutError:
            error, is_doubtful = f"{step} within {limit:g} s", step == _NOT_COMPILED and self.is_busy()
            return TestRun(error=error, stop="timeout", seconds=time.monotonic() - started), is_doubtful
        except PeerGone as gone:
            run = ended_without_answer(gone.completed, time.monotonic() - started)
            code = gone.completed.exit_code if gone.completed else 0
            # Perhaps not the candidate's fault: a shared compiler, or a signal from elsewhere.
            is_doubtful = step == _NOT_COMPILED or (run.stop == "crashed" and (code < 0 or code > _FIRST_SIGNAL))
            return run, is_doubtful
        return None if "whole" in answer else read_report(answer, time.monotonic() - started), False

    async def run_whole(self, files: Mapping[str, str], entry: str, seconds: float) -> TestRun:
        """Run a test file with a whole test runner, which is slow but complete."""
        job = json.dumps({"entry": entry, "flags": self.flags, **self.settings}).encode()
        async with self._slots:
            script = self.toolchain / self.whole_script
            done = await run_script(self.sandbox, script, files, stdin=job, seconds=seconds, limits=WHOLE_LIMITS)
        return read_last_line(done)

    async def compile(self, question: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Compile one source at a time, so that a hanging compilation affects no other source."""
        async with self._compiling:
            try:
                return parse_answer(await self._compiler.ask(question, seconds=min(seconds, COMPILE_SECONDS)))
            except BaseException:
                self._workers.end(self._compiler)
                self._compiler = self._new_compiler()
                raise

    def _new_worker(self) -> Peer:
        allowed = (*self.flags, f"--allow-fs-read={self.toolchain}")
        script = (str(self.toolchain / self.worker_script), *self.settings.values())
        argv = ("node", *WORKER_FLAGS, *allowed, *script)
        return Peer(self.sandbox, argv, readable=(self.toolchain,), limits=WORKER_LIMITS, graded=True)

    def _new_compiler(self) -> Peer:
        argv = ("node", str(self.toolchain / self.compiler_script), *self.settings.values())
        return Peer(self.sandbox, argv, readable=(self.toolchain,), limits=COMPILER_LIMITS)

    async def close(self) -> None:
        """End all workers and the compiler."""
        self._workers.end(self._compiler)
        await self._workers.close()


def parse_answer(answer: bytes) -> dict[str, Any]:
    """Parse an answer as a JSON object. Raise `PeerGone` for anything else."""
    if (value := json_object(answer)) is None:
        raise PeerGone(None)
    return value


async def run_script(
    sandbox: Sandbox,
    script: Path,
    files: Mapping[str, str],
    *,
    stdin: bytes,
    seconds: float,
    limits: Limits,
    readable: tuple[Path, ...] = (),
) -> CommandResult:
    """Run a Node script of an installed toolchain on a candidate, in a new folder.

    Args:
        sandbox: The sandbox.
        script: The script, in the folder that holds `node_modules`.
        files: The files of the folder. A link to the toolchain's packages is added.
        stdin: The script's input.
        seconds: The time limit.
        limits: The other limits.
        readable: More paths that it may read.
    """
    toolchain = script.parent
    async with open_place() as place:
        put_files(place, files)
        (place.work / "node_modules").symlink_to(toolchain / "node_modules")
        seen = (toolchain, *readable)
        argv = ("node", str(script))
        return await sandbox.run(Command(argv, place, seconds, limits, stdin=stdin, readable=seen, graded=True))


def read_last_line(done: CommandResult) -> TestRun:
    """Return the run from the last line of output, or a run that a limit has ended."""
    if done.stop != "exited":
        return stopped_by_limit(done)
    with contextlib.suppress(PeerGone, IndexError):
        return read_report(parse_answer(done.stdout.splitlines()[-1]), done.seconds)
    error = f"its process ended with exit code {done.exit_code} and no result: {last_output(done)}"
    return TestRun(error=error, stop="crashed", seconds=done.seconds)


class _WorkerReport(FrozenModel):
    """The report of a worker or of a whole test runner."""

    tests: tuple[TestOutcome, ...]
    error: str


def read_report(answer: dict[str, Any], seconds: float) -> TestRun:
    """Return the run from a report of one of our processes."""
    try:
        report = _WorkerReport.model_validate(answer)
    except ValidationError:
        return ended_without_answer(None, seconds)
    tests = tuple(test.model_copy(update={"message": without_colours(test.message)}) for test in report.tests)
    return TestRun(tests=tests, error=without_colours(report.error) or None, seconds=seconds)


def ended_without_answer(completed: CommandResult | None, seconds: float) -> TestRun:
    """Return the run for a candidate whose process ended before its tests."""
    if completed is None:
        return TestRun(error="the runner returned no result", stop="crashed", seconds=seconds)
    words = completed.stderr.decode(errors="replace")
    if completed.stop == "memory" or "heap out of memory" in words or "Array buffer allocation failed" in words:
        return TestRun(error="it used more memory than allowed", stop="memory", seconds=seconds)
    if completed.stop == "output":
        return TestRun(error="it printed more than allowed", stop="output", seconds=seconds)
    ending = f"exit code {completed.exit_code}" if completed.exit_code >= 0 else f"signal {-completed.exit_code}"
    if completed.stop not in {"exited", "killed"}:
        ending = f"the {completed.stop} limit"
    return TestRun(error=f"its process ended with {ending} before its tests did", stop="crashed", seconds=seconds)

"""Talk to the supervisor: send orders, keep output up to a limit, pass on cancellation.

One server per process forks the supervisors (see `supervisor/fork_server.py`). It starts with the
first command, restarts if killed, and gets the descriptors of each command.
"""

import asyncio
import atexit
import contextlib
import errno
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from bakeoff._kernel.environment import hide_our_memory
from bakeoff.errors import InfraError
from bakeoff.plan import Limits
from bakeoff.protocols import Command, CommandResult, Stop
from bakeoff.sandbox.mounts import Step
from bakeoff.sandbox.system_calls import can_filter, filter_of

Order: TypeAlias = dict[str, Any]
Report: TypeAlias = dict[str, Any]

MEGABYTE = 1 << 20
CHUNK = 1 << 16
LAST_OUTPUT_SECONDS = 1.0
OPEN_FILES = 4096
OWN_PROCESSES = 4  # processes of a wrapper such as bubblewrap
QUEUE_BYTES = 800 << 10  # in POSIX message queues
FILTER_WORD = f"filter-{secrets.token_hex(8)}"  # placeholder for the descriptor of the filter
STATUS_WORD = f"status-{secrets.token_hex(8)}"  # placeholder for the status descriptor
FOLDER = Path(__file__).parent
START = "import sys; sys.path.append({!r}); from supervisor.fork_server import main; sys.path.pop(); main({})"
TRIES = 3  # if the server is killed while it forks
START_SECONDS = 60.0
RETRY_SECONDS = 0.005  # while the server has too many descriptors queued
GRACE_SECONDS = 150.0  # for killing and cleaning up; a supervisor that takes longer is broken
NOT_STARTED = "no supervisor could be started: the process that forks them was killed each time"
BUSY = {errno.EAGAIN, errno.ETOOMANYREFS, errno.ENOBUFS}


class ForkServerProcess:
    """The process that forks supervisors."""

    def __init__(self) -> None:
        self.connection, theirs = socket.socketpair()
        # Some Python installations need this variable to start.
        env = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", START.format(str(FOLDER), theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=env,
                cwd="/",
                start_new_session=True,
            )
        self.connection.settimeout(START_SECONDS)
        try:
            ready = self.connection.recv(1)
        except OSError:
            ready = b""
        if not ready:
            self.close()
            raise InfraError(f"the supervisor of sandboxed commands does not start: {sys.executable} ended at once")
        self.connection.setblocking(False)

    def send(self, descriptors: Sequence[int]) -> bool:
        """Request a supervisor. Return False if the server is busy; raise OSError if it ended."""
        try:
            socket.send_fds(self.connection, [b"s"], descriptors)
        except OSError as problem:
            if problem.errno in BUSY:
                return False
            raise
        return True

    def close(self) -> None:
        self.connection.close()
        self.process.wait()


class _ForkServers:
    """The fork server of this process. Forked processes do not inherit it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.server: ForkServerProcess | None = None
        self.controls = weakref.WeakSet[socket.socket]()

    def send(self, descriptors: Sequence[int]) -> bool:
        """Request a supervisor. Start a server if none is running."""
        with self.lock:
            if self.server is not None:
                try:
                    return self.server.send(descriptors)
                except OSError:
                    self.server.close()
                    self.server = None
            self.server = ForkServerProcess()
            return self.server.send(descriptors)

    def close(self) -> None:
        with self.lock:
            if self.server is not None:
                self.server.close()
                self.server = None

    def forget(self) -> None:
        """Close our copies of sockets after a fork, so that the parent's commands can end."""
        self.lock = threading.Lock()
        for control in self.controls:
            control.close()
        if self.server is not None:
            self.server.connection.close()
            self.server.process.returncode = 0  # it is not our child
            self.server = None


_servers = _ForkServers()
atexit.register(_servers.close)
os.register_at_fork(after_in_child=_servers.forget)


class Supervisor:
    """A supervisor: its pid, and our end of the socket, which carries JSON lines."""

    def __init__(self) -> None:
        self.control, self.theirs = socket.socketpair()
        _servers.controls.add(self.control)
        self.received = b""
        self.pid = 0

    async def read(self) -> Report | None:
        """Wait for a message; return None if the supervisor ended without one."""
        while b"\n" not in self.received:
            try:
                chunk = await asyncio.get_running_loop().sock_recv(self.control, 1 << 16)
            except ConnectionResetError:
                return None
            if not chunk:
                return None
            self.received += chunk
        line, _, self.received = self.received.partition(b"\n")
        message: Report = json.loads(line)
        return message

    def say(self, word: bytes) -> None:
        with contextlib.suppress(OSError):  # it has just ended
            self.control.send(word)

    async def end(self) -> None:
        """Make the supervisor end its command, and wait until it has ended. Kill it if it hangs."""
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_WR)
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                while await self.read() is not None:
                    pass
        except TimeoutError:
            os.kill(self.pid, signal.SIGKILL)  # it still runs, because its socket is open
        finally:
            self.control.close()


async def start_supervisor(streams: Sequence[int]) -> Supervisor:
    """Start a supervisor with these streams. The caller closes its copies and awaits `end`."""
    for _ in range(TRIES):
        supervisor = Supervisor()
        try:
            with supervisor.theirs as theirs:
                while not _servers.send((theirs.fileno(), *streams)):  # noqa: ASYNC110 - it says nothing
                    await asyncio.sleep(RETRY_SECONDS)
            supervisor.control.setblocking(False)
            hello = await supervisor.read()
        except BaseException:
            supervisor.control.close()
            raise
        if hello is not None:
            supervisor.pid = hello["pid"]
            return supervisor
        supervisor.control.close()  # the server was killed before it forked
    raise InfraError(NOT_STARTED)


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """A command's result, and what the supervisor found at the end."""

    completed: CommandResult
    epilogue: Sequence[str] = ()
    status: str = ""


class SupervisorLost(InfraError):
    """A supervisor ended without a report. `so_far` has the result as far as known."""

    def __init__(self, message: str, so_far: CommandResult) -> None:
        super().__init__(message)
        self.so_far = so_far


def confined_rlimits(limits: Limits) -> dict[str, int]:
    """Return rlimits, wider than the limits, that bound a command between two checks.

    The data segment is limited, not the address space, of which Node reserves far too much.
    """
    return {
        "RLIMIT_NPROC": limits.processes,
        "RLIMIT_FSIZE": (limits.disk_mb + 64) * MEGABYTE,
        "RLIMIT_DATA": (2 * limits.memory_mb + 512) * MEGABYTE,
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": OPEN_FILES,
        "RLIMIT_MSGQUEUE": QUEUE_BYTES,
    }


@dataclass(frozen=True, slots=True)
class KernelMeans:
    """How the kernel of this machine can limit a command, as found by a probe."""

    cgroup: Mapping[str, Any] | None  # where limited groups can be made
    own_ipc: bool  # it can have its own IPC namespace
    filters: bool  # seccomp works

    def sentence(self) -> str:
        """Describe how the kernel limits commands in the `process` and `bwrap` sandboxes."""
        limits = "the kernel limits memory and processes (cgroup)"
        if not self.cgroup:
            limits = "memory is watched, and what is only in flight between processes is missed (no cgroup)"
        ipc = "shared memory is private (IPC namespace)" if self.own_ipc else "System V shared memory is refused"
        if not self.own_ipc and not self.filters:
            ipc = "System V shared memory is the host's"
        calls = "risky system calls are refused (seccomp)" if self.filters else "no system call is refused (no seccomp)"
        return f"{limits}; {ipc}; {calls}"


@cache
def kernel_means() -> KernelMeans:
    """Find out once, by a supervisor's probe, how this kernel can isolate commands."""
    report = supervise_now({"probe": True})
    return KernelMeans(report.get("cgroup"), bool(report.get("own_ipc")), can_filter())


def make_order(
    command: Command,
    *,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    confined: bool = True,
    mounts: list[Step] | None = None,
    system_read_only: bool = False,
    access: Mapping[str, object] | None = None,
    epilogue: Sequence[Sequence[str]] = (),
) -> Order:
    """Return an order for a supervisor: JSON on how to start, confine, watch and end a command.

    Args:
        command: The command with its place and limits.
        argv: The program to start, which may wrap the command. `FILTER_WORD` and `STATUS_WORD`
            are placeholders for descriptors.
        env: The whole environment.
        cwd: The folder to start in, as the program sees it.
        confined: False for trusted programs and clients of container engines, which get no
            limits.
        mounts: The private view of the file system; None for the host's.
        system_read_only: Make everything read-only except writable mounts of the view.
        access: Paths to read, list and write, if the kernel has Landlock.
        epilogue: Commands to run after the command, however it ended.
    """
    place = command.place
    means = kernel_means() if confined else None
    cgroup, own_ipc = (means.cgroup, means.own_ipc) if means else (None, False)
    return {
        "secret": secrets.token_hex(16),
        "argv": list(argv),
        "env": dict(env),
        "status_word": STATUS_WORD,
        "filter_word": FILTER_WORD,
        "filter": filter_of(command, own_ipc=own_ipc, counted=cgroup is not None).hex() if confined else "",
        "cgroup": cgroup,
        "own_ipc": own_ipc,
        "processes": command.limits.processes + OWN_PROCESSES,
        "cwd": cwd,
        "seconds": command.seconds,
        "confined": confined,
        "uid": place.uid if confined else None,
        "root": str(place.work.parent),
        "owner": None if confined else place.uid,  # a container's processes are not descendants
        "rlimits": confined_rlimits(command.limits) if confined else {},
        "memory": command.limits.memory_mb * MEGABYTE if confined or place.uid is not None else 0,
        "disk": command.limits.disk_mb * MEGABYTE,
        "watched": [str(place.work), str(place.home), str(place.tmp)],
        "mounts": None if mounts is None else {"steps": mounts, "system_read_only": system_read_only},
        "access": None if access is None else dict(access),
        "epilogue": [list(words) for words in epilogue],
    }


@dataclass(frozen=True, slots=True)
class SupervisedProcess:
    """A running command: its streams and, at the end, the supervisor's report."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    order: Order
    supervisor: Supervisor

    async def report(self) -> Report | None:
        """Wait for the end of all processes, and return the supervisor's report, if any."""
        return authentic(self.order, await self.supervisor.read())

    def say(self, word: bytes) -> None:
        """End the command early. `word` becomes the reason in the report."""
        self.supervisor.say(word)


@contextlib.asynccontextmanager
async def supervised_process(order: Order, *, limit: int = CHUNK) -> AsyncIterator[SupervisedProcess]:
    """Run an order with open input and output. Leaving the block ends all its processes.

    `limit` is the maximum length of a line in bytes.
    """
    hide_our_memory()
    (their_stdin, stdin), (stdout, their_stdout), (stderr, their_stderr) = open_pipes(3)
    theirs = (their_stdin, their_stdout, their_stderr)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.sleep, 0)  # the loop closes pipes in its next turn
        try:
            writer = await _writer(stdin, stack)
            out, err = await _reader(stdout, limit, stack), await _reader(stderr, limit, stack)
            process = SupervisedProcess(writer, out, err, order, await start_supervisor(theirs))
            stack.push_async_callback(process.supervisor.end)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # an early death shows as a missing report
            await asyncio.get_running_loop().sock_sendall(process.supervisor.control, order_line(order))
        yield process


def open_pipes(count: int) -> list[tuple[int, int]]:
    """Open this many pipes, or none if descriptors run out."""
    pipes: list[tuple[int, int]] = []
    try:
        while len(pipes) < count:
            pipes.append(os.pipe())
    except OSError:
        for descriptor in chain.from_iterable(pipes):
            os.close(descriptor)
        raise
    return pipes


async def _writer(descriptor: int, stack: contextlib.AsyncExitStack) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(descriptor, "wb", buffering=0)
    )
    transport.set_write_buffer_limits(high=0)  # so that `drain` waits until everything is written

    def abort() -> None:
        if not transport.is_closing():
            transport.abort()

    stack.callback(abort)
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def _reader(descriptor: int, limit: int, stack: contextlib.AsyncExitStack) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=limit)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    stack.callback(transport.close)
    return reader


def order_line(order: Order) -> bytes:
    """Return an order as one line of JSON."""
    return json.dumps(order).encode() + b"\n"


def authentic(order: Order, report: Report | None) -> Report | None:
    """Return the report if it has the order's secret, which only our supervisor knows."""
    return report if report is not None and report.get("secret") == order["secret"] else None


class _CommandOutput:
    """Keeps a limited number of bytes per output stream, and ends the command beyond that."""

    def __init__(self, process: SupervisedProcess, most_bytes: int) -> None:
        self._process, self._most_bytes = process, most_bytes
        self._kept = bytearray(), bytearray()
        self.is_over = False

    async def read(self) -> None:
        """Read both streams to their end or limit."""
        streams = (self._process.stdout, self._process.stderr)
        await asyncio.gather(*(self._read(stream, kept) for stream, kept in zip(streams, self._kept, strict=True)))

    async def _read(self, stream: asyncio.StreamReader, kept: bytearray) -> None:
        while chunk := await stream.read(CHUNK):
            room = self._most_bytes - len(kept)
            kept += chunk[:room]
            if len(chunk) > room:
                self.is_over = True
                self._process.say(b"output\n")
                return

    def completed(self, exit_code: int, seconds: float, stop: Stop) -> CommandResult:
        stdout, stderr = map(bytes, self._kept)
        return CommandResult(exit_code, stdout, stderr, seconds, stop)


async def supervise(order: Order, command: Command) -> CommandEnd:
    """Run an order. On cancellation, first end the command and all its processes.

    Args:
        order: The order for the supervisor; see `make_order`.
        command: The command, for its input, output limit and `time_up`.

    Raises:
        SupervisorLost: The supervisor was killed. `so_far` has the output.
        InfraError: The command was not started, or left a process that cannot be killed.
    """

    async def feed() -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a command may ignore its input
            process.stdin.write(command.stdin)
            await process.stdin.drain()
        process.stdin.close()

    async def end_in_time() -> None:
        if command.time_up is not None:
            await command.time_up.wait()
            process.say(b"timeout\n")

    started = time.monotonic()
    async with supervised_process(order) as process:
        output = _CommandOutput(process, command.limits.output_kb * 1024)
        report = asyncio.ensure_future(process.report())
        reading = asyncio.ensure_future(output.read())
        feeding, ending = asyncio.ensure_future(feed()), asyncio.ensure_future(end_in_time())
        try:
            async with asyncio.timeout(order["seconds"] + GRACE_SECONDS):
                found = await asyncio.shield(report)
            # Read what is left in the pipes, which an unkillable process may keep open.
            await asyncio.wait([reading], timeout=LAST_OUTPUT_SECONDS)
        except asyncio.CancelledError:
            process.say(b"cancelled\n")
            await asyncio.wait([report], timeout=GRACE_SECONDS)
            raise
        except TimeoutError:
            found = None
        finally:
            for task in (tasks := (report, reading, feeding, ending)):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return finish(order, found, output, time.monotonic() - started)


def finish(order: Order, report: Report | None, output: _CommandOutput, seconds: float) -> CommandEnd:
    """Return the end of a command. Raise `InfraError` if it did not run or end properly."""
    if report is None:
        left = "what it ran may still be running"
        if order["uid"] is not None:
            left = "what it ran was ended" if supervise_now({"sweep": order["uid"]}).get("clean") else left
        so_far = output.completed(-signal.SIGKILL, seconds, "killed")
        raise SupervisorLost(f"the supervisor of {order['argv'][0]!r} was killed from outside; {left}", so_far)
    if "problem" in report:
        raise InfraError(f"{order['argv'][0]!r} was not started: {report['problem']}")
    if not report["clean"]:
        raise InfraError(f"{order['argv'][0]!r} left a process that SIGKILL does not end; see `ps -eo pid,stat,wchan`")
    stop: Stop = "output" if output.is_over else report["stop"]
    completed = output.completed(report["exit_code"], report["seconds"], stop)
    return CommandEnd(completed, report.get("epilogue", ()), report["status"])


def supervise_now(order: Order) -> Report:
    """Run an order without output, for probes and cleaning up, and block until it ends.

    This uses a new event loop, so that it can be called from anywhere.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _supervise_quietly({"secret": secrets.token_hex(16), **order})).result()


async def _supervise_quietly(order: Order) -> Report:
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        supervisor = await start_supervisor((nothing, nothing, nothing))
    finally:
        os.close(nothing)
    try:
        with contextlib.suppress(OSError):  # an early death shows as a missing report
            await asyncio.get_running_loop().sock_sendall(supervisor.control, order_line(order))
        report = authentic(order, await supervisor.read())
    finally:
        await supervisor.end()
    return report or {"problem": "the supervisor was killed"}

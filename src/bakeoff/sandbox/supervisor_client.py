"""Talk to the supervisor: send the order, keep the output up to its limit, and pass on a cancellation."""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, TypeAlias

from bakeoff._kernel.environment import hide_our_memory
from bakeoff.errors import InfraError
from bakeoff.plan import Limits
from bakeoff.protocols import Command, Completed, Stop
from bakeoff.sandbox.mounts import Step
from bakeoff.sandbox.supervisors import GRACE_SECONDS, Supervisor, start_supervisor, start_supervisor_now
from bakeoff.sandbox.system_calls import can_filter, filter_of

Order: TypeAlias = dict[str, Any]
Report: TypeAlias = dict[str, Any]

MEGABYTE = 1 << 20
OPEN_FILES = 4096
OWN_PROCESSES = 4  # of a wrapper such as bubblewrap
QUEUE_BYTES = 800 << 10  # in POSIX message queues
FILTER_WORD = f"filter-{secrets.token_hex(8)}"  # stands in an argv for a descriptor that has `filter_of` the command
STATUS_WORD = f"status-{secrets.token_hex(8)}"  # stands in an argv for a descriptor that the supervisor chooses


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """A command's result, and what the supervisor learned at the end."""

    completed: Completed
    epilogue: Sequence[str] = ()
    status: str = ""


class SupervisorLost(InfraError):
    """A supervisor ended without a report. `so_far` is what is known of its command."""

    def __init__(self, message: str, so_far: Completed) -> None:
        super().__init__(message)
        self.so_far = so_far


def confined_rlimits(limits: Limits) -> dict[str, int]:
    """Return rlimits for what happens between two checks, which are therefore wider than the limits themselves.

    The data segment is limited, not the address space: Node reserves far more of that than it ever uses.
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
    """Hold the means of this machine to limit a command, found by trying them."""

    cgroup: Mapping[str, Any] | None  # where groups with limits of memory and processes can be made
    own_ipc: bool  # an IPC namespace of its own; as a user, inside a user namespace
    filters: bool  # seccomp

    def sentence(self) -> str:
        """Say what holds here for commands in the `process` and `bwrap` sandboxes."""
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
        "owner": None if confined else place.uid,  # a container's processes are not below the supervisor
        "rlimits": confined_rlimits(command.limits) if confined else {},
        "memory": command.limits.memory_mb * MEGABYTE if confined or place.uid is not None else 0,
        "disk": command.limits.disk_mb * MEGABYTE,
        "watched": [str(place.work), str(place.home), str(place.tmp)],
        "mounts": None if mounts is None else {"steps": mounts, "system_read_only": system_read_only},
        "access": None if access is None else dict(access),
        "epilogue": [list(words) for words in epilogue],
    }


def open_pipes(count: int) -> list[tuple[int, int]]:
    """Open all of them, or none where descriptors run out."""
    pipes: list[tuple[int, int]] = []
    try:
        while len(pipes) < count:
            pipes.append(os.pipe())
    except OSError:
        for descriptor in chain.from_iterable(pipes):
            os.close(descriptor)
        raise
    return pipes


class Stream:
    """One output stream. It keeps the output up to the limit, and reports once when there was more."""

    def __init__(self, cap: int, on_excess: Callable[[], None], pipe: tuple[int, int]) -> None:
        self.cap, self.on_excess = cap, on_excess
        self.reading, self.writing = pipe
        os.set_blocking(self.reading, False)
        self.kept = bytearray()
        self.excess = False
        self.open = True

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.add_reader(self.reading, self.on_readable, loop)

    def on_readable(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self.take():
            loop.remove_reader(self.reading)

    def take(self) -> bool:
        """Read what is there, and return whether more may come."""
        try:
            chunk = os.read(self.reading, 1 << 16)
        except BlockingIOError:
            return self.open
        self.open = bool(chunk)
        room = self.cap - len(self.kept)
        self.kept += chunk[:room]
        if len(chunk) > room and not self.excess:
            self.excess = True
            self.on_excess()
        return self.open and not self.excess

    def drain(self) -> None:
        """Read what was still in the pipe when the command ended."""
        before = -1
        while before != len(self.kept) and not self.excess and self.open:
            before = len(self.kept)
            self.take()

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(self.reading)
        os.close(self.reading)


class Feeder:
    """Writes the command's standard input as fast as it is read."""

    def __init__(self, content: bytes, pipe: tuple[int, int]) -> None:
        self.left = memoryview(content)
        self.reading, self.writing = pipe
        os.set_blocking(self.writing, False)

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.add_writer(self.writing, self.on_writable, loop)

    def on_writable(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            self.left = self.left[os.write(self.writing, self.left) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.left = self.left[:0]
        if not self.left:
            self.close(loop)

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.writing >= 0:
            loop.remove_writer(self.writing)
            os.close(self.writing)
            self.writing = -1


class SupervisorConnection:
    """One supervisor and the four channels to it."""

    def __init__(self, stdin: bytes, cap: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.started = time.monotonic()
        self.supervisor: Supervisor | None = None
        pipes = open_pipes(3)
        self.stdin = Feeder(stdin, pipes[0])
        self.stdout = Stream(cap, lambda: self.say(b"output\n"), pipes[1])
        self.stderr = Stream(cap, lambda: self.say(b"output\n"), pipes[2])

    def say(self, word: bytes) -> None:
        if self.supervisor is not None:
            self.supervisor.say(word)

    async def start(self) -> None:
        theirs = (self.stdin.reading, self.stdout.writing, self.stderr.writing)
        try:
            self.supervisor = await start_supervisor(theirs)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        for channel in (self.stdin, self.stdout, self.stderr):
            channel.listen(self.loop)

    async def exchange(self, order: Order) -> Report | None:
        """Send the order and wait for the report; return None when the supervisor died without one."""
        assert self.supervisor is not None
        try:
            await self.loop.sock_sendall(self.supervisor.control, order_line(order))
        except (BrokenPipeError, ConnectionResetError):
            return None
        return authentic(order, await self.supervisor.read())

    def completed(self, exit_code: int, seconds: float, stop: Stop) -> Completed:
        return Completed(exit_code, bytes(self.stdout.kept), bytes(self.stderr.kept), seconds, stop)

    async def end_at(self, time_up: asyncio.Event | None) -> None:
        if time_up is not None:
            await time_up.wait()
            self.say(b"timeout\n")

    async def close(self) -> None:
        """Close all channels, which makes the supervisor end the command in any case, and wait for that."""
        for channel in (self.stdin, self.stdout, self.stderr):
            channel.close(self.loop)
        if self.supervisor is not None:
            await self.supervisor.end()


@contextlib.asynccontextmanager
async def conversation(stdin: bytes, cap: int) -> AsyncIterator[SupervisorConnection]:
    talk = SupervisorConnection(stdin, cap)
    try:
        await talk.start()
        yield talk
    finally:
        await talk.close()


class SupervisedProcess:
    """A command that is talked to while it runs: its streams, and at the end the report of its supervisor."""

    def __init__(
        self, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader, stderr: asyncio.StreamReader, order: Order
    ) -> None:
        self.stdin, self.stdout, self.stderr, self._order = stdin, stdout, stderr, order
        self.supervisor: Supervisor | None = None

    async def report(self) -> Report | None:
        """Wait until nothing of the command is left; return None when the supervisor died without a report."""
        assert self.supervisor is not None
        return authentic(self._order, await self.supervisor.read())


@contextlib.asynccontextmanager
async def supervised_process(order: Order, *, limit: int) -> AsyncIterator[SupervisedProcess]:
    """Run one order with streams to talk to it; `limit` is for lines. The end of the block ends the command."""
    hide_our_memory()
    (their_stdin, stdin), (stdout, their_stdout), (stderr, their_stderr) = open_pipes(3)
    theirs = (their_stdin, their_stdout, their_stderr)
    async with contextlib.AsyncExitStack() as stack:
        try:
            writer = await _writer(stdin, stack)
            out, err = await _reader(stdout, limit, stack), await _reader(stderr, limit, stack)
            process = SupervisedProcess(writer, out, err, order)
            process.supervisor = await start_supervisor(theirs)
            stack.push_async_callback(process.supervisor.end)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # an early death shows as a missing report
            await asyncio.get_running_loop().sock_sendall(process.supervisor.control, order_line(order))
        yield process


async def _writer(descriptor: int, stack: contextlib.AsyncExitStack) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(descriptor, "wb", buffering=0)
    )
    stack.callback(transport.close)
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def _reader(descriptor: int, limit: int, stack: contextlib.AsyncExitStack) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=limit)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    stack.callback(transport.close)
    return reader


def order_line(order: Order) -> bytes:
    return json.dumps(order).encode() + b"\n"


def authentic(order: Order, report: Report | None) -> Report | None:
    """Return the report if it is our supervisor's: nobody else knows the secret of the order."""
    return report if report is not None and report.get("secret") == order["secret"] else None


async def supervise(order: Order, command: Command) -> CommandEnd:
    """Run one order. A cancellation ends the command and all its processes before it is passed on."""
    hide_our_memory()
    async with conversation(command.stdin, command.limits.output_kb * 1024) as talk:
        exchange = asyncio.ensure_future(talk.exchange(order))
        ending = asyncio.ensure_future(talk.end_at(command.time_up))
        try:
            async with asyncio.timeout(order["seconds"] + GRACE_SECONDS):
                report = await asyncio.shield(exchange)
        except asyncio.CancelledError:
            talk.say(b"cancelled\n")
            await asyncio.wait([exchange], timeout=GRACE_SECONDS)
            raise
        except TimeoutError:
            report = None
        finally:
            exchange.cancel()
            ending.cancel()
        for stream in (talk.stdout, talk.stderr):
            stream.drain()
    return finish(order, report, talk)


def finish(order: Order, report: Report | None, talk: SupervisorConnection) -> CommandEnd:
    if report is None:
        raise lost(order, talk)
    if "problem" in report:
        raise InfraError(f"{order['argv'][0]!r} was not started: {report['problem']}")
    if not report["clean"]:
        raise InfraError(f"{order['argv'][0]!r} left a process that SIGKILL does not end; see `ps -eo pid,stat,wchan`")
    stop: Stop = "output" if talk.stdout.excess or talk.stderr.excess else report["stop"]
    completed = talk.completed(report["exit_code"], report["seconds"], stop)
    return CommandEnd(completed, report.get("epilogue", ()), report["status"])


def lost(order: Order, talk: SupervisorConnection) -> SupervisorLost:
    left = "what it ran may still be running"
    if order["uid"] is not None:
        left = "what it ran was ended" if supervise_now({"sweep": order["uid"]}).get("clean") else left
    so_far = talk.completed(-signal.SIGKILL, time.monotonic() - talk.started, "killed")
    return SupervisorLost(f"the supervisor of {order['argv'][0]!r} was killed from outside; {left}", so_far)


def supervise_now(order: Order) -> Report:
    """Do the same without an event loop and without output, for probes and for cleaning up."""
    order = {"secret": secrets.token_hex(16), **order}
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        supervisor = start_supervisor_now((nothing, nothing, nothing))
    finally:
        os.close(nothing)
    with supervisor.control:
        with contextlib.suppress(OSError):  # an early death shows as a missing report
            supervisor.control.sendall(order_line(order))
        report = authentic(order, supervisor.read_now())
        supervisor.read_now()  # it has ended when this returns
    return report or {"problem": "the supervisor was killed"}

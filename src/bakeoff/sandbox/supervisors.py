"""Start supervisors: send the descriptors of a command to the fork server of this process, which is started once.

See `supervisor/fork_server.py`. A server that was killed is started again for the next command.
"""

import asyncio
import atexit
import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from bakeoff.errors import InfraError

Message: TypeAlias = dict[str, Any]

FOLDER = Path(__file__).parent
START = "import sys; sys.path.append({!r}); from supervisor.fork_server import main; sys.path.pop(); main({})"
TRIES = 3  # for a server that is killed while it forks
START_SECONDS = 60.0
RETRY_SECONDS = 0.005  # until the server has taken some of the descriptors that are on their way
GRACE_SECONDS = 150.0  # for killing and cleaning up; a supervisor that takes longer is broken
NOT_STARTED = "no supervisor could be started: the process that forks them was killed each time"
BUSY = {errno.EAGAIN, errno.ETOOMANYREFS, errno.ENOBUFS}


class ForkServerProcess:
    """The process that supervisors are forked from."""

    def __init__(self) -> None:
        self.connection, theirs = socket.socketpair()
        with theirs:
            self.process = self.start(theirs.fileno())
        self.connection.settimeout(START_SECONDS)
        try:
            ready = self.connection.recv(1)
        except OSError:
            ready = b""
        if not ready:
            self.close()
            raise InfraError(f"the supervisor of sandboxed commands does not start: {sys.executable} ended at once")
        self.connection.setblocking(False)

    def start(self, connection: int) -> "subprocess.Popen[bytes]":
        """Start it with one variable, which some Pythons need to start."""
        env = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        script = START.format(str(FOLDER), connection)
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(connection,),
            env=env,
            cwd="/",
            start_new_session=True,
        )

    def send(self, descriptors: Sequence[int]) -> bool:
        """Ask for one supervisor. Return False if the server is busy, and raise OSError if it has ended."""
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
    """The server of this process. A fork gets none of it: the server ends with the process that started it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.server: ForkServerProcess | None = None
        self.controls = weakref.WeakSet[socket.socket]()

    def send(self, descriptors: Sequence[int]) -> bool:
        """Ask the server for a supervisor, and start a server if there is none or it was killed."""
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
        """Close our copies of sockets after a fork, or commands of our parent would not end with it."""
        self.lock = threading.Lock()
        for control in self.controls:
            control.close()
        if self.server is not None:
            self.server.connection.close()
            self.server.process.returncode = 0  # not our child
            self.server = None


_servers = _ForkServers()
atexit.register(_servers.close)
os.register_at_fork(after_in_child=_servers.forget)


class Supervisor:
    """One supervisor: our end of its control socket, on which each message is a JSON line, and its pid."""

    def __init__(self) -> None:
        self.control, self.theirs = socket.socketpair()
        _servers.controls.add(self.control)
        self.received = b""
        self.pid = 0

    def next_message(self) -> Message | None:
        """Return the first message that has been received whole."""
        line, newline, rest = self.received.partition(b"\n")
        if not newline:
            return None
        self.received = rest
        message: Message = json.loads(line)
        return message

    async def read(self) -> Message | None:
        """Wait for a message; return None when the supervisor has ended without one."""
        while (message := self.next_message()) is None:
            try:
                chunk = await asyncio.get_running_loop().sock_recv(self.control, 1 << 16)
            except ConnectionResetError:
                return None
            if not chunk:
                return None
            self.received += chunk
        return message

    def say(self, word: bytes) -> None:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            self.control.send(word)

    async def end(self) -> None:
        """Make it end its command, and wait until it has ended itself; kill it if it hangs."""
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_WR)
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                while await self.read() is not None:
                    pass
        except TimeoutError:
            os.kill(self.pid, signal.SIGKILL)  # it is still there, because it has not closed its socket
        finally:
            self.control.close()


async def start_supervisor(streams: Sequence[int]) -> Supervisor:
    """Start a supervisor with these standard streams. The caller closes its copies of them, and awaits `end`."""
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

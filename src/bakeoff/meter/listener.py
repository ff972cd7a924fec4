"""Where a trial's meter listens: a port on loopback, and a socket in the file system for where there is no network."""

import asyncio
import contextlib
import logging
import os
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

HOST = "127.0.0.1"
PREFIX, SOCKET, FORWARDER = "bakeoff-meter-", "meter", "forward.py"
MOST_CONNECTIONS = 64  # of one trial
IDLE_SECONDS = 120  # between two requests on one connection
HEAD_SECONDS = 20.0  # from connecting to a whole first request line with headers
FRESH_SECONDS = 60.0  # a folder this young may have no listener yet
_RUN = Path("/run/bakeoff")
_LONGEST = 72  # a socket's whole path has room for about 100


class Guarded(H11Protocol):
    """One connection. There is room for only so many, and none for one that says nothing."""

    def __init__(self, config: uvicorn.Config, state: ServerState) -> None:
        super().__init__(config, state, {})
        self.logger = _quiet()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base
        super().connection_made(transport)
        at_once(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self.loop.call_later(HEAD_SECONDS, self._close_if_silent)

    def _close_if_silent(self) -> None:
        asked: object | None = self.cycle  # the base says that it is always there
        if asked is None and not self.transport.is_closing():
            self.transport.abort()


def at_once(transport: asyncio.Transport) -> None:
    """Without this the kernel holds small pieces back for 40 ms; asyncio sets it only on sockets it has made itself."""
    accepted = transport.get_extra_info("socket")
    if accepted.family == socket.AF_INET:
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@cache
def _quiet() -> logging.Logger:
    """What goes wrong is told to the agent and noted for its trial: it must not be able to fill the screen."""
    logger = logging.getLogger("bakeoff.meter.server")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


@dataclass(frozen=True, slots=True)
class Listener:
    port: int
    folder: Path


@contextlib.asynccontextmanager
async def listen(app: Any, uid: int | None) -> AsyncIterator[Listener]:
    """Serve until the block ends; then every connection is broken. `uid` is who else may use the socket."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
    )
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    folder = make_folder()
    servers = []
    try:
        path = folder / SOCKET
        for listening in (socket.create_server((HOST, 0), backlog=128), unix_socket(path, uid)):
            server = await loop.create_server(lambda: Guarded(config, state), sock=listening)
            servers.append(server)
        port: int = servers[0].sockets[0].getsockname()[1]
        yield Listener(port, folder)
    finally:
        for server in servers:
            server.close()
        for connection in list(state.connections):
            connection.transport.abort()
        for task in list(state.tasks):
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def runtime_folder() -> Path:
    """Short, for a socket's path may not be long; and not `/tmp` if possible, for sandboxes have one of their own."""
    if sys.platform == "linux" and os.geteuid() == 0:
        with contextlib.suppress(OSError):
            _RUN.mkdir(mode=0o755, exist_ok=True)
    own = os.environ.get("XDG_RUNTIME_DIR", "")
    wanted = [_RUN, *([Path(own)] if own.startswith("/") else []), Path(tempfile.gettempdir())]
    usable = [path for path in wanted if os.access(path, os.W_OK | os.X_OK) and len(str(path)) <= _LONGEST]
    return next(iter(usable), Path("/tmp"))  # noqa: S108 - what is made there is made with a random name


def make_folder() -> Path:
    """A folder that others may pass through and not look into, with what a sandbox needs to reach us."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=runtime_folder())).resolve()
    folder.chmod(0o711)
    script = folder / FORWARDER
    script.write_bytes(Path(__file__).with_name(FORWARDER).read_bytes())
    script.chmod(0o644)
    return folder


def unix_socket(path: Path, uid: int | None) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    path.chmod(0o600)
    if uid is not None:
        os.chown(path, uid, uid)
    return listening


def sweep() -> None:
    """Remove what killed processes of ours left: a socket that nobody listens on refuses."""
    for folder in runtime_folder().glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            found = folder.lstat()
            fresh = time.time() - found.st_mtime < FRESH_SECONDS
            if fresh or not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                continue
            try:
                probe.connect(str(folder / SOCKET))
            except ConnectionRefusedError:
                shutil.rmtree(folder, ignore_errors=True)

"""Listen for a trial's agent: on a loopback port, and on a Unix socket for sandboxes without a network."""

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
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

HOST = "127.0.0.1"
PREFIX, SOCKET, FORWARDER = "bakeoff-meter-", "meter", "forward.py"
MOST_CONNECTIONS = 64  # of one trial
IDLE_SECONDS = 120  # between two requests on one connection
FRESH_SECONDS = 60.0  # a younger folder may have no listener yet
_RUN = Path("/run/bakeoff")
# It prints nothing: errors go to the agent and the trial, and an agent must not fill the screen.
_QUIET = logging.Logger("bakeoff.meter.server", logging.CRITICAL + 1)
_LONGEST = 72  # a socket's path may have about 100 characters


class Guarded(H11Protocol):
    """One connection. Connections beyond the limit, and those that send nothing, are closed."""

    def __init__(self, config: uvicorn.Config, state: ServerState, head_seconds: float) -> None:
        super().__init__(config, state, {})
        self.logger = _QUIET
        self._head_seconds = head_seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base
        super().connection_made(transport)
        accepted = transport.get_extra_info("socket")
        if accepted.family == socket.AF_INET:  # small pieces without delay; asyncio sets it only on sockets of its own
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self.loop.call_later(self._head_seconds, self._close_if_silent)

    def _close_if_silent(self) -> None:
        asked: object | None = self.cycle  # may be None, although the base class declares otherwise
        if asked is None and not self.transport.is_closing():
            self.transport.abort()


@contextlib.asynccontextmanager
async def listen(app: Any, uid: int | None, head_seconds: float) -> AsyncIterator[tuple[int, Path]]:
    """Serve at a port and in a folder until the block ends, then close all connections.

    `uid` is the user that may use the socket besides us, `head_seconds` the time for the headers of a first request.
    """
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
        for listening in (socket.create_server((HOST, 0), backlog=128), unix_socket(folder / SOCKET, uid)):
            server = await loop.create_server(lambda: Guarded(config, state, head_seconds), sock=listening)
            servers.append(server)
        yield servers[0].sockets[0].getsockname()[1], folder
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
    """Return a folder with a short path, for the socket, and outside `/tmp` if possible, which sandboxes replace."""
    if sys.platform == "linux" and os.geteuid() == 0:
        with contextlib.suppress(OSError):
            _RUN.mkdir(mode=0o755, exist_ok=True)
    own = os.environ.get("XDG_RUNTIME_DIR", "")
    wanted = [_RUN, *([Path(own)] if own.startswith("/") else []), Path(tempfile.gettempdir())]
    usable = [path for path in wanted if os.access(path, os.W_OK | os.X_OK) and len(str(path)) <= _LONGEST]
    return next(iter(usable), Path("/tmp"))  # noqa: S108 - what is made there is made with a random name


def make_folder() -> Path:
    """Make a folder that others may pass through and not list, with the forwarder for sandboxes."""
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
    """Remove the folders of killed processes: nobody listens on their sockets."""
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

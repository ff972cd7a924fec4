"""Listen for a trial's agent: on a loopback port, and on a Unix socket for sandboxes without a network."""

import asyncio
import contextlib
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

from bakeoff._kernel.http_server import HOST, ServerLimits, serving

PREFIX, SOCKET, FORWARDER = "bakeoff-meter-", "meter", "forward.py"
FRESH_SECONDS = 60.0  # a younger folder may have no listener yet
_RUN = Path("/run/bakeoff")
_MAX_PATH_LENGTH = 72  # a socket's path may have about 100 characters


@contextlib.asynccontextmanager
async def listen(app: Any, uid: int | None, limits: ServerLimits) -> AsyncIterator[tuple[int, Path]]:
    """Serve at a port and in a folder until the block ends. `uid` is the user that may use the socket besides us."""
    folder = make_folder()
    try:
        port = socket.create_server((HOST, 0), backlog=limits.connections)
        async with serving(app, (port, unix_socket(folder / SOCKET, uid)), limits):
            yield port.getsockname()[1], folder
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def runtime_folder() -> Path:
    """Return a folder with a short path, for the socket, and outside `/tmp` if possible, which sandboxes replace."""
    if sys.platform == "linux" and os.geteuid() == 0:
        with contextlib.suppress(OSError):
            _RUN.mkdir(mode=0o755, exist_ok=True)
    own = os.environ.get("XDG_RUNTIME_DIR", "")
    wanted = [_RUN, *([Path(own)] if own.startswith("/") else []), Path(tempfile.gettempdir())]
    usable = [path for path in wanted if os.access(path, os.W_OK | os.X_OK) and len(str(path)) <= _MAX_PATH_LENGTH]
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
    """Return a bound socket that only we and the user `uid` may use."""
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

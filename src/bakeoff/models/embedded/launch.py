"""Let a server and its users find each other: launch settings, state files and locks.

Both sides import this module, so it imports little.
"""

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bakeoff._kernel.files import PRIVATE, lock_file, write_atomically
from bakeoff.errors import UsageError

_FORMAT = 3  # part of the id, so that versions with different formats share no server


@dataclass(frozen=True, slots=True)
class ServerLaunch:
    """The settings of a server. Runs with equal settings share a server."""

    weights: str
    model_name: str
    slots: int
    context: int  # tokens per slot
    threads: int
    template: str | None  # our chat template, if the one in the weights is unsuitable
    changed: int  # modification time of the weights; new weights need a new server
    format: int = _FORMAT

    @property
    def id(self) -> str:
        """Return a hash of the settings, used to name the server's files."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """Return the settings as JSON, for the command line of the server."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "ServerLaunch":
        """Read settings from JSON."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class EmbeddedEndpoint:
    """The address of a running server, for any client of the OpenAI API."""

    base_url: str
    api_key: str = field(repr=False)
    pid: int = field(compare=False)  # a restarted server keeps its address
    model_name: str
    supports_tools: bool


class Files:
    """The files of one server, shared with its users."""

    def __init__(self, folder: Path, id: str) -> None:
        self.folder = folder
        self.start = folder / f"{id}.start"  # locked while the server is being started
        self.users = folder / f"{id}.users"  # every user locks it; the server ends when nobody does
        self.alive = folder / f"{id}.alive"  # locked while the server runs
        self.state = folder / f"{id}.json"  # the address and key of the running server
        self.log = folder / f"{id}.log"
        self.socket = folder / f"{id}.sock"  # of llama.cpp, behind the relay; needs the suffix `.sock`

    def write_state(self, running: EmbeddedEndpoint) -> None:
        """Write the state of a running server."""
        write_atomically(self.state, json.dumps(asdict(running)).encode())

    def read_state(self) -> EmbeddedEndpoint | None:
        """Return the state of the last server; None if it ended properly or was never ready."""
        try:
            return EmbeddedEndpoint(**json.loads(self.state.read_bytes()))
        except FileNotFoundError:
            return None


def runtime_folder() -> Path:
    """Return a folder that only this user can read, for the keys of running servers."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    parent = Path(given) if given and Path(given).is_dir() else None
    folder = parent / "bakeoff" if parent else Path(tempfile.gettempdir()) / f"bakeoff-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise UsageError(f"{folder} is not a folder that only you can read: remove it, or set XDG_RUNTIME_DIR")
    return folder


@contextmanager
def opened_lock(path: Path) -> Iterator[int]:
    """Open a lock file. Closing it or ending the process releases the lock."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the exclusive lock, and hold it during the block."""
    with opened_lock(path) as handle:
        lock_file(handle, path, wait=True)
        yield


def is_held(path: Path) -> bool:
    """Return True if a process holds the exclusive lock."""
    with opened_lock(path) as handle:
        return not lock_file(handle, path, shared=True)

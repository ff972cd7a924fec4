"""Let a server and its users find each other: launch settings, state files, and locks between processes.

Both sides import this module, so it is light.
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

_FORMAT = 3  # part of the launch id: versions of Bakeoff with different formats do not share a server


@dataclass(frozen=True, slots=True)
class ServerLaunch:
    """The settings of a server. Runs with the same settings share one server."""

    weights: str
    model_name: str
    slots: int
    context: int  # tokens per slot
    threads: int
    template: str | None  # our chat template, if the one in the weights is unsuitable
    changed: int  # the modification time of the weights file: a new file needs a new server
    format: int = _FORMAT

    @property
    def id(self) -> str:
        """Return the hash of the settings, which names the files of the server."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """Return the settings as JSON, for the command line of the server."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "ServerLaunch":
        """Return the settings from JSON."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class EmbeddedEndpoint:
    """The address of a running server for any client of the OpenAI API, as the server writes it for its users."""

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
        self.users = folder / f"{id}.users"  # every user shares its lock; the server ends when it gets it alone
        self.alive = folder / f"{id}.alive"  # locked while the server runs
        self.state = folder / f"{id}.json"  # the address and key of the running server
        self.log = folder / f"{id}.log"
        self.socket = folder / f"{id}.sock"  # of llama.cpp, behind the relay; `.sock` makes it no host name

    def write_state(self, running: EmbeddedEndpoint) -> None:
        """Write the state of a running server."""
        write_atomically(self.state, json.dumps(asdict(running)).encode())

    def read_state(self) -> EmbeddedEndpoint | None:
        """Return the state of the last server, or None if it ended properly or was never ready."""
        try:
            return EmbeddedEndpoint(**json.loads(self.state.read_bytes()))
        except FileNotFoundError:
            return None


def runtime_folder() -> Path:
    """Return a folder that only this user can read. It holds the keys of running servers."""
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
    """Open the file for a lock. Closing it releases the lock, and so does the end of the process."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the exclusive lock and hold it inside the `with` block."""
    with opened_lock(path) as handle:
        lock_file(handle, path, wait=True)
        yield


def is_held(path: Path) -> bool:
    """Return True if some process holds the exclusive lock."""
    with opened_lock(path) as handle:
        return not lock_file(handle, path, shared=True)

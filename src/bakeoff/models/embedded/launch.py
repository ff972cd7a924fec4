"""What a server is started with, where it leaves word, and what it leaves there. Shared by both sides, and light."""

import hashlib
import json
import os
import stat
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from bakeoff._kernel.files import write_atomically
from bakeoff.errors import UsageError

_FORMAT = 1  # part of every launch's identity: versions of Bakeoff that differ in it share no server


@dataclass(frozen=True, slots=True)
class Launch:
    """Two runs that ask for the same launch share one server."""

    weights: str
    model_name: str
    slots: int
    context: int  # tokens per slot
    threads: int
    template: str | None  # our chat template, where the weights' own will not do
    changed: int  # when the weights file was last written: a new file is a new server
    format: int = _FORMAT

    @property
    def id(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Launch":
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Running:
    """The word that a running server leaves for those who want to use it."""

    base_url: str
    api_key: str
    pid: int
    supports_tools: bool


@dataclass(frozen=True, slots=True)
class Files:
    """The files by which a server and its users find each other."""

    folder: Path
    id: str

    @property
    def start(self) -> Path:
        """Locked by whoever starts the server."""
        return self.folder / f"{self.id}.start"

    @property
    def users(self) -> Path:
        """Locked, shared, by every user; the server ends when it can lock it alone."""
        return self.folder / f"{self.id}.users"

    @property
    def alive(self) -> Path:
        """Locked by the server as long as it lives."""
        return self.folder / f"{self.id}.alive"

    @property
    def word(self) -> Path:
        return self.folder / f"{self.id}.json"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.id}.log"

    def leave_word(self, running: Running) -> None:
        write_atomically(self.word, json.dumps(asdict(running)).encode())

    def read_word(self) -> Running | None:
        """What the last server left; None where it took its leave, or never came to it."""
        try:
            return Running(**json.loads(self.word.read_bytes()))
        except FileNotFoundError:
            return None


def runtime_folder() -> Path:
    """A folder that only this user can look into; the keys of running servers lie there."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    parent = Path(given) if given and Path(given).is_dir() else None
    folder = parent / "bakeoff" if parent else Path(tempfile.gettempdir()) / f"bakeoff-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise UsageError(f"{folder} should be a folder that only you can read: remove it, or set XDG_RUNTIME_DIR")
    return folder

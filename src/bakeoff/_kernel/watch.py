"""Wait for changes of files, for commands that then do their work again.

Files are looked at every half second, or as often as the caller asks. That works on every file system, also on mounts
that report no changes, and needs no library: a look at a thousand files takes some milliseconds.
"""
# ruff: noqa: PTH110, PTH112, PTH116, PTH118, PTH208 - texts take a fraction of the time of paths

import hashlib
import os
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from bakeoff._kernel.files import read_file

WAITING = "Waiting for changes; Ctrl-C ends."
GONE = ""
"""The state of a file that does not exist."""

_LOOK_SECONDS = 0.5
_REST = 9  # a pause is at least this many times as long as the look before it, so that looks take a tenth of a core
_NOT_OURS = frozenset(("__pycache__", "node_modules", "site-packages", "dist-packages"))

K = TypeVar("K")
V = TypeVar("V")


class FileWatch(Generic[K, V]):
    """Find what has changed since the last look that counted.

    Args:
        look: Returns the current values by key. A key that is missing has not changed.
        known: The values before the first change.
        seconds: The pause between two looks.
    """

    def __init__(self, look: Callable[[], Mapping[K, V]], known: Mapping[K, V], seconds: float = _LOOK_SECONDS) -> None:
        self._look = look
        self._seconds = seconds
        self.known = dict(known)

    def wait(self) -> dict[K, V | None]:
        """Wait for a change, and return the keys that changed with their earlier values, None for a new one.

        Values must stay the same for one further look: a burst of saves is one change, and a file that an editor is
        just replacing is not missing.
        """
        before: Mapping[K, V] | None = None
        while True:
            began = time.monotonic()
            now = self._look()
            took = time.monotonic() - began
            changed = {key: self.known.get(key) for key, value in now.items() if self.known.get(key) != value}
            if changed and now == before:
                self.known.update(now)
                return changed
            before = now
            time.sleep(max(self._seconds, _REST * took))


class FileStates:
    """Return the content of files and folders as hashes. A file is read again only if its size or time has changed."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[tuple[int, int, int], str]] = {}

    def __call__(self, paths: Iterable[str]) -> dict[str, str]:
        return {path: self._state(path) for path in paths}

    def _state(self, path: str) -> str:
        try:
            found = os.stat(path)
            if os.path.isdir(path):
                return _hash("\n".join(sorted(name for name in os.listdir(path) if is_watched(name))).encode())
            stamp = found.st_mtime_ns, found.st_size, found.st_ino
            known = self._read.get(path)
            if known is None or known[0] != stamp:
                known = self._read[path] = stamp, _hash(read_file(Path(path)))
        except OSError:
            return GONE
        return known[1]


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def is_watched(name: str) -> bool:
    """Return True if a file or folder of this name can be a user's: not hidden, a backup, a cache or a library."""
    return not name.startswith((".", "#")) and not name.endswith("~") and name not in _NOT_OURS


def source_files(root: Path, suffix: str | tuple[str, ...] = ".py", without: Container[str] = ()) -> Iterator[str]:
    """Yield the source files below a folder, without hidden folders, caches, libraries and virtual environments.

    `without` has the paths of further folders to leave out, written as `root` is.
    """
    for folder, folders, files in os.walk(root):
        folders[:] = [
            name
            for name in folders
            if is_watched(name)
            and os.path.join(folder, name) not in without
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        ]
        yield from (os.path.join(folder, name) for name in files if name.endswith(suffix) and is_watched(name))


def forget_modules(changed: Sequence[str], sources: set[str]) -> bool:
    """Forget the modules of these source files, if one of them has changed. Return whether one has."""
    ours = {
        name: file
        for name, module in list(sys.modules.items())
        if name != "__main__"
        and name.partition(".")[0] != "bakeoff"
        and (file := os.path.realpath(getattr(module, "__file__", None) or "")) in sources
    }
    if set(ours.values()).isdisjoint(changed):
        return False
    for name in ours:
        del sys.modules[name]
    return True

"""What was computed from run folders, kept in the cache folder until their files change.

Not in the run folders themselves: those are handed around, and whoever made one could put any numbers there.
"""

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from bakeoff._kernel.cache import cache_folder
from bakeoff._kernel.model import fingerprint
from bakeoff._version import __version__
from bakeoff.storage.run_folder import RunFolder

_FORMAT = 4
_FOLDER = "runs"
_LONGEST = 1024 * 1024  # bytes of one thing that is kept
_MOST = 64 * 1024 * 1024  # bytes of all of them on disk
_BLOCK = 4096


def key_of(folder: RunFolder) -> str:
    """Changes whenever the plan or the journal does."""
    return fingerprint(_FORMAT, __version__, look(folder.plan_file), look(folder.journal_file))


def recall(folder: RunFolder, what: str, key: str) -> bytes | None:
    """What was kept under that key, if it is still there."""
    try:
        found, _, data = place_of(folder, what).read_bytes().partition(b"\n")
    except OSError:
        return None
    return data if found == key.encode() else None


def keep(folder: RunFolder, what: str, key: str, data: bytes) -> None:
    """Best effort: where nothing can be kept, it is computed anew each time."""
    if len(data) > _LONGEST:
        return
    temporary = None
    try:
        place = place_of(folder, what)
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=".new-")
        with os.fdopen(handle, "wb") as file:  # no fsync: it can be had again
            file.write(key.encode() + b"\n" + data)
        Path(temporary).replace(place)
    except OSError:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def place_of(folder: RunFolder, what: str) -> Path:
    name = hashlib.blake2b(os.fsencode(folder.path.resolve()), digest_size=16).hexdigest()
    return cache_folder() / _FOLDER / f"{name}.{what}"


def tidy(most: int = _MOST) -> None:
    """Remove what was kept longest ago, as far as there is too much of it."""
    with suppress(OSError):  # another process may tidy at the same time
        with os.scandir(cache_folder() / _FOLDER) as entries:
            found = [(entry.stat(), entry.path) for entry in entries]
        room = most
        for status, path in sorted(found, key=lambda one: one[0].st_mtime_ns, reverse=True):
            room -= -(-status.st_size // _BLOCK) * _BLOCK
            if room < 0:
                Path(path).unlink(missing_ok=True)


def look(file: Path) -> list[int] | None:
    """What tells one state of a file from the next without reading it."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ino]

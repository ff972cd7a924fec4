"""Cache data computed from run folders until their files change.

The cache is not in the run folders: these are passed around, and their makers could put any numbers there.
"""

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from bakeoff._kernel.environment import cache_folder
from bakeoff._kernel.files import read_file
from bakeoff._kernel.model import fingerprint
from bakeoff._version import __version__
from bakeoff.storage.run_folder import RunFolder

_FORMAT = 6
_FOLDER = "runs"
_LONGEST = 1024 * 1024  # bytes of one entry
_MOST = 64 * 1024 * 1024  # bytes of the whole cache
_BLOCK = 4096


def cache_key(folder: RunFolder) -> str:
    """Return a key that changes whenever the plan, the journal, the labels or the pictures do."""
    parts = folder.segment_files
    files = (folder.plan_file, *parts, folder.journal_file, folder.seal_file, folder.labels_file, folder.pictures)
    return fingerprint(_FORMAT, __version__, *map(file_state, files))


def load(folder: RunFolder, what: str, key: str) -> bytes | None:
    """Return the cached data of that key, or None."""
    try:
        found, _, data = read_file(cache_file(folder, what)).partition(b"\n")
    except OSError:
        return None
    return data if found == key.encode() else None


def store(folder: RunFolder, what: str, key: str, data: bytes) -> None:
    """Store data. Errors are ignored: the data is then computed again each time."""
    if len(data) > _LONGEST:
        return
    temporary = None
    try:
        place = cache_file(folder, what)
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=".new-")
        with os.fdopen(handle, "wb") as file:  # no fsync: it can be computed again
            file.write(key.encode() + b"\n" + data)
        Path(temporary).replace(place)
    except OSError:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def cache_file(folder: RunFolder, what: str) -> Path:
    name = hashlib.blake2b(os.fsencode(folder.path.resolve()), digest_size=16).hexdigest()
    return cache_folder() / _FOLDER / f"{name}.{what}"


def clean_up(most: int = _MOST) -> None:
    """Remove the oldest entries until the cache is small enough."""
    with suppress(OSError):  # another process may clean_up at the same time
        with os.scandir(cache_folder() / _FOLDER) as entries:
            found = [(entry.stat(), entry.path) for entry in entries]
        room = most
        for status, path in sorted(found, key=lambda one: one[0].st_mtime_ns, reverse=True):
            room -= -(-status.st_size // _BLOCK) * _BLOCK
            if room < 0:
                Path(path).unlink(missing_ok=True)


def file_state(file: Path) -> list[int] | None:
    """Return size, time and inode of a file, which change with its content."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ino]

"""Write files so that a crash leaves either the old file or the new one, never a part."""

import contextlib
import os
import stat
import tempfile
from pathlib import Path

PRIVATE = 0o600  # transcripts may hold anything; reports for others are written with 0644


def is_stream(path: Path) -> bool:
    """Tell whether a path is a device or pipe such as /dev/null, into which one writes and which nobody replaces."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def write_atomically(path: Path, data: bytes, mode: int = PRIVATE) -> None:
    """Write beside the target, fsync, then rename over it."""
    if is_stream(path):
        path.write_bytes(data)
        return
    new_folders = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
    for folder in (path.parent, *(new.parent for new in new_folders)):
        sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

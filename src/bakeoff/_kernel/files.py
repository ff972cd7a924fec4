"""Writing files so that a crash leaves the old one or the new one, never half of either."""

import contextlib
import os
import tempfile
from pathlib import Path

PRIVATE = 0o600  # transcripts may hold anything; what is meant for others is written 0644 by the reports


def write_atomically(path: Path, data: bytes, mode: int = PRIVATE) -> None:
    """Write beside the target, fsync, then rename over it."""
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
    """Make names created in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

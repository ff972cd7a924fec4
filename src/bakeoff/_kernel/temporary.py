"""Make temporary folders that the next process removes if this one is killed.

Each holds a lock that ends with its process. A folder without such a lock was kept on purpose, and stays.
"""

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bakeoff._kernel.locks import file_locks

LOCK = "held"
FRESH_SECONDS = 60.0  # a younger folder may not hold its lock yet


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make a folder for the block, and remove those with the same prefix that killed processes have left."""
    sweep_folders(Path(tempfile.gettempdir()), prefix)
    root = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        with held(root):
            yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def held(root: Path) -> Iterator[None]:
    """Hold the lock of a folder inside the block."""
    lock = root / LOCK
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        file_locks.flock(descriptor, file_locks.LOCK_EX | file_locks.LOCK_NB)
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


@cache
def sweep_folders(parent: Path, prefix: str) -> None:
    """Remove, once per process, the folders that killed processes of our user have left there."""
    for root in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # another user's, or being removed by another process
            if is_left_behind(root):
                shutil.rmtree(root)


def is_left_behind(root: Path) -> bool:
    """Tell whether a folder is ours, not new, and has a lock that nobody holds. Raise OSError if it has no lock."""
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or time.time() - found.st_mtime < FRESH_SECONDS:
        return False
    descriptor = os.open(root / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        file_locks.flock(descriptor, file_locks.LOCK_EX | file_locks.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True

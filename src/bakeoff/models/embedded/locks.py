"""Locks between processes. The kernel drops them when their holder dies, however it dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bakeoff._kernel.files import PRIVATE


@contextmanager
def lock_file(path: Path) -> Iterator[int]:
    """The open file that a lock is taken on; closing it gives the lock back."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until nobody else holds the lock, and hold it alone."""
    with lock_file(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def take(handle: int, *, shared: bool = False) -> bool:
    """Take the lock if that needs no waiting; whether it was taken."""
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(path: Path) -> bool:
    """Whether some process holds the lock alone."""
    with lock_file(path) as handle:
        return not take(handle, shared=True)

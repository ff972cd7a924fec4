"""Lock files between processes. Not every platform can: there, nothing that needs a lock is written."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from bakeoff.errors import RunFolderError


class NoLocks(RunFolderError):
    """Files cannot be locked on this platform or file system."""


def _refuse(*_: object) -> NoReturn:
    raise NoLocks(
        "runs cannot be kept on this platform: Python has no file locks here (the module `fcntl`); "
        "use Linux or macOS, or WSL on Windows"
    )


file_locks: Any
try:
    import fcntl as file_locks
except ImportError:
    file_locks = SimpleNamespace(LOCK_EX=0, LOCK_SH=0, LOCK_NB=0, flock=_refuse)


def require_locks() -> None:
    """Raise NoLocks where files cannot be locked."""
    if isinstance(file_locks, SimpleNamespace):
        _refuse()


def lock_file(descriptor: int, path: Path, *, shared: bool = False, wait: bool = False) -> bool:
    """Lock an open file; return False if another process holds a lock on it.

    Raise NoLocks if the file system has no locks: then nobody could keep another process from writing there.
    """
    kind = file_locks.LOCK_SH if shared else file_locks.LOCK_EX
    try:
        file_locks.flock(descriptor, kind if wait else kind | file_locks.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise NoLocks(
            f"{path} cannot be locked: {error.strerror}. No other process is in the way: the file system has no locks, "
            "which keep two processes from writing one run. Choose a folder on a local disk, for example with "
            "`--results`, or mount that file system with locks"
        ) from error
    return True

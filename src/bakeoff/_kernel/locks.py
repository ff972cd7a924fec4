"""Lock files between processes. Not every platform can: there, nothing that needs a lock is written."""

from types import SimpleNamespace
from typing import Any, NoReturn

from bakeoff.errors import RunFolderError


def _refuse(*_: object) -> NoReturn:
    raise RunFolderError(
        "runs cannot be kept on this platform: Python has no file locks here (the module `fcntl`); "
        "use Linux or macOS, or WSL on Windows"
    )


file_locks: Any
try:
    import fcntl as file_locks
except ImportError:
    file_locks = SimpleNamespace(LOCK_EX=0, LOCK_SH=0, LOCK_NB=0, flock=_refuse)


def require_locks() -> None:
    """Raise RunFolderError where files cannot be locked."""
    if isinstance(file_locks, SimpleNamespace):
        _refuse()

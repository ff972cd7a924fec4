"""Read untrusted files without blocking or running out of memory, and write files atomically.

An untrusted file may have any size, and may be a pipe without a writer or an endless device.
`read_file` and `open_file` refuse such files at once, with an OSError that explains why.

Files are locked against other processes. Without locks, files that need them are not written.
"""

import contextlib
import errno
import os
import stat
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, NoReturn

from bakeoff.errors import RunFolderError, UsageError

PRIVATE = 0o600  # transcripts may hold private data
PUBLIC = 0o644
"""The mode of files that a user asked for at a path of their choice: others may read them."""

MAX_FILE_SIZE = 64 << 20
"""The most bytes that are read from a file at once, unless the caller sets another limit."""


def open_file(path: Path, *, pipes: bool = False) -> BinaryIO:
    """Open a file for reading without ever waiting for it. Raise OSError if it is not a regular file.

    With `pipes`, also allow pipes and devices, for paths from the user, such as `<(command)`.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        require_file(descriptor, path, pipes=pipes)
        os.set_blocking(descriptor, True)  # the writer of a pipe may take its time
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def open_to_append(path: Path) -> int:
    """Open a file for reading and appending without ever waiting for it. Raise OSError if it is not a regular file.

    A link is refused, because the owner of the folder could make it point to any file.
    """
    how = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, how, PRIVATE)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link, which is not followed", str(path)) from error
        raise
    try:
        require_file(descriptor, path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def require_file(descriptor: int, path: Path, *, pipes: bool = False) -> None:
    """Raise OSError if an open descriptor is not a regular file or, with `pipes`, a pipe or device."""
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    if not stat.S_ISREG(mode) and not (pipes and (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode))):
        raise OSError(errno.EINVAL, "it is not a file", str(path))


def read_file(path: Path, limit: int = MAX_FILE_SIZE, *, pipes: bool = False) -> bytes:
    """Return the content of a file. Raise OSError if it is larger than the limit or not a regular file."""
    with open_file(path, pipes=pipes) as file:
        size = os.fstat(file.fileno()).st_size  # 0 for a pipe, whose size is not known yet
        content = b"" if size > limit else file.read(limit + 1)
    if size > limit or len(content) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {in_megabytes(limit)}, the most that is read", str(path))
    return content


@contextlib.contextmanager
def os_errors_explained(
    what: object, verb: str, *, hint: str = "", kind: Callable[[str], Exception] = RunFolderError
) -> Iterator[None]:
    """Turn an OSError inside the block into an error with a one-sentence message.

    Args:
        what: The subject of the sentence, such as the file.
        verb: The verb, such as `read` in `plan.json cannot be read: Permission denied`.
        hint: How to fix the problem, appended after a semicolon.
        kind: The class of the error, or a function that makes one.
    """
    try:
        yield
    except OSError as error:
        raise kind(f"{what} cannot be {verb}: {error.strerror or error}{hint and f'; {hint}'}") from error


def read_text(
    path: Path, limit: int = MAX_FILE_SIZE, *, pipes: bool = False, kind: Callable[[str], Exception] = UsageError
) -> str:
    """Return the text of a UTF-8 file. It may begin with a byte order mark.

    Args:
        path: The file.
        limit: The largest size in bytes.
        pipes: Allow pipes and devices too, for paths that the user gave.
        kind: The class of the error if the file is unreadable, too large or not UTF-8.
    """
    with os_errors_explained(path, "read", kind=kind):
        data = read_file(path, limit, pipes=pipes)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise kind(f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8") from error


def data_beside(module: str, name: str) -> Any:
    """Return the data of the TOML file with this name beside a module."""
    import tomllib  # imported here because few modules need it

    return tomllib.loads(Path(module).with_name(name).read_text("utf-8"))


def with_home(path: str | Path) -> Path:
    """Return a path with `~` replaced by the user's home. `~name` of an unknown user stays."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - `Path.expanduser` raises RuntimeError then


def in_megabytes(size: int) -> str:
    """Return a number of bytes as whole megabytes."""
    return f"{size >> 20:,} MB"


def is_stream(path: Path) -> bool:
    """Return True for a device or pipe such as /dev/null, which is written to, never replaced."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def write_atomically(path: Path, data: bytes, mode: int = PRIVATE) -> None:
    """Write a file atomically: write beside it, fsync, then rename over it."""
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
    """Sync a folder to the disk, so that the names in it survive a crash."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
    """Raise NoLocks if the platform cannot lock files."""
    if isinstance(file_locks, SimpleNamespace):
        _refuse()


def lock_file(descriptor: int, path: Path, *, shared: bool = False, wait: bool = False) -> bool:
    """Lock an open file; return False if another process holds a lock on it.

    Raise NoLocks if the file system has no locks, since other processes could then write too.
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


def pattern_problem(pattern: str) -> str:
    """Return why this path or glob cannot match files of a workspace; empty if it can."""
    return path_problem(pattern) or next(filter(None, map(name_problem, pattern.split("/"))), "")


def path_problem(path: str) -> str:
    """Return why a path is not inside the workspace; empty if it is."""
    if not path or path.startswith("/"):
        return "is not a relative path"
    if {"", ".", ".."} & set(path.split("/")):
        return "has an empty, '.' or '..' component"
    return "contains a NUL" if "\0" in path else ""


def name_problem(name: str) -> str:
    """Return why a file name is refused; empty if it is accepted."""
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        return "has a name that is not UTF-8"
    if any(unicodedata.category(character) in {"Cc", "Cf", "Co", "Cn", "Zl", "Zp"} for character in name):
        return "has a control or invisible character in its name"
    if unicodedata.normalize("NFC", name) != name:
        return "has a name that looks like another one (not in Unicode form NFC)"
    if "\\" in name or name != name.strip() or name.startswith("-"):
        return "has a name that starts with a dash, or has a backslash or outer white space"
    return "has a name longer than 255 bytes" if len(encoded) > 255 else ""


def folder_size(path: Path) -> int:
    """Return the total size of all files in a folder, in bytes. Links are not followed."""
    return sum((Path(folder) / name).lstat().st_size for folder, _, names in os.walk(path) for name in names)

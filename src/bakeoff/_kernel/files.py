"""Read files of others without waiting or running out of memory, and write files so that a crash leaves no part.

A file that somebody else made may be of any size, and may be no file at all: a pipe without a writer, a device that
never ends. `read_file` and `open_file` refuse these at once, with an OSError whose `strerror` fits into a sentence.
"""

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO

PRIVATE = 0o600  # transcripts may hold anything; reports for others are written with 0644


MAX_FILE_SIZE = 64 << 20
"""The most bytes that are read from a file at once, if the reader names no limit of its own."""


def open_file(path: Path, *, pipes: bool = False) -> BinaryIO:
    """Open a file for reading without ever waiting for it. Raise OSError if it is not a regular file.

    With `pipes`, pipes and devices can be read too: for paths that the user named, such as `<(command)`.
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
    """Open a file for reading and appending without ever waiting for it. Raise OSError if it is no regular file.

    A link is refused: who made the folder would choose what is appended to which file.
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
        size = os.fstat(file.fileno()).st_size  # 0 for a pipe, whose end shows how long it is
        content = b"" if size > limit else file.read(limit + 1)
    if size > limit or len(content) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {in_megabytes(limit)}, the most that is read", str(path))
    return content


def with_home(path: str | Path) -> Path:
    """Return a path with `~` replaced by the home of its user; `~` of a user who does not exist stays as it is."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - `Path.expanduser` raises RuntimeError then


def in_megabytes(size: int) -> str:
    """Return a number of bytes as whole megabytes."""
    return f"{size >> 20:,} MB"


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

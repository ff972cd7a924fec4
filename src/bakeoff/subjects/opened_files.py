"""Find out which files of a workspace an agent has opened, by the time at which each was last read.

The kernel keeps that time itself, so it does not matter what the agent says. File systems that are mounted with
`noatime` keep none; that is noticed, and nothing is claimed. An agent may have put links and pipes in place of the
files, so these are opened as untrusted ones.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bakeoff.sandbox.untrusted_files import open_below, open_folder

_LONG_AGO = 1  # seconds; older than any change, so that also `relatime` notes the next time a file is read


def mark_unread(folder: Path, names: Iterable[str]) -> bool:
    """Note that files have not been read yet. Return whether the file system will notice when they are."""
    marked = [name for name in names if _forget(folder, name)]
    noticed = any(_notices(folder, name) for name in marked)
    for name in marked:
        _forget(folder, name)
    return noticed


def files_read(folder: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Return the files that were read since. One that is no longer there is not among them."""
    return tuple(name for name in names if _is_read(folder, name))


@contextmanager
def _opened(folder: Path, name: str) -> Iterator[int]:
    with open_folder(folder) as root, open_below(root, name) as file:
        yield file


def _forget(folder: Path, name: str) -> bool:
    """Set the time of the last reading back. Return whether there is such a file."""
    with suppress(OSError), _opened(folder, name) as file:
        os.utime(file, ns=(_LONG_AGO * 10**9, os.fstat(file).st_mtime_ns))
        return True
    return False


def _notices(folder: Path, name: str) -> bool:
    with suppress(OSError), _opened(folder, name) as file:
        return bool(os.read(file, 1)) and os.fstat(file).st_atime > _LONG_AGO
    return False


def _is_read(folder: Path, name: str) -> bool:
    with suppress(OSError), _opened(folder, name) as file:
        return os.fstat(file).st_atime > _LONG_AGO
    return False

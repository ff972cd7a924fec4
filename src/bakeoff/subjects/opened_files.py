"""Find out which files of a workspace an agent has opened, by the time at which each was last read.

The kernel keeps that time itself, so it does not matter what the agent says. File systems that are mounted with
`noatime` keep none; that is noticed, and nothing is claimed.
"""

import os
from collections.abc import Iterable
from pathlib import Path

_LONG_AGO = 1  # older than any change, so that also `relatime` notes the next time a file is read


def mark_unread(folder: Path, names: Iterable[str]) -> bool:
    """Note that files have not been read yet. Return whether the file system will notice when they are."""
    paths = [folder / name for name in names]
    for path in paths:
        _forget(path)
    if not paths or not paths[0].read_bytes() or _is_read(paths[0]) is not True:
        return False
    _forget(paths[0])
    return True


def files_read(folder: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Return the files that were read since. One that is no longer there is not among them."""
    return tuple(name for name in names if _is_read(folder / name))


def _forget(path: Path) -> None:
    os.utime(path, (_LONG_AGO, path.stat().st_mtime))


def _is_read(path: Path) -> bool | None:
    try:
        return path.lstat().st_atime > _LONG_AGO
    except OSError:  # the agent removed it, or replaced a folder on the way
        return None

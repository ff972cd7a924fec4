"""Read the commit of a checkout without running git in untrusted folders."""

import os
import re
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MAX_BYTES = 4 * 1024 * 1024
_MAX_LINKS = 5  # how many references in a row are followed


def commit_of(folder: Path) -> str | None:
    """Return the commit that a folder, or a parent folder, has checked out; None if unknown."""
    above = (folder.absolute(), *folder.absolute().parents)
    place = next((each / ".git" for each in above if os.path.lexists(each / ".git")), None)
    if place is None:
        return None
    if (text := _read(place)) is not None:  # `.git` of a worktree or submodule names the real folder
        place = place.parent / text.removeprefix("gitdir:").strip()
    common = _read(place / "commondir")
    folders = (place, place / common) if common else (place,)
    wanted = _read(place / "HEAD")
    for _ in range(_MAX_LINKS):
        if wanted is None or _COMMIT.fullmatch(wanted):
            return wanted
        name = wanted.removeprefix("ref:").strip()
        if not name.startswith("refs/") or ".." in name:
            return None
        packed = (line for each in folders for line in (_read(each / "packed-refs") or "").splitlines())
        hashes = (line.split()[0] for line in packed if line.endswith(f" {name}"))
        wanted = next(filter(None, (_read(each / name) for each in folders)), None) or next(hashes, None)
    return None


def _read(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return None
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None

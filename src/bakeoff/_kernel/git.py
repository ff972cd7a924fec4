"""Read which commit a checkout is at, without running git on folders that are not trusted."""

import re
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MAX_BYTES = 4 * 1024 * 1024
_MAX_LINKS = 5  # from one reference to another


def commit_of(folder: Path) -> str | None:
    """Return the commit that a folder, or a folder above it, is checked out at; None where that cannot be told."""
    found = next((above / ".git" for above in (folder.absolute(), *folder.absolute().parents) if _exists(above)), None)
    return _head(found) if found is not None else None


def _exists(folder: Path) -> bool:
    try:
        return (folder / ".git").exists()
    except OSError:
        return False


def _head(place: Path) -> str | None:
    if (text := _read(place)) is not None:  # of a worktree or a submodule: a file that names the real folder
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
        wanted = next(filter(None, (_reference(folder, name) for folder in folders)), None)
    return None


def _reference(folder: Path, name: str) -> str | None:
    if (text := _read(folder / name)) is not None:
        return text
    lines = (_read(folder / "packed-refs") or "").splitlines()
    return next((line.split()[0] for line in lines if line.endswith(f" {name}")), None)


def _read(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return None
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None

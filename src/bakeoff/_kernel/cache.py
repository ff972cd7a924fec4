"""Locate the cache for files that can be downloaded or built again: model weights, price lists, toolchains."""

import os
import shutil
from pathlib import Path


def cache_folder() -> Path:
    """Return BAKEOFF_CACHE, or `bakeoff` in the user's cache folder. The folder may not exist yet."""
    chosen = os.environ.get("BAKEOFF_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification says that relative paths are ignored.
    return (base if base.is_absolute() else Path.home() / ".cache") / "bakeoff"


def folder_size(path: Path) -> tuple[int, int]:
    """Return the bytes and the number of files below a folder. Links are not followed."""
    files = [Path(folder) / name for folder, _, names in os.walk(path) for name in names]
    return sum(file.lstat().st_size for file in files), len(files)


def delete_folder(path: Path) -> None:
    """Delete a folder of the cache, also where its files are write-protected. Of a link, only the link is deleted."""
    if path.is_symlink():
        path.unlink()  # what it leads to is not ours
        return
    for folder, _, _ in os.walk(path):
        Path(folder).chmod(0o700)  # some package managers write-protect what they unpack
    shutil.rmtree(path)

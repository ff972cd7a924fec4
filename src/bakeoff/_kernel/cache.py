"""Locate the cache for files that can be downloaded or built again: model weights, price lists, toolchains."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return BAKEOFF_CACHE, or `bakeoff` in the user's cache folder. The folder may not exist yet."""
    chosen = os.environ.get("BAKEOFF_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification says that relative paths are ignored.
    return (base if base.is_absolute() else Path.home() / ".cache") / "bakeoff"

"""Where things are kept that can be had again: model weights, price lists, toolchains."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """BAKEOFF_CACHE, or `bakeoff` in the user's cache folder. It need not exist yet."""
    chosen = os.environ.get("BAKEOFF_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification has relative paths ignored.
    return (base if base.is_absolute() else Path.home() / ".cache") / "bakeoff"

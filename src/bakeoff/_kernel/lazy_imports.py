"""Import the names of a package when they are first used, so that importing the package is cheap."""

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bakeoff._kernel.garbage import collection_paused


def lazy_imports(
    package: str, homes: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package. `homes` maps each module to its names."""
    home_of = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with collection_paused():
            return getattr(importlib.import_module(home_of[name]), name)

    def names() -> list[str]:
        listed: list[str] = sys.modules[package].__all__
        return listed

    return get, names

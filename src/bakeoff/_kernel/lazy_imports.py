"""Import the names of a package when they are first used, so that importing the package is cheap."""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from bakeoff._kernel.garbage import collection_paused


def lazy_imports(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package. `homes` maps each name to its module."""

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with collection_paused():
            return getattr(importlib.import_module(homes[name]), name)

    def names() -> list[str]:
        listed: list[str] = sys.modules[package].__all__
        return listed

    return get, names

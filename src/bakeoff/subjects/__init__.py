"""The subjects that ship with the core."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bakeoff.subjects.cheat import Cheat
    from bakeoff.subjects.function import Function, function_subject
    from bakeoff.subjects.nop import Nop
    from bakeoff.subjects.oracle import Oracle
    from bakeoff.subjects.scripted import Scripted

_HOMES = {
    "cheat": ("Cheat",),
    "function": ("Function", "function_subject"),
    "nop": ("Nop",),
    "oracle": ("Oracle",),
    "scripted": ("Scripted",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["Cheat", "Function", "Nop", "Oracle", "Scripted", "function_subject"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'bakeoff.subjects' has no attribute {name!r}")
    return getattr(importlib.import_module(f"bakeoff.subjects.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__

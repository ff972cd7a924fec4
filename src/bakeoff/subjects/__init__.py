"""The subjects that ship with the core."""

from typing import TYPE_CHECKING

from bakeoff._kernel.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from bakeoff.subjects.cheat import Cheat
    from bakeoff.subjects.function import Function, function_subject
    from bakeoff.subjects.nop import Nop
    from bakeoff.subjects.oracle import Oracle
    from bakeoff.subjects.scripted import Scripted

_HOMES = {
    "bakeoff.subjects.cheat": ("Cheat",),
    "bakeoff.subjects.function": ("Function", "function_subject"),
    "bakeoff.subjects.nop": ("Nop",),
    "bakeoff.subjects.oracle": ("Oracle",),
    "bakeoff.subjects.scripted": ("Scripted",),
}

__all__ = ["Cheat", "Function", "Nop", "Oracle", "Scripted", "function_subject"]

__getattr__, __dir__ = lazy_imports(__name__, _HOMES)

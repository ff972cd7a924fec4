"""The built-in subjects."""

from typing import TYPE_CHECKING

from bakeoff._kernel.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from bakeoff.subjects.controls import Cheat, Nop, Oracle
    from bakeoff.subjects.function import Function, function_subject
    from bakeoff.subjects.scripted import Scripted

_HOMES = {
    "bakeoff.subjects.controls": ("Cheat", "Nop", "Oracle"),
    "bakeoff.subjects.function": ("Function", "function_subject"),
    "bakeoff.subjects.scripted": ("Scripted",),
}

__all__ = ["Cheat", "Function", "Nop", "Oracle", "Scripted", "function_subject"]

__getattr__, __dir__ = lazy_imports(__name__, _HOMES)

"""The subjects that ship with the core."""

from bakeoff.subjects.cheat import Cheat
from bakeoff.subjects.function import Function, function_subject
from bakeoff.subjects.nop import Nop
from bakeoff.subjects.oracle import Oracle
from bakeoff.subjects.scripted import Scripted

__all__ = ["Cheat", "Function", "Nop", "Oracle", "Scripted", "function_subject"]

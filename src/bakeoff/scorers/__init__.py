"""The built-in scorers. A scorer is any callable over a `ScoreInput`; three lines are enough.

Each is imported when it is first used, and its dependencies when it is first called.
"""

from typing import TYPE_CHECKING

from bakeoff._kernel.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from bakeoff.scorers.command import Command
    from bakeoff.scorers.function import Function, function_scorer
    from bakeoff.scorers.json_match import JsonMatch, StructuredOutput
    from bakeoff.scorers.judge import Factuality, Judge
    from bakeoff.scorers.measures import Cost, Latency
    from bakeoff.scorers.semantic import Semantic
    from bakeoff.scorers.text import Contains, Exact, Regex
    from bakeoff.scorers.tool_calls import ToolCalls
    from bakeoff.scorers.values import Fuzzy

_HOMES = {
    "bakeoff.scorers.command": ("Command",),
    "bakeoff.scorers.function": ("Function", "function_scorer"),
    "bakeoff.scorers.json_match": ("JsonMatch", "StructuredOutput"),
    "bakeoff.scorers.judge": ("Factuality", "Judge"),
    "bakeoff.scorers.measures": ("Cost", "Latency"),
    "bakeoff.scorers.semantic": ("Semantic",),
    "bakeoff.scorers.text": ("Contains", "Exact", "Regex"),
    "bakeoff.scorers.tool_calls": ("ToolCalls",),
    "bakeoff.scorers.values": ("Fuzzy",),
}

__all__ = [
    "Command",
    "Contains",
    "Cost",
    "Exact",
    "Factuality",
    "Function",
    "Fuzzy",
    "JsonMatch",
    "Judge",
    "Latency",
    "Regex",
    "Semantic",
    "StructuredOutput",
    "ToolCalls",
    "function_scorer",
]

__getattr__, __dir__ = lazy_imports(__name__, _HOMES)

"""The scorers that ship. A scorer is any callable over a `ScoreInput`; three lines are enough.

Each is imported when it is first used, and what it needs when it is first called.
"""

import importlib
from typing import TYPE_CHECKING, Any

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
    "command": ("Command",),
    "function": ("Function", "function_scorer"),
    "json_match": ("JsonMatch", "StructuredOutput"),
    "judge": ("Factuality", "Judge"),
    "measures": ("Cost", "Latency"),
    "semantic": ("Semantic",),
    "text": ("Contains", "Exact", "Regex"),
    "tool_calls": ("ToolCalls",),
    "values": ("Fuzzy",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

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


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'bakeoff.scorers' has no attribute {name!r}")
    return getattr(importlib.import_module(f"bakeoff.scorers.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__

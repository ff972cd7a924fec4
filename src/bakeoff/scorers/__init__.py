"""The scorers that ship with the core. A scorer is any callable over a `ScoreInput`; three lines are enough."""

from bakeoff.scorers.command import Command
from bakeoff.scorers.function import Function, function_scorer
from bakeoff.scorers.json_match import JsonMatch
from bakeoff.scorers.text import Contains, Exact, Regex

__all__ = ["Command", "Contains", "Exact", "Function", "JsonMatch", "Regex", "function_scorer"]

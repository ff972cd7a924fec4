"""The built-in scorers. A scorer is any callable over a `ScoreInput`; three lines are enough.

Each is imported when it is first used, and its dependencies when it is first called.
"""

from typing import TYPE_CHECKING

from bakeoff._kernel.imports import lazy_imports

if TYPE_CHECKING:
    from bakeoff.scorers.asking import ask_judge
    from bakeoff.scorers.checks import Check, Checks
    from bakeoff.scorers.command import Command
    from bakeoff.scorers.conversations import ConversationCompleteness, KnowledgeRetention, RoleAdherence
    from bakeoff.scorers.function import Function, function_scorer
    from bakeoff.scorers.json_match import JsonMatch, StructuredOutput
    from bakeoff.scorers.judge import Factuality, Judge, Refusal
    from bakeoff.scorers.measures import Cost, Latency
    from bakeoff.scorers.preference import Preference, select_best
    from bakeoff.scorers.rag import AnswerRelevance, ContextPrecision, ContextRecall, Faithfulness
    from bakeoff.scorers.rubric import Criterion, Rubric
    from bakeoff.scorers.semantic import Semantic
    from bakeoff.scorers.spans import Span, Spans, spans_of
    from bakeoff.scorers.text import Contains, Exact, Regex
    from bakeoff.scorers.tool_calls import ToolCalls
    from bakeoff.scorers.trajectory import Trajectory
    from bakeoff.scorers.values import Fuzzy

_HOMES = {
    "bakeoff.scorers.asking": ("ask_judge",),
    "bakeoff.scorers.checks": ("Check", "Checks"),
    "bakeoff.scorers.command": ("Command",),
    "bakeoff.scorers.conversations": ("ConversationCompleteness", "KnowledgeRetention", "RoleAdherence"),
    "bakeoff.scorers.function": ("Function", "function_scorer"),
    "bakeoff.scorers.json_match": ("JsonMatch", "StructuredOutput"),
    "bakeoff.scorers.judge": ("Factuality", "Judge", "Refusal"),
    "bakeoff.scorers.measures": ("Cost", "Latency"),
    "bakeoff.scorers.preference": ("Preference", "select_best"),
    "bakeoff.scorers.rag": ("AnswerRelevance", "ContextPrecision", "ContextRecall", "Faithfulness"),
    "bakeoff.scorers.rubric": ("Criterion", "Rubric"),
    "bakeoff.scorers.semantic": ("Semantic",),
    "bakeoff.scorers.spans": ("Span", "Spans", "spans_of"),
    "bakeoff.scorers.text": ("Contains", "Exact", "Regex"),
    "bakeoff.scorers.tool_calls": ("ToolCalls",),
    "bakeoff.scorers.trajectory": ("Trajectory",),
    "bakeoff.scorers.values": ("Fuzzy",),
}

__all__ = [
    "AnswerRelevance",
    "Check",
    "Checks",
    "Command",
    "Contains",
    "ContextPrecision",
    "ContextRecall",
    "ConversationCompleteness",
    "Cost",
    "Criterion",
    "Exact",
    "Factuality",
    "Faithfulness",
    "Function",
    "Fuzzy",
    "JsonMatch",
    "Judge",
    "KnowledgeRetention",
    "Latency",
    "Preference",
    "Refusal",
    "Regex",
    "RoleAdherence",
    "Rubric",
    "Semantic",
    "Span",
    "Spans",
    "StructuredOutput",
    "ToolCalls",
    "Trajectory",
    "ask_judge",
    "function_scorer",
    "select_best",
    "spans_of",
]

__getattr__, __dir__ = lazy_imports(__name__, _HOMES)

"""Bakeoff: which model, coding agent, MCP server or prompt is better, by how much, at what cost, and how sure are we?

`__all__` is the public API. Each name is imported on first use, so that `import bakeoff` stays fast.
"""

from typing import TYPE_CHECKING

from bakeoff._kernel.imports import lazy_imports
from bakeoff._version import __version__

if TYPE_CHECKING:
    from bakeoff.doors.mcp.api import evaluate_mcp, evaluate_mcp_async
    from bakeoff.doors.pytest.in_tests import EvalRun, RunEval, ToEval, log_input, log_output, log_score
    from bakeoff.doors.pytest.rows import EvalCase
    from bakeoff.doors.pytest.suite import describe_eval, eval_suite
    from bakeoff.engine.registry import Registry, default_registry
    from bakeoff.engine.run import run
    from bakeoff.engine.run_control import RunControl
    from bakeoff.errors import BakeoffError, GraderError, InfraError, PlanError, SubjectError, UsageError
    from bakeoff.models.providers import register_provider
    from bakeoff.options import RunOptions
    from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec, UntilDecided
    from bakeoff.protocols import Needs, Resource, ScoreInput, Scorer, Subject, Task, Tool
    from bakeoff.record import Record, Score, Step, ToolCall, Transcript, Usage
    from bakeoff.replay.tools import replayable
    from bakeoff.report.suites.outcomes import EvalOutcome
    from bakeoff.report.summary import Summary, summarise
    from bakeoff.scorers import function_scorer
    from bakeoff.sdk_results.plain_data import TaskResult
    from bakeoff.storage.run_folder import RunFolder, find_run, new_run_folder
    from bakeoff.subjects.function import function_subject
    from bakeoff.verdict import Verdict

_HOMES = {
    "bakeoff.engine.registry": ("Registry", "default_registry"),
    "bakeoff.engine.run_control": ("RunControl",),
    "bakeoff.doors.mcp.api": ("evaluate_mcp", "evaluate_mcp_async"),
    "bakeoff.doors.pytest.in_tests": ("EvalRun", "RunEval", "ToEval", "log_input", "log_output", "log_score"),
    "bakeoff.doors.pytest.rows": ("EvalCase",),
    "bakeoff.doors.pytest.suite": ("describe_eval", "eval_suite"),
    "bakeoff.engine.run": ("run",),
    "bakeoff.errors": ("BakeoffError", "GraderError", "InfraError", "PlanError", "SubjectError", "UsageError"),
    "bakeoff.models.providers": ("register_provider",),
    "bakeoff.options": ("RunOptions",),
    "bakeoff.plan": ("Case", "Limits", "Plan", "ScorerSpec", "SubjectSpec", "UntilDecided"),
    "bakeoff.protocols": ("Needs", "Resource", "ScoreInput", "Scorer", "Subject", "Task", "Tool"),
    "bakeoff.record": ("Record", "Score", "Step", "ToolCall", "Transcript", "Usage"),
    "bakeoff.report.suites.outcomes": ("EvalOutcome",),
    "bakeoff.report.summary": ("Summary", "summarise"),
    "bakeoff.storage.run_folder": ("RunFolder", "find_run", "new_run_folder"),
    "bakeoff.scorers": ("function_scorer",),
    "bakeoff.subjects.function": ("function_subject",),
    "bakeoff.sdk_results.plain_data": ("TaskResult",),
    "bakeoff.replay.tools": ("replayable",),
    "bakeoff.verdict": ("Verdict",),
}

__all__ = [
    "BakeoffError",
    "Case",
    "EvalCase",
    "EvalOutcome",
    "EvalRun",
    "GraderError",
    "InfraError",
    "Limits",
    "Needs",
    "Plan",
    "PlanError",
    "Record",
    "Registry",
    "Resource",
    "RunControl",
    "RunEval",
    "RunFolder",
    "RunOptions",
    "Score",
    "ScoreInput",
    "Scorer",
    "ScorerSpec",
    "Step",
    "Subject",
    "SubjectError",
    "SubjectSpec",
    "Summary",
    "Task",
    "TaskResult",
    "ToEval",
    "Tool",
    "ToolCall",
    "Transcript",
    "UntilDecided",
    "Usage",
    "UsageError",
    "Verdict",
    "__version__",
    "default_registry",
    "describe_eval",
    "eval_suite",
    "evaluate_mcp",
    "evaluate_mcp_async",
    "find_run",
    "function_scorer",
    "function_subject",
    "log_input",
    "log_output",
    "log_score",
    "new_run_folder",
    "register_provider",
    "replayable",
    "run",
    "summarise",
]

__getattr__, __dir__ = lazy_imports(__name__, {name: module for module, names in _HOMES.items() for name in names})

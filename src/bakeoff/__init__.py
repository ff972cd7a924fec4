"""Bakeoff: which model, coding agent, MCP server or prompt is better, by how much, at what cost, and how sure are we?

What is listed here is the public API, with `bakeoff.run.run` beside it: a package cannot have a module and a function
of one name. Names are imported when first used, so that `import bakeoff` costs nothing.
"""

from typing import TYPE_CHECKING

from bakeoff._version import __version__
from bakeoff.lazy_names import lazy_names

if TYPE_CHECKING:
    from bakeoff.catalogue import Catalogue, default_catalogue
    from bakeoff.control import RunControl
    from bakeoff.doors.mcp_suite.api import evaluate_mcp
    from bakeoff.doors.pytest_plugin.suite import describe_eval, eval_suite
    from bakeoff.errors import BakeoffError, GraderError, InfraError, PlanError, SubjectError, UsageError
    from bakeoff.limits import Limits
    from bakeoff.models.providers import register_provider
    from bakeoff.options import RunOptions
    from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
    from bakeoff.protocols import Needs, Resource, ScoreInput, Scorer, Subject, Task, Tool
    from bakeoff.record import Record, Score, Step, ToolCall, Transcript, Usage, Verdict
    from bakeoff.report import Summary, summarise
    from bakeoff.rundir import RunFolder, find_run, new_run_folder
    from bakeoff.scorers import function_scorer
    from bakeoff.subjects import function_subject
    from bakeoff.task_result import TaskResult
    from bakeoff.tools_on_tape import replayable

_HOMES = {
    "bakeoff.catalogue": ("Catalogue", "default_catalogue"),
    "bakeoff.control": ("RunControl",),
    "bakeoff.doors.mcp_suite.api": ("evaluate_mcp",),
    "bakeoff.doors.pytest_plugin.suite": ("describe_eval", "eval_suite"),
    "bakeoff.errors": ("BakeoffError", "GraderError", "InfraError", "PlanError", "SubjectError", "UsageError"),
    "bakeoff.limits": ("Limits",),
    "bakeoff.models.providers": ("register_provider",),
    "bakeoff.options": ("RunOptions",),
    "bakeoff.plan": ("Case", "Plan", "ScorerSpec", "SubjectSpec"),
    "bakeoff.protocols": ("Needs", "Resource", "ScoreInput", "Scorer", "Subject", "Task", "Tool"),
    "bakeoff.record": ("Record", "Score", "Step", "ToolCall", "Transcript", "Usage", "Verdict"),
    "bakeoff.report": ("Summary", "summarise"),
    "bakeoff.rundir": ("RunFolder", "find_run", "new_run_folder"),
    "bakeoff.scorers": ("function_scorer",),
    "bakeoff.subjects": ("function_subject",),
    "bakeoff.task_result": ("TaskResult",),
    "bakeoff.tools_on_tape": ("replayable",),
}

__all__ = [
    "BakeoffError",
    "Case",
    "Catalogue",
    "GraderError",
    "InfraError",
    "Limits",
    "Needs",
    "Plan",
    "PlanError",
    "Record",
    "Resource",
    "RunControl",
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
    "Tool",
    "ToolCall",
    "Transcript",
    "Usage",
    "UsageError",
    "Verdict",
    "__version__",
    "default_catalogue",
    "describe_eval",
    "eval_suite",
    "evaluate_mcp",
    "find_run",
    "function_scorer",
    "function_subject",
    "new_run_folder",
    "register_provider",
    "replayable",
    "summarise",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)

"""The built-in scorers. A scorer is any callable over a `ScoreInput`; three lines are enough.

Each is imported when it is first used, and its dependencies when it is first called. The scorers are found by their
`@scorer` decorators: the imports below only tell type checkers about them.
"""

from typing import TYPE_CHECKING

from bakeoff._kernel.imports import lazy_imports
from bakeoff.scorers.registry import scorer_kinds

if TYPE_CHECKING:
    from bakeoff.scorers.adapters import *  # noqa: F403
    from bakeoff.scorers.checks import *  # noqa: F403
    from bakeoff.scorers.code import *  # noqa: F403
    from bakeoff.scorers.command import *  # noqa: F403
    from bakeoff.scorers.judge import *  # noqa: F403
    from bakeoff.scorers.mcp.scorer import *  # noqa: F403
    from bakeoff.scorers.measures import *  # noqa: F403
    from bakeoff.scorers.model_judge import *  # noqa: F403
    from bakeoff.scorers.questions import *  # noqa: F403
    from bakeoff.scorers.semantic import *  # noqa: F403
    from bakeoff.scorers.text import *  # noqa: F403
    from bakeoff.scorers.tool_calls import *  # noqa: F403
    from bakeoff.scorers.values import *  # noqa: F403

_HELPERS = {
    "ask_judge": "judge",
    "Check": "checks",
    "Criterion": "questions",
    "function_scorer": "adapters",
    "Fuzzy": "values",
    "select_best": "judge",
    "Span": "measures",
    "spans_of": "measures",
    "Turn": "model_judge",
    "turns_of": "model_judge",
}
_HOMES = {each.name: each.module for each in scorer_kinds().values()}
_HOMES |= {name: f"{__name__}.{module}" for name, module in _HELPERS.items()}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_imports(__name__, _HOMES)

"""Choose the sandbox of a run."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from bakeoff.options import RunOptions
from bakeoff.plan import HIDDEN, Plan
from bakeoff.protocols import Sandbox
from bakeoff.sandbox import choose_sandbox


def sandbox_of(options: RunOptions, plan: Plan | None = None) -> Callable[[], Sandbox]:
    """Return a function that chooses the sandbox, once. One that is asked for by name must be there at once.

    Args:
        options: name the sandbox, and the folders of results, which commands must not see.
        plan: names further folders to hide.
    """
    named = plan.settings.get(HIDDEN) if plan else None
    more = [Path(path) for path in named if isinstance(path, str)] if isinstance(named, list) else []
    hidden = tuple(path.resolve() for path in (options.results, options.folder, *more) if path)
    choose = cache(lambda: choose_sandbox(options.sandbox, hidden=hidden))
    if options.sandbox != "auto":
        choose()
    return choose

"""Asking instead of being told: which job, and for a run which models, servers and tools.

Nothing here asks where nobody could answer. What the questions need is imported when they are asked, so that a command
line that asks nothing does not wait for it.
"""

import os
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bakeoff.doors.components.request import ComponentsRequest

ShowPlan = Callable[["ComponentsRequest"], None]


@dataclass(frozen=True, slots=True)
class Answers:
    """What is to be run, and how many trials at a time."""

    request: "ComponentsRequest"
    jobs: int


def can_ask() -> bool:
    """Whether someone is there: a terminal to ask at, a terminal to answer at, and no CI around it."""
    # A program that was started without them has None in their place, whatever their types say.
    terminals = all(stream and stream.isatty() for stream in (sys.stdin, sys.stdout))
    return terminals and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"


def choose_job(results: Path = Path("results")) -> list[str] | None:
    """The words after `bakeoff` for the job that was chosen; None if the person left."""
    try:
        from bakeoff.cli.wizard_jobs import ask_job

        return ask_job(results)
    except KeyboardInterrupt:
        _say_goodbye()
        return None


def ask_for_run(
    defaults: "ComponentsRequest", show_plan: ShowPlan, *, jobs: int = 8, given: Collection[str] = ()
) -> Answers | None:
    """Ask what a run needs to know; None if the person left.

    `given` names what the command line has said (fields of the request, or `jobs`): that is not asked again.
    `show_plan` shows what would be run, and may raise what makes it impossible.
    """
    try:
        from bakeoff.cli.wizard_run import ask_run

        answers = ask_run(defaults, show_plan, jobs, given)
    except KeyboardInterrupt:
        answers = None
    if answers is None:
        _say_goodbye()
    return answers


def _say_goodbye() -> None:
    from bakeoff.cli.console import err

    err().print("left; nothing was run")

"""The front doors. Each turns one kind of input into a plan, and records into the files its users know.

A plan names the door that made it, so that a run which is taken up again, rescored or shown is treated as it was at
first. Doors never import each other, and nothing below imports them.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bakeoff.errors import UsageError

if TYPE_CHECKING:  # the pytest plugin is one of the doors, and every pytest run loads it
    from bakeoff.engine.registry import Registry
    from bakeoff.options import RunOptions
    from bakeoff.plan import Plan
    from bakeoff.report.html.gather import RunData
    from bakeoff.report.sections import Section
    from bakeoff.storage.run_folder import RunFolder

_DOORS = {
    "components": "bakeoff.doors.components.door:ComponentsDoor",
    "exercises": "bakeoff.doors.exercises.door:ExercisesDoor",
    "mcp": "bakeoff.doors.mcp_suite.door:McpDoor",
    "pytest": "bakeoff.doors.pytest_plugin.door:PytestDoor",
}


Ruling = Literal["passed", "failed", "undecided"]


class Door:
    """What the commands that serve all doors ask one for. These answers are those for a plan that no door made."""

    pages = False
    """Whether its users expect a run's page and the index to be there at the end, without asking for them."""

    def registry(self, plan: "Plan", options: "RunOptions") -> "Registry":  # noqa: ARG002 - for doors to use
        """The subjects, scorers and tools of its plans."""
        from bakeoff.engine.registry import default_registry

        return default_registry()

    def options(self, plan: "Plan", options: "RunOptions") -> "RunOptions":  # noqa: ARG002
        """How a run that is taken up again is carried out, where its plan has something to say about that."""
        return options

    def sections(self, run: "RunData") -> Sequence["Section"]:  # noqa: ARG002
        """What its run pages show besides what every run page shows."""
        return ()

    def ruling(self, folder: "RunFolder", plan: "Plan") -> Ruling | None:  # noqa: ARG002
        """Whether a run as a whole passed, where its door has a rule of its own; None: no trial may fail."""
        return None

    def share(self, plan: "Plan") -> float:  # noqa: ARG002
        """Of a case's rounds, how many have to pass for the case to pass, where files have a place for that."""
        return 1.0

    def export(self, folder: "RunFolder", plan: "Plan", options: "RunOptions") -> Iterator[Path]:  # noqa: ARG002
        """Write the door's own files, computed from the run's records; gives each path once it is there."""
        yield from ()


def door_of(plan: "Plan") -> Door:
    """The door that made a plan."""
    if plan.door is None:
        return Door()
    if plan.door not in _DOORS:
        raise UsageError(
            f"plan {plan.name!r} was made by {plan.door!r}, which this version does not know: "
            f"it knows {', '.join(_DOORS)}; update bakeoff"
        )
    module, _, name = _DOORS[plan.door].partition(":")
    made: Callable[[], Door] = getattr(import_module(module), name)
    return made()


def sections_of(run: "RunData") -> Sequence["Section"]:
    """For the pages of runs, whichever door they are of."""
    return door_of(run.plan).sections(run)

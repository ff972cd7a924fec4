"""The doors. Each turns one kind of input into a plan, and the records of a run into result files.

A plan names the door that made it, so that a run is resumed, rescored and shown by the same door. Doors never import
each other.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bakeoff.errors import UsageError

if TYPE_CHECKING:  # every pytest run loads this module, so it imports nothing heavy
    from bakeoff._kernel.model import FrozenModel
    from bakeoff.engine.registry import Registry
    from bakeoff.options import RunOptions
    from bakeoff.plan import Plan
    from bakeoff.record import Record
    from bakeoff.report.blocks import Blocks, DoorParts
    from bakeoff.report.gates import GateEvidence
    from bakeoff.report.render.html.run_data import RunData
    from bakeoff.report.summary import Summary
    from bakeoff.storage.run_folder import RunFolder

_DOORS = {
    "components": "bakeoff.doors.components.door:ComponentsDoor",
    "eval": "bakeoff.doors.eval.door:EvalDoor",
    "agents": "bakeoff.doors.agents.door:AgentsDoor",
    "imported": "bakeoff.doors.imported:ImportedDoor",
    "mcp": "bakeoff.doors.mcp.door:McpDoor",
    "pytest": "bakeoff.doors.pytest.door:PytestDoor",
}


class FinishedRun(NamedTuple):
    """A run that has ended, with everything that its results are computed from."""

    folder: "RunFolder"
    plan: "Plan"
    options: "RunOptions"
    summary: "Summary"

    def records(self) -> "Iterator[Record]":
        """Yield the record that counts for each trial."""
        return self.folder.latest_records(self.plan)


@dataclass(frozen=True, slots=True)
class DoorResults:
    """The files, tables and gate evidence that a door derives from a finished run."""

    files: tuple[Path, ...] = ()
    evidence: "GateEvidence | None" = None  # by a rule of the door; None: the run passes if no trial fails
    text: "Blocks | None" = None  # printed instead of the usual summary
    more: "Blocks" = ()  # printed after it
    report: "FrozenModel | None" = None  # printed by --json instead of the usual summary


class Door:
    """The interface through which commands use a door. This class serves plans made in Python."""

    pages = False
    """If true, each run writes its page and the index at its end."""

    def registry(self, plan: "Plan", options: "RunOptions") -> "Registry":  # noqa: ARG002 - for doors to use
        """Return the subjects, scorers and tools that plans of this door can name."""
        from bakeoff.engine.registry import default_registry

        return default_registry()

    def named_registry(self, plan: "Plan", options: "RunOptions") -> "Registry":
        """Return the registry with a name, by which other processes build the same registry."""
        return self.registry(plan, options).built_by(f"{__name__}:registry_of")

    def options(self, plan: "Plan", options: "RunOptions") -> "RunOptions":  # noqa: ARG002
        """Return the options of a run, with the changes that the plan requires."""
        return options

    def page_parts(self, run: "RunData") -> "DoorParts":  # noqa: ARG002
        """Return the sections that this door adds to the page of a run."""
        from bakeoff.report.blocks import DoorParts

        return DoorParts()

    def places(self, plan: "Plan") -> Mapping[str, tuple[str, int]]:  # noqa: ARG002
        """Return the files and lines of cases by name, for cases whose place is known."""
        return {}

    def line_of(self, record: "Record") -> str | None:  # noqa: ARG002
        """Return the line that the terminal shows for a finished trial, or None for no line."""
        return None

    def illustrate(self, run: FinishedRun, say: Callable[[str], None]) -> None:
        """Add files for pages, such as pictures, to the run folder. Print problems as notes."""

    def finish(self, run: FinishedRun) -> DoorResults:  # noqa: ARG002
        """Write the door's own files, and judge the run if the door has its own rule."""
        return DoorResults()


def door_of(plan: "Plan") -> Door:
    """Return the door that made a plan; a plan made in Python has the plain `Door`.

    Raises `UsageError` for a plan of a door that this version does not know.
    """
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


def registry_of(plan: "Plan", options: "RunOptions") -> "Registry":
    """Return the subjects, scorers and tools that a plan can name, for a process that has only the plan."""
    return door_of(plan).registry(plan, options)


def parts_of(run: "RunData") -> "DoorParts":
    """Return the sections that the door of a run adds to its page."""
    return door_of(run.plan).page_parts(run)

"""The door of runs imported from logs of other tools, which are shown and compared, but never run again."""

from typing import TYPE_CHECKING, NoReturn

from bakeoff._kernel.text import visible
from bakeoff.doors import Door
from bakeoff.errors import UsageError
from bakeoff.logs.reader import plan_source

if TYPE_CHECKING:
    from bakeoff.options import RunOptions
    from bakeoff.plan import Plan
    from bakeoff.report.blocks import DoorParts
    from bakeoff.report.render.html.run_data import RunData


class ImportedDoor(Door):
    """The door that shows where a run was imported from, and refuses to run it again."""

    def registry(self, plan: "Plan", options: "RunOptions") -> NoReturn:  # noqa: ARG002 - the signature of a door
        raise UsageError(
            f"plan {plan.name!r} was imported from a log of {plan_source(plan).tool}: only that tool can run it again; "
            "import its new log then"
        )

    def page_parts(self, run: "RunData") -> "DoorParts":
        """Return a section with the source of the run."""
        from bakeoff.report.blocks import DoorParts, Facts, Section

        source = plan_source(run.plan)
        pairs = [
            ("Tool", visible(source.words)),
            ("Format", visible(source.format)),
            ("Log", visible(source.file)),
            *([("SHA-256", visible(source.sha256))] if source.sha256 else []),
        ]
        return DoorParts(after=(Section("imported", "Imported from", (Facts(tuple(pairs)),)),), answers=True)

"""Connect `bakeoff eval` to the commands that serve all doors."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from bakeoff.doors import Door, DoorResults, FinishedRun
from bakeoff.doors.eval.plan import settings_of
from bakeoff.engine.registry import Registry, default_registry
from bakeoff.options import RunOptions
from bakeoff.plan import Plan

if TYPE_CHECKING:
    from bakeoff.plan import SubjectSpec
    from bakeoff.protocols import Subject
    from bakeoff.report.blocks import DoorParts
    from bakeoff.report.render.html.run_data import RunData

_BUDGETS = ("max_cost", "max_total_tokens", "max_seconds")


class EvalDoor(Door):
    """The eval door: models, commands and functions answer the prompts of a configuration."""

    pages = True

    def registry(self, plan: Plan, options: RunOptions) -> Registry:  # noqa: ARG002 - the signature of all doors
        """Return the usual registry, extended by commands, code and addresses of the user."""
        registry = default_registry()
        for kind in ("code", "command", "http"):
            registry = registry.with_subject(kind, _of_users)
        return registry

    def options(self, plan: Plan, options: RunOptions) -> RunOptions:
        """Apply the limits of the configuration unless the command line sets them."""
        limits = settings_of(plan).limits
        own = {name: getattr(limits, name) for name in _BUDGETS if getattr(options, name) is None}
        return replace(options, **own)

    def places(self, plan: Plan) -> Mapping[str, tuple[str, int]]:
        return settings_of(plan).places

    def page_parts(self, run: "RunData") -> "DoorParts":
        from bakeoff.doors.eval.results import left_out_section, prompt_section
        from bakeoff.report.blocks import DoorParts

        settings, records = settings_of(run.plan), run.folder.latest_records(run.plan) if run.folder else ()
        prompts = prompt_section(run.plan, settings, run.summary, run.cells.__getitem__, records)
        after = tuple(section for section in (prompts, left_out_section(settings)) if section)
        return DoorParts(after=after, answers=True)

    def finish(self, run: FinishedRun) -> DoorResults:
        """Show prompts × subjects if there are several prompts."""
        settings = settings_of(run.plan)
        if len(settings.prompts) < 2:
            return DoorResults()
        from bakeoff.doors.eval.results import prompt_section
        from bakeoff.report.run_summary import summary_blocks
        from bakeoff.report.summary import tallied

        cells = tallied(run.plan, run.records()).cells
        section = prompt_section(run.plan, settings, run.summary, cells, run.records())
        usual = summary_blocks(run.plan, run.summary, cells)
        return DoorResults(text=(*usual, *((section,) if section else ())))


def _of_users(spec: "SubjectSpec") -> "Subject":
    from bakeoff.subjects.code import CodeSubject, HttpSubject
    from bakeoff.subjects.command import CommandSubject

    kinds: dict[str, type[CommandSubject | CodeSubject | HttpSubject]]
    kinds = {"command": CommandSubject, "code": CodeSubject, "http": HttpSubject}
    return kinds[spec.kind].from_spec(spec)

"""The exercises door: what the commands that serve all doors ask of it."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff._kernel.files import write_atomically
from bakeoff.doors import Door
from bakeoff.doors.exercises.attacks import ExerciseCheat
from bakeoff.doors.exercises.cases import grading_of
from bakeoff.doors.exercises.references import REFERENCES
from bakeoff.doors.exercises.runners import runners_for
from bakeoff.doors.exercises.scorer import EXERCISE, ExerciseScorer
from bakeoff.engine.registry import Registry, default_registry
from bakeoff.engine.run import sandbox_of
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.storage.run_folder import RunFolder
from bakeoff.subjects.command_agent import CLI_AGENT, CommandAgent, TaskFiles, Watch

if TYPE_CHECKING:
    from bakeoff.report.html.gather import RunData
    from bakeoff.report.sections import Section

_READABLE = 0o644  # result files are made to be passed on


class ExercisesDoor(Door):
    """Exercises, the agents that are let loose on them, and the result files that come of it."""

    pages = True

    def registry(self, plan: Plan, options: RunOptions) -> Registry:
        gradings = [grading_of(case) for case in plan.cases]
        slots = max(1, min(options.jobs, os.cpu_count() or 1))
        sandbox = sandbox_of(options, plan)
        resources = (REFERENCES, *runners_for(gradings, sandbox, slots))
        files = {grading.exercise: TaskFiles(grading.solution, grading.tests) for grading in gradings}
        watch = _watcher() if plan.settings.get("show_progress") is True else None
        limited = options.max_cost is not None or options.max_tokens is not None
        agent = partial(CommandAgent.from_spec, files=files, watch=watch, sandbox=sandbox, limited=limited)
        return (
            default_registry()
            .with_scorer(EXERCISE, partial(ExerciseScorer.from_spec, resources=resources))
            .with_subject(CLI_AGENT, agent)
            .with_subject("cheat", ExerciseCheat.from_spec)
        )

    def sections(self, run: "RunData") -> Sequence["Section"]:
        from bakeoff.doors.exercises.sections import exercises_sections

        return exercises_sections(run)

    def export(self, folder: RunFolder, plan: Plan, options: RunOptions) -> Iterator[Path]:
        """One result file an agent, and `latest.json`, which is the one written last."""
        from bakeoff.doors.exercises.results.write import result_files

        written = b""
        for name, result in result_files(plan, folder.latest_records(plan), folder.name):
            written = result.to_json()
            path = options.results / name
            write_atomically(path, written, _READABLE)  # records hold no secret, so neither does this
            yield path
        if written:
            path = options.results / "latest.json"
            write_atomically(path, written, _READABLE)
            yield path


def _watcher() -> Watch:
    from bakeoff.doors.exercises.progress import show_changes

    return show_changes

"""The exercises door: connects exercises and agents to the commands that serve all doors."""

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from bakeoff._kernel.files import write_atomically
from bakeoff.doors import Door, DoorResults, FinishedRun
from bakeoff.doors.exercises.attacks import ExerciseCheat
from bakeoff.doors.exercises.cases import grading_of
from bakeoff.doors.exercises.references import REFERENCES
from bakeoff.doors.exercises.runners import runners_for
from bakeoff.doors.exercises.scorer import EXERCISE, ExerciseScorer
from bakeoff.engine.registry import Registry, default_registry
from bakeoff.engine.run import sandbox_of
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.subjects.command_agent import CLI_AGENT, CommandAgent, TaskFiles, Watch

if TYPE_CHECKING:
    from bakeoff.report.html.gather import RunData
    from bakeoff.report.sections import Section

_READABLE = 0o644  # result files are made to be passed on


class ExercisesDoor(Door):
    """Exercises, the agents that solve them, and the result files."""

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

    def finish(self, run: FinishedRun) -> DoorResults:
        """Write one result file for each agent, and `latest.json`, a copy of the last one."""
        from bakeoff.doors.exercises.results.write import result_files

        files = {name: result.to_json() for name, result in result_files(run.plan, run.records, run.folder.name)}
        if files:
            files["latest.json"] = list(files.values())[-1]
        for name, content in files.items():
            write_atomically(run.options.results / name, content, _READABLE)  # records hold no secret
        return DoorResults(tuple(run.options.results / name for name in files))


def _watcher() -> Watch:
    from bakeoff.doors.exercises.progress import show_changes

    return show_changes

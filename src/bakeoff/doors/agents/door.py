"""The exercises door, for the commands that serve all doors."""

from functools import partial
from typing import TYPE_CHECKING

from bakeoff._kernel.files import write_atomically
from bakeoff.doors import Door, DoorResults, FinishedRun, RunState
from bakeoff.doors.agents.attacks import ExerciseCheat
from bakeoff.doors.agents.plan import TEST_ONLY
from bakeoff.doors.agents.progress import show_changes
from bakeoff.doors.agents.scoring import EXERCISE, score_exercise
from bakeoff.doors.agents.tries import tries_section, try_tools
from bakeoff.engine.registry import Registry, default_registry, no_tools
from bakeoff.engine.resources import sandbox_of
from bakeoff.grading.cases import build_test_scorer, graded_case
from bakeoff.grading.references import References
from bakeoff.grading.runners import toolchains_for
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.subjects.command_agent import CLI_AGENT, CommandAgent, TaskFiles
from bakeoff.toolchains.commands import packages_of

if TYPE_CHECKING:
    from bakeoff.report.blocks import DoorParts
    from bakeoff.report.render.html.run_data import RunData


class AgentsDoor(Door):
    """Build the agents and the scorer of exercises, and write result files."""

    pages = True

    def registry(self, plan: Plan, options: RunOptions) -> Registry:
        sandbox = sandbox_of(options, plan)
        toolchains = toolchains_for(plan.cases, sandbox, options.jobs)
        resources = (References("bakeoff agents verify --exercise"), *toolchains)
        agent = partial(
            CommandAgent.from_spec,
            files={
                case.id: TaskFiles(each.solution, each.tests, packages_of(each, sandbox), case.collect)
                for case in plan.cases
                for each in [graded_case(case).settings]
            },
            watch=show_changes if plan.settings.get("show_progress") is True else None,
            sandbox=sandbox,
            limited=options.max_cost is not None or options.max_total_tokens is not None,
        )
        tried_again = any("tries" in spec.options for spec in plan.subjects)
        return (
            default_registry()
            .with_tools(try_tools if tried_again else no_tools)
            .with_scorer(EXERCISE, partial(build_test_scorer, score=score_exercise, resources=resources))
            .with_subject(CLI_AGENT, agent)
            .with_subject("cheat", ExerciseCheat.from_spec)
        )

    def page_parts(self, run: "RunData") -> "DoorParts":
        from bakeoff.doors.agents.sections import exercises_sections
        from bakeoff.report.blocks import DoorParts

        records = run.folder.latest_records(run.plan) if run.folder is not None else ()
        tries = tries_section(run.plan, records)
        return DoorParts(after=(*((tries,) if tries else ()), *exercises_sections(run)))

    def finish(self, run: FinishedRun) -> DoorResults:
        """Write one result file for each agent, and a copy of the last as `latest.json`."""
        from bakeoff.doors.agents.results.write import outdated_files, result_files

        made = dict(result_files(run.plan, run.records(), run.folder.name))
        files = {name: result.to_json() for name, result in made.items()}
        if files:
            files["latest.json"] = list(files.values())[-1]
        for name, content in files.items():
            write_atomically(run.options.results / name, content)
        for path in outdated_files(run.options.results, made):
            path.unlink(missing_ok=True)
        tries = tries_section(run.plan, run.records())
        paths = tuple(run.options.results / name for name in files)
        return DoorResults(paths, _state_of_tests(run), more=(tries,) if tries else ())


def _state_of_tests(run: FinishedRun) -> RunState | None:
    """Return what `--test-only` found: its subject does nothing, like a control, and yet is what the run is about."""
    if [spec.name for spec in run.plan.subjects] != [TEST_ONLY]:
        return None
    failed = any(subject.failed for subject in run.summary.subjects)
    return "failed" if failed else "passed" if run.summary.complete else "undecided"

"""The agents door: its subjects and scorers, its page, the progress it shows, and its result files."""

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.text import visible
from bakeoff.doors import Door, DoorResults, FinishedRun, RunState
from bakeoff.doors.agents.attacks import ExerciseCheat
from bakeoff.doors.agents.plan import TEST_ONLY
from bakeoff.doors.agents.scoring import EXERCISE, score_exercise, tries_section, try_tools
from bakeoff.doors.case_section import cases_section, named
from bakeoff.engine.registry import Registry, default_registry, no_tools
from bakeoff.engine.resources import sandbox_of
from bakeoff.errors import InfraError
from bakeoff.grading.cases import build_test_scorer, graded_case, toolchains_for
from bakeoff.grading.references import References
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan
from bakeoff.report.blocks import Column, Datum, Section, Value, columns
from bakeoff.subjects.command_agent import CLI_AGENT, CommandAgent, TaskFiles
from bakeoff.subjects.folder_changes import Tree, patch_of, read_tree
from bakeoff.toolchains.commands import packages_of

if TYPE_CHECKING:
    from bakeoff.report.blocks import DoorParts
    from bakeoff.report.render.html.run_data import RunData


class AgentsDoor(Door):
    """Build the agents and the scorer of exercises, and write result files."""

    pages = True

    def registry(self, plan: Plan, options: RunOptions) -> Registry:
        """Add command-line agents, the scorer `exercise` and the cheats of exercises to the usual ones."""
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
        """Add the tries and the table of exercises."""
        from bakeoff.doors.agents.door import exercises_sections
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


_SECONDS = 1.0
_LINES = 40  # of one diff; the record has the whole patch


async def show_changes(name: str, folder: Path, before: Tree) -> None:
    """Print the changes in a folder every second until cancelled, each as a diff to the state before."""
    last = before
    try:
        while True:
            await asyncio.sleep(_SECONDS)
            last = await _look(name, folder, last)
    except asyncio.CancelledError:
        await _look(name, folder, last)
        raise


async def _look(name: str, folder: Path, last: Tree) -> Tree:
    try:
        now = await asyncio.to_thread(read_tree, folder)
    except (InfraError, OSError):  # it may be gone, or change while it is read
        return last
    if patch := patch_of(last.files, now.files):
        sys.stderr.write(format_diff(name, patch))
        sys.stderr.flush()
    return now


def format_diff(name: str, patch: str) -> str:
    """Return a diff for the terminal. Control characters are shown, never emitted."""
    lines = patch.splitlines()
    more = [f"… and {len(lines) - _LINES} more lines"] if len(lines) > _LINES else []
    shown = [f"--- {name} ---", *lines[:_LINES], *more]
    return "".join(f"{visible(line.expandtabs(4), 300)}\n" for line in shown)


def exercises_sections(run: "RunData") -> tuple[Section, ...]:
    """Return the table of exercises, with their instructions."""

    def cells(case: Case) -> tuple[Value, ...]:
        tried = [by_case[case.id] for by_case in run.cells.values() if case.id in by_case]
        solved = sum(cell.total == cell.rounds for cell in tried)
        texts = named(case.tags.get("track", ""), ", ".join(case.reference), ", ".join(case.hidden))
        return (*texts, Datum(f"{solved} of {len(tried)}", sort=solved / len(tried) if tried else None))

    titles = (
        *columns("Track", "Solution", "Tests"),
        Column("Solved by", align="end", help="agents that solved it in every round, of those that were scored"),
    )
    section = cases_section(run, "exercises", titles, cells, prompt="instructions")
    return (section,) if section else ()

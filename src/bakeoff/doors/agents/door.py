"""The agents door: its subjects, scorers, pages, progress, result files, and `verify`."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import count_of, visible
from bakeoff.doors import Door, DoorResults, FinishedRun
from bakeoff.doors.agents.exercises import Exercise
from bakeoff.doors.agents.plan import TEST_ONLY, ExercisesRequest, case_of
from bakeoff.doors.agents.scoring import EXERCISE, score_exercise, tries_section, try_tools
from bakeoff.doors.case_section import cases_section, named
from bakeoff.engine.registry import Registry, default_registry, no_tools
from bakeoff.engine.resources import open_resources, sandbox_of
from bakeoff.errors import InfraError, UsageError
from bakeoff.grading.attacks import SAMPLE, Attack, attack_names, attack_on
from bakeoff.grading.audit import VerificationCheck, WrongAnswer, verify_cases
from bakeoff.grading.cases import GradedCase, build_test_scorer, graded_case, toolchains_for
from bakeoff.grading.references import References
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, SubjectSpec, describe, read_options
from bakeoff.protocols import Needs, Sandbox, Task
from bakeoff.record import Transcript
from bakeoff.report.answer import run_evidence
from bakeoff.report.blocks import Column, Datum, DoorParts, Section, Value, columns
from bakeoff.subjects.agent_launch import AgentLaunch, carry_out
from bakeoff.subjects.agent_run import with_run
from bakeoff.subjects.command_agent import CLI_AGENT, CommandAgent, TaskFiles
from bakeoff.subjects.folder_changes import Tree, patch_of, read_tree
from bakeoff.toolchains.commands import packages_of
from bakeoff.toolchains.install import Say, install_jest, pytest_folders
from bakeoff.toolchains.tracks import Track, graded_track, missing_programs, own_command

if TYPE_CHECKING:
    from bakeoff.report.render.html.run_data import RunData


class AgentsDoor(Door):
    """The door that builds the agents and the scorer of exercises, and writes result files."""

    pages = True

    def registry(self, plan: Plan, options: RunOptions) -> Registry:
        """Return the usual registry with command-line agents, cheats and the scorer `exercise`."""
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

    def page_parts(self, run: "RunData") -> DoorParts:
        """Add a section on tries, and the table of exercises."""
        records = run.folder.latest_records(run.plan) if run.folder is not None else ()
        sections = (tries_section(run.plan, records), exercises_section(run))
        return DoorParts(after=tuple(section for section in sections if section))

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
        evidence = None
        # The subject of `--test-only` does nothing, like a control, but here it is judged.
        if [spec.name for spec in run.plan.subjects] == [TEST_ONLY]:
            evidence = run_evidence(run.summary, controls=True)
        return DoorResults(paths, evidence, more=(tries,) if tries else ())


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
    """Return a diff for the terminal, with control characters made visible."""
    lines = patch.splitlines()
    more = [f"… and {len(lines) - _LINES} more lines"] if len(lines) > _LINES else []
    shown = [f"--- {name} ---", *lines[:_LINES], *more]
    return "".join(f"{visible(line.expandtabs(4), 300)}\n" for line in shown)


def exercises_section(run: "RunData") -> Section | None:
    """Return the table of exercises, with their instructions; None if the run describes none."""

    def cells(case: Case) -> tuple[Value, ...]:
        tried = [by_case[case.id] for by_case in run.cells.values() if case.id in by_case]
        solved = sum(cell.total == cell.rounds for cell in tried)
        texts = named(case.tags.get("track", ""), ", ".join(case.reference), ", ".join(case.hidden))
        return (*texts, Datum(f"{solved} of {len(tried)}", sort=solved / len(tried) if tried else None))

    titles = (
        *columns("Track", "Solution", "Tests"),
        Column("Solved by", align="end", help="agents that solved it in every round, of those that were scored"),
    )
    return cases_section(run, "exercises", titles, cells, prompt="instructions")


_UNFIT = "it did nothing: the attack is one on another language"


class ExerciseCheatOptions(FrozenModel):
    """The options of a cheat on exercises: one attack for all cases, or attacks by case id."""

    attack: str | None = None
    attacks: dict[str, str] = {}  # by case


@dataclass(frozen=True, slots=True)
class BoundExerciseCheat:
    """One attack on one exercise, or none if it does not fit the language."""

    attack: Attack | None
    case: GradedCase
    needs: Needs = Needs(workspace=True)  # noqa: RUF009 - frozen

    async def attempt(self, task: Task) -> Transcript:
        script = self.attack.script(self.case) if self.attack else "true"
        run = await carry_out(task, AgentLaunch(("/bin/sh", "-c", script)))
        described = run.model_copy(update={"attack": self.attack.what if self.attack else _UNFIT})
        return with_run(Transcript(output=run.stdout), described)


@dataclass(frozen=True, slots=True)
class ExerciseCheat:
    """A control that attacks exercises, using only what an agent could see."""

    options: ExerciseCheatOptions

    @classmethod
    def from_spec(cls, spec: SubjectSpec) -> "ExerciseCheat":
        """Read the options. Raises `UsageError` if an attack does not exist."""
        options = read_options(spec, ExerciseCheatOptions)
        for name in filter(None, [options.attack, *options.attacks.values()]):
            if name not in attack_names():
                raise UsageError(f"{describe(spec)}: no attack {name!r}; there are {', '.join(attack_names())}")
        return cls(options)

    def bind(self, case: Case) -> BoundExerciseCheat:
        """Return the attack for a case: by its id, or for all cases, or the first of the sample."""
        graded = graded_case(case)
        name = self.options.attacks.get(case.id) or self.options.attack or SAMPLE[0]
        return BoundExerciseCheat(attack_on(graded, name), graded)


STUB = WrongAnswer("stub", {}, "the stub that agents start from passes already: its tests measure nothing")


async def gradable_exercises(
    exercises: Sequence[Exercise], command: str | None, say: Say
) -> tuple[tuple[Exercise, ...], tuple[str, ...]]:
    """Return the exercises whose tests can run here, and a sentence about each track whose tests cannot.

    `command` replaces our own test runner. Raises `UsageError` if no exercise is left.
    """
    problems: dict[str, str | None] = {}
    for track in dict.fromkeys(exercise.track for exercise in exercises):
        problems[track.slug] = await _problem(track, command, say)
    fit = tuple(exercise for exercise in exercises if problems[exercise.track.slug] is None)
    warnings = []
    for slug, why in problems.items():
        left_out = [exercise.name for exercise in exercises if exercise.track.slug == slug]
        if why is not None:
            are = count_of(len(left_out), f"{slug} exercise is", f"{slug} exercises are")
            warnings.append(f"{are} left out ({', '.join(left_out)}): {why}")
    if not fit:
        raise UsageError("\n".join(warnings))
    return fit, tuple(warnings)


async def _problem(track: Track, command: str | None, say: Say) -> str | None:
    """Install what a track's tests need. Return why they cannot run, or None if they can."""
    command = command or own_command(track)
    if command and (missing := missing_programs(track)):
        return f"{', '.join(f'`{name}`' for name in missing)} is not installed: {track.get}"
    try:
        runner = graded_track(track.slug, command).runner
        if command is None and runner == "jest":
            await install_jest(say)
        elif command is None and runner == "pytest":
            pytest_folders()
    except (InfraError, UsageError, OSError) as error:
        return str(error)
    return None


async def verify_exercises(
    exercises: Sequence[Exercise], request: ExercisesRequest, sandbox: Callable[[], Sandbox], jobs: int
) -> list[VerificationCheck]:
    """Check exercises, several at a time."""
    cases = [case_of(exercise, request) for exercise in exercises]
    async with open_resources(
        [References("bakeoff agents verify --exercise"), *toolchains_for(cases, sandbox, jobs)]
    ) as resources:
        return await verify_cases([(case, [STUB]) for case in cases], resources, jobs, reference="example")

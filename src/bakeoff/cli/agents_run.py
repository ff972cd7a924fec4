"""What `bakeoff agents run`, `verify` and `list` do once their options are read."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from bakeoff.cli.console import err, out
from bakeoff.cli.plans import print_dry_run
from bakeoff.cli.running import FAILED, PASSED, Ending, carry_out
from bakeoff.doors import door_of
from bakeoff.doors.exercises.exercises import Exercise, find_exercises
from bakeoff.doors.exercises.plan import build_plan
from bakeoff.doors.exercises.prompt import build_prompt
from bakeoff.doors.exercises.ready import gradable
from bakeoff.doors.exercises.request import ExercisesRequest
from bakeoff.engine.run import sandbox_of
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.report.words import visible
from bakeoff.sandbox.process import ProcessSandbox
from bakeoff.storage.run_folder import new_run_folder


@dataclass(frozen=True, slots=True)
class Asked:
    """How `bakeoff agents run` is to go about it, besides what is run."""

    dry_run: bool = False
    print_instructions: bool = False


def run_agents(request: ExercisesRequest, options: RunOptions, ending: Ending, asked: Asked) -> int:
    """Carry out a request. All that can be wrong is found before the run has a folder."""
    exercises = exercises_of(request)
    if asked.print_instructions:
        print_instructions(exercises, request)
        return PASSED
    plan = build_plan(request, exercises)
    if asked.dry_run:
        print_dry_run(plan, options.results)
        return PASSED
    if len(left := ready(exercises, request)) < len(exercises):
        plan = build_plan(request, left)
    door_of(plan).registry(plan, options).resolve(plan, offline=options.replay == "strict")
    if warning := _seen_by_agents(request, plan, options):
        _say(f"warning: {warning}")
    return carry_out(plan, new_run_folder(options.results, plan.name), options, ending)


def exercises_of(request: ExercisesRequest) -> tuple[Exercise, ...]:
    """The exercises that were asked for; what had to be left out is said."""
    found = find_exercises(request.exercises, request.wanted)
    for warning in found.warnings:
        _say(f"warning: {warning}")
    return found.exercises


def _seen_by_agents(request: ExercisesRequest, plan: Plan, options: RunOptions) -> str | None:
    """That agents could read the examples, where neither a checkout nor our own package can be hidden from them."""
    if all(subject.kind in ("oracle", "nop") for subject in plan.subjects):
        return None
    sandbox = sandbox_of(options, plan)()
    if not isinstance(sandbox, ProcessSandbox) or sandbox.private_mounts:
        return None
    place = request.exercises or "the exercises that travel with bakeoff"
    return (
        f"agents share your files in this sandbox, and could read the examples in {place}: install "
        "bubblewrap, or use --sandbox docker; `bakeoff doctor` tells more"
    )


def ready(exercises: Sequence[Exercise], request: ExercisesRequest) -> tuple[Exercise, ...]:
    """Those whose tests can be run here; the rest is left out, with the way out."""
    fit, warnings = asyncio.run(gradable(exercises, request.test_command, _say))
    for warning in warnings:
        _say(f"warning: {warning}")
    return fit


def print_instructions(exercises: Sequence[Exercise], request: ExercisesRequest) -> None:
    """The prompts as agents would get them; control characters in them are shown, never emitted."""
    for exercise in exercises:
        prompt = build_prompt(exercise, request.custom_instruction, request.test_command)
        if len(exercises) > 1:
            out().print(Text(f"=== {visible(exercise.name)} ==="))
        for line in prompt.splitlines():
            out().print(Text(visible(line.replace("\t", "    "), 100_000)), soft_wrap=True)


def verify(request: ExercisesRequest, options: RunOptions) -> int:
    """Check every exercise; 1 if one of them is not fit for use."""
    return asyncio.run(_verify(ready(exercises_of(request), request), request, options))


async def _verify(exercises: Sequence[Exercise], request: ExercisesRequest, options: RunOptions) -> int:
    from bakeoff.doors.exercises.verify import verify_exercises

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("exercise", "track", "tests", "example", "stub", "time", ""):
        table.add_column(heading, justify="right" if heading in ("tests", "time") else "left")
    checks = await verify_exercises(exercises, request, sandbox_of(options), options.jobs)
    for check in checks:
        mark = Text("ok", style="green") if check.ok else Text("not fit", style="bold red")
        cells = [f"{one.tests_passed}/{one.tests_total}" if one else "–" for one in (check.example, check.stub)]
        name, track = Text(visible(check.exercise.name)), Text(check.exercise.track.slug)
        table.add_row(name, track, str(check.tests), *cells, f"{check.seconds:.1f} s", mark)
    out().print(table)
    unfit = [check for check in checks if not check.ok]
    for check in unfit:
        for problem in check.problems:
            out().print(Text(f"{visible(check.exercise.name)}: {visible(problem, 2000)}"))
    out().print(f"{len(checks) - len(unfit)} of {len(checks)} exercises are fit for use")
    return FAILED if unfit else PASSED


def list_agents(files: Sequence[Path], *, as_json: bool) -> None:
    from bakeoff.doors.exercises.agents import agent_statuses, known_agents

    statuses = agent_statuses(known_agents(files))
    if as_json:
        told = [{**status.model_dump(mode="json"), "ready": status.ready} for status in statuses]
        out().file.write(json.dumps(told, indent=2) + "\n")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("agent", "installed", "version", "provider", "metered", "needs"):
        table.add_column(heading)
    for status in statuses:
        lacking = [] if status.installed else [status.install]
        lacking += [f"set {names}" + (" or log in (--use-login)" if status.login else "") for names in status.missing]
        cells = (
            status.name,
            "yes" if status.installed else "no",
            status.version or "–",
            status.provider,
            ", ".join(status.metered) or "not metered",
            "; ".join(lacking) or "nothing",
        )
        table.add_row(*(Text(visible(cell)) for cell in cells))
    out().print(table)
    out().print("besides: oracle (hands in the example), nop (does nothing), cheat (tampers); they need nothing")


def _say(message: str) -> None:
    err().print(visible(message, 2000))

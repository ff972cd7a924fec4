"""Implement `bakeoff agents`: run coding agents on exercises, verify exercises, list agents, build their image."""

import asyncio
import json
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from rich.text import Text
from typer import Argument, Option

from bakeoff._kernel.text import visible
from bakeoff.cli.console import add_row, err, out, print_json, say, table, warn
from bakeoff.cli.declare import PASSED, Flags, command, flag, group_of
from bakeoff.cli.flags import (
    HIDDEN_SEED,
    HIDDEN_TESTS,
    ROUNDS,
    AsJson,
    EndingFlags,
    NoOpen,
    ReportFlags,
    RequireAudit,
    Results,
    RunFlags,
    Sandbox,
    SelectionFlags,
    VerifyFlags,
)
from bakeoff.errors import InfraError, UsageError

if TYPE_CHECKING:
    from bakeoff.cli.run_plan import CheckedPlan
    from bakeoff.doors.agents.exercises import Exercise
    from bakeoff.doors.agents.plan import ExercisesRequest

app = group_of(
    "Benchmark command-line coding agents on exercises.",
    "bakeoff agents run --agent claude --agent oracle --exercise 5",
)
image = group_of("Build the image that agents run in with --sandbox docker.", "bakeoff agents image build")
app.add_typer(image, name="image")
AgentFiles = Annotated[
    list[Path] | None,
    Option("--agent-file", metavar="FILE", help="A YAML file that describes an agent of your own. Repeatable."),
]
ContainerEngine: TypeAlias = Literal["docker", "podman"]


class ExerciseFlags(Flags):
    """Options that choose exercises and how to test them, named as in `ExercisesRequest`."""

    exercises: Path | None = flag(
        None, "The checkout of a track, or one exercise. Default: the bundled exercises.", metavar="DIR"
    )
    wanted: list[str] | None = flag(
        None, "Names of exercises, separated by commas, a number, or all.", "--exercise", "--case"
    )
    test_timeout: float = flag(
        60.0, "The time limit of one run of an exercise's tests.", min=1, max=604_800, metavar="SECONDS"
    )
    test_command: str | None = flag(
        None, "The test command, instead of the track's; its exit code decides.", metavar="COMMAND"
    )
    type_check: bool = flag(True, "Fail TypeScript answers with type errors, as the track does.")
    unskip: bool = flag(True, "Also run the tests that a track marks as skipped.")


class AgentFlags(ExerciseFlags):
    """Options that choose agents and how to ask them."""

    agents: list[str] | None = flag(None, "An agent, such as claude, oracle, nop or cheat.", "--agent")
    models: list[str] | None = flag(None, "A model for every agent. Default: the agent's own.", "--model")
    providers: list[str] | None = flag(None, "A provider for every agent. Default: the agent's own.", "--provider")
    agent_files: AgentFiles = None
    treatments: list[str] | None = flag(
        None,
        "Lay the files of DIR over the workspace, those in DIR/home over HOME, and compare with and without.",
        "--with",
        metavar="NAME=DIR",
    )
    rounds: int = ROUNDS
    hidden_tests: float = HIDDEN_TESTS
    hidden_seed: int = HIDDEN_SEED
    timeout: float = flag(300.0, "The time limit of an agent on one exercise.", min=1, max=604_800, metavar="SECONDS")
    tries: int = flag(1, "Tries at an exercise; a later one sees what the tests said.", min=1, max=5)
    test_only: bool = flag(False, "Run no agent; only test the files that are there.")
    custom_instruction: str | None = flag(None, "Text to append to every prompt.", metavar="TEXT")
    use_login: bool = flag(False, "Give agents the login files from your home folder that their YAML lists.")
    network: bool = flag(False, "Let metered agents reach more than their provider.")
    show_progress: bool = flag(False, "Show what agents change while they work.")


@command(app, "run")
def run_agents(
    *,
    wanted: AgentFlags,
    print_instructions: bool = flag(False, "Print the prompts of the exercises and run nothing."),
    require_audit: RequireAudit = None,
    flags: RunFlags,
    selection: SelectionFlags,
    no_open: NoOpen = False,
    ending: EndingFlags,
) -> int:
    """Let agents solve exercises, then grade their work with the original tests.

    --max-cost also stops a metered agent in the middle of a trial.

    Example: bakeoff agents run --agent claude --agent oracle --exercise 5 --max-cost 2
    """

    from bakeoff.cli.run_plan import carry_out, check_plan, print_dry_run
    from bakeoff.cli.verify import audited
    from bakeoff.doors.agents.exercises import find_exercises
    from bakeoff.doors.agents.plan import ExercisesRequest, build_plan, case_of

    request, options = ExercisesRequest(**wanted.values()), flags.options()
    found = find_exercises(request.exercises, request.wanted)
    warn(found.warnings)
    exercises = found.exercises
    if require_audit is not None:
        exercises = audited(exercises, [case_of(exercise, request) for exercise in exercises], require_audit)
    if print_instructions:
        _print_prompts(exercises, request)
        return PASSED
    plan = selection.applied(build_plan(request, exercises))
    if flags.dry_run:
        print_dry_run(check_plan(plan, options), ending)
        return PASSED
    fit = gradable(exercises, request)
    used = {exercise.name for exercise in fit}
    unfit = [f"exercise {each.name!r} cannot be graded here" for each in found.exercises if each.name not in used]
    plan = selection.applied(build_plan(request, fit).from_origin(left_out=(*found.left_out, *unfit)))
    checked = check_plan(plan, options)
    _warn_of_readable_examples(checked, request)
    return carry_out(checked, ending, opened=not no_open)


def gradable(exercises: "Sequence[Exercise]", request: "ExercisesRequest") -> "tuple[Exercise, ...]":
    """Return the exercises whose tests can run here; warn of the others."""

    from bakeoff.doors.agents.door import gradable_exercises

    fit, warnings = asyncio.run(gradable_exercises(exercises, request.test_command, say))
    warn(warnings)
    return fit


def _warn_of_readable_examples(checked: "CheckedPlan", request: "ExercisesRequest") -> None:
    """Warn if the sandbox cannot hide the example solutions from agents."""

    from bakeoff.engine.resources import sandbox_of
    from bakeoff.sandbox.process import ProcessSandbox, has_landlock

    if all(subject.kind in ("oracle", "nop") for subject in checked.plan.subjects):
        return
    sandbox = sandbox_of(checked.options, checked.plan)()
    if isinstance(sandbox, ProcessSandbox) and not sandbox.private_mounts and not has_landlock():
        place = request.exercises or "the bundled exercises"
        says = f"agents can read your files in this sandbox, and so the example solutions of {place}: "
        warn([f"{says}install bubblewrap, or use --sandbox docker; `bakeoff doctor` says more"])


def _print_prompts(exercises: "Sequence[Exercise]", request: "ExercisesRequest") -> None:
    """Print the prompts of exercises as agents get them."""

    from bakeoff.doors.agents.plan import case_of

    for exercise in exercises:
        if len(exercises) > 1:
            out().print(Text(f"=== {visible(exercise.name)} ==="))
        for line in case_of(exercise, request).prompt.splitlines():
            out().print(Text(visible(line.replace("\t", "    "), 100_000)), soft_wrap=True)


@command(app, "verify")
def verify(*, wanted: ExerciseFlags, flags: VerifyFlags, as_json: AsJson = False) -> int:
    """Check exercises: the example must pass, the starting files must fail. Exits with 1 if not.

    Example: bakeoff agents verify --exercise all
    """

    from bakeoff.cli.verify import print_checks
    from bakeoff.doors.agents.door import verify_exercises
    from bakeoff.doors.agents.exercises import find_exercises
    from bakeoff.doors.agents.plan import ExercisesRequest
    from bakeoff.engine.resources import sandbox_of

    request = ExercisesRequest(**wanted.values())
    found = find_exercises(request.exercises, request.wanted)
    warn(found.warnings)
    exercises, options = gradable(found.exercises, request), flags.options()
    checks = asyncio.run(verify_exercises(exercises, request, sandbox_of(options), options.jobs))
    return print_checks(checks, "exercise", ("example", "stub"), as_json=as_json)


@command(app, "list")
def list_agents(*, agent_files: AgentFiles = None, sandbox: Sandbox = "auto", as_json: AsJson = False) -> None:
    """List the known agents: which are installed and start in the sandbox, and what each still needs.

    Example: bakeoff agents list
    """

    from bakeoff.doors.agents.agents import agent_statuses, known_agents
    from bakeoff.sandbox import choose_sandbox

    chosen = choose_sandbox(sandbox)
    statuses = asyncio.run(agent_statuses(known_agents(agent_files or ()), chosen))
    if as_json:
        print_json([{**status.model_dump(mode="json"), "ready": status.ready} for status in statuses])
        return
    shown = table("agent", "installed", "version", "provider", "metered", "needs")
    for status in statuses:
        missing = [] if status.installed else [status.install]
        missing += [status.problem] if status.problem else []
        missing += ["--model"] if status.model_required else []
        missing += [f"set {names}" + (" or log in (--use-login)" if status.login else "") for names in status.missing]
        add_row(
            shown,
            status.name,
            "no" if not status.installed else "broken" if status.problem else "yes",
            status.version or "–",
            status.provider,
            ", ".join(status.metered) or "not metered",
            "; ".join(missing) or "nothing",
        )
    out().print(shown)
    out().print(
        f"versions were asked for in the {chosen.name} sandbox, as a run starts agents; --sandbox chooses another"
    )
    out().print("also: oracle (submits the example), nop (does nothing), cheat (tampers); they need nothing")


@command(app, "leaderboard")
def show_leaderboard(
    *,
    files: Annotated[
        list[Path] | None, Argument(metavar="FILE", help="Result files, or folders of them. Default: all in --results.")
    ] = None,
    results: Results = Path("results"),
    shown_as: ReportFlags,
) -> None:
    """Rank the result files of agents: the latest complete one of each agent, model and provider.

    Example: bakeoff agents leaderboard results --html board.html
    """

    from bakeoff.cli.run_plan import show_report
    from bakeoff.doors.agents.results.board import describe_board, leaderboard_json, rank_agents, read_results

    shown_as.check()
    found = read_results(files or [results], say) if files or results.is_dir() else []
    if not found:
        places = ", ".join(visible(str(path)) for path in files or [results])
        raise UsageError(f"{places} has no result file of agents: name some, or start with `bakeoff agents run`")
    board = rank_agents(found)
    show_report(partial(json.dumps, leaderboard_json(board)), describe_board(board), shown_as)


@command(image, "build")
def build_image(
    *,
    engine: ContainerEngine | None = flag(None, "The container engine. Default: the one that is installed."),
    tag: str = flag("bakeoff-agents", "The name of the image.", metavar="NAME"),
    agents: list[str] | None = flag(None, "An agent to install. Default: all from a registry.", "--agent"),
    agent_files: AgentFiles = None,
    dry_run: bool = flag(False, "Print the command and the Containerfile, and build nothing."),
) -> None:
    """Build an image with Node, Python, git and agents.

    Example: bakeoff agents image build --agent claude --dry-run
    """

    from bakeoff.doors.agents.agents import CONTAINERFILE, known_agents, plan_image
    from bakeoff.sandbox.docker import CLIENT_VARIABLE, IMAGE_VARIABLE, find_client

    image = plan_image(known_agents(agent_files or ()), agents or (), tag)
    client = shutil.which(engine) if engine else find_client()
    if dry_run:
        out().file.write(f"{shlex.join(image.command(engine or client or 'docker'))}\n\n")
        out().file.write(CONTAINERFILE.read_text("utf-8"))
        return
    if client is None:
        raise UsageError(
            f"{engine or 'docker or podman'} is not installed, and the image cannot be built without it: `apt-get "
            f"install {'podman' if engine == 'podman' else 'docker.io'}`; --dry-run shows what would be built"
        )
    try:
        done = subprocess.run(image.command(client), stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        raise UsageError(f"{client} cannot be started: {error}") from error
    if done.returncode != 0:
        raise InfraError(f"{client} did not build the image (exit code {done.returncode}); see its output above")
    chosen = f"{CLIENT_VARIABLE}={engine} " if engine else ""
    err().print(f"use it: {chosen}{IMAGE_VARIABLE}={visible(image.tag)} bakeoff agents run --sandbox docker --agent …")

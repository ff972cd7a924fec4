"""Declare `bakeoff agents`. Imports nothing heavy, to keep start-up fast."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from bakeoff.cli.flags import (
    AsJson,
    EndingFlags,
    Jobs,
    NoOpen,
    ReportFlags,
    Results,
    RunFlags,
    Sandbox,
    values_of,
    with_flags,
)
from bakeoff.options import RunOptions

_RUN_FLAGS = RunFlags(jobs=2)
ContainerEngine: TypeAlias = Literal["docker", "podman"]

agents = typer.Typer(
    help="Benchmark command-line coding agents on exercises.", rich_markup_mode=None, no_args_is_help=True
)
image = typer.Typer(
    help="Build the image that agents run in with --sandbox docker.", rich_markup_mode=None, no_args_is_help=True
)
agents.add_typer(image, name="image")

AgentFiles = Annotated[
    list[Path] | None,
    typer.Option("--agent-file", metavar="FILE", help="A YAML file that describes an agent of your own. Repeatable."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExerciseFlags:
    """Which exercises, and how they are tested. The fields are those of `ExercisesRequest`."""

    exercises: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The checkout of a track, or one exercise. Default: the bundled exercises."),
    ] = None
    wanted: Annotated[
        list[str] | None,
        typer.Option(
            "--exercise", metavar="NAME", help="Names of exercises, separated by commas, or a number. Repeatable."
        ),
    ] = None
    test_timeout: Annotated[
        float,
        typer.Option(min=1, max=604_800, metavar="SECONDS", help="The time limit of one run of an exercise's tests."),
    ] = 60.0
    test_command: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="The test command, instead of the track's; its exit code decides."),
    ] = None
    unskip: Annotated[
        bool, typer.Option("--unskip/--no-unskip", help="Also run the tests that a track marks as skipped.")
    ] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFlags(ExerciseFlags):
    """Which agents, and how they are asked."""

    agents: Annotated[
        list[str] | None,
        typer.Option("--agent", metavar="NAME", help="An agent, such as claude, oracle, nop or cheat. Repeatable."),
    ] = None
    models: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="NAME", help="A model for every agent. Default: the agent's own. Repeatable."),
    ] = None
    providers: Annotated[
        list[str] | None,
        typer.Option(
            "--provider", metavar="NAME", help="A provider for every agent. Default: the agent's own. Repeatable."
        ),
    ] = None
    agent_files: AgentFiles = None
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="How often to try each exercise.")] = 1
    timeout: Annotated[
        float,
        typer.Option(min=1, max=604_800, metavar="SECONDS", help="The time limit of an agent on one exercise."),
    ] = 300.0
    test_only: Annotated[
        bool, typer.Option("--test-only", help="Run no agent; only test the files that are there.")
    ] = False
    custom_instruction: Annotated[str | None, typer.Option(metavar="TEXT", help="Text to append to every prompt.")] = (
        None
    )
    use_login: Annotated[
        bool,
        typer.Option("--use-login", help="Give agents the login files from your home folder that their YAML lists."),
    ] = False
    network: Annotated[bool, typer.Option("--network", help="Let metered agents reach more than their provider.")] = (
        False
    )
    show_progress: Annotated[bool, typer.Option("--show-progress", help="Show what agents change while they work.")] = (
        False
    )


@agents.command("run")
@with_flags
def agents_run(
    *,
    wanted: AgentFlags,
    print_instructions: Annotated[
        bool, typer.Option("--print-instructions", help="Print the prompts of the exercises and run nothing.")
    ] = False,
    flags: RunFlags = _RUN_FLAGS,
    no_open: NoOpen = False,
    ending: EndingFlags,
) -> None:
    """Let agents solve exercises, then grade their work with the original tests.

    --max-cost also stops a metered agent in the middle of a trial.
    """
    from bakeoff.cli.exercises import print_prompts, run_agents
    from bakeoff.doors.exercises.request import ExercisesRequest

    request = ExercisesRequest(**values_of(wanted))
    if print_instructions:
        print_prompts(request)
        raise typer.Exit
    raise typer.Exit(run_agents(request, flags, ending, opened=not no_open))


@agents.command("verify")
@with_flags
def agents_verify(*, wanted: ExerciseFlags, jobs: Jobs = 2, sandbox: Sandbox = "auto") -> None:
    """Check exercises: the example must pass, the starting files must fail. Exits with 1 if not."""
    from bakeoff.cli.exercises import verify
    from bakeoff.doors.exercises.request import ExercisesRequest

    raise typer.Exit(verify(ExercisesRequest(**values_of(wanted)), RunOptions(jobs=jobs, sandbox=sandbox)))


@agents.command("list")
def agents_list(agent_files: AgentFiles = None, as_json: AsJson = False) -> None:
    """List the known agents: which are installed, and what each still needs."""
    from bakeoff.cli.exercises import list_agents

    list_agents(agent_files or [], as_json=as_json)


@agents.command("leaderboard")
@with_flags
def agents_leaderboard(
    *,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Result files, or folders of them. Default: all in --results."),
    ] = None,
    results: Results = Path("results"),
    shown_as: ReportFlags,
) -> None:
    """Rank the result files of agents: the latest of each agent, model and provider."""
    from bakeoff.cli.exercises import show_leaderboard

    show_leaderboard(results, files or [], shown_as)


@image.command("build")
def agents_image_build(
    engine: Annotated[ContainerEngine | None, typer.Option(help="Default: the one that is installed.")] = None,
    tag: Annotated[str, typer.Option(help="The name of the image.")] = "bakeoff-agents",
    agents: Annotated[
        list[str] | None,
        typer.Option("--agent", metavar="NAME", help="An agent to install. Default: all from a registry. Repeatable."),
    ] = None,
    agent_files: AgentFiles = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the command and the Containerfile, and build nothing.")
    ] = False,
) -> None:
    """Build an image with Node, Python, git and agents."""
    from bakeoff.cli.exercises import build_image

    build_image(engine, tag, agents or [], agent_files or [], dry_run=dry_run)

"""Declare `bakeoff agents`. Imports nothing heavy, to keep start-up fast."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer
from typer import Argument, Option

from bakeoff.cli.flags import (
    AsJson,
    EndingFlags,
    Flags,
    Jobs,
    NoOpen,
    ReportFlags,
    Results,
    RunFlags,
    Sandbox,
    flag,
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
    Option("--agent-file", metavar="FILE", help="A YAML file that describes an agent of your own. Repeatable."),
]
PrintInstructions = Annotated[
    bool, Option("--print-instructions", help="Print the prompts of the exercises and run nothing.")
]


class ExerciseFlags(Flags):
    """Which exercises, and how they are tested. The fields are those of `ExercisesRequest`."""

    exercises: Path | None = flag(
        None, "The checkout of a track, or one exercise. Default: the bundled exercises.", metavar="DIR"
    )
    wanted: list[str] | None = flag(None, "Names of exercises, separated by commas, or a number.", "--exercise")
    test_timeout: float = flag(
        60.0, "The time limit of one run of an exercise's tests.", min=1, max=604_800, metavar="SECONDS"
    )
    test_command: str | None = flag(
        None, "The test command, instead of the track's; its exit code decides.", metavar="COMMAND"
    )
    unskip: bool = flag(True, "Also run the tests that a track marks as skipped.")


class AgentFlags(ExerciseFlags):
    """Which agents, and how they are asked."""

    agents: list[str] | None = flag(None, "An agent, such as claude, oracle, nop or cheat.", "--agent")
    models: list[str] | None = flag(None, "A model for every agent. Default: the agent's own.", "--model")
    providers: list[str] | None = flag(None, "A provider for every agent. Default: the agent's own.", "--provider")
    agent_files: AgentFiles = None
    rounds: int = flag(1, "How often to try each exercise.", min=1)
    timeout: float = flag(300.0, "The time limit of an agent on one exercise.", min=1, max=604_800, metavar="SECONDS")
    test_only: bool = flag(False, "Run no agent; only test the files that are there.")
    custom_instruction: str | None = flag(None, "Text to append to every prompt.", metavar="TEXT")
    use_login: bool = flag(False, "Give agents the login files from your home folder that their YAML lists.")
    network: bool = flag(False, "Let metered agents reach more than their provider.")
    show_progress: bool = flag(False, "Show what agents change while they work.")


@agents.command("run")
@with_flags
def agents_run(
    *,
    wanted: AgentFlags,
    print_instructions: PrintInstructions = False,
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
        list[Path] | None, Argument(metavar="FILE", help="Result files, or folders of them. Default: all in --results.")
    ] = None,
    results: Results = Path("results"),
    shown_as: ReportFlags,
) -> None:
    """Rank the result files of agents: the latest of each agent, model and provider."""
    from bakeoff.cli.exercises import show_leaderboard

    show_leaderboard(results, files or [], shown_as)


@image.command("build")
def agents_image_build(
    engine: Annotated[ContainerEngine | None, Option(help="Default: the one that is installed.")] = None,
    tag: Annotated[str, Option(help="The name of the image.")] = "bakeoff-agents",
    agents: Annotated[
        list[str] | None,
        Option("--agent", metavar="NAME", help="An agent to install. Default: all from a registry. Repeatable."),
    ] = None,
    agent_files: AgentFiles = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print the command and the Containerfile, and build nothing.")
    ] = False,
) -> None:
    """Build an image with Node, Python, git and agents."""
    from bakeoff.cli.exercises import build_image

    build_image(engine, tag, agents or [], agent_files or [], dry_run=dry_run)

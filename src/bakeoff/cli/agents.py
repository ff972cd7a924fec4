"""Declare `bakeoff agents`. Imports nothing heavy, to keep start-up fast."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from typer import Argument

from bakeoff.cli.declare import command, flag, group_of
from bakeoff.cli.flags import (
    AgentFiles,
    AgentFlags,
    AsJson,
    EndingFlags,
    ExerciseFlags,
    NoOpen,
    ReportFlags,
    RequireAudit,
    Results,
    RunFlags,
    Sandbox,
    SelectionFlags,
    VerifyFlags,
)

_HOME = "bakeoff.cli.exercises"
ContainerEngine: TypeAlias = Literal["docker", "podman"]

agents = group_of(
    "Benchmark command-line coding agents on exercises.",
    "bakeoff agents run --agent claude --agent oracle --exercise 5",
)
image = group_of("Build the image that agents run in with --sandbox docker.", "bakeoff agents image build")
agents.add_typer(image, name="image")


@command(agents, "run", _HOME)
def run_agents(
    *,
    wanted: AgentFlags,
    print_instructions: bool = flag(False, "Print the prompts of the exercises and run nothing."),
    require_audit: RequireAudit = None,
    flags: RunFlags,
    selection: SelectionFlags,
    no_open: NoOpen = False,
    ending: EndingFlags,
) -> None:
    """Let agents solve exercises, then grade their work with the original tests.

    --max-cost also stops a metered agent in the middle of a trial.

    Example: bakeoff agents run --agent claude --agent oracle --exercise 5 --max-cost 2
    """


@command(agents, "verify", _HOME)
def verify(*, wanted: ExerciseFlags, flags: VerifyFlags, as_json: AsJson = False) -> None:
    """Check exercises: the example must pass, the starting files must fail. Exits with 1 if not.

    Example: bakeoff agents verify --exercise all
    """


@command(agents, "list", _HOME)
def list_agents(*, agent_files: AgentFiles = None, sandbox: Sandbox = "auto", as_json: AsJson = False) -> None:
    """List the known agents: which are installed and start in the sandbox, and what each still needs.

    Example: bakeoff agents list
    """


@command(agents, "leaderboard", _HOME)
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


@command(image, "build", _HOME)
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

"""`bakeoff agents`: coding agents on exercises. Start-up must stay fast, so commands import in their bodies."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.arguments import (
    AsJson,
    ExitZero,
    FailUnder,
    GitHub,
    HtmlFile,
    Jobs,
    JunitFile,
    KeepWorkspaces,
    Markdown,
    MarkdownFile,
    NoOpen,
    Recordings,
    Replay,
    Results,
    Sandbox,
)

agents = typer.Typer(
    help="Coding agents of the command line, on exercises.", rich_markup_mode=None, no_args_is_help=True
)
image = typer.Typer(
    help="The image that agents run in with --sandbox docker.", rich_markup_mode=None, no_args_is_help=True
)
agents.add_typer(image, name="image")

Exercises = Annotated[
    Path | None, typer.Option(metavar="DIR", help="A track's checkout or one exercise; bundled ones if left out.")
]
ExerciseNames = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="A name, names with commas, or how many. Repeat for several.")
]
AgentFiles = Annotated[
    list[Path] | None, typer.Option(metavar="FILE", help="An agent of your own, in YAML. Repeat for several.")
]
TestCommand = Annotated[
    str | None, typer.Option(metavar="COMMAND", help="Instead of the track's own; only its exit code counts.")
]
TestTimeout = Annotated[
    float, typer.Option(min=1, max=604_800, metavar="SECONDS", help="For one run of an exercise's tests.")
]
Unskip = Annotated[bool, typer.Option("--unskip/--no-unskip", help="Run the tests too that a track skips.")]


@agents.command("run")
def agents_run(
    agent: Annotated[
        list[str] | None, typer.Option(help="Such as claude, oracle, nop, cheat. Repeat for several.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="For every agent; its own if left out. Repeat.")] = None,
    provider: Annotated[list[str] | None, typer.Option(help="For every agent; its own if left out. Repeat.")] = None,
    exercises: Exercises = None,
    exercise: ExerciseNames = None,
    agent_file: AgentFiles = None,
    rounds: Annotated[int, typer.Option(min=1, help="Times that every exercise is tried.")] = 1,
    timeout: Annotated[
        float, typer.Option(min=1, max=604_800, metavar="SECONDS", help="For an agent and one exercise.")
    ] = 300.0,
    test_timeout: TestTimeout = 60.0,
    test_command: TestCommand = None,
    unskip: Unskip = True,
    test_only: Annotated[bool, typer.Option("--test-only", help="Run no agent: test what is there.")] = False,
    custom_instruction: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Added to the end of every prompt.")
    ] = None,
    print_instructions: Annotated[
        bool, typer.Option("--print-instructions", help="Print what agents would be told, and run nothing.")
    ] = False,
    use_login: Annotated[
        bool, typer.Option("--use-login", help="Give agents their login from your HOME, as their YAML lists it.")
    ] = False,
    network: Annotated[
        bool, typer.Option("--network", help="Let metered agents reach more than their provider.")
    ] = False,
    show_progress: Annotated[
        bool, typer.Option("--show-progress", help="Show what agents change while they work.")
    ] = False,
    jobs: Jobs = 2,
    sandbox: Sandbox = "auto",
    max_cost: Annotated[
        float | None, typer.Option(help="Stop at this many USD, also in the middle of a trial.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and run nothing.")] = False,
    keep_workspaces: KeepWorkspaces = False,
    replay: Replay = "off",
    recordings: Recordings = Path(".bakeoff/recordings"),
    no_open: NoOpen = False,
    fail_under: FailUnder = None,
    exit_zero: ExitZero = False,
    as_json: AsJson = False,
    junit: JunitFile = None,
    markdown: MarkdownFile = None,
    github: GitHub = False,
    results: Results = Path("results"),
) -> None:
    """Let agents solve exercises, and run the original tests on what they leave."""
    from bakeoff.cli.agents_run import Asked, run_agents
    from bakeoff.cli.running import Ending
    from bakeoff.doors.exercises.request import ExercisesRequest
    from bakeoff.options import RunOptions
    from bakeoff.report.ci import CiOutputs

    request = ExercisesRequest(
        exercises=exercises,
        wanted=tuple(exercise or ()),
        agents=tuple(agent or ()),
        models=tuple(model or ()),
        providers=tuple(provider or ()),
        agent_files=tuple(agent_file or ()),
        rounds=rounds,
        timeout=timeout,
        test_timeout=test_timeout,
        test_command=test_command,
        unskip=unskip,
        test_only=test_only,
        custom_instruction=custom_instruction,
        use_login=use_login,
        network=network,
        show_progress=show_progress,
    )
    options = RunOptions(
        results=results,
        jobs=jobs,
        sandbox=sandbox,
        max_cost=max_cost,
        keep_workspaces=keep_workspaces,
        replay=replay,
        recordings=recordings,
    )
    ending = Ending(fail_under, exit_zero, as_json, CiOutputs(junit, markdown, github), opened=not no_open)
    asked = Asked(dry_run=dry_run, print_instructions=print_instructions)
    raise typer.Exit(run_agents(request, options, ending, asked))


@agents.command("verify")
def agents_verify(
    exercises: Exercises = None,
    exercise: ExerciseNames = None,
    test_timeout: TestTimeout = 60.0,
    test_command: TestCommand = None,
    unskip: Unskip = True,
    jobs: Jobs = 2,
    sandbox: Sandbox = "auto",
) -> None:
    """Check exercises: each example passes, and what an agent starts from does not; exit 1 if not."""
    from bakeoff.cli.agents_run import verify
    from bakeoff.doors.exercises.request import ExercisesRequest
    from bakeoff.options import RunOptions

    request = ExercisesRequest(
        exercises=exercises,
        wanted=tuple(exercise or ()),
        test_timeout=test_timeout,
        test_command=test_command,
        unskip=unskip,
    )
    raise typer.Exit(verify(request, RunOptions(jobs=jobs, sandbox=sandbox)))


@agents.command("list")
def agents_list(agent_file: AgentFiles = None, as_json: AsJson = False) -> None:
    """Which agents there are, which are installed, and what each of them lacks."""
    from bakeoff.cli.agents_run import list_agents

    list_agents(agent_file or [], as_json=as_json)


@agents.command("leaderboard")
def agents_leaderboard(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILES]...", help="Result files, or folders of them; all if left out."),
    ] = None,
    results: Results = Path("results"),
    as_json: AsJson = False,
    markdown: Markdown = False,
    html: HtmlFile = None,
) -> None:
    """Rank result files: the latest of each agent, model and provider, and which exercises each solved."""
    from bakeoff.cli.agents_board import show_board
    from bakeoff.cli.comparing import Shape

    show_board(results, files or [], Shape(as_json, markdown, html))


@image.command("build")
def agents_image_build(
    engine: Annotated[str | None, typer.Option(help="docker or podman; the one that is there if left out.")] = None,
    tag: Annotated[str, typer.Option(help="What the image is called.")] = "bakeoff-agents",
    agent: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="All that come from a registry if left out. Repeat.")
    ] = None,
    agent_file: AgentFiles = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the command and the Containerfile, and build nothing.")
    ] = False,
) -> None:
    """Build an image with Node, Python, git and agents."""
    from bakeoff.cli.agents_image import build_image

    build_image(engine, tag, agent or [], agent_file or [], dry_run=dry_run)

"""`bakeoff mcp`: how well models understand the tools of MCP servers. Start-up must stay fast, so commands import in
their bodies."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.arguments import (
    AsJson,
    ExitZero,
    GitHub,
    JunitFile,
    MarkdownFile,
    MaxCost,
    NoOpen,
    Recordings,
    Replay,
    Results,
    Trace,
)

mcp = typer.Typer(
    help="How well models understand the tools of MCP servers.", rich_markup_mode=None, no_args_is_help=True
)

ConfigPath = Annotated[
    Path | None,
    typer.Argument(metavar="[PATH]", help="A YAML file, or a folder of them; the nearest one above if left out."),
]

OnlyServers = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this server. Repeat.")]
Commands = Annotated[
    list[str] | None, typer.Option(metavar="TEXT", help="A server's command, instead of a configuration. Repeat.")
]
Urls = Annotated[
    list[str] | None, typer.Option(metavar="URL", help="A server's address, instead of a configuration. Repeat.")
]


@mcp.command("evaluate")
def mcp_evaluate(
    path: ConfigPath = None,
    prompt: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Only cases with this text in their prompts. Repeat.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this model of modelsToTest. Repeat.")] = None,
    case: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only the case of this name, number or tag. Repeat.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Instead of testRound.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Instead of concurrencyLimit.")] = None,
    report: Annotated[Path, typer.Option(metavar="DIR", help="Where the reports go.")] = Path("mcp-report"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything but the servers, and run nothing.")
    ] = False,
    max_cost: MaxCost = None,
    replay: Replay = "off",
    recordings: Recordings = Path(".bakeoff/recordings"),
    trace: Trace = False,
    no_open: NoOpen = False,
    exit_zero: ExitZero = False,
    as_json: AsJson = False,
    junit: JunitFile = None,
    markdown: MarkdownFile = None,
    github: GitHub = False,
    results: Results = Path("results"),
) -> None:
    """Ask every model every prompt, and compare the tools it calls with those it should."""
    from bakeoff.cli.mcp_run import evaluate
    from bakeoff.cli.running import Ending
    from bakeoff.doors.mcp_suite.plan import EvaluationRequest
    from bakeoff.options import RunOptions
    from bakeoff.report.ci import CiOutputs

    request = EvaluationRequest(
        path=path,
        prompts=tuple(prompt or ()),
        models=tuple(model or ()),
        cases=tuple(case or ()),
        rounds=rounds,
        jobs=jobs,
        report=report,
    )
    options = RunOptions(results=results, max_cost=max_cost, replay=replay, recordings=recordings, trace=trace)
    ending = Ending(None, exit_zero, as_json, CiOutputs(junit, markdown, github), opened=not no_open)
    raise typer.Exit(evaluate(request, options, ending, dry_run=dry_run))


@mcp.command("lint")
def mcp_lint(
    path: ConfigPath = None,
    server: OnlyServers = None,
    command: Commands = None,
    url: Urls = None,
    as_json: AsJson = False,
    sarif: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write SARIF, for code hosts.")] = None,
    fail_on: Annotated[str, typer.Option(help="Exit 1 from here on: error, warning or never.")] = "error",
    notes: Annotated[bool, typer.Option(help="Show what is only worth a thought, too.")] = True,
) -> None:
    """Look for what makes tools hard to understand or to offer; needs no model."""
    from bakeoff.cli.mcp_tools import Servers, lint

    servers = Servers(path, server or (), command or (), url or ())
    raise typer.Exit(lint(servers, as_json=as_json, sarif=sarif, fail_on=fail_on, notes=notes))


@mcp.command("generate")
def mcp_generate(
    path: ConfigPath = None,
    server: OnlyServers = None,
    command: Commands = None,
    url: Urls = None,
    model: Annotated[
        str | None, typer.Option(help="Which model words the prompts; templates do where left out.")
    ] = None,
    per_tool: Annotated[int, typer.Option(min=1, max=10, help="Cases for each tool, at most.")] = 2,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="A configuration that the cases are added to.")
    ] = None,
) -> None:
    """Draft test cases from the tools' schemas."""
    from bakeoff.cli.mcp_tools import Servers, generate

    servers = Servers(path, server or (), command or (), url or ())
    raise typer.Exit(generate(servers, model=model, per_tool=per_tool, output=output))


@mcp.command("init")
def mcp_init(
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where to put it.")] = Path(),
    example: Annotated[
        str, typer.Option(help="getting-started, several-servers, custom-provider or directory-suite.")
    ] = "getting-started",
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
) -> None:
    """Write a running example."""
    from bakeoff.cli.mcp_tools import init

    raise typer.Exit(init(directory, example=example, force=force))


@mcp.command("schema")
def mcp_schema() -> None:
    """Print the JSON Schema with which editors check a configuration."""
    from bakeoff.cli.mcp_tools import print_schema

    raise typer.Exit(print_schema())


def main() -> None:
    """`mctest` and `mcp-testing-framework`: the same commands under names of their own."""
    from bakeoff.cli.main import main

    sys.argv[1:1] = ["mcp"]
    main()

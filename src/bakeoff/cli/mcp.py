"""Declare `bakeoff mcp`. Imports nothing heavy, to keep start-up fast."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer
from typer import Argument, Option

from bakeoff.cli.flags import AsJson, EndingFlags, Flags, NoOpen, PlanFlags, flag, values_of, with_flags

FailOn: TypeAlias = Literal["error", "warning", "never"]

mcp = typer.Typer(
    help="Test how well models use the tools of MCP servers.", rich_markup_mode=None, no_args_is_help=True
)

ConfigPath = Annotated[
    Path | None,
    Argument(
        metavar="PATH",
        help="A YAML file, or a folder of them. Default: the nearest configuration here or in a folder above.",
    ),
]


class EvaluationFlags(Flags):
    """Which part of a configuration. The fields are those of `EvaluationRequest`."""

    path: ConfigPath = None
    prompts: list[str] | None = flag(None, "Only cases with this text in the prompt.", "--prompt", metavar="TEXT")
    models: list[str] | None = flag(None, "Only this model of modelsToTest.", "--model")
    cases: list[str] | None = flag(None, "Only cases with this name, number or tag.", "--case")
    rounds: int | None = flag(None, "Overrides testRound.", min=1)
    jobs: int | None = flag(None, "Overrides concurrencyLimit.", min=1)
    report: Path = flag(Path("mcp-report"), "The folder of the reports.", metavar="DIR")


class ServerFlags(Flags):
    """Which servers: those of a configuration, or some that are named directly."""

    path: ConfigPath = None
    only: list[str] | None = flag(None, "Only this server of the configuration.", "--server")
    commands: list[str] | None = flag(
        None, "The command of a server, instead of a configuration.", "--command", metavar="TEXT"
    )
    urls: list[str] | None = flag(None, "The URL of a server, instead of a configuration.", "--url", metavar="URL")


@mcp.command("evaluate")
@with_flags
def mcp_evaluate(
    *,
    wanted: EvaluationFlags,
    flags: PlanFlags,
    no_open: NoOpen = False,
    ending: EndingFlags,
) -> None:
    """Ask every model every prompt, and compare the tools it calls with the expected calls.

    --dry-run checks everything except the servers.
    """
    from bakeoff.cli.mcp_evaluate import evaluate
    from bakeoff.doors.mcp_suite.plan import EvaluationRequest

    request = EvaluationRequest(**values_of(wanted))
    raise typer.Exit(evaluate(request, flags.options(), ending, dry_run=flags.dry_run, opened=not no_open))


@mcp.command("lint")
@with_flags
def mcp_lint(
    *,
    servers: ServerFlags,
    as_json: AsJson = False,
    sarif: Annotated[Path | None, Option(metavar="FILE", help="Also write SARIF, for code hosts.")] = None,
    fail_on: Annotated[FailOn, Option(help="The lowest level of a finding that makes the exit code 1.")] = "error",
    notes: Annotated[bool, Option(help="Show notes, the lowest level of findings.")] = True,
) -> None:
    """Find what makes tools hard for a model to understand or to use. Needs no model."""
    from bakeoff.cli.mcp_tools import Servers, lint

    raise typer.Exit(lint(Servers(**values_of(servers)), as_json=as_json, sarif=sarif, fail_on=fail_on, notes=notes))


@mcp.command("generate")
@with_flags
def mcp_generate(
    *,
    servers: ServerFlags,
    model: Annotated[
        str | None, Option(metavar="NAME", help="The model that words the prompts. Default: templates.")
    ] = None,
    per_tool: Annotated[int, Option(min=1, max=10, metavar="N", help="At most this many cases per tool.")] = 2,
    output: Annotated[
        Path | None,
        Option("--output", "-o", metavar="FILE", help="The configuration to add the cases to. Default: stdout."),
    ] = None,
) -> None:
    """Draft test cases from the schemas of the tools."""
    from bakeoff.cli.mcp_tools import Servers, generate

    raise typer.Exit(generate(Servers(**values_of(servers)), model=model, per_tool=per_tool, output=output))


@mcp.command("init")
def mcp_init(
    directory: Annotated[Path, Argument(metavar="DIR", help="The folder to write to.")] = Path(),
    example: Annotated[
        str, Option(metavar="NAME", help="getting-started, several-servers, custom-provider or directory-suite.")
    ] = "getting-started",
    force: Annotated[bool, Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Write an example that runs as it is."""
    from bakeoff.cli.mcp_tools import init

    raise typer.Exit(init(directory, example=example, force=force))


@mcp.command("schema")
def mcp_schema() -> None:
    """Print the JSON Schema of a configuration, for editors."""
    from bakeoff.cli.mcp_tools import print_schema

    raise typer.Exit(print_schema())

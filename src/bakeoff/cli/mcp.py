"""Declare `bakeoff mcp`. Imports nothing heavy, to keep start-up fast."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from bakeoff.cli.flags import AsJson, EndingFlags, NoOpen, PlanFlags, values_of, with_flags

FailOn: TypeAlias = Literal["error", "warning", "never"]

mcp = typer.Typer(
    help="Test how well models use the tools of MCP servers.", rich_markup_mode=None, no_args_is_help=True
)

ConfigPath = Annotated[
    Path | None,
    typer.Argument(
        metavar="PATH",
        help="A YAML file, or a folder of them. Default: the nearest configuration here or in a folder above.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationFlags:
    """Which part of a configuration. The fields are those of `EvaluationRequest`."""

    path: ConfigPath = None
    prompts: Annotated[
        list[str] | None,
        typer.Option("--prompt", metavar="TEXT", help="Only cases with this text in the prompt. Repeatable."),
    ] = None
    models: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="NAME", help="Only this model of modelsToTest. Repeatable."),
    ] = None
    cases: Annotated[
        list[str] | None,
        typer.Option("--case", metavar="NAME", help="Only cases with this name, number or tag. Repeatable."),
    ] = None
    rounds: Annotated[int | None, typer.Option(min=1, metavar="N", help="Overrides testRound.")] = None
    jobs: Annotated[int | None, typer.Option(min=1, metavar="N", help="Overrides concurrencyLimit.")] = None
    report: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the reports.")] = Path("mcp-report")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFlags:
    """Which servers: those of a configuration, or some that are named directly."""

    path: ConfigPath = None
    only: Annotated[
        list[str] | None,
        typer.Option("--server", metavar="NAME", help="Only this server of the configuration. Repeatable."),
    ] = None
    commands: Annotated[
        list[str] | None,
        typer.Option(
            "--command", metavar="TEXT", help="The command of a server, instead of a configuration. Repeatable."
        ),
    ] = None
    urls: Annotated[
        list[str] | None,
        typer.Option("--url", metavar="URL", help="The URL of a server, instead of a configuration. Repeatable."),
    ] = None


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
    sarif: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write SARIF, for code hosts.")] = None,
    fail_on: Annotated[
        FailOn, typer.Option(help="The lowest level of a finding that makes the exit code 1.")
    ] = "error",
    notes: Annotated[bool, typer.Option(help="Show notes, the lowest level of findings.")] = True,
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
        str | None, typer.Option(metavar="NAME", help="The model that words the prompts. Default: templates.")
    ] = None,
    per_tool: Annotated[int, typer.Option(min=1, max=10, metavar="N", help="At most this many cases per tool.")] = 2,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The configuration to add the cases to. Default: stdout."),
    ] = None,
) -> None:
    """Draft test cases from the schemas of the tools."""
    from bakeoff.cli.mcp_tools import Servers, generate

    raise typer.Exit(generate(Servers(**values_of(servers)), model=model, per_tool=per_tool, output=output))


@mcp.command("init")
def mcp_init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write to.")] = Path(),
    example: Annotated[
        str, typer.Option(metavar="NAME", help="getting-started, several-servers, custom-provider or directory-suite.")
    ] = "getting-started",
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Write an example that runs as it is."""
    from bakeoff.cli.mcp_tools import init

    raise typer.Exit(init(directory, example=example, force=force))


@mcp.command("schema")
def mcp_schema() -> None:
    """Print the JSON Schema of a configuration, for editors."""
    from bakeoff.cli.mcp_tools import print_schema

    raise typer.Exit(print_schema())


def main() -> None:
    """Run `mctest` and `mcp-testing-framework`, which are other names of `bakeoff mcp`."""
    from bakeoff.cli.main import main

    sys.argv[1:1] = ["mcp"]
    main()

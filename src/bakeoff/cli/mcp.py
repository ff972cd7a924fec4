"""Declare `bakeoff mcp`. Imports nothing heavy, to keep start-up fast."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from typer import Argument

from bakeoff.cli.declare import command, flag, group_of
from bakeoff.cli.flags import (
    MIN_COVERAGE,
    AsJson,
    EndingFlags,
    EvaluationFlags,
    NoOpen,
    PlanFlags,
    Port,
    ReportFlags,
    SelectionFlags,
    ServerFlags,
    ServerOptions,
    TuneFlags,
    VersionFlags,
    Yes,
)

FailOn: TypeAlias = Literal["error", "warning", "never"]
FailOnChange: TypeAlias = Literal["breaking", "risky", "cosmetic", "never"]
_TOOLS = "bakeoff.cli.mcp_tools"
_IMPORT = "bakeoff.cli.mcp_import"
_LOOK = "bakeoff.cli.mcp_look"
_SNAPSHOT = "bakeoff.cli.mcp_snapshot"
_LOGIN = "bakeoff.cli.mcp_login"
ServerName = Annotated[
    str | None, Argument(metavar="SERVER", help="A server of the configuration. Default: the only one at a URL.")
]

mcp = group_of("Test how well models use the tools of MCP servers.", "bakeoff mcp evaluate")
imports = group_of("Import cases of other formats.", "bakeoff mcp import bfcl questions.json answers.json -o bfcl.yaml")
mcp.add_typer(imports, name="import")


@command(mcp, "evaluate", "bakeoff.cli.mcp_evaluate")
def evaluate(
    *,
    wanted: EvaluationFlags,
    flags: PlanFlags,
    selection: SelectionFlags,
    html: bool = flag(False, "Accepted for older scripts: the page is always written.", hidden=True),
    opened: bool = flag(False, "Accepted for older scripts: the page is shown anyway.", "--open", hidden=True),
    no_open: NoOpen = False,
    watch: bool = flag(
        False, "After every save, ask the cases whose tools changed and those that failed, until Ctrl-C."
    ),
    ending: EndingFlags,
) -> None:
    """Ask every model every prompt, and compare the tools it calls with the expected calls.

    --dry-run checks everything except the servers.

    Example: bakeoff mcp evaluate mcp-testing-framework.yaml --watch
    """


@command(mcp, "compare", "bakeoff.cli.mcp_compare")
def compare(
    *,
    baseline: Annotated[
        str | None, Argument(metavar="BASELINE", help="The earlier run. Default: the last two runs.")
    ] = None,
    candidate: Annotated[str | None, Argument(metavar="CANDIDATE", help="The later run.")] = None,
    wanted: VersionFlags,
    shown_as: ReportFlags,
) -> None:
    """Show what changed in the servers between two runs, and the points that each tool won or lost.

    Exit codes: 0 no regression is shown, 1 a regression is shown, 3 too much is missing to compare.

    Example: bakeoff mcp compare --markdown
    """


@command(mcp, "tune", "bakeoff.cli.mcp_tune")
def tune(
    *,
    tool: Annotated[str, Argument(metavar="TOOL", help="The tool, as `tool` or `server/tool`.")],
    wanted: TuneFlags,
    flags: PlanFlags,
    shown_as: ReportFlags,
) -> None:
    """Try several descriptions of a tool: some cases choose the best, and others confirm that it is better.

    Exit codes: 0 a better description is confirmed or the present one is best, 1 the winner is not confirmed.

    Example: bakeoff mcp tune get_weather --description "Return the weather of a city." --propose 3
    """


@command(mcp, "lint", _TOOLS)
def lint(
    *,
    servers: ServerFlags,
    as_json: AsJson = False,
    sarif: Path | None = flag(None, "Also write SARIF, for code hosts.", metavar="FILE"),
    fail_on: FailOn = flag("error", "The lowest level of a finding that makes the exit code 1."),
    notes: bool = flag(True, "Show notes, the lowest level of findings."),
) -> None:
    """Find what makes tools hard for a model to understand or to use. Needs no model.

    Example: bakeoff mcp lint --command "python server.py" --fail-on warning
    """


@command(mcp, "generate", _TOOLS)
def generate(
    *,
    servers: ServerFlags,
    model: str | None = flag(None, "The model that words the prompts. Default: templates.", metavar="NAME"),
    per_tool: int = flag(2, "At most this many cases per tool.", min=1, max=10),
    pairs: int = flag(3, "At most this many cases that tell two similar tools apart.", min=0),
    negatives: int = flag(3, "At most this many cases that no tool is for.", min=0),
    output: Path | None = flag(
        None, "The configuration to add the cases to. Default: stdout.", "--output", "-o", metavar="FILE"
    ),
) -> None:
    """Draft test cases from the schemas of the tools.

    Example: bakeoff mcp generate --command "python server.py" -o mcp-testing-framework.yaml
    """


@command(mcp, "coverage", _TOOLS)
def coverage(
    *,
    servers: ServerFlags,
    as_json: AsJson = False,
    min_coverage: float | None = MIN_COVERAGE,
) -> None:
    """Find the tools, parameters and enum values that no case exercises. Needs no model.

    Example: bakeoff mcp coverage --min-coverage 0.8
    """


@command(mcp, "serve", _IMPORT)
def serve(
    *,
    file: Annotated[Path, Argument(metavar="SNAPSHOT", help="What servers offer, as `snapshot` writes it.")],
    name: Annotated[
        str | None, Argument(metavar="SERVER", help="The server of the snapshot. Default: the only one.")
    ] = None,
) -> None:
    """Serve the tools of a snapshot over stdio, without doing anything when they are called.

    Example: bakeoff mcp serve mcp-snapshot.json
    """


@command(imports, "bfcl", _IMPORT)
def bfcl(
    *,
    files: Annotated[list[Path], Argument(metavar="FILE", help="Files with questions, and with possible answers.")],
    models: list[str] | None = flag(None, "A model to test. Default: local:smollm2.", "--model"),
    output: Path = flag(Path("bfcl.yaml"), "The configuration to write.", "--output", "-o", metavar="FILE"),
    force: bool = flag(False, "Overwrite existing files."),
) -> None:
    """Import questions of the Berkeley Function Calling Leaderboard: simple, multiple, parallel, irrelevance.

    Example: bakeoff mcp import bfcl questions.json answers.json -o bfcl.yaml
    """


@command(mcp, "init", _TOOLS)
def init(
    *,
    directory: Annotated[Path, Argument(metavar="DIR", help="The folder to write to.")] = Path(),
    example: str = flag(
        "getting-started",
        "Which one: getting-started, several-servers, custom-provider or directory-suite.",
        metavar="NAME",
    ),
    force: bool = flag(False, "Overwrite existing files."),
) -> None:
    """Write an example that runs as it is.

    Example: bakeoff mcp init my-evals --example several-servers
    """


@command(mcp, "schema", _TOOLS)
def print_schema() -> None:
    """Print the JSON Schema of a configuration, for editors.

    Example: bakeoff mcp schema > mcp-testing-framework.schema.json
    """


@command(mcp, "list", _LOOK)
def list_offers(
    *,
    server: Annotated[str | None, Argument(metavar="SERVER", help="Show this server whole. Default: all.")] = None,
    servers: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Show what servers offer: tools with their parameters, resources and prompts.

    Example: bakeoff mcp list --command "python server.py"
    """


@command(mcp, "call", _LOOK)
def call(
    *,
    tool: Annotated[str, Argument(metavar="TOOL", help="The name of a tool, or server/name.")],
    words: Annotated[
        list[str] | None, Argument(metavar="NAME=VALUE", help="Arguments; a repeated name makes a list.")
    ] = None,
    servers: ServerOptions,
    args: str | None = flag(None, "All arguments as one JSON object; `-` reads stdin.", metavar="JSON"),
    timeout: float = flag(60.0, "How long to wait for the result.", min=0.1, metavar="SECONDS"),
    check: bool = flag(True, "Check the arguments against the tool's schema first."),
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Call one tool and print its result. The exit code is 1 if the tool reports an error.

    Example: bakeoff mcp call get_weather city=Paris --command "python server.py"
    """


@command(mcp, "snapshot", _SNAPSHOT)
def snapshot(
    *,
    servers: ServerFlags,
    output: str | None = flag(
        None,
        "The file to write; `-` is stdout. Default: mcp-snapshot.json beside the configuration.",
        "--output",
        "-o",
        metavar="FILE",
    ),
) -> None:
    """Write the tools, resources and prompts of servers to a file that can be committed.

    Example: bakeoff mcp snapshot -o mcp-snapshot.json
    """


@command(mcp, "diff", _SNAPSHOT)
def diff(
    *,
    before: Annotated[
        Path | None,
        Argument(metavar="BEFORE", help="A snapshot. Default: mcp-snapshot.json beside the configuration."),
    ] = None,
    after: Annotated[
        Path | None, Argument(metavar="AFTER", help="Another snapshot. Default: what the servers offer now.")
    ] = None,
    servers: ServerOptions,
    as_json: AsJson = False,
    sarif: Path | None = flag(None, "Also write SARIF, for code hosts.", metavar="FILE"),
    fail_on: FailOnChange = flag("breaking", "The lowest level of a change that makes the exit code 1."),
) -> None:
    """Show what changed since a snapshot: breaking, risky or cosmetic.

    Example: bakeoff mcp diff mcp-snapshot.json --fail-on risky
    """


@command(mcp, "login", _LOGIN)
def login(
    *,
    server: ServerName = None,
    servers: ServerOptions,
    scope: str | None = flag(None, "The scopes to ask for. Default: those that the server names.", metavar="TEXT"),
    client_id: str | None = flag(None, "A client that is registered already. Default: register one.", metavar="NAME"),
    port: Port = 0,
    timeout: float = flag(300.0, "How long to wait for the login.", min=1, metavar="SECONDS"),
    no_open: NoOpen = False,
) -> None:
    """Log in at a server that uses OAuth. The tokens are kept in a file that only you can read.

    Example: bakeoff mcp login --url https://mcp.example.com/mcp
    """


@command(mcp, "logout", _LOGIN)
def logout(*, server: ServerName = None, servers: ServerOptions) -> None:
    """Forget the tokens of a server.

    Example: bakeoff mcp logout --url https://mcp.example.com/mcp
    """

"""Declare the commands of `bakeoff` and start them.

Start-up must stay fast, so this module imports nothing heavy: the module of a command is imported when it runs.
"""

import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

from bakeoff._kernel.choices import ExportFormat
from bakeoff._version import __version__
from bakeoff.cli.agents import agents
from bakeoff.cli.crash import READER_GONE, accept_every_character, report_crash, shown
from bakeoff.cli.declare import command, flag
from bakeoff.cli.flags import (
    AsJson,
    AuditFlags,
    CompareFlags,
    ComponentsFlags,
    EndingFlags,
    JudgeAuditFlags,
    LabelFlags,
    MergeFlags,
    NoOpen,
    Output,
    OutputFlags,
    Refresh,
    ReportFlags,
    RequireAudit,
    RescoreFlags,
    Results,
    ResumeFlags,
    RunFlags,
    RunName,
    Sandbox,
    SelectionFlags,
    SelfCheckFlags,
    SuiteFlags,
    Trust,
    VerifyFlags,
)
from bakeoff.cli.mcp import mcp
from bakeoff.errors import BakeoffError, InfraError
from bakeoff.storage.redacted_stream import redact_streams

_DEMO_FLAGS = RunFlags(jobs=4)

app = typer.Typer(
    rich_markup_mode=None,  # the rich-formatted help takes three times as long to appear
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    context_settings={"max_content_width": 120},
)
runs = typer.Typer(help="List, show, check and delete past runs.", rich_markup_mode=None, no_args_is_help=True)
models = typer.Typer(help="List models, show prices, download a model.", rich_markup_mode=None, no_args_is_help=True)
suites = typer.Typer(help="Write suites of your own.", rich_markup_mode=None, no_args_is_help=True)
judges = typer.Typer(help="Check model judges against labels of people.", rich_markup_mode=None, no_args_is_help=True)
app.add_typer(runs, name="runs")
app.add_typer(suites, name="suite")
app.add_typer(judges, name="judge")
app.add_typer(models, name="models")
app.add_typer(agents, name="agents")
app.add_typer(mcp, name="mcp")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bakeoff {__version__}")
        raise typer.Exit


Version = Annotated[
    bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
]


@app.callback(invoke_without_command=True)
def bakeoff(
    context: typer.Context,
    version: Version = False,  # noqa: ARG001 - the callback prints it
) -> None:
    """Find out which model, coding agent, MCP server or prompt is better, by how much and at what cost.

    Without a command, bakeoff asks what to do.
    """
    if context.invoked_subcommand is not None:
        return
    from bakeoff.cli.console import can_ask

    if not can_ask():
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)
    from bakeoff.cli.wizard import choose_command

    group = typer.main.get_command(app)
    words = choose_command(group, Path("results"))
    if words is None:
        raise typer.Exit(130)
    group(words, prog_name="bakeoff")


@command(app, "run", "bakeoff.cli.components")
def run_components(
    *,
    context: typer.Context,
    wanted: ComponentsFlags,
    require_audit: RequireAudit = None,
    flags: RunFlags,
    selection: SelectionFlags,
    no_open: NoOpen = False,
    ending: EndingFlags,
) -> None:
    """Benchmark models on component suites: each writes code, the suite's tests grade it.

    Without --model, in a terminal, it asks for what is missing.
    """


@command(app, "verify", "bakeoff.cli.components")
def verify(
    *,
    wanted: SuiteFlags,
    flags: VerifyFlags,
    watch: Annotated[bool, Option("--watch", help="Check suites again whenever their files change.")] = False,
) -> None:
    """Check suites: the reference must pass, an empty and a wrong answer must fail. Exits with 1 if not."""


@command(suites, "new", "bakeoff.cli.suite")
def new(
    *,
    name: Annotated[str, Argument(metavar="NAME", help="The name of the suite, and of its folder.")],
    framework: Annotated[
        Literal["svelte", "react", "vue", "typescript", "python"], Option("--framework", help="What answers are in.")
    ] = "svelte",
    suites: Annotated[
        Path | None, Option("--suites", metavar="DIR", help="The folder of suites. Default: `tests`.")
    ] = None,
) -> None:
    """Write a small suite that verifies, to be changed into your own."""


@command(app, "audit", "bakeoff.cli.audit")
def run_audit(
    *,
    paths: Annotated[
        list[Path] | None,
        Argument(
            metavar="PATH",
            help="A suite, a folder of suites, an exercise, or the checkout of a track. Default: the bundled ones.",
        ),
    ] = None,
    wanted: AuditFlags,
    flags: VerifyFlags,
    as_json: AsJson = False,
    markdown: bool = flag(False, "Print Markdown instead of a table."),
) -> None:
    """Check what tests are worth, without any model: does the reference always pass, do cheats and small faults fail?

    Writes audit.json for --require-audit, a page and a badge. Exits with 1 if a case is not fit for use.
    """


@command(app, "demo", "bakeoff.cli.demo")
def run_demo(*, flags: RunFlags = _DEMO_FLAGS, outputs: OutputFlags) -> None:
    """Run a small bundled plan. Needs no API key and no network."""


@command(app, "doctor", "bakeoff.cli.doctor")
def show_health(*, as_json: AsJson = False, results: Results = Path("results")) -> None:
    """Check this machine: what is installed, what is missing, and how to get it."""


@command(app, "resume", "bakeoff.cli.resume")
def resume_run(*, run: RunName = "latest", flags: ResumeFlags, no_open: NoOpen = False, ending: EndingFlags) -> None:
    """Continue a stopped run, and retry trials that were lost to infra, budget or grader problems."""


@command(app, "rescore", "bakeoff.cli.resume")
def rescore_run(*, run: RunName = "latest", flags: RescoreFlags, ending: EndingFlags) -> None:
    """Score the recorded attempts of a run again, without making new attempts."""


@command(app, "pictures", "bakeoff.cli.pictures")
def picture_run(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    sandbox: Sandbox = "auto",
    no_open: NoOpen = False,
    trust: Trust = False,
) -> None:
    """Take a picture of each component of a run in Chromium, for its page. No score changes."""


@command(app, "compare", "bakeoff.cli.compare")
def run_compare(
    *,
    baseline: Annotated[str, Argument(help="The folder or name of a run, `latest`, or a result file.")],
    wanted: CompareFlags,
    shown_as: ReportFlags,
) -> None:
    """Compare two runs, or two subjects of one run, case by case.

    Exit codes: 0 no regression is shown, 1 a regression is shown, 3 too much is missing to compare.
    """


@command(app, "power", "bakeoff.cli.power")
def run_power(
    *,
    cases: int = flag(30, "How many cases there are.", min=1, max=100_000),
    rounds: int = flag(1, "How often each case is tried.", min=1),
    score: float = flag(0.5, "The score that subjects are expected to have, about.", min=0.01, max=0.99),
    shown_as: ReportFlags,
) -> None:
    """Show how small a difference a design can find, before any money is spent."""


@command(app, "selfcheck", "bakeoff.cli.compare")
def run_selfcheck(*, wanted: SelfCheckFlags, shown_as: ReportFlags) -> None:
    """Run one subject twice and report how often the results disagree."""


@command(app, "leaderboard", "bakeoff.cli.compare")
def run_leaderboard(
    *,
    runs: Annotated[list[str] | None, Argument(metavar="RUN", help="Runs or result files. Default: all runs.")] = None,
    results: Results = Path("results"),
    shown_as: ReportFlags,
) -> None:
    """Rank subjects by their latest results, in groups that cannot be told apart."""


@command(app, "export", "bakeoff.cli.export")
def run_export(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    format_: ExportFormat = flag("csv", "The format to write.", "--format"),
    output: Output = "-",
    subject: str | None = flag(None, "Export only this subject.", metavar="NAME"),
) -> None:
    """Write a run in the format of another tool."""


@command(app, "merge", "bakeoff.cli.merge")
def run_merge(
    *,
    files: Annotated[
        list[Path],
        Argument(metavar="PATH", help="The run folders of --shard, or the files of `pytest --eval-json`: all shards."),
    ],
    wanted: MergeFlags,
) -> None:
    """Merge the results of the shards of one run. Exits with 1 if something failed or a gate is not met."""


@command(app, "report", "bakeoff.cli.pages")
def report_runs(
    *,
    runs: Annotated[
        list[str] | None, Argument(metavar="RUN", help="Runs or result files. Default: the latest run.")
    ] = None,
    results: Results = Path("results"),
    output: Path | None = flag(None, "The page to write, for a single run.", "--output", "-o", metavar="FILE"),
    no_open: NoOpen = False,
) -> None:
    """Write the page of a run: one HTML file with every transcript."""


@command(app, "index", "bakeoff.cli.pages")
def index_results(
    *,
    results: Results = Path("results"),
    output: Path | None = flag(None, "The page to write. Default: index.html.", "--output", "-o", metavar="FILE"),
    no_open: NoOpen = False,
) -> None:
    """Write a page that lists all runs, with search, history and comparison."""


@command(app, "build", "bakeoff.cli.pages")
def build_results(*, results: Results = Path("results"), no_open: NoOpen = False) -> None:
    """Write every page that is missing or out of date, and the index."""


@command(app, "view", "bakeoff.cli.pages")
def view_results(
    *,
    results: Results = Path("results"),
    port: int = flag(0, "The port to listen on; 0 picks a free one.", min=0, max=65535),
    no_open: NoOpen = False,
) -> None:
    """Serve the pages on this machine, and follow runs while they go on."""


@command(app, "label", "bakeoff.cli.judge")
def label_run(*, run: RunName = "latest", wanted: LabelFlags) -> None:
    """Label answers of a run in the browser, by keyboard, to calibrate the judge that scored them.

    Answers are drawn by the judge's score, and shown without it and without the subject. Stop and continue any time.
    """


@command(judges, "audit", "bakeoff.cli.judge")
def run_judge_audit(*, run: RunName = "latest", wanted: JudgeAuditFlags, shown_as: ReportFlags) -> None:
    """Compare a judge with the labels of a run: how often it is right, flips, or is swayed by length or position."""


@command(runs, "list", "bakeoff.cli.runs")
def list_runs(*, results: Results = Path("results"), as_json: AsJson = False) -> None:
    """List all runs, newest first."""


@command(runs, "show", "bakeoff.cli.runs")
def show_run(*, run: RunName = "latest", results: Results = Path("results"), as_json: AsJson = False) -> None:
    """Show the summary of a run and the trials that did not pass."""


@command(runs, "check", "bakeoff.cli.check")
def check_run(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    repair: bool = flag(False, "Keep what is whole, and put damaged lines into a file beside the journal."),
    as_json: AsJson = False,
) -> None:
    """Check the files of a run for damage. Exits with 1 if there is any."""


@command(runs, "sign", "bakeoff.cli.sign")
def run_sign(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    key: Path = flag(..., "The private key, in PEM.", "--key", metavar="FILE"),
    new_key: bool = flag(False, "Make a new key pair: --key and, with .pub added to its name, the public key."),
) -> None:
    """Sign a run with an Ed25519 key, so that others notice any change to it."""


@command(runs, "verify", "bakeoff.cli.sign")
def run_verify(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    key: Path | None = flag(None, "The public key that you trust, in PEM.", "--key", metavar="FILE"),
    as_json: AsJson = False,
) -> None:
    """Verify the signature of a run. Exits with 1 if anything was changed, added or removed since."""


@command(runs, "upload", "bakeoff.cli.runs")
def upload_run(*, run: RunName = "latest", results: Results = Path("results")) -> None:
    """Upload what an object store does not have of a run, such as after the store failed."""


@command(runs, "delete", "bakeoff.cli.runs")
def delete_run(
    *,
    run: RunName,
    results: Results = Path("results"),
    yes: bool = flag(False, "Do not ask for confirmation.", "--yes", "-y"),
) -> None:
    """Delete a run and everything in its folder."""


@command(models, "list", "bakeoff.cli.models")
def list_models(
    *,
    provider: str | None = flag(
        None, "Only models of this provider, such as local, gateway or openai.", metavar="NAME"
    ),
    search: str | None = flag(None, "Only models with this text in the name.", metavar="TEXT"),
    refresh: Refresh = False,
    as_json: AsJson = False,
) -> None:
    """List models with their prices. Uses the network only with --refresh."""


@command(models, "prices", "bakeoff.cli.models")
def show_prices(
    *,
    names: Annotated[list[str], Argument(metavar="MODEL", help="Models, such as anthropic/claude-sonnet-4.")],
    refresh: Refresh = False,
    as_json: AsJson = False,
) -> None:
    """Show what models cost per million tokens, with the source and the date of each price."""


@command(models, "pull", "bakeoff.cli.models")
def pull_model(
    *, name: Annotated[str, Argument(metavar="MODEL", help="A local model from `bakeoff models list`.")]
) -> None:
    """Download a model that runs on this machine, so that runs need no network."""


_Mistake: type[Any] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
"""The error that typer raises for a command line that it cannot read. It has no public name."""


def _tell(mistake: Any) -> int:
    """Print a mistake in the command line in one line, and return the exit code. A group without a command has help."""
    if type(mistake).__name__ == "NoArgsIsHelpError":
        mistake.show()
    else:
        context = getattr(mistake, "ctx", None)
        more = f"; see `{context.command_path} --help`" if context else ""
        text = " ".join(mistake.format_message().split()).removesuffix(".")
        typer.echo(f"error: {shown(text[:1].lower() + text[1:])}{more}", err=True)
    return int(mistake.exit_code)


def main(group: typer.Typer = app) -> None:
    """Run the command line. Report errors in one sentence and by the exit code."""
    try:
        sys.excepthook = report_crash
        if not sys.warnoptions:
            warnings.simplefilter("ignore")  # those of libraries are not for users; `python -W` still shows them
        redact_streams()
        accept_every_character()
        # Not `app()`: that would replace our excepthook by typer's.
        sys.exit(typer.main.get_command(group)(standalone_mode=False) or 0)
    except _Mistake as error:
        sys.exit(_tell(error))
    except typer.Abort:
        typer.echo("aborted", err=True)
        sys.exit(1)
    except BakeoffError as error:
        typer.echo(f"error: {shown(str(error))}", err=True)
        sys.exit(3 if isinstance(error, InfraError) else 2)
    except OSError as error:
        typer.echo(f"error: {shown(str(error.filename or 'a file'))}: {error.strerror or error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # the reader of our output has gone, as with `| head`
            sys.exit(READER_GONE)
        if "bakeoff._kernel.threads" in sys.modules and isinstance(leaving.code, int):  # not loaded by most commands
            from bakeoff._kernel.threads import end_despite_threads

            end_despite_threads(leaving.code)
        raise


def mctest() -> None:
    """Run `mctest` and `mcp-testing-framework`, which are other names of `bakeoff mcp`."""
    group = typer.Typer(rich_markup_mode=None, no_args_is_help=True, context_settings={"max_content_width": 120})
    group.add_typer(mcp)  # without a name: its commands become those of the group

    @group.callback(help=mcp.info.help)
    def mctest(version: Version = False) -> None:
        pass

    main(group)

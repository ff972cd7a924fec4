"""Declare the commands of `bakeoff` and start them.

Start-up must stay fast, so this module imports nothing heavy: the module of a command is imported when it runs.
"""

import sys
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from typer import Argument, Option

from bakeoff._kernel.choices import ExportFormat, LogFormat, StarterKind
from bakeoff._version import __version__
from bakeoff.cli.agents import agents
from bakeoff.cli.crash import READER_GONE, accept_every_character, report_crash, shown
from bakeoff.cli.declare import command, flag, group_of
from bakeoff.cli.flags import (
    ROUNDS,
    AsJson,
    AuditFlags,
    CompareFlags,
    ComponentsFlags,
    EndingFlags,
    EvalFlags,
    EvalRunFlags,
    JudgeAuditFlags,
    LabelFlags,
    Markdown,
    MergeFlags,
    NoOpen,
    Output,
    OutputFlags,
    Port,
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
    Yes,
)
from bakeoff.cli.mcp import mcp
from bakeoff.errors import BakeoffError, InfraError, UsageError
from bakeoff.storage.redacted_stream import redact_streams

_LOG_FORMATS = ", ".join(get_args(LogFormat))

app = group_of(
    "",  # the callback has it
    "bakeoff demo",
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    context_settings={"max_content_width": 120},
)
runs = group_of("List, show, check and delete past runs.", "bakeoff runs show latest")
models = group_of("List models, show prices, download a model.", "bakeoff models list --provider local")
suites = group_of("Write suites of your own.", "bakeoff suite new greeting --framework react")
judges = group_of("Check model judges against labels of people.", "bakeoff judge audit latest")
cache = group_of("Show and clear what can be downloaded or built again.", "bakeoff cache size")
app.add_typer(runs, name="runs")
app.add_typer(cache, name="cache")
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

    Without a command, in a terminal, it asks what you want to find out.
    """
    if context.invoked_subcommand is not None:
        return
    from bakeoff.cli.console import can_ask

    if not can_ask():
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)
    from bakeoff.cli.welcome import choose_aim

    group = typer.main.get_command(app)
    words = choose_aim(group, Path("results"))
    if words is None:
        raise typer.Exit(130)
    group(words, prog_name="bakeoff")


@command(app, "eval", "bakeoff.cli.evals")
def run_eval(
    *,
    wanted: EvalFlags,
    flags: EvalRunFlags,
    selection: SelectionFlags,
    watch: bool = flag(False, "After every save, run only what changed, until Ctrl-C."),
    check: bool = flag(False, "Check the file and what it names, and run nothing."),
    schema: bool = flag(False, "Print the JSON Schema of bakeoff.yaml."),
    no_open: NoOpen = False,
    ending: EndingFlags,
) -> None:
    """Compare models, commands and functions on your own prompts, as bakeoff.yaml says.

    Example: bakeoff eval bakeoff.yaml
    """


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

    Example: bakeoff run --model local:smollm2 --model oracle --suite counter
    """


@command(app, "verify", "bakeoff.cli.components")
def verify(
    *,
    wanted: SuiteFlags,
    flags: VerifyFlags,
    as_json: AsJson = False,
    watch: Annotated[bool, Option("--watch", help="Check suites again whenever their files change.")] = False,
) -> None:
    """Check suites: the reference must pass, an empty and a wrong answer must fail. Exits with 1 if not.

    Example: bakeoff verify --suites tests --watch
    """


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
    """Write a small suite that verifies, to be changed into your own.

    Example: bakeoff suite new greeting --framework react
    """


@command(app, "audit", "bakeoff.cli.audit")
def run_audit(
    *,
    paths: Annotated[
        list[Path] | None,
        Argument(
            metavar="PATH",
            help="A suite, a folder of suites, an exercise, or the checkout of a track. "
            "Default: `tests` if it has suites, else the bundled ones.",
        ),
    ] = None,
    wanted: AuditFlags,
    flags: VerifyFlags,
    as_json: AsJson = False,
    markdown: Markdown = False,
) -> None:
    """Check what tests are worth, without any model: references must pass, cheats and small faults must fail.

    Writes audit.json for --require-audit, a page and a badge. Exits with 1 if a case is not fit for use.

    Example: bakeoff audit tests/my-suite --mutants 50
    """


@command(app, "init", "bakeoff.cli.init")
def init(
    *,
    kind: Annotated[
        StarterKind, Argument(metavar="KIND", help=f"What to begin with: {', '.join(get_args(StarterKind))}.")
    ],
    folder: Annotated[Path, Argument(metavar="DIR", help="The folder to write to.")] = Path(),
    force: bool = flag(False, "Overwrite existing files."),
) -> None:
    """Write a small start that runs as it is.

    Example: bakeoff init eval
    """


@command(app, "demo", "bakeoff.cli.demo")
def run_demo(
    *,
    quick: bool = flag(False, "Only six questions and four small programs, in seconds."),
    flags: RunFlags,
    outputs: OutputFlags,
    no_open: NoOpen = False,
) -> None:
    """Show a slice of everything with a model that runs on this machine. Needs no API key.

    Example: bakeoff demo
    """


@command(app, "doctor", "bakeoff.cli.doctor")
def show_health(*, as_json: AsJson = False, results: Results = Path("results")) -> None:
    """Check this machine: what is installed, what is missing, and how to get it.

    Example: bakeoff doctor --json
    """


@command(app, "resume", "bakeoff.cli.resume")
def resume_run(*, run: RunName = "latest", flags: ResumeFlags, no_open: NoOpen = False, ending: EndingFlags) -> None:
    """Continue a stopped run, and retry trials that were lost to infra, budget or grader problems.

    Example: bakeoff resume latest --max-cost 5
    """


@command(app, "rescore", "bakeoff.cli.resume")
def rescore_run(*, run: RunName = "latest", flags: RescoreFlags, ending: EndingFlags) -> None:
    """Score the recorded attempts of a run again, without making new attempts.

    Example: bakeoff rescore latest --scorer exact
    """


@command(app, "pictures", "bakeoff.cli.pictures")
def picture_run(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    sandbox: Sandbox = "auto",
    no_open: NoOpen = False,
    trust: Trust = False,
) -> None:
    """Take a picture of each component of a run in Chromium, for its page. No score changes.

    Example: bakeoff pictures latest
    """


@command(app, "compare", "bakeoff.cli.compare")
def run_compare(
    *,
    baseline: Annotated[
        str, Argument(metavar="BASELINE", help="The folder or name of a run, `latest`, or a result file.")
    ],
    wanted: CompareFlags,
    shown_as: ReportFlags,
) -> None:
    """Compare two runs, or two subjects of one run, case by case.

    Exit codes: 0 no regression is shown, 1 a regression is shown, 3 too much is missing to compare.

    Example: bakeoff compare latest --subject-a small --subject-b large
    """


@command(app, "power", "bakeoff.cli.power")
def run_power(
    *,
    cases: int = flag(30, "How many cases there are.", min=1, max=100_000),
    rounds: int = ROUNDS,
    score: float = flag(
        0.5, "The score that subjects are expected to have, about.", min=0.01, max=0.99, metavar="SCORE"
    ),
    shown_as: ReportFlags,
) -> None:
    """Show how small a difference a design can find, before any money is spent.

    Example: bakeoff power --cases 50 --rounds 3
    """


@command(app, "selfcheck", "bakeoff.cli.compare")
def run_selfcheck(*, wanted: SelfCheckFlags, shown_as: ReportFlags) -> None:
    """Run one subject twice and report how often the results disagree.

    Example: bakeoff selfcheck latest --subject oracle
    """


@command(app, "leaderboard", "bakeoff.cli.compare")
def run_leaderboard(
    *,
    runs: Annotated[list[str] | None, Argument(metavar="RUN", help="Runs or result files. Default: all runs.")] = None,
    results: Results = Path("results"),
    shown_as: ReportFlags,
) -> None:
    """Rank subjects by their latest results, in groups that cannot be told apart.

    Example: bakeoff leaderboard --html leaderboard.html
    """


@command(app, "export", "bakeoff.cli.export")
def run_export(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    format_: ExportFormat = flag("csv", "The format to write.", "--format"),
    output: Output = "-",
    subject: str | None = flag(None, "Export only this subject.", metavar="NAME"),
) -> None:
    """Write a run in the format of another tool.

    Example: bakeoff export latest --format junit -o junit.xml
    """


@command(app, "import", "bakeoff.cli.import_logs")
def run_import(
    *,
    logs: Annotated[list[Path], Argument(metavar="LOG", help="Files or folders that another tool wrote.")],
    results: Results = Path("results"),
    format_: LogFormat | None = flag(
        None,
        f"One of {_LOG_FORMATS}. Default: by the content.",
        "--format",
        metavar="FORMAT",
    ),
    scorer: list[str] | None = flag(None, "Count only this scorer of a log."),
    threshold: float | None = flag(
        None, "The score from which a trial passes. Default: 1 if all scores are pass or fail.", min=0, max=1
    ),
    as_json: AsJson = False,
) -> None:
    """Make a run of a log of another tool.

    Inspect, Harbor, promptfoo, DeepEval, pydantic-evals and SWE-bench are known. Every command for runs then works on
    it. `compare`, `leaderboard`, `report` and `export` also take a log as it is.

    Example: bakeoff import logs/task.eval
    """


@command(app, "merge", "bakeoff.cli.merge")
def run_merge(
    *,
    files: Annotated[
        list[Path],
        Argument(metavar="PATH", help="The run folders of --shard, or the files of `pytest --eval-json`: all shards."),
    ],
    wanted: MergeFlags,
) -> None:
    """Merge the results of the shards of one run. Exits with 1 if something failed or a gate is not met.

    Example: bakeoff merge shard-1.json shard-2.json -o evals.json
    """


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
    """Write the page of a run: one HTML file with every transcript.

    Example: bakeoff report latest -o page.html
    """


@command(app, "index", "bakeoff.cli.pages")
def index_results(
    *,
    results: Results = Path("results"),
    output: Path | None = flag(None, "The page to write. Default: index.html.", "--output", "-o", metavar="FILE"),
    no_open: NoOpen = False,
) -> None:
    """Write a page that lists all runs, with search, history and comparison.

    Example: bakeoff index --no-open
    """


@command(app, "build", "bakeoff.cli.pages")
def build_results(*, results: Results = Path("results"), no_open: NoOpen = False) -> None:
    """Write every page that is missing or out of date, and the index.

    Example: bakeoff build --no-open
    """


@command(app, "view", "bakeoff.cli.pages")
def view_results(
    *,
    results: Results = Path("results"),
    port: Port = 0,
    no_open: NoOpen = False,
) -> None:
    """Serve the pages on this machine, and follow runs while they go on.

    Example: bakeoff view --port 8000
    """


@command(app, "label", "bakeoff.cli.judge")
def label_run(*, run: RunName = "latest", wanted: LabelFlags) -> None:
    """Label answers of a run in the browser, by keyboard, to calibrate the judge that scored them.

    Answers are drawn by the judge's score, and shown without it and without the subject. Stop and continue any time.

    Example: bakeoff label latest --count 50
    """


@command(judges, "audit", "bakeoff.cli.judge")
def run_judge_audit(*, run: RunName = "latest", wanted: JudgeAuditFlags, shown_as: ReportFlags) -> None:
    """Compare a judge with the labels of a run: how often it is right, flips, or is swayed by length or position.

    Example: bakeoff judge audit latest --html judge.html
    """


@command(runs, "list", "bakeoff.cli.runs")
def list_runs(*, results: Results = Path("results"), as_json: AsJson = False) -> None:
    """List all runs, newest first.

    Example: bakeoff runs list --json
    """


@command(runs, "show", "bakeoff.cli.runs")
def show_run(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    case: str | None = flag(None, "Show only the trial of this case.", metavar="CASE"),
    subject: str | None = flag(None, "With --case: the subject, if there are several.", metavar="NAME"),
    round_: int = flag(1, "With --case: the round.", "--round", metavar="N"),
    as_json: AsJson = False,
) -> None:
    """Show the summary of a run and the trials that did not pass, or one trial.

    Example: bakeoff runs show latest
    """


@command(runs, "check", "bakeoff.cli.check")
def check_run(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    repair: bool = flag(False, "Keep what is whole, and put damaged lines into a file beside the journal."),
    as_json: AsJson = False,
) -> None:
    """Check the files of a run for damage. Exits with 1 if there is any.

    Example: bakeoff runs check latest --repair
    """


@command(runs, "sign", "bakeoff.cli.sign")
def run_sign(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    key: Path = flag(..., "The private key, in PEM.", "--key", metavar="FILE"),
    new_key: bool = flag(False, "Make a new key pair: --key and, with .pub added to its name, the public key."),
) -> None:
    """Sign a run with an Ed25519 key, so that others notice any change to it.

    Example: bakeoff runs sign latest --key me.pem --new-key
    """


@command(runs, "verify", "bakeoff.cli.sign")
def run_verify(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    key: Path | None = flag(None, "The public key that you trust, in PEM.", "--key", metavar="FILE"),
    as_json: AsJson = False,
) -> None:
    """Verify the signature of a run. Exits with 1 if anything was changed, added or removed since.

    Example: bakeoff runs verify latest --key me.pem.pub
    """


@command(runs, "upload", "bakeoff.cli.runs")
def upload_run(*, run: RunName = "latest", results: Results = Path("results")) -> None:
    """Upload what an object store does not have of a run, such as after the store failed.

    Example: bakeoff runs upload latest --results s3://bucket/results
    """


@command(runs, "delete", "bakeoff.cli.runs")
def delete_run(
    *,
    run: RunName,
    results: Results = Path("results"),
    yes: Yes = False,
) -> None:
    """Delete a run and everything in its folder.

    Example: bakeoff runs delete 2026-11-16T09-30-00-demo --yes
    """


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
    """List models with their prices. Uses the network only with --refresh.

    Example: bakeoff models list --provider local
    """


@command(models, "prices", "bakeoff.cli.models")
def show_prices(
    *,
    names: Annotated[list[str], Argument(metavar="MODEL", help="Models, such as anthropic/claude-sonnet-4.")],
    refresh: Refresh = False,
    as_json: AsJson = False,
) -> None:
    """Show what models cost per million tokens, with the source and the date of each price.

    Example: bakeoff models prices anthropic/claude-sonnet-4
    """


@command(models, "pull", "bakeoff.cli.models")
def pull_model(
    *, name: Annotated[str, Argument(metavar="MODEL", help="A local model from `bakeoff models list`.")]
) -> None:
    """Download a model that runs on this machine, so that runs need no network.

    Example: bakeoff models pull smollm2
    """


@command(models, "serve", "bakeoff.cli.serve")
def serve_model(
    *,
    model: str = flag("smollm2", "A local model from `bakeoff models list`.", metavar="MODEL"),
    command: Annotated[
        list[str] | None,
        Argument(metavar="COMMAND", help="Serve while this runs, with variables that name the server."),
    ] = None,
) -> None:
    """Serve a model that runs on this machine to other programs, as a server of the OpenAI API.

    Example: bakeoff models serve
    """


@command(cache, "size", "bakeoff.cli.cache")
def cache_size(*, as_json: AsJson = False) -> None:
    """Show how much space each part of the cache takes.

    Example: bakeoff cache size --json
    """


@command(cache, "clear", "bakeoff.cli.cache")
def cache_clear(
    *,
    parts: Annotated[
        list[str] | None, Argument(metavar="PART", help="As `bakeoff cache size` names it. Default: all.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Delete parts of the cache: models, toolchains and prices are fetched again when they are needed.

    No run and no recording is deleted. Do not clear the cache while something runs.

    Example: bakeoff cache clear toolchains --yes
    """


_Mistake: type[Any] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
"""The error that typer raises for a command line that it cannot read. It has no public name."""


def _tell(mistake: Any) -> int:
    """Print a mistake in the command line in one line, and return the exit code. A group without a command has help."""
    if type(mistake).__name__ == "NoArgsIsHelpError":
        mistake.show()
    else:
        context = getattr(mistake, "ctx", None)
        text = " ".join(mistake.format_message().split()).removesuffix(".").replace("Value error, ", "")
        joined = " See" if text.endswith("?") else "; see"
        more = f"{joined} `{context.command_path} --help`" if context else ""
        typer.echo(f"error: {shown(text[:1].lower() + text[1:])}{more}", err=True)
    return int(mistake.exit_code)


def _refuse_old_forms(words: list[str]) -> None:
    """Raise an error with the way out for a form of an option that older versions had."""
    for word, following in pairwise([*words, ""]):
        given = word.partition("=")[2] or (following if following.endswith((".md", ".markdown", ".txt")) else "")
        if word.partition("=")[0] == "--markdown" and given:
            raise UsageError(f"--markdown {given}: --markdown takes no file any more: write `--markdown -o {given}`")


def main(group: typer.Typer = app) -> None:
    """Run the command line. Report errors in one sentence and by the exit code."""
    try:
        sys.excepthook = report_crash
        if not sys.warnoptions:
            warnings.simplefilter("ignore")  # those of libraries are not for users; `python -W` still shows them
        redact_streams()
        accept_every_character()
        _refuse_old_forms(sys.argv[1:])
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
    group = group_of("", "mctest evaluate", context_settings={"max_content_width": 120})
    group.add_typer(mcp)  # without a name: its commands become those of the group

    @group.callback(help=mcp.info.help)
    def mctest(version: Version = False) -> None:
        pass

    main(group)

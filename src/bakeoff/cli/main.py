"""Declare the commands of `bakeoff` and start them.

Start-up must stay fast, so this module imports nothing heavy: each command imports what it needs in its body.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from bakeoff._kernel.choices import ComparisonGate, ExportFormat
from bakeoff._version import __version__
from bakeoff.cli.agents import agents
from bakeoff.cli.crash import READER_GONE, accept_every_character, report_crash, shown
from bakeoff.cli.flags import (
    AsJson,
    EndingFlags,
    ExitZero,
    Jobs,
    MaxCost,
    NoOpen,
    Output,
    OutputFlags,
    Refresh,
    ReportFlags,
    Results,
    ResumeFlags,
    RunFlags,
    RunName,
    Sandbox,
    values_of,
    with_flags,
)
from bakeoff.cli.mcp import mcp
from bakeoff.cli.run import run_components, verify
from bakeoff.errors import BakeoffError, InfraError
from bakeoff.options import RunOptions

_DEMO_FLAGS = RunFlags(jobs=4)

app = typer.Typer(
    rich_markup_mode=None,  # the rich-formatted help takes three times as long to appear
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    context_settings={"max_content_width": 120},
)
runs = typer.Typer(help="List, show, check and delete past runs.", rich_markup_mode=None, no_args_is_help=True)
models = typer.Typer(help="List models, show prices, download a model.", rich_markup_mode=None, no_args_is_help=True)
app.add_typer(runs, name="runs")
app.add_typer(models, name="models")
app.add_typer(agents, name="agents")
app.add_typer(mcp, name="mcp")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bakeoff {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def bakeoff(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - the callback prints it
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
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


app.command("run")(run_components)
app.command()(verify)


@app.command()
@with_flags
def demo(*, flags: RunFlags = _DEMO_FLAGS, outputs: OutputFlags) -> None:
    """Run a small bundled plan. Needs no API key and no network."""
    from bakeoff.cli.demo import run_demo

    raise typer.Exit(run_demo(flags.options(), EndingFlags(**values_of(outputs)), dry_run=flags.dry_run))


@app.command()
def doctor(as_json: AsJson = False, results: Results = Path("results")) -> None:
    """Check this machine: what is installed, what is missing, and how to get it."""
    from bakeoff.cli.doctor import show_health

    show_health(results, as_json=as_json)


@app.command()
@with_flags
def resume(*, run: RunName = "latest", flags: ResumeFlags, ending: EndingFlags) -> None:
    """Continue a stopped run, and retry trials that were lost to infra, budget or grader problems."""
    if flags.dry_run:
        from bakeoff.cli.dry_run import print_rest

        print_rest(run, flags.options())
        raise typer.Exit
    from bakeoff.cli.run_plan import resume_run

    raise typer.Exit(resume_run(run, flags.options(), ending, keep_sandbox=flags.sandbox is None))


@app.command()
@with_flags
def rescore(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    scorer: Annotated[
        list[str] | None,
        Option(
            metavar="SCORER",
            help='A scorer to use instead of those of the run: a kind (`exact`) or JSON (`{"kind": …}`). Repeatable.',
        ),
    ] = None,
    everything: Annotated[
        bool, Option("--all", help="Also score attempts that these scorers have scored before.")
    ] = False,
    jobs: Jobs = 8,
    sandbox: Sandbox = "auto",
    ending: EndingFlags,
) -> None:
    """Score the recorded attempts of a run again, without making new attempts."""
    from bakeoff.cli.run_plan import rescore_run

    options = RunOptions(results=results, jobs=jobs, sandbox=sandbox, rescore_only=True, rescore_all=everything)
    raise typer.Exit(rescore_run(run, scorer or [], options, ending))


@app.command()
@with_flags
def compare(
    *,
    baseline: Annotated[str, Argument(help="The folder or name of a run, `latest`, or a result file.")],
    candidate: Annotated[
        str | None, Argument(help="The same. Leave it out to compare two subjects of one run.")
    ] = None,
    results: Results = Path("results"),
    subject_a: Annotated[str | None, Option(metavar="NAME", help="The subject to take from the baseline.")] = None,
    subject_b: Annotated[str | None, Option(metavar="NAME", help="The subject to take from the candidate.")] = None,
    gate: Annotated[
        ComparisonGate, Option(help="`regression` is met if the candidate is not worse by more than the margin.")
    ] = "verdict",
    margin: Annotated[
        float | None, Option(min=0, max=1, help="The largest difference that does not matter, such as 0.05.")
    ] = None,
    details: Annotated[int, Option(min=0, metavar="N", help="How many changed cases to show in full.")] = 5,
    shown_as: ReportFlags,
    exit_zero: ExitZero = False,
) -> None:
    """Compare two runs, or two subjects of one run, case by case.

    Exit codes: 0 not worse, 1 worse, 3 undecidable.
    """
    from bakeoff.cli.compare import run_compare

    names, subjects = (baseline, candidate), (subject_a, subject_b)
    raise typer.Exit(run_compare(results, names, subjects, gate, margin, details, shown_as, exit_zero=exit_zero))


@app.command()
@with_flags
def selfcheck(
    *,
    run: Annotated[str | None, Argument(help="The run whose plan to use. Default: the plan of the demo.")] = None,
    results: Results = Path("results"),
    subject: Annotated[str | None, Option(metavar="NAME", help="The subject of the plan to run.")] = None,
    rounds: Annotated[int | None, Option(min=1, metavar="N", help="The rounds of each of the two runs.")] = None,
    jobs: Jobs = 4,
    sandbox: Sandbox = "auto",
    max_cost: MaxCost = None,
    shown_as: ReportFlags,
) -> None:
    """Run one subject twice and report how often the results disagree."""
    from bakeoff.cli.compare import run_selfcheck

    options = RunOptions(results=results, jobs=jobs, sandbox=sandbox, max_cost=max_cost)
    raise typer.Exit(run_selfcheck(run, subject, rounds, options, shown_as))


@app.command()
@with_flags
def leaderboard(
    *,
    runs: Annotated[list[str] | None, Argument(metavar="RUN", help="Runs or result files. Default: all runs.")] = None,
    results: Results = Path("results"),
    shown_as: ReportFlags,
) -> None:
    """Rank subjects by their latest results, in groups that cannot be told apart."""
    from bakeoff.cli.compare import run_leaderboard

    raise typer.Exit(run_leaderboard(results, runs or [], shown_as))


@app.command()
def export(
    run: RunName = "latest",
    results: Results = Path("results"),
    format_: Annotated[ExportFormat, Option("--format", help="The format to write.")] = "csv",
    output: Output = "-",
    subject: Annotated[str | None, Option(metavar="NAME", help="Export only this subject.")] = None,
) -> None:
    """Write a run in the format of another tool."""
    from bakeoff.cli.export import run_export

    raise typer.Exit(run_export(results, run, format_, output, subject))


@app.command()
def merge(
    files: Annotated[
        list[Path], Argument(metavar="FILE", help="The files of `pytest --eval-json`, one for each shard.")
    ],
    output: Output = "-",
    html: Annotated[Path | None, Option(metavar="FILE", help="Also write a self-contained page.")] = None,
    min_pass_rate: Annotated[float | None, Option(min=0, max=1, help="Like --eval-min-pass-rate of pytest.")] = None,
    min_score: Annotated[float | None, Option(min=0, max=1, help="Like --eval-min-score of pytest.")] = None,
    baseline: Annotated[Path | None, Option(metavar="FILE", help="Like --eval-baseline of pytest.")] = None,
) -> None:
    """Merge the eval results of the shards of one pytest run. Exits with 1 if a gate is not met."""
    from bakeoff.cli.merge import run_merge

    raise typer.Exit(run_merge(files, output, html, min_pass_rate, min_score, baseline))


@app.command()
def report(
    runs: Annotated[
        list[str] | None, Argument(metavar="RUN", help="Runs or result files. Default: the latest run.")
    ] = None,
    results: Results = Path("results"),
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="FILE", help="The page to write, for a single run.")
    ] = None,
    no_open: NoOpen = False,
) -> None:
    """Write the page of a run: one HTML file with every transcript."""
    from bakeoff.cli.pages import report_runs

    report_runs(results, runs or [], output, opened=not no_open)


@app.command()
def index(
    results: Results = Path("results"),
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="FILE", help="The page to write. Default: index.html.")
    ] = None,
    no_open: NoOpen = False,
) -> None:
    """Write a page that lists all runs, with search, history and comparison."""
    from bakeoff.cli.pages import index_results

    index_results(results, output, opened=not no_open)


@app.command()
def build(results: Results = Path("results"), no_open: NoOpen = False) -> None:
    """Write every page that is missing or out of date, and the index."""
    from bakeoff.cli.pages import build_results

    raise typer.Exit(build_results(results, opened=not no_open))


@app.command()
def view(
    results: Results = Path("results"),
    port: Annotated[int, Option(min=0, max=65535, help="The port to listen on; 0 picks a free one.")] = 0,
    no_open: NoOpen = False,
) -> None:
    """Serve the pages on this machine, and follow runs while they go on."""
    from bakeoff.cli.pages import view_results

    view_results(results, port, opened=not no_open)


@runs.command("list")
def runs_list(results: Results = Path("results"), as_json: AsJson = False) -> None:
    """List all runs, newest first."""
    from bakeoff.cli.runs import list_runs

    list_runs(results, as_json=as_json)


@runs.command("show")
def runs_show(run: RunName = "latest", results: Results = Path("results"), as_json: AsJson = False) -> None:
    """Show the summary of a run and the trials that did not pass."""
    from bakeoff.cli.runs import show_run

    show_run(results, run, as_json=as_json)


@runs.command("check")
def runs_check(run: RunName = "latest", results: Results = Path("results"), as_json: AsJson = False) -> None:
    """Check the files of a run for damage. Exits with 1 if there is any."""
    from bakeoff.cli.runs import check_run

    raise typer.Exit(check_run(results, run, as_json=as_json))


@runs.command("delete")
def runs_delete(
    run: RunName,
    results: Results = Path("results"),
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete a run and everything in its folder."""
    from bakeoff.cli.runs import delete_run

    delete_run(results, run, yes=yes)


@models.command("list")
def models_list(
    provider: Annotated[
        str | None, Option(metavar="NAME", help="Only models of this provider, such as local, gateway or openai.")
    ] = None,
    search: Annotated[str | None, Option(metavar="TEXT", help="Only models with this text in the name.")] = None,
    refresh: Refresh = False,
    as_json: AsJson = False,
) -> None:
    """List models with their prices. Uses the network only with --refresh."""
    from bakeoff.cli.models import list_models

    raise typer.Exit(list_models(provider, search, refresh=refresh, as_json=as_json))


@models.command("prices")
def models_prices(
    names: Annotated[list[str], Argument(metavar="MODEL", help="Models, such as anthropic/claude-sonnet-4.")],
    refresh: Refresh = False,
    as_json: AsJson = False,
) -> None:
    """Show what models cost per million tokens, with the source and the date of each price."""
    from bakeoff.cli.models import show_prices

    raise typer.Exit(show_prices(names, refresh=refresh, as_json=as_json))


@models.command("pull")
def models_pull(
    name: Annotated[str, Argument(metavar="MODEL", help="A local model from `bakeoff models list`.")],
) -> None:
    """Download a model that runs on this machine, so that runs need no network."""
    from bakeoff.cli.models import pull_model

    raise typer.Exit(pull_model(name))


def main() -> None:
    """Run the command line. Report errors in one sentence and by the exit code."""
    try:
        sys.excepthook = report_crash
        accept_every_character()
        # Not `app()`: that would replace our excepthook by typer's.
        typer.main.get_command(app)()
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
        raise


def mctest() -> None:
    """Run `mctest` and `mcp-testing-framework`, which are other names of `bakeoff mcp`."""
    sys.argv[1:1] = ["mcp"]
    main()

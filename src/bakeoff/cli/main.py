"""The commands and their options. Start-up must stay fast, so this module imports nothing but typer: what a command
needs is imported in its body."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bakeoff._version import __version__
from bakeoff.cli.agents import agents
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
    MaxCost,
    MaxSeconds,
    MaxTokens,
    NoOpen,
    Recordings,
    Refresh,
    Replay,
    Results,
    RunName,
    Sandbox,
    Trace,
)
from bakeoff.cli.crash import READER_GONE, accept_every_character, report_crash, shown
from bakeoff.cli.mcp import mcp
from bakeoff.cli.suites import run_components, verify
from bakeoff.errors import BakeoffError, InfraError

app = typer.Typer(
    help="Which model, coding agent, MCP server or prompt is better, by how much, at what cost, and how sure are we?",
    rich_markup_mode=None,  # the rich-formatted help takes three times as long to appear
    pretty_exceptions_enable=False,
    invoke_without_command=True,
)
runs = typer.Typer(help="Look after past runs.", rich_markup_mode=None, no_args_is_help=True)
app.add_typer(runs, name="runs")
models = typer.Typer(help="Which models there are and what they cost.", rich_markup_mode=None, no_args_is_help=True)
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
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Which model, coding agent, MCP server or prompt is better, by how much, at what cost, and how sure are we?"""
    if context.invoked_subcommand is None:
        _offer_jobs(context)


def _offer_jobs(context: typer.Context) -> None:
    """What `bakeoff` alone does: ask in a terminal, else help, as for any command line that says too little."""
    from bakeoff.cli.wizard import can_ask, choose_job

    if not can_ask():
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)
    words = choose_job()
    if words is None:
        raise typer.Exit(130)
    typer.main.get_command(app)(words, prog_name="bakeoff")


@app.command()
def demo(
    results: Results = Path("results"),
    jobs: Jobs = 4,
    sandbox: Sandbox = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and run nothing.")] = False,
    keep_workspaces: KeepWorkspaces = False,
    replay: Replay = "off",
    recordings: Recordings = Path(".bakeoff/recordings"),
    trace: Trace = False,
    as_json: AsJson = False,
    junit: JunitFile = None,
    markdown: MarkdownFile = None,
    github: GitHub = False,
) -> None:
    """Run a small bundled plan; needs no key and no network."""
    from bakeoff.cli.demo import run_demo
    from bakeoff.cli.running import Ending
    from bakeoff.options import RunOptions
    from bakeoff.report.ci import CiOutputs

    options = RunOptions(
        results=results,
        jobs=jobs,
        sandbox=sandbox,
        keep_workspaces=keep_workspaces,
        replay=replay,
        recordings=recordings,
        trace=trace,
    )
    ending = Ending(as_json=as_json, outputs=CiOutputs(junit, markdown, github))
    raise typer.Exit(run_demo(options, ending, dry_run=dry_run))


app.command("run")(run_components)
app.command()(verify)


@app.command()
def doctor(as_json: AsJson = False, results: Results = Path("results")) -> None:
    """Show what this machine has, what it lacks, and what to do about each gap."""
    from bakeoff.cli.doctor import show_health

    show_health(results, as_json=as_json)


@app.command()
def resume(
    run: RunName = "latest",
    results: Results = Path("results"),
    jobs: Jobs = 8,
    sandbox: Annotated[str, typer.Option(help="As at the start of the run where left out.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what is left and run nothing.")] = False,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_seconds: MaxSeconds = None,
    keep_workspaces: KeepWorkspaces = False,
    replay: Replay = "off",
    recordings: Recordings = Path(".bakeoff/recordings"),
    trace: Trace = False,
    fail_under: FailUnder = None,
    exit_zero: ExitZero = False,
    as_json: AsJson = False,
    junit: JunitFile = None,
    markdown: MarkdownFile = None,
    github: GitHub = False,
) -> None:
    """Go on with a run that was stopped, and try again what was lost to infra, budget or graders."""
    if dry_run:
        from bakeoff.cli.plans import print_rest

        print_rest(results, run)
        raise typer.Exit
    from bakeoff.cli.running import Ending, resume_run
    from bakeoff.options import RunOptions
    from bakeoff.report.ci import CiOutputs

    options = RunOptions(
        results=results,
        jobs=jobs,
        sandbox=sandbox,
        max_cost=max_cost,
        max_tokens=max_tokens,
        max_seconds=max_seconds,
        keep_workspaces=keep_workspaces,
        replay=replay,
        recordings=recordings,
        trace=trace,
    )
    ending = Ending(fail_under, exit_zero, as_json, CiOutputs(junit, markdown, github))
    raise typer.Exit(resume_run(run, options, ending))


@app.command()
def rescore(
    run: RunName = "latest",
    results: Results = Path("results"),
    scorer: Annotated[
        list[str] | None,
        typer.Option(help='Replace the run\'s scorers: a kind (`exact`) or JSON (`{"kind": …}`). Repeat for several.'),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also what these scorers have scored before.")] = False,
    jobs: Jobs = 8,
    sandbox: Sandbox = "auto",
    fail_under: FailUnder = None,
    exit_zero: ExitZero = False,
    as_json: AsJson = False,
) -> None:
    """Score recorded attempts again, without making, or paying for, a new one."""
    from bakeoff.cli.running import Ending, rescore_run
    from bakeoff.options import RunOptions

    options = RunOptions(results=results, jobs=jobs, sandbox=sandbox, rescore_only=True, rescore_all=everything)
    raise typer.Exit(rescore_run(run, scorer or [], options, Ending(fail_under, exit_zero, as_json)))


@app.command()
def compare(
    baseline: Annotated[str, typer.Argument(help="A run's folder, its name, `latest`, or a journal.")],
    candidate: Annotated[str | None, typer.Argument(help="The same; left out, two subjects of one run.")] = None,
    results: Results = Path("results"),
    subject_a: Annotated[str | None, typer.Option(help="The baseline's subject.")] = None,
    subject_b: Annotated[str | None, typer.Option(help="The candidate's subject.")] = None,
    gate: Annotated[
        str, typer.Option(help="verdict, or regression: not being worse than the margin is enough.")
    ] = "verdict",
    margin: Annotated[
        float | None, typer.Option(min=0, max=1, help="A difference that does not matter, such as 0.05.")
    ] = None,
    details: Annotated[int, typer.Option(min=0, help="Changed cases to show line by line.")] = 5,
    as_json: AsJson = False,
    markdown: Markdown = False,
    html: HtmlFile = None,
    exit_zero: ExitZero = False,
) -> None:
    """How much better B is than A, case by case; exit 0 no worse, 1 regressed, 3 undecidable."""
    from bakeoff.cli.comparing import Shape, run_compare

    subjects, shape = (subject_a, subject_b), Shape(as_json, markdown, html)
    names = (baseline, candidate)
    raise typer.Exit(run_compare(results, names, subjects, gate, margin, details, shape, exit_zero=exit_zero))


@app.command()
def selfcheck(
    run: Annotated[str | None, typer.Argument(help="A run whose plan is run again; the demo's if left out.")] = None,
    results: Results = Path("results"),
    subject: Annotated[str | None, typer.Option(help="Which subject of the plan.")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds of each of the two runs.")] = None,
    jobs: Jobs = 4,
    sandbox: Sandbox = "auto",
    max_cost: MaxCost = None,
    as_json: AsJson = False,
    markdown: Markdown = False,
    html: HtmlFile = None,
) -> None:
    """Run one configuration twice and report how often it contradicts itself."""
    from bakeoff.cli.comparing import Shape, run_selfcheck
    from bakeoff.options import RunOptions

    options = RunOptions(results=results, jobs=jobs, sandbox=sandbox, max_cost=max_cost)
    raise typer.Exit(run_selfcheck(run, subject, rounds, options, Shape(as_json, markdown, html)))


@app.command()
def leaderboard(
    runs: Annotated[list[str] | None, typer.Argument(help="Runs or journals; all runs if left out.")] = None,
    results: Results = Path("results"),
    as_json: AsJson = False,
    markdown: Markdown = False,
    html: HtmlFile = None,
) -> None:
    """The latest word on every subject, with groups that cannot be told apart."""
    from bakeoff.cli.comparing import Shape, run_leaderboard

    raise typer.Exit(run_leaderboard(results, runs or [], Shape(as_json, markdown, html)))


@app.command()
def export(
    run: RunName = "latest",
    results: Results = Path("results"),
    format_: Annotated[
        str, typer.Option("--format", help="csv, parquet, inspect, junit, github, markdown or badge.")
    ] = "csv",
    output: Annotated[str, typer.Option("--output", "-o", help="A file, or `-` for stdout.")] = "-",
    subject: Annotated[str | None, typer.Option(help="Only this one, for inspect and badge.")] = None,
) -> None:
    """A run in the formats of other tools."""
    from bakeoff.cli.exporting import run_export

    raise typer.Exit(run_export(results, run, format_, output, subject))


@app.command()
def merge(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Of pytest --eval-json, one for each shard.")],
    output: Annotated[str, typer.Option("--output", "-o", help="A file, or `-` for stdout.")] = "-",
    html: HtmlFile = None,
    min_pass_rate: Annotated[float | None, typer.Option(min=0, max=1, help="As pytest's --eval-min-pass-rate.")] = None,
    min_score: Annotated[float | None, typer.Option(min=0, max=1, help="As pytest's --eval-min-score.")] = None,
    baseline: Annotated[Path | None, typer.Option(metavar="FILE", help="As pytest's --eval-baseline.")] = None,
) -> None:
    """The evals of one run of pytest, from the files of its shards; exit 1 if a gate is not met."""
    from bakeoff.cli.merging import run_merge

    raise typer.Exit(run_merge(files, output, html, min_pass_rate, min_score, baseline))


@app.command()
def report(
    runs: Annotated[list[str] | None, typer.Argument(metavar="[RUN]...", help="Folders, names, or `latest`.")] = None,
    results: Results = Path("results"),
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where one run's page goes.")] = None,
    no_open: NoOpen = False,
) -> None:
    """Make the page of a run: one file, with every transcript in it."""
    from bakeoff.cli.reports import report_runs

    report_runs(results, runs or [], output, opened=not no_open)


@app.command()
def index(
    results: Results = Path("results"),
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Instead of index.html in results.")] = None,
    no_open: NoOpen = False,
) -> None:
    """Make the index over all runs: search, history, two side by side."""
    from bakeoff.cli.reports import index_results

    index_results(results, output, opened=not no_open)


@app.command()
def build(results: Results = Path("results"), no_open: NoOpen = False) -> None:
    """Make every page that is missing or out of date, and the index."""
    from bakeoff.cli.reports import build_results

    raise typer.Exit(build_results(results, opened=not no_open))


@app.command()
def view(
    results: Results = Path("results"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 0,
    no_open: NoOpen = False,
) -> None:
    """Serve the same pages on this machine, and show runs as they go on."""
    from bakeoff.cli.reports import view_results

    view_results(results, port, opened=not no_open)


@runs.command("list")
def runs_list(results: Results = Path("results"), as_json: AsJson = False) -> None:
    """All runs, newest first."""
    from bakeoff.cli.runs import list_runs

    list_runs(results, as_json=as_json)


@runs.command("show")
def runs_show(run: RunName = "latest", results: Results = Path("results"), as_json: AsJson = False) -> None:
    """The summary of one run, and what did not pass."""
    from bakeoff.cli.runs import show_run

    show_run(results, run, as_json=as_json)


@runs.command("check")
def runs_check(run: RunName = "latest", results: Results = Path("results"), as_json: AsJson = False) -> None:
    """Whether a run's files are whole; exit 1 if something is damaged."""
    from bakeoff.cli.runs import check_run

    raise typer.Exit(check_run(results, run, as_json=as_json))


@runs.command("delete")
def runs_delete(
    run: Annotated[str, typer.Argument(help="A run's folder, its name, or `latest`.")],
    results: Results = Path("results"),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a run and everything in its folder."""
    from bakeoff.cli.runs import delete_run

    delete_run(results, run, yes=yes)


@models.command("list")
def models_list(
    provider: Annotated[str | None, typer.Option(help="Only this provider's, such as local, gateway, openai.")] = None,
    search: Annotated[str | None, typer.Option(help="Only models with this text in their names.")] = None,
    refresh: Refresh = False,
    as_json: AsJson = False,
) -> None:
    """Models that can be named, with their prices; without --refresh, nothing is fetched."""
    from bakeoff.cli.models import list_models

    raise typer.Exit(list_models(provider, search, refresh=refresh, as_json=as_json))


@models.command("prices")
def models_prices(
    names: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Such as anthropic/claude-sonnet-4.")],
    refresh: Refresh = False,
    as_json: AsJson = False,
) -> None:
    """What models cost per million tokens, who says so, and since when."""
    from bakeoff.cli.models import show_prices

    raise typer.Exit(show_prices(names, refresh=refresh, as_json=as_json))


@models.command("pull")
def models_pull(name: Annotated[str, typer.Argument(help="A local model, as `bakeoff models list` names it.")]) -> None:
    """Fetch a model that runs on this machine, so that runs need no network."""
    from bakeoff.cli.models import pull_model

    raise typer.Exit(pull_model(name))


def main() -> None:
    """Run the command line; what goes wrong is told in a sentence and an exit code."""
    try:
        sys.excepthook = report_crash
        accept_every_character()
        # Not `app()`: that would put typer's own hook in the place of ours.
        typer.main.get_command(app)()
    except BakeoffError as error:
        typer.echo(f"error: {shown(str(error))}", err=True)
        sys.exit(3 if isinstance(error, InfraError) else 2)  # what is nobody's mistake here leaves things undecided
    except OSError as error:
        typer.echo(f"error: {shown(str(error.filename or 'a file'))}: {error.strerror or error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # whoever read our output went away, as `| head` does
            sys.exit(READER_GONE)
        raise

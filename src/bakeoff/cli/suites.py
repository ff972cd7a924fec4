"""`bakeoff run` and `bakeoff verify`. Start-up must stay fast, so commands import in their bodies."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.arguments import (
    AsJson,
    ExitZero,
    FailUnder,
    GitHub,
    Jobs,
    JunitFile,
    KeepWorkspaces,
    MarkdownFile,
    MaxCost,
    NoOpen,
    Recordings,
    Replay,
    Results,
    Sandbox,
    Trace,
)

Suites = Annotated[Path | None, typer.Option(metavar="DIR", help="Default: `tests` here, else the bundled suites.")]
SuiteNames = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this suite. Repeat for several.")]


def run_components(
    context: typer.Context,
    model: Annotated[
        list[str] | None, typer.Option(help="Such as local:smollm2, oracle or nop. Repeat for several.")
    ] = None,
    mcp: Annotated[
        list[str] | None,
        typer.Option(help="none, http[:URL], stdio[:COMMAND], or several with ` + `. Repeat to compare."),
    ] = None,
    suites: Suites = None,
    suite: SuiteNames = None,
    test_tool: Annotated[bool, typer.Option(help="Let models run the tests before they hand in.")] = True,
    pricing: Annotated[bool, typer.Option(help="Count what calls cost.")] = True,
    hide_tests: Annotated[bool, typer.Option("--hide-tests", help="Leave the tests out of the prompt.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Times that every suite is tried.")] = 1,
    max_steps: Annotated[
        int | None, typer.Option(min=1, help="Answers of a model in one trial: 10, or 2 for one on this machine.")
    ] = None,
    max_cost: MaxCost = None,
    temperature: Annotated[float | None, typer.Option(min=0, help="Of the models; their own where left out.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the first round; the next have the numbers after it.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Of one answer.")] = None,
    jobs: Jobs = 8,
    sandbox: Sandbox = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and run nothing.")] = False,
    keep_workspaces: KeepWorkspaces = False,
    replay: Replay = "off",
    recordings: Recordings = Path(".bakeoff/recordings"),
    trace: Trace = False,
    no_open: NoOpen = False,
    fail_under: FailUnder = None,
    exit_zero: ExitZero = False,
    as_json: AsJson = False,
    junit: JunitFile = None,
    markdown: MarkdownFile = None,
    github: GitHub = False,
    results: Results = Path("results"),
) -> None:
    """Have models write components and run each suite's tests on them; asks for what is left out, in a terminal."""
    from bakeoff.cli.components import Asked, run_components
    from bakeoff.cli.running import Ending
    from bakeoff.doors.components.request import ComponentsRequest
    from bakeoff.options import RunOptions
    from bakeoff.report.ci import CiOutputs

    request = ComponentsRequest(
        suites=suites,
        only=tuple(suite or ()),
        models=tuple(model or ()),
        mcp=tuple(mcp or ("none",)),
        test_tool=test_tool,
        pricing=pricing,
        hide_tests=hide_tests,
        rounds=rounds,
        max_steps=max_steps,
        temperature=temperature,
        seed=seed,
        max_tokens=max_tokens,
    )
    options = RunOptions(
        results=results,
        jobs=jobs,
        sandbox=sandbox,
        max_cost=max_cost,
        keep_workspaces=keep_workspaces,
        replay=replay,
        recordings=recordings,
        trace=trace,
    )
    asked = Asked(given=_given(context), dry_run=dry_run)
    ending = Ending(fail_under, exit_zero, as_json, CiOutputs(junit, markdown, github), opened=not no_open)
    raise typer.Exit(run_components(request, options, ending, asked))


def _given(context: typer.Context) -> set[str]:
    """What the command line itself says, by the names that requests have for it."""
    named = {"model": "models", "suite": "only"}
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {named.get(name, name) for name, source in sources.items() if source and source.name == "COMMANDLINE"}


def verify(
    suites: Suites = None,
    suite: SuiteNames = None,
    jobs: Jobs = 2,
    sandbox: Sandbox = "auto",
) -> None:
    """Check suites: each reference passes, an empty and a wrong answer fail; exit 1 if not."""
    from bakeoff.cli.components import verify
    from bakeoff.options import RunOptions

    raise typer.Exit(verify(suites, suite or [], RunOptions(jobs=jobs, sandbox=sandbox)))

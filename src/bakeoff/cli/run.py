"""Declare `bakeoff run` and `bakeoff verify`. Imports nothing heavy, to keep start-up fast."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.flags import EndingFlags, Jobs, NoOpen, RunFlags, Sandbox, values_of, with_flags
from bakeoff.options import RunOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFlags:
    """Which suites. The fields are those of `ComponentsRequest`."""

    suites: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder of suites. Default: `tests` if it has suites, else the bundled."),
    ] = None
    only: Annotated[
        list[str] | None, typer.Option("--suite", metavar="NAME", help="Use only this suite. Repeatable.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentsFlags(SuiteFlags):
    """Which suites and models, and how the models are asked."""

    models: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="NAME", help="A model, such as local:smollm2, oracle or nop. Repeatable."),
    ] = None
    mcp: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SERVER",
            help="none, http[:URL], stdio[:COMMAND], or several joined by ` + `. Repeat to compare.",
        ),
    ] = None
    test_tool: Annotated[bool, typer.Option(help="Let models run the tests before they submit.")] = True
    pricing: Annotated[bool, typer.Option(help="Compute what the calls cost.")] = True
    hide_tests: Annotated[bool, typer.Option("--hide-tests", help="Leave the tests out of the prompt.")] = False
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="How often to try each suite.")] = 1
    max_steps: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Replies of a model per trial. Default: 10, or 2 for a local model."),
    ] = None
    temperature: Annotated[
        float | None, typer.Option(min=0, help="The temperature of the models. Default: their own.")
    ] = None
    seed: Annotated[int | None, typer.Option(help="The seed of the first round; later rounds count up.")] = None
    max_tokens: Annotated[int | None, typer.Option(min=1, metavar="N", help="The longest reply, in tokens.")] = None


@with_flags
def run_components(
    *,
    context: typer.Context,
    wanted: ComponentsFlags,
    flags: RunFlags,
    no_open: NoOpen = False,
    ending: EndingFlags,
) -> None:
    """Benchmark models on component suites: each writes code, the suite's tests grade it.

    Without --model, in a terminal, it asks for what is missing.
    """
    from bakeoff.cli.components import run_suites
    from bakeoff.doors.components.request import ComponentsRequest

    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = {name for name, source in sources.items() if source and source.name == "COMMANDLINE"}
    request = ComponentsRequest(**values_of(wanted))
    raise typer.Exit(run_suites(request, flags, ending, given=given, opened=not no_open))


@with_flags
def verify(*, wanted: SuiteFlags, jobs: Jobs = 2, sandbox: Sandbox = "auto") -> None:
    """Check suites: the reference must pass, an empty and a wrong answer must fail. Exits with 1 if not."""
    from bakeoff.cli.components import verify
    from bakeoff.doors.components.request import ComponentsRequest

    raise typer.Exit(verify(ComponentsRequest(**values_of(wanted)), RunOptions(jobs=jobs, sandbox=sandbox)))

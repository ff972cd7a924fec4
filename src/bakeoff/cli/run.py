"""Declare `bakeoff run` and `bakeoff verify`. Imports nothing heavy, to keep start-up fast."""

from pathlib import Path

import typer

from bakeoff.cli.flags import EndingFlags, Flags, Jobs, NoOpen, RunFlags, Sandbox, flag, values_of, with_flags
from bakeoff.options import RunOptions


class SuiteFlags(Flags):
    """Which suites. The fields are those of `ComponentsRequest`."""

    suites: Path | None = flag(
        None, "The folder of suites. Default: `tests` if it has suites, else the bundled.", metavar="DIR"
    )
    only: list[str] | None = flag(None, "Use only this suite.", "--suite")


class ComponentsFlags(SuiteFlags):
    """Which suites and models, and how the models are asked."""

    models: list[str] | None = flag(None, "A model, such as local:smollm2, oracle or nop.", "--model")
    mcp: list[str] | None = flag(
        None, "none, http[:URL], stdio[:COMMAND], or several joined by ` + `.", metavar="SERVER"
    )
    test_tool: bool = flag(True, "Let models run the tests before they submit.")
    pricing: bool = flag(True, "Compute what the calls cost.")
    hide_tests: bool = flag(False, "Leave the tests out of the prompt.")
    rounds: int = flag(1, "How often to try each suite.", min=1)
    max_steps: int | None = flag(None, "Replies of a model per trial. Default: 10, or 2 for a local model.", min=1)
    temperature: float | None = flag(None, "The temperature of the models. Default: their own.", min=0)
    seed: int | None = flag(None, "The seed of the first round; later rounds count up.")
    max_tokens: int | None = flag(None, "The longest reply of a model, in tokens.", min=1)


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

"""Implement `bakeoff eval`: prompts × subjects × scorers, from one file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from bakeoff._kernel.text import count_of, visible
from bakeoff.cli.console import out, warn
from bakeoff.cli.declare import PASSED, Flags, command, flag, group_of
from bakeoff.cli.flags import EndingFlags, NoOpen, RunFlags, SelectionFlags
from bakeoff.errors import UsageError
from bakeoff.options import RunOptions

if TYPE_CHECKING:
    from bakeoff.plan import Plan

app = group_of()


class EvalFlags(Flags):
    """Options that choose a part of a prompt configuration, named as in `EvalRequest`."""

    path: Annotated[
        Path | None,
        Argument(
            metavar="FILE",
            help="A bakeoff.yaml, pyproject.toml or promptfooconfig.yaml, or a folder with one. Default: this folder.",
        ),
    ] = None
    prompts: list[str] | None = flag(None, "Only this prompt.", "--prompt")
    subjects: list[str] | None = flag(None, "Only this subject.", "--subject")
    cases: list[str] | None = flag(None, "Only cases with this name or tag.", "--case")
    rounds: int | None = flag(None, "Overrides `rounds`.", min=1)
    judge: str | None = flag(None, "The model of scorers that ask a model. Overrides `judge`.", metavar="MODEL")


@command(app, "eval")
def run_eval(
    *,
    wanted: EvalFlags,
    flags: RunFlags,
    selection: SelectionFlags,
    watch: bool = flag(False, "After every save, run only what changed, until Ctrl-C."),
    check: bool = flag(False, "Check the file and what it names, and run nothing."),
    schema: bool = flag(False, "Print the JSON Schema of bakeoff.yaml."),
    no_open: NoOpen = False,
    ending: EndingFlags,
) -> int:
    """Compare models, commands and functions on your own prompts, as bakeoff.yaml says.

    Example: bakeoff eval bakeoff.yaml
    """

    from bakeoff.cli.run_plan import carry_out, check_plan, print_dry_run
    from bakeoff.doors.eval.config import schema_text
    from bakeoff.doors.eval.find import read_suite
    from bakeoff.doors.eval.plan import EvalRequest, build_plan

    modes = {"--watch": watch, "--check": check, "--schema": schema}
    if len(chosen := [name for name, given in modes.items() if given]) > 1:
        raise UsageError(f"{chosen[0]} and {chosen[1]} do different things: use one of them")
    if schema:
        out().print(schema_text(), end="", soft_wrap=True, markup=False, highlight=False)
        return PASSED
    request = EvalRequest(**wanted.values())
    if watch:
        from bakeoff.cli.watch import EvalWatch, WatchOutputs

        return EvalWatch(request, flags, WatchOutputs(selection, ending, not no_open)).run()
    suite = read_suite(request.path, request.judge)
    if check and suite.mapping:
        from bakeoff.doors.eval.results import mapping_sections
        from bakeoff.report.render.terminal import print_blocks

        print_blocks(out(), mapping_sections(suite))
    else:
        warn(suite.warnings)
    plan = selection.applied(build_plan(suite, request))
    checked = check_plan(plan, run_options(flags, plan))
    if check:
        shape = f"{count_of(len(plan.cases), 'case')} × {count_of(len(plan.subjects), 'subject')}"
        told = f"{visible(str(suite.file))} is fine: {shape} × {count_of(plan.rounds, 'round')}"
        out().print(told, markup=False, highlight=False)
        return PASSED
    if flags.dry_run:
        print_dry_run(checked, ending, file=str(suite.file))
        return PASSED
    return carry_out(checked, ending, opened=not no_open)


def run_options(flags: RunFlags, plan: "Plan") -> RunOptions:
    """Return the options of a run: the command line's options with the limits of the file."""

    from bakeoff.doors.eval.plan import settings_of

    jobs = flags.jobs or settings_of(plan).limits.jobs
    return RunFlags(**{**vars(flags), "jobs": jobs}).options()

"""`bakeoff run` and `bakeoff verify`: suites, models and servers, from the flags or from questions."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.table import Table
from rich.text import Text

from bakeoff.cli.console import err, out
from bakeoff.cli.plans import print_dry_run, print_plan
from bakeoff.cli.running import FAILED, INTERRUPTED, PASSED, Ending, carry_out
from bakeoff.cli.wizard import can_ask
from bakeoff.doors import door_of
from bakeoff.doors.components.plan import build_plan
from bakeoff.doors.components.request import ComponentsRequest
from bakeoff.doors.components.suites import Suite, find_suites
from bakeoff.engine.run import sandbox_of
from bakeoff.errors import InfraError, UsageError
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.report.words import visible
from bakeoff.storage.run_folder import new_run_folder


@dataclass(frozen=True, slots=True)
class Asked:
    """How `bakeoff run` is to go about it, besides what is run."""

    given: Collection[str] = ()  # what the command line has said, and so need not be asked
    dry_run: bool = False


def run_components(request: ComponentsRequest, options: RunOptions, ending: Ending, asked: Asked) -> int:
    """Carry out a request; where it names no model, and someone is there, ask."""
    if not request.models and can_ask():
        from bakeoff.cli.wizard import ask_for_run

        def show(request: ComponentsRequest) -> None:
            print_plan(out(), build_plan(request, suites_of(request)), options.results)

        answers = ask_for_run(request, show, jobs=options.jobs, given=asked.given)
        if answers is None:
            return INTERRUPTED
        request, options = answers.request, replace(options, jobs=answers.jobs)
    if options.max_cost is not None and not request.pricing:
        raise UsageError("--max-cost needs prices, and --no-pricing has none: leave one of them out")
    suites = suites_of(request)
    plan = build_plan(request, suites)
    if asked.dry_run:
        print_dry_run(plan, options.results)
        return PASSED
    return _carry_out(build_plan(request, ready(suites)), options, ending)


def _carry_out(plan: Plan, options: RunOptions, ending: Ending) -> int:
    """All that can be wrong is found before the run has a folder: the plan first, which is quick, then the servers."""
    from bakeoff.doors.components.preflight import check_servers

    door_of(plan).registry(plan, options).resolve(plan, offline=options.replay == "strict")
    asyncio.run(check_servers(plan))
    return carry_out(plan, new_run_folder(options.results, plan.name), options, ending)


def suites_of(request: ComponentsRequest) -> tuple[Suite, ...]:
    """The suites that were asked for; what had to be left out is said."""
    found = find_suites(request.suites, request.only)
    for warning in found.warnings:
        _warn(warning)
    return found.suites


def ready(suites: Sequence[Suite]) -> tuple[Suite, ...]:
    """The suites that can be graded here. Those that need Node are left out, with the way out, where it is absent."""
    if not any(suite.needs_node for suite in suites):
        return tuple(suites)
    why = _node_problem()
    if why is None:
        return tuple(suites)
    rest = tuple(suite for suite in suites if not suite.needs_node)
    left_out = [suite.name for suite in suites if suite.needs_node]
    told = f"{len(left_out)} suites that need Node are left out ({', '.join(left_out)}): {why}"
    if not rest:
        raise UsageError(told)
    _warn(told)
    return rest


def _node_problem() -> str | None:
    """Why nothing can be run by Node; None once its packages are there, which takes a while the first time."""
    from bakeoff.toolchains.node import install_node_toolchain

    try:
        asyncio.run(install_node_toolchain(_say))
    except (InfraError, OSError) as error:
        return str(error)
    return None


def verify(folder: Path | None, only: Sequence[str], options: RunOptions) -> int:
    """Check every suite; 1 if one of them is not fit for use."""
    request = ComponentsRequest(suites=folder, only=tuple(only))
    suites = ready(suites_of(request))
    return asyncio.run(_verify(suites, options))


async def _verify(suites: Sequence[Suite], options: RunOptions) -> int:
    from bakeoff.doors.components.verify import verify_suites

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("suite", "tests", "reference", "empty", "wrong", "time", ""):
        table.add_column(heading, justify="right" if heading in ("tests", "time") else "left")
    checks = await verify_suites(suites, sandbox_of(options), options.jobs)
    for check in checks:
        mark = Text("ok", style="green") if check.ok else Text("not fit", style="bold red")
        answers = (check.reference, check.empty, check.wrong)
        cells = [f"{one.num_passed}/{one.num_tests}" if one else "–" for one in answers]
        table.add_row(Text(visible(check.suite.name)), str(check.tests), *cells, f"{check.seconds:.1f} s", mark)
    out().print(table)
    unfit = [check for check in checks if not check.ok]
    for check in unfit:
        for problem in check.problems:
            out().print(Text(f"{visible(check.suite.name)}: {visible(problem, 2000)}"))
    out().print(f"{len(checks) - len(unfit)} of {len(checks)} suites are fit for use")
    return FAILED if unfit else PASSED


def _warn(message: str) -> None:
    _say(f"warning: {message}")


def _say(message: str) -> None:
    err().print(visible(message, 2000))

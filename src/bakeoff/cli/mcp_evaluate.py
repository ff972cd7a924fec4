"""Carry out `bakeoff mcp evaluate`: every suite of a configuration in turn."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from bakeoff.cli.console import out, print_json, say
from bakeoff.cli.dry_run import plan_json, print_plan
from bakeoff.cli.flags import DecisionFlags, EndingFlags, EvaluationFlags, PlanFlags
from bakeoff.cli.run_plan import PASSED, EndedRun, check_plan, conclude, run_checked
from bakeoff.doors.mcp_suite.plan import EvaluationRequest
from bakeoff.doors.mcp_suite.results.files import McpResults, write_combined
from bakeoff.doors.mcp_suite.suites import SelectedSuite, prepare, read_suites
from bakeoff.errors import InfraError, PlanError, UsageError
from bakeoff.options import RunOptions
from bakeoff.report.formatting import percent, visible
from bakeoff.report.output_files import refuse_unwritable


def evaluate(
    *, wanted: EvaluationFlags, flags: PlanFlags, decision: DecisionFlags, no_open: bool, ending: EndingFlags
) -> int:
    """Evaluate every suite in turn, and return the exit code of the worst."""
    request, options = EvaluationRequest(**wanted.values()), flags.options()
    if request.report.exists() and not request.report.is_dir():
        raise UsageError(f"--report {request.report} is a file: name a folder")
    refuse_unwritable("--report", request.report / "test-report.json")
    ending.outputs()
    read = read_suites(request, options)
    suites = [replace(selected, plan=decision.applied(selected.plan)) for selected in read]
    if problems := [problem for selected in suites for problem in selected.plan.problems()]:
        raise PlanError(problems)  # before any server is started
    if flags.dry_run:
        _print_plans(suites, options, as_json=ending.as_json)
        return PASSED
    ended: dict[str, EndedRun] = {}
    for selected in suites:
        prepared = _prepare(selected, alone=len(suites) == 1)
        if prepared is not None:
            one = run_checked(check_plan(prepared.plan, prepared.options, prepared.door), ending)
            ended[str(selected.suite.file)] = one
            if one.interrupted:
                break
    files: Iterable[Path] = ()
    if len(suites) > 1 and ended:
        written = [one.results for one in ended.values() if isinstance(one.results, McpResults)]
        not_run = [str(each.suite.file) for each in suites if str(each.suite.file) not in ended]
        files = write_combined(written, not_run, request.report)
    return conclude(list(ended.values()), ending, opened=not no_open, planned=len(suites), more_files=files)


def _prepare(selected: SelectedSuite, *, alone: bool) -> SelectedSuite | None:
    """Ask the servers of a suite for their tools. Return None if they fail and there are other suites to run."""
    try:
        prepared = asyncio.run(prepare(selected))
    except InfraError as error:
        if alone:
            raise
        for line in str(error).splitlines():
            say(f"error: {line}")
        return None
    for warning in prepared.door.settings_of(prepared.plan).warnings:
        say(f"warning: {warning}")
    return prepared


def _print_plans(suites: Sequence[SelectedSuite], options: RunOptions, *, as_json: bool) -> None:
    """Print what a run would do; as JSON a list if there are several suites, as without --dry-run."""
    if not as_json:
        for selected in suites:
            _print_rules(selected)
            print_plan(out(), check_plan(selected.plan, options))
        out().print("nothing was run")
        return
    plans = [
        {
            **plan_json(check_plan(selected.plan, options)),
            "file": str(selected.suite.file),
            "mode": selected.suite.config.mode,
        }
        for selected in suites
    ]
    print_json(plans[0] if len(plans) == 1 else plans)


def _print_rules(selected: SelectedSuite) -> None:
    config = selected.suite.config
    rule = "all cells must pass" if config.suiteRule == "all" else f"{percent(config.threshold)} of cells must pass"
    file = visible(str(selected.suite.file))
    out().print(f"{file}: a cell passes at {percent(config.threshold)} of its rounds; {rule}")
    out().print(f"mode {config.mode}, servers: {visible(', '.join(server.name for server in config.mcpServers))}")

"""Carry out `bakeoff mcp evaluate`: every suite of a configuration in turn."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from bakeoff.cli.console import out, say
from bakeoff.cli.dry_run import print_dry_run
from bakeoff.cli.flags import EndingFlags
from bakeoff.cli.run_plan import PASSED, EndedRun, check_plan, conclude, run_checked
from bakeoff.doors.mcp_suite.door import McpResults
from bakeoff.doors.mcp_suite.plan import EvaluationRequest, build_plan
from bakeoff.doors.mcp_suite.results.files import write_combined
from bakeoff.doors.mcp_suite.suites import Asked, Prepared, prepare, read_suites
from bakeoff.errors import InfraError, UsageError
from bakeoff.options import RunOptions
from bakeoff.report.output_files import refuse_unwritable
from bakeoff.report.words import percent, visible


def evaluate(
    request: EvaluationRequest, options: RunOptions, ending: EndingFlags, *, dry_run: bool, opened: bool
) -> int:
    """Evaluate every suite in turn, and return the exit code of the worst."""
    if request.report.exists() and not request.report.is_dir():
        raise UsageError(f"--report {request.report} is a file: name a folder")
    refuse_unwritable("--report", request.report / "test-report.json")
    ending.outputs()
    suites = read_suites(request, options)
    if dry_run:
        for asked in suites:
            _print_plan(asked, options)
        return PASSED
    ended: dict[str, EndedRun] = {}
    for asked in suites:
        prepared = _prepare(asked, options, alone=len(suites) == 1)
        if prepared is not None:
            one = run_checked(check_plan(prepared.plan, prepared.options), ending)
            ended[str(asked.suite.file)] = one
            if one.interrupted:
                break
    files: Iterable[Path] = ()
    if len(suites) > 1 and ended:
        written = [one.results.written for one in ended.values() if isinstance(one.results, McpResults)]
        not_run = [str(asked.suite.file) for asked in suites if str(asked.suite.file) not in ended]
        files = write_combined(written, not_run, request.report)
    return conclude(list(ended.values()), ending, opened=opened, planned=len(suites), more_files=files)


def _prepare(asked: Asked, options: RunOptions, *, alone: bool) -> Prepared | None:
    """Ask the servers of a suite for their tools. Return None if they fail and there are other suites to run."""
    try:
        prepared = asyncio.run(prepare(asked.suite, asked.request, options))
    except InfraError as error:
        if alone:
            raise
        for line in str(error).splitlines():
            say(f"error: {line}")
        return None
    for warning in prepared.warnings:
        say(f"warning: {warning}")
    return prepared


def _print_plan(asked: Asked, options: RunOptions) -> None:
    config = asked.suite.config
    rule = "all cells must pass" if config.suiteRule == "all" else f"{percent(config.threshold)} of cells must pass"
    out().print(f"{visible(str(asked.suite.file))}: a cell passes at {percent(config.threshold)} of its rounds; {rule}")
    out().print(f"mode {config.mode}, servers: {visible(', '.join(server.name for server in config.mcpServers))}")
    print_dry_run(check_plan(build_plan(asked.suite, asked.request), options))

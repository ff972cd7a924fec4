"""Carry out `bakeoff mcp compare`."""

from bakeoff.cli.compare import show
from bakeoff.cli.flags import ReportFlags, VersionFlags
from bakeoff.cli.run_plan import FAILED, PASSED
from bakeoff.doors.mcp.results.versions import describe_versions
from bakeoff.doors.mcp.versions import compare_versions, last_two_runs
from bakeoff.errors import UsageError
from bakeoff.report.readers import find_source


def compare(*, baseline: str | None, candidate: str | None, wanted: VersionFlags, shown_as: ReportFlags) -> int:
    """Compare two runs of an evaluation, by default the last two; return the exit code."""
    if baseline is None:
        first, second = last_two_runs(wanted.results)
    elif candidate is None:
        raise UsageError(f"compare {baseline!r} with what? Name a second run, or none for the last two")
    else:
        first, second = find_source(wanted.results, baseline), find_source(wanted.results, candidate)
    report = compare_versions(first, second)
    show(report.model_dump_json, describe_versions(report), shown_as)
    return PASSED if wanted.exit_zero and report.exit_code == FAILED else report.exit_code

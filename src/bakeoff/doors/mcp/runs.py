"""Find the runs of a configuration, and compare two of them: the changes of the servers, and their effect."""

from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path

from bakeoff._kernel.text import visible
from bakeoff.doors.mcp.plan import DOOR, settings_of
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.mcp.changes import changes
from bakeoff.mcp.snapshot import Snapshot
from bakeoff.plan import Plan
from bakeoff.report.compare.tool_versions import VersionReport, compare_versions
from bakeoff.report.gates import NO_EVIDENCE, GateEvidence
from bakeoff.report.readers import Source, find_source
from bakeoff.storage.run_folder import RunFolder, run_folders

_MAX_RUNS = 50  # earlier runs to look through


def last_two_runs(results: Path) -> tuple[Source, Source]:
    """Return the last two runs of the configuration that was run last; the newest comes second.

    If one of the two may be damaged, raise `UsageError` instead of using another run.
    """
    found = _mcp_runs(reversed(run_folders(results)), skip_damaged=False)
    newest, file = next(found, (None, ""))
    if newest is None:
        raise UsageError(f"{results} has no run of an MCP evaluation: make one with `bakeoff mcp evaluate`")
    earlier = next((folder for folder, other in found if other == file), None)
    if earlier is None:
        raise UsageError(
            f"{results} has only one run of {visible(file, 200)}: change the server and run "
            "`bakeoff mcp evaluate` again, or name two runs (`bakeoff runs` lists them)"
        )
    return _source(results, earlier), _source(results, newest)


def compare_servers(baseline: Source, candidate: Source, common: GateEvidence = NO_EVIDENCE) -> VersionReport:
    """Compare the servers of two runs of an evaluation. Raise `UsageError` for a run of another kind."""
    for source in (baseline, candidate):
        if source.plan.door != DOOR:
            raise UsageError(
                f"{source.name} is not a run of an MCP evaluation: compare it with `bakeoff compare`, or name runs of "
                "`bakeoff mcp evaluate`"
            )
    before, after = (Snapshot.of_tools(settings_of(source.plan).tools) for source in (baseline, candidate))
    return compare_versions(baseline, candidate, changes(before, after), common)


def compare_with_run_before(folder: RunFolder, plan: Plan) -> VersionReport | None:
    """Compare a run with the previous one of its configuration, if the tools have changed since."""
    settings, results = settings_of(plan), folder.path.parent.parent
    older = list(takewhile(lambda each: each.path != folder.path, run_folders(results)))
    runs = _mcp_runs(older[: -_MAX_RUNS - 1 : -1])
    before = next((each for each, file in runs if file == settings.file), None)
    try:
        if before is None or settings_of(before.read_plan()).tools_hash == settings.tools_hash:
            return None
        return compare_servers(_source(results, before), _source(results, folder))
    except BakeoffError:  # the page of a run does not depend on another run
        return None


def _mcp_runs(folders: Iterable[RunFolder], *, skip_damaged: bool = True) -> Iterator[tuple[RunFolder, str]]:
    """Yield the runs of evaluations with their configurations. Damaged ones are skipped, or raise `UsageError`."""
    for folder in folders:
        try:
            plan = folder.read_plan()
            if plan.door == DOOR:
                yield folder, settings_of(plan).file
        except BakeoffError as error:
            if not skip_damaged:
                way_out = f"name two others, or remove the folder {folder.path}"
                raise UsageError(f"one of the last runs is damaged: {error}; {way_out}") from error


def _source(results: Path, folder: RunFolder) -> Source:
    return find_source(results, str(folder.path))

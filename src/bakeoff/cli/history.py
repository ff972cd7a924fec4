"""Implement `bakeoff history`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from bakeoff.cli.console import say
from bakeoff.cli.declare import PASSED, Flags, command, flag, group_of
from bakeoff.cli.flags import ALLOW_UNDECIDED, ReportFlags, Results, allowed_in

if TYPE_CHECKING:
    from bakeoff.report.readers import Source

app = group_of()


class HistoryFlags(Flags):
    """The options of `bakeoff history`."""

    results: Results = Path("results")
    baseline: str | None = flag(None, "The run to compare with. Default: the oldest.", metavar="RUN")
    gate: bool = flag(False, "Exit with 1 if it is worse now, and with 3 if something is missing or not comparable.")
    subject: str | None = flag(None, "The only subject to judge. Default: all of the baseline.", metavar="NAME")
    allow_undecided: str = ALLOW_UNDECIDED
    last: int | None = flag(None, "Show only the last N runs in the table; all are judged.", min=1, metavar="N")


@command(app, "history")
def run_history(
    *,
    runs: Annotated[
        list[str] | None,
        Argument(metavar="RUN", help="Runs or result files, in any order. Default: all runs of the latest plan."),
    ] = None,
    wanted: HistoryFlags,
    shown_as: ReportFlags,
) -> int:
    """Judge a series of runs against a pinned baseline, with one error rate for all looks.

    Says whether it is worse now and since when, and how soon a drop of 10 points would be found.

    Example: bakeoff history --baseline 2026-11-01T02-00-00-nightly --gate
    """

    from bakeoff.cli.run_plan import show_report
    from bakeoff.report.gates import GateEvidence
    from bakeoff.report.history import describe_history, judge_history
    from bakeoff.report.readers import find_source, known_readers

    readers = known_readers()
    report = judge_history(
        [find_source(wanted.results, name, readers) for name in runs] if runs else kept_runs(wanted.results),
        baseline=find_source(wanted.results, wanted.baseline, readers) if wanted.baseline else None,
        subject=wanted.subject,
        common=GateEvidence(allowed=allowed_in(wanted.allow_undecided)),
    )
    show_report(report.model_dump_json, describe_history(report, last=wanted.last), shown_as)
    return report.exit_code if wanted.gate else PASSED


def kept_runs(results: Path) -> "list[Source]":
    """Return all runs under `results` that have the plan name of the latest one."""
    from bakeoff.report.readers import find_source
    from bakeoff.storage.run_folder import LATEST, run_folders
    from bakeoff.storage.store_copy import fetch_all

    fetch_all(results, say)
    name = find_source(results, LATEST).plan.name
    sources = [find_source(results, str(folder.path)) for folder in run_folders(results)]
    return [source for source in sources if source.plan.name == name]

"""Carry out `bakeoff runs`: list, show, check and delete runs."""

import heapq
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from bakeoff._kernel.text import count_of
from bakeoff.cli.console import add_row, out, print_json, say, table
from bakeoff.cli.run_plan import print_spending, summary_facts, summary_json
from bakeoff.cli.show_trial import show_trial
from bakeoff.errors import UsageError
from bakeoff.plan import Plan
from bakeoff.record import Record
from bakeoff.report.blocks import Column, Quote, Table, Words, sparkline
from bakeoff.report.formatting import cost, percent, visible
from bakeoff.report.judges.calibration import Judgements, calibration_table
from bakeoff.report.readers import Source, find_source, is_log
from bakeoff.report.reasons import why_unscored
from bakeoff.report.render.html.index_page import Unreadable, read_entries
from bakeoff.report.render.terminal import print_blocks
from bakeoff.report.run_summary import summary_blocks
from bakeoff.report.summary import CaseVerdicts, RunTally
from bakeoff.storage import store_upload
from bakeoff.storage.labels import read_labels
from bakeoff.storage.run_folder import LATEST, RunFolder, find_run, place_of_runs
from bakeoff.storage.store_copy import fetch_all, store_of

_SHOWN = 20
_FILES = (".json", ".jsonl", ".eval")  # endings of result files
_HISTORY = 100  # scores of earlier runs in JSON
_SPARKS = 10  # scores of earlier runs in the table


def list_runs(*, results: Path, as_json: bool) -> None:
    """Print all runs, newest first."""
    fetch_all(results, say)
    rows = _overviews(results)[::-1]
    if as_json:
        print_json(rows)
        return
    if not rows:
        say(f"{place_of_runs(results)} has no runs yet; `bakeoff demo` makes one")
        return
    columns = [
        column for column in _COLUMNS if column.title != "history" or any(len(row["history"]) > 1 for row in rows)
    ]
    cells = (tuple(_cell(row, column.title) for column in columns) for row in rows)
    print_blocks(out(), [Table(tuple(columns), tuple(cells))])


_COLUMNS = (
    Column("run"),
    Column("state"),
    Column("scored/planned", align="end", drop=1),
    Column("subjects", align="end", drop=4),
    Column("best score", align="end"),
    Column("history", align="end", drop=2, optional=True),
    Column("cost", align="end", drop=3),
)
_KEYS = {"scored/planned": "scored", "best score": "best"}


def _cell(row: dict[str, Any], title: str) -> Words:
    cell = row[_KEYS.get(title, title)]
    if title == "state" and row.get("damaged"):
        cell = f"{cell}, {count_of(row['damaged'], 'damaged line')}"
    return sparkline(cell[-_SPARKS:]) if title == "history" else Quote(str(cell))


def _overviews(results: Path) -> list[dict[str, Any]]:
    """Return one row for each run, oldest first, each with the earlier best scores of its plan over the same cases."""
    histories: dict[tuple[str, str], list[float]] = {}
    rows: list[dict[str, Any]] = []
    for entry in read_entries(results):
        if isinstance(entry, Unreadable):
            blank = dict.fromkeys(("scored", "subjects", "best", "cost"), "")
            rows.append({"run": entry.run, "state": f"unreadable: {entry.reason}", **blank, "history": []})
            continue
        best = max((subject.score for subject in entry.summary.judged if subject.score is not None), default=None)
        history = histories.setdefault((entry.summary.name, entry.cases), [])
        if best is not None:
            history.append(best)
        summary = entry.summary
        rows.append(
            {
                "run": entry.run,
                "state": entry.state,
                "damaged": entry.damaged,
                "scored": f"{sum(subject.scored for subject in summary.subjects)}/{summary.planned}",
                "subjects": len(summary.subjects),
                "best": percent(best),
                "cost": cost(summary.spent.cost),
                "history": history[-_HISTORY:],
            }
        )
    return rows


def show_run(*, run: str, results: Path, case: str | None, subject: str | None, round_: int, as_json: bool) -> None:
    """Print the summary of a run or of a result file and the trials that did not pass, or one trial of a run."""
    if case is not None:
        show_trial(find_run(results, run), case, subject, round_, as_json=as_json)
        return
    if subject is not None or round_ != 1:
        raise UsageError("--subject and --round name a trial: add --case")
    if run != LATEST and (run.endswith(_FILES) or is_log(Path(run))):
        _show_file(find_source(results, run), as_json=as_json)
        return
    folder = find_run(results, run)
    plan = folder.read_plan()
    tally = RunTally(plan)
    judgements = Judgements(plan, read_labels(folder.labels_file), only_labelled=True)
    for record in folder.latest_records(plan):
        tally.add(record)
        judgements.add(record)
    summary = tally.summary()
    if as_json:
        corrected = [one.model_dump(mode="json") for one in judgements.calibrations()]
        print_json({**summary_json(plan, summary, tally, folder, judgements), "calibrations": corrected})
        return
    console = out()
    state = "running" if folder.is_being_written() else summary.outcome
    console.print(f"{folder.label}: {state}")
    corrections = calibration_table(judgements.calibrations(), folder.label)
    blocks = summary_blocks(plan, summary, tally.cells, judgements)
    print_blocks(console, [*blocks, *([corrections] if corrections else [])])
    print_spending(console, summary, folder)
    _print_failures(_first_not_passed(plan, folder.latest_records(plan), tally.cases))


def _show_file(source: Source, *, as_json: bool) -> None:
    plan, tally = source.plan, RunTally(source.plan)
    records = list(source.records())
    for record in records:
        tally.add(record)
    summary = tally.summary()
    if as_json:
        print_json({"file": str(source.path), **summary_facts(plan, summary, tally)})
        return
    out().print(Text(f"{visible(str(source.path), 300)}: {summary.outcome}"))
    print_blocks(out(), summary_blocks(plan, summary, tally.cells))
    _print_failures(_first_not_passed(plan, records, tally.cases))


def _first_not_passed(plan: Plan, records: Iterable[Record], cases: CaseVerdicts) -> list[Record]:
    """Return failed rounds of failed cases in the plan's order, and one more than is shown."""
    failing = (record for record in records if not record.verdict.ok and not cases.passed(record))
    places = {case.id: place for place, case in enumerate(plan.cases)}
    return heapq.nsmallest(_SHOWN + 1, failing, key=lambda record: (record.round, places[record.case], record.subject))


def _print_failures(records: list[Record]) -> None:
    if not records:
        return
    shown = table("verdict", "case", "subject", "round", "why")
    for record in records[:_SHOWN]:
        cells = (record.verdict, record.case, record.subject, str(record.round + 1), why(record))
        add_row(shown, *(Text(visible(cell, 100)) for cell in cells))
    out().print()
    out().print(shown)
    if len(records) > _SHOWN:
        out().print("… and more")


def why(record: Record) -> str:
    """Return in a few words why a trial did not pass."""
    if record.failure:
        return f"{record.failure.type}: {record.failure.message}"
    low = [score for score in record.scores if score.value is not None and score.value < 1]
    reasons = [f"{score.name}: {score.reason}" if score.reason else f"{score.name} {score.value:.2f}" for score in low]
    return "; ".join(reasons) or why_unscored(record) or "no scorer returned a number"


def upload_run(*, run: str, results: Path) -> None:
    """Upload what an object store does not have of a run."""
    local = Path(run)
    folder = RunFolder(local.resolve()) if (local / "plan.json").is_file() else find_run(results, run)
    store = store_of(folder.path.parent.parent)
    if store is None:
        raise UsageError(f"{folder.path} belongs to no object store: name a run with --results s3://…")
    store_upload.upload_run(store, folder.path)
    say(f"uploaded {folder.name} to {store.address}")


def delete_run(*, run: str, results: Path, yes: bool) -> None:
    """Delete a run, after asking for confirmation."""
    folder = find_run(results, run)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"deleting {folder.name} needs confirmation: add --yes where there is no terminal")
        typer.confirm(f"Delete {folder.path} and everything in it?", abort=True)
    store = store_of(folder.path.parent.parent)
    folder.delete()
    say(
        f"deleted {folder.name}"
        if store is None
        else f"deleted the copy of {folder.name}; {store.address} still has it"
    )

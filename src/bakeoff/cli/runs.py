"""`bakeoff runs`: listing, showing, checking and deleting what is kept."""

import heapq
import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from bakeoff.cli.console import err, out, tell_of_damage
from bakeoff.cli.running import print_json, print_spending
from bakeoff.errors import UsageError
from bakeoff.plan import Plan
from bakeoff.record import Record, Verdict
from bakeoff.report import Summary, summarise
from bakeoff.report.case_verdicts import CaseVerdicts
from bakeoff.report.html.entries import Entry, Unreadable, read_entries
from bakeoff.report.outputs import Column, Grid, Quote, Words, sparkline
from bakeoff.report.terminal import print_blocks, print_summary
from bakeoff.report.words import cost, percent, visible
from bakeoff.storage.journal import Damage, Mark
from bakeoff.storage.run_folder import RunFolder, find_run

_SHOWN = 20
_HISTORY = 100  # scores of earlier runs that JSON has
_SPARKS = 10  # and that the table draws


def list_runs(results: Path, *, as_json: bool) -> None:
    rows = _overviews(results)[::-1]
    if as_json:
        out().file.write(json.dumps(rows, indent=2) + "\n")
        return
    if not rows:
        err().print(f"no runs under {results / 'runs'} yet; `bakeoff demo` makes one")
        return
    columns = [
        column for column in _COLUMNS if column.title != "history" or any(len(row["history"]) > 1 for row in rows)
    ]
    cells = (tuple(_cell(row, column.title) for column in columns) for row in rows)
    print_blocks(out(), [Grid(tuple(columns), tuple(cells))])


_COLUMNS = (
    Column("run"),
    Column("state"),
    Column("scored/planned", numeric=True, least_width=60),
    Column("subjects", numeric=True, least_width=110),
    Column("best score", numeric=True),
    Column("history", numeric=True, least_width=80),
    Column("cost", numeric=True, least_width=100),
)
_KEYS = {"scored/planned": "scored", "best score": "best"}


def _cell(row: dict[str, Any], title: str) -> Words:
    if title == "history":
        return sparkline(row["history"][-_SPARKS:])
    return Quote(str(row[_KEYS.get(title, title)]))


def _overviews(results: Path) -> list[dict[str, Any]]:
    """Oldest first, each with the best scores so far of its plan over the same cases."""
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
        rows.append(_overview(entry, best, history))
    return rows


def _overview(entry: Entry, best: float | None, history: list[float]) -> dict[str, Any]:
    summary = entry.summary
    return {
        "run": entry.run,
        "state": entry.state,
        "scored": f"{sum(subject.scored for subject in summary.subjects)}/{summary.planned}",
        "subjects": len(summary.subjects),
        "best": percent(best),
        "cost": cost(summary.spent.cost),
        "history": history[-_HISTORY:],
    }


def _state(folder: RunFolder, summary: Summary) -> str:
    if folder.is_being_written():
        return "running"
    return "complete" if summary.complete else "incomplete"


def show_run(results: Path, name: str, *, as_json: bool) -> None:
    folder = find_run(results, name)
    plan = folder.read_plan()
    damaged: list[Damage] = []
    cases = CaseVerdicts(plan, ruled_only=True)
    summary = summarise(plan, cases.collect(folder.latest_records(plan, damaged)))
    tell_of_damage(len(damaged), folder.label)
    if as_json:
        print_json(summary, folder)
        return
    console = out()
    console.print(f"{folder.label}: {_state(folder, summary)}")
    print_summary(console, summary)
    print_spending(console, summary, folder)
    _print_failures(_first_not_passed(plan, folder, cases))


def _first_not_passed(plan: Plan, folder: RunFolder, cases: CaseVerdicts) -> list[Record]:
    """Return failed rounds of failed cases in the plan's order, and one more than is shown."""
    happy = (Verdict.PASS, Verdict.RECORDED)
    unhappy = (
        record for record in folder.latest_records(plan) if record.verdict not in happy and not cases.passed(record)
    )
    places = {case.id: place for place, case in enumerate(plan.cases)}
    return heapq.nsmallest(_SHOWN + 1, unhappy, key=lambda record: (record.round, places[record.case], record.subject))


def _print_failures(records: list[Record]) -> None:
    if not records:
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("verdict", "case", "subject", "round", "why"):
        table.add_column(heading, overflow="fold")
    for record in records[:_SHOWN]:
        cells = (record.verdict, record.case, record.subject, str(record.round + 1), why(record))
        table.add_row(*(Text(visible(cell, 100)) for cell in cells))
    out().print()
    out().print(table)
    if len(records) > _SHOWN:
        out().print("… and more")


def why(record: Record) -> str:
    """In a few words, why a trial did not pass."""
    if record.failure:
        return f"{record.failure.type}: {record.failure.message}"
    reasons = [
        f"{score.name}: {score.reason}" for score in record.scores if score.value is not None and score.value < 1
    ]
    return "; ".join(reasons) or "no scorer returned a number"


@dataclass(frozen=True, slots=True)
class Health:
    """What was found in a run's files."""

    records: int
    damaged: list[Damage]
    ended: bool
    torn: bool


def check_run(results: Path, name: str, *, as_json: bool) -> int:
    folder = find_run(results, name)
    folder.read_plan()
    health = _health(folder)
    if as_json:
        problems = [{"line": damage.line, "reason": damage.reason} for damage in health.damaged]
        facts = {"run": folder.name, "records": health.records, "damaged": problems, "torn": health.torn}
        out().file.write(json.dumps(facts, indent=2) + "\n")
        return 1 if health.damaged else 0
    console = out()
    console.print(f"{folder.name}: {health.records} records, {len(health.damaged)} damaged lines")
    for damage in health.damaged[:_SHOWN]:
        console.print(Text(f"  {folder.journal_file.name}:{damage.line}: {visible(damage.reason)}"))
    if health.torn:
        console.print(
            "  the last line is torn: a process was killed while it wrote; nothing reported finished is in it"
        )
    if not health.ended and not folder.is_being_written():
        console.print(f"  the last process did not come to an end; go on with `bakeoff resume {folder.name}`")
    if health.damaged:
        console.print("  damaged lines are left out of every report; their trials are run again on resume")
    return 1 if health.damaged else 0


def _health(folder: RunFolder) -> Health:
    counts: Counter[str] = Counter()
    damaged: list[Damage] = []
    ended = False
    for entry in folder.entries():
        counts[type(entry).__name__] += 1
        if isinstance(entry, Damage):
            damaged.append(entry)
        elif isinstance(entry, Mark):
            ended = entry.kind == "end"
    return Health(counts["Record"], damaged, ended, folder.has_torn_line())


def delete_run(results: Path, name: str, *, yes: bool) -> None:
    folder = find_run(results, name)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"deleting {folder.name} needs a yes: add --yes where nobody can be asked")
        typer.confirm(f"Delete {folder.path} and everything in it?", abort=True)
    folder.delete()
    err().print(f"deleted {folder.name}")

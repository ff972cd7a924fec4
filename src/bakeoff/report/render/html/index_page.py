"""Write the index of a results folder: every subject of every run, their history, and two of them side by side."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bakeoff._kernel.text import count_of, visible
from bakeoff.report.blocks import Column, IndexColumn, Section, Table, TextBlock, mark_of
from bakeoff.report.output_files import PUBLIC
from bakeoff.report.render.html.entries import IndexEntry, Unreadable
from bakeoff.report.render.html.render import NAME, Page, ServedPages, chunk, datum_json, menu, write_page
from bakeoff.report.summary import SubjectSummary

INDEX_NAME = "index.html"
LEADERBOARD_NAME = "leaderboard.html"
_RUN = "name title state started cases page size"  # the columns of the page's data
_ROW = (
    "run subject mark control model bound score low high method passed scored units lost missing cost seconds tokens "
    "estimated"
)


def write_index(
    path: Path,
    entries: Iterable[IndexEntry | Unreadable],
    *,
    columns: Sequence[IndexColumn] = (),
    served: ServedPages | None = None,
) -> Path:
    """Write the index. Entries are read one at a time and kept as rows of numbers; transcripts are not in it."""
    shown, unreadable = _IndexRow(served), []
    for entry in entries:
        if isinstance(entry, Unreadable):
            unreadable.append(entry)
        else:
            shown.add(entry)
    more = _unreadable(unreadable)
    page = Page("index", "index.html", path, served)
    before, after = page.halves(
        title="Results · bakeoff",
        menu=[{"id": "runs", "title": "Runs"}, {"id": "history", "title": "History"}, *menu(more)],
        runs=len(shown.runs),
        rows=len(shown.rows),
        sections=more,
        leaderboard=_leaderboard(path, served),
    )
    data = {**shown.data(), "columns": [_column(column) for column in columns]}
    write_page(path, (before, chunk("index", data), *page.data(), after), mode=PUBLIC)
    return path


def _leaderboard(index: Path, served: ServedPages | None) -> str | None:
    """Return the link to the leaderboard: the server makes one, on disk it must be there."""
    if served is not None:
        return served.leaderboard
    return LEADERBOARD_NAME if index.with_name(LEADERBOARD_NAME).is_file() else None


def index_rows(entries: Iterable[IndexEntry], served: ServedPages) -> dict[str, Any]:
    """Return rows that replace those of an open page."""
    shown = _IndexRow(served)
    for entry in entries:
        shown.add(entry)
    return shown.data()


class _IndexRow:
    """The runs and subjects that the page shows, as columns of numbers."""

    def __init__(self, served: ServedPages | None) -> None:
        self._reports = served.reports if served else None
        self.runs: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []

    def add(self, entry: IndexEntry) -> None:
        self.rows += [_row(len(self.runs), subject, entry) for subject in entry.summary.subjects]
        self.runs.append(
            {
                "name": visible(entry.run, NAME),
                "title": visible(entry.summary.name, NAME),
                "state": entry.state,
                "started": entry.started,
                "cases": entry.cases,
                "page": f"{self._reports}{quote(entry.run)}" if self._reports else entry.page,
                "size": f"{entry.summary.cases:,} × {entry.summary.rounds:,}{_damage(entry)}",
            }
        )

    def data(self) -> dict[str, Any]:
        return {"runs": _columns(self.runs, _RUN), "rows": _columns(self.rows, _ROW)}


def _damage(entry: IndexEntry) -> str:
    return f", {count_of(entry.damaged, 'damaged line')}" if entry.damaged else ""


def _row(run: int, subject: SubjectSummary, entry: IndexEntry) -> dict[str, Any]:
    interval = subject.interval
    return {
        "run": run,
        "subject": visible(subject.subject, NAME),
        "model": visible(entry.models.get(subject.subject, ""), NAME),
        "mark": mark_of(subject.subject, control=subject.control),
        "control": int(subject.control),
        "bound": int(subject.bound),
        "score": subject.score,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "method": interval.method if interval else "undefined",
        "passed": subject.passed,
        "scored": subject.judged,
        "units": subject.unit_tests.share if subject.unit_tests else None,
        "lost": ", ".join(f"{count:,} {verdict}" for verdict, count in subject.lost.items()),
        "missing": subject.missing,
        "cost": subject.spent.cost,
        "seconds": subject.seconds,
        "tokens": min(subject.spent.tokens, 2**53) or None,
        "estimated": int(bool(subject.estimated)),
    }


def _columns(rows: list[dict[str, Any]], names: str) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in names.split()}


def _column(column: IndexColumn) -> dict[str, Any]:
    values = {visible(run, NAME): datum_json(value) for run, value in column.values.items()}
    return {"id": column.id, "title": column.title, "align": column.align, "values": values}


def _unreadable(found: Sequence[Unreadable]) -> list[Section]:
    if not found:
        return []
    rows = tuple((one.run, one.reason) for one in found)
    table = Table((Column("Run"), Column("Reason")), rows, "Runs that cannot be shown")
    checked = not all(one.run.endswith(".json") for one in found)  # the command checks runs, not result files
    hint = (TextBlock("`bakeoff runs check` lists the problems of each run.", tone="muted"),) if checked else ()
    return [Section("unreadable", "Not shown", (table, *hint))]

"""Write the index of a results folder: every subject of every run, their history, and two of them side by side."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bakeoff.report.blocks import Column, IndexColumn, Section, Table, Text
from bakeoff.report.formatting import visible
from bakeoff.report.html.entries import Entry, Unreadable
from bakeoff.report.html.render import NAME, Page, Served, chunk, datum_json, menu, write_page
from bakeoff.report.output_files import PUBLIC
from bakeoff.report.summary import SubjectSummary

INDEX_NAME = "index.html"


def write_index(
    path: Path,
    entries: Iterable[Entry | Unreadable],
    *,
    columns: Sequence[IndexColumn] = (),
    sections: Sequence[Section] = (),
    served: Served | None = None,
) -> Path:
    """Write the index. Entries are read one at a time and kept as rows of numbers; transcripts are not in it."""
    shown, unreadable = _Shown(served), []
    for entry in entries:
        if isinstance(entry, Unreadable):
            unreadable.append(entry)
        else:
            shown.add(entry)
    more = [*sections, *_unreadable(unreadable)]
    page = Page("index", "index.html", path, served)
    before, after = page.halves(
        title="Results · bakeoff",
        menu=[{"id": "runs", "title": "Runs"}, {"id": "history", "title": "History"}, *menu(more)],
        runs=len(shown.runs.name),
        rows=len(shown.rows.run),
        sections=more,
    )
    data = {**shown.data(), "columns": [_column(column) for column in columns]}
    write_page(path, (before, chunk("index", data), *page.data(), after), mode=PUBLIC)
    return path


def index_rows(entries: Iterable[Entry], served: Served) -> dict[str, Any]:
    """Return rows that replace those of an open page."""
    shown = _Shown(served)
    for entry in entries:
        shown.add(entry)
    return shown.data()


class _Shown:
    """The runs and subjects that the page shows."""

    def __init__(self, served: Served | None) -> None:
        self.served = served
        self.runs = _Runs()
        self.rows = _Rows()

    def add(self, entry: Entry) -> None:
        at = self.runs.add(entry, self.served)
        for subject in entry.summary.subjects:
            self.rows.add(at, subject, entry)

    def data(self) -> dict[str, Any]:
        return {"runs": vars(self.runs), "rows": vars(self.rows)}


class _Runs:
    """The runs as columns, in the form that the page reads."""

    def __init__(self) -> None:
        self.name: list[str] = []
        self.title: list[str] = []
        self.state: list[str] = []
        self.started: list[float | None] = []
        self.cases: list[str] = []
        self.page: list[str | None] = []
        self.size: list[str] = []

    def add(self, entry: Entry, served: Served | None) -> int:
        summary = entry.summary
        self.name.append(visible(entry.run, NAME))
        self.title.append(visible(summary.name, NAME))
        self.state.append(entry.state)
        self.started.append(entry.started)
        self.cases.append(entry.cases)
        self.page.append(f"{served.reports}{quote(entry.run)}" if served and served.reports else entry.page)
        self.size.append(f"{summary.cases:,} × {summary.rounds:,}")
        return len(self.name) - 1


class _Rows:
    def __init__(self) -> None:
        self.run: list[int] = []
        self.subject: list[str] = []
        self.model: list[str] = []
        self.bound: list[int] = []
        self.score: list[float | None] = []
        self.low: list[float | None] = []
        self.high: list[float | None] = []
        self.method: list[str] = []
        self.passed: list[int] = []
        self.scored: list[int] = []
        self.lost: list[str] = []
        self.missing: list[int] = []
        self.cost: list[float | None] = []
        self.seconds: list[float | None] = []
        self.tokens: list[int] = []

    def add(self, run: int, subject: SubjectSummary, entry: Entry) -> None:
        interval = subject.interval
        self.run.append(run)
        self.subject.append(visible(subject.subject, NAME))
        self.model.append(visible(entry.models.get(subject.subject, ""), NAME))
        self.bound.append(int(subject.bound))
        self.score.append(subject.score)
        self.low.append(interval.low if interval else None)
        self.high.append(interval.high if interval else None)
        self.method.append(interval.method if interval else "undefined")
        self.passed.append(subject.passed)
        self.scored.append(subject.judged)
        self.lost.append(", ".join(f"{count:,} {verdict}" for verdict, count in subject.lost.items()))
        self.missing.append(subject.missing)
        self.cost.append(subject.spent.cost)
        self.seconds.append(subject.seconds)
        self.tokens.append(min(subject.spent.tokens, 2**53))


def _column(column: IndexColumn) -> dict[str, Any]:
    values = {visible(run, NAME): datum_json(value) for run, value in column.values.items()}
    return {"id": column.id, "title": column.title, "align": column.align, "values": values}


def _unreadable(found: Sequence[Unreadable]) -> list[Section]:
    if not found:
        return []
    table = Table(
        (Column("Run"), Column("Reason")), tuple((one.run, one.reason) for one in found), "Runs that cannot be shown"
    )
    hint = Text("`bakeoff runs check` lists the problems of each.", tone="muted")
    return [Section("unreadable", "Not shown", (table, hint))]

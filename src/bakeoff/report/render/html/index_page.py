"""Write the index of a results folder (every subject of every run, and their history) and its leaderboard.

Summaries of runs are cached until their files change. The cache is not in the run folders, because
these are shared and could contain forged numbers.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError

from bakeoff._kernel.environment import cache_folder
from bakeoff._kernel.files import PRIVATE, read_file
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._kernel.text import count_of, visible
from bakeoff._version import __version__
from bakeoff.errors import BakeoffError
from bakeoff.plan import Plan
from bakeoff.report.blocks import Column, IndexColumn, Section, Table, TextBlock, mark_of
from bakeoff.report.formatting import known_cost, percent
from bakeoff.report.leaderboard import NothingToRank, describe_leaderboard, rank_results
from bakeoff.report.output_files import PUBLIC, replace_file
from bakeoff.report.readers import Circumstances, RunFolderReader, Source, circumstances_at, is_log, known_readers
from bakeoff.report.render.html.render import (
    NAME,
    PAGE_NAME,
    Page,
    ServedPages,
    chunk,
    datum_json,
    menu,
    write_page,
    write_report_page,
)
from bakeoff.report.render.html.run_data import State, read_plan, readable_errors
from bakeoff.report.render.html.run_page import Parts, no_parts, write_run_page, write_source_page
from bakeoff.report.summary import SubjectSummary, Summary, summarise
from bakeoff.storage.journal import JournalMark, read_journal
from bakeoff.storage.journal_lines import Damage
from bakeoff.storage.run_folder import RunFolder, run_folders

_SUMMARY, _PAGE = "summary", "page"  # the kinds of cached data


class IndexEntry(FrozenModel):
    """One run of the index."""

    run: str
    started: float | None
    cases: str  # a fingerprint, because only scores over the same cases form a history
    models: dict[str, str]  # by subject, if it names one
    summary: Summary
    damaged: int = 0  # unreadable lines of the journal, which are left out
    state: State = "incomplete"
    page: str | None = None  # a link to the run's page, relative to the results folder


class Unreadable(FrozenModel):
    """A run folder that cannot be shown, with the reason."""

    run: str
    reason: str


def read_entries(results: Path) -> Iterator[IndexEntry | Unreadable]:
    """Yield every run of a results folder, oldest first."""
    clean_up()
    for folder in run_folders(results):
        try:
            entry = read_entry(folder)
            if entry.page is not None and folder.path.parent.parent != results:  # an older place of runs
                elsewhere = Path(os.path.relpath(folder.path.parent.parent, results)).as_posix()
                entry = entry.model_copy(update={"page": f"{quote(elsewhere)}/{entry.page}"})
            yield entry
        except BakeoffError as error:
            yield Unreadable(run=visible(folder.name), reason=visible(str(error), 500))


def read_file_entries(results: Path) -> Iterator[IndexEntry | Unreadable]:
    """Yield every result file of a results folder, except those computed from a run of the same folder."""
    for source in _result_files(results):
        try:
            if source.description.run is None or not (results / "runs" / source.description.run).is_dir():
                yield _of_file(source)
        except BakeoffError as error:
            yield Unreadable(run=visible(source.path.name), reason=visible(str(error), 500))


def _result_files(results: Path) -> Iterator[Source]:
    """Yield the files of a results folder that a reader recognises."""
    readers = known_readers()
    for path in sorted(results.glob("*.json")):
        if reader := next((reader for reader in readers if reader.recognises(path)), None):
            yield Source(path, reader)


def _of_file(source: Source) -> IndexEntry:
    records = list(source.records())
    summary, started = summarise(source.plan, records), min((record.started for record in records), default=None)
    entry = _entry(visible(source.path.name), source.plan, summary, started, source.circumstances())
    page = source.path.with_suffix(".html")
    return entry.model_copy(update={"page": quote(os.fsencode(page.name)) if page.is_file() else None})


def _entry(run: str, plan: Plan, summary: Summary, started: float | None, known: Circumstances) -> IndexEntry:
    named = {spec.name: spec.options.get("model") for spec in plan.subjects}
    models = {name: model if isinstance(model, str) else json.dumps(model) for name, model in named.items() if model}
    cases = fingerprint([(case.id, case.attempt_digest) for case in plan.cases])
    state = known.state_of(plan, summary)
    return IndexEntry(run=run, started=started, cases=cases, models=models, summary=summary, state=state)


def read_entry(folder: RunFolder) -> IndexEntry:
    """Read a run from the cache if it has not changed, otherwise from its journal."""
    with readable_errors(folder):
        key = cache_key(folder)
        try:
            entry = IndexEntry.model_validate_json(load(folder, _SUMMARY, key) or b"")
        except ValidationError:
            entry = _fresh(folder, key)
        running = folder.is_being_written()
    state: State = "running" if running else entry.state
    page = f"runs/{quote(os.fsencode(folder.name))}/{PAGE_NAME}" if (folder.path / PAGE_NAME).is_file() else None
    return entry.model_copy(update={"state": state, "page": page})


def page_is_current(folder: RunFolder) -> bool:
    """Tell whether this machine made the run's page from the current plan and journal."""
    page = folder.path / PAGE_NAME
    with readable_errors(folder):
        return page.is_file() and load(folder, _PAGE, _page_key(cache_key(folder), page)) is not None


def write_current_page(folder: RunFolder, *, parts: Parts = no_parts) -> Path:
    """Write the page beside the journal, and remember from which state of the files it was made."""
    with readable_errors(folder):
        before = cache_key(folder)
    page = write_run_page(folder, parts=parts)
    store(folder, _PAGE, _page_key(before, page), b"")
    return page


def _page_key(made_from: str, page: Path) -> str:
    """Return a key that includes the page file: a copied folder may contain a foreign page."""
    return fingerprint(made_from, file_state(page))


def _fresh(folder: RunFolder, key: str) -> IndexEntry:
    plan = read_plan(folder)
    damaged: list[Damage] = []
    summary = summarise(plan, folder.latest_records(plan, damaged))
    first = next(iter(read_journal(folder.journal_file)), None) if folder.started else None
    time = first.facts.get("time") if isinstance(first, JournalMark) else None
    started = float(time) if isinstance(time, int | float) else None
    known = circumstances_at(next(folder.newest_first(), None)).model_copy(update={"damaged": len(damaged)})
    entry = _entry(folder.label, plan, summary, started, known).model_copy(update={"damaged": len(damaged)})
    store(folder, _SUMMARY, key, entry.model_dump_json().encode(errors="replace"))
    return entry


_FORMAT = 8
_CACHE_FOLDER = "runs"
_MAX_ENTRY_BYTES = 1024 * 1024
_MAX_CACHE_BYTES = 64 * 1024 * 1024
_BLOCK = 4096


def cache_key(folder: RunFolder) -> str:
    """Return a key that changes whenever the plan, the journal, the labels or the pictures change."""
    files = (folder.plan_file, folder.journal_file, folder.seal_file, folder.labels_file, folder.pictures)
    return fingerprint(_FORMAT, __version__, *map(file_state, files))


def load(folder: RunFolder, what: str, key: str) -> bytes | None:
    """Return the cached data with this key, or None."""
    try:
        found, _, data = read_file(cache_file(folder, what)).partition(b"\n")
    except OSError:
        return None
    return data if found == key.encode() else None


def store(folder: RunFolder, what: str, key: str, data: bytes) -> None:
    """Store data. Errors are ignored: the data is then computed again each time."""
    if len(data) <= _MAX_ENTRY_BYTES:
        with suppress(BakeoffError), replace_file(cache_file(folder, what), PRIVATE) as file:
            file.write_bytes(key.encode() + b"\n" + data)


def cache_file(folder: RunFolder, what: str) -> Path:
    """Return the path of a run's cached data; the file name is a hash of the run's path."""
    name = hashlib.blake2b(os.fsencode(folder.path.resolve()), digest_size=16).hexdigest()
    return cache_folder() / _CACHE_FOLDER / f"{name}.{what}"


def clean_up(most: int = _MAX_CACHE_BYTES) -> None:
    """Remove the oldest entries until the cache is small enough."""
    with suppress(OSError):  # another process may clean_up at the same time
        with os.scandir(cache_folder() / _CACHE_FOLDER) as entries:
            found = [(entry.stat(), entry.path) for entry in entries]
        room = most
        for status, path in sorted(found, key=lambda one: one[0].st_mtime_ns, reverse=True):
            room -= -(-status.st_size // _BLOCK) * _BLOCK
            if room < 0:
                Path(path).unlink(missing_ok=True)


def file_state(file: Path) -> list[int] | None:
    """Return size, time and inode of a file, which change with its content."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ino]


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
    """Write the index. Entries are read one at a time and kept as rows, without transcripts."""
    shown, unreadable = _IndexRow(served), []
    for entry in entries:
        if isinstance(entry, Unreadable):
            unreadable.append(entry)
        else:
            shown.add(entry)
    more = _unreadable(unreadable)
    beside = path.with_name(LEADERBOARD_NAME)
    page = Page("index", "index.html", path, served)
    before, after = page.halves(
        title="Results · bakeoff",
        menu=[{"id": "runs", "title": "Runs"}, {"id": "history", "title": "History"}, *menu(more)],
        runs=len(shown.runs),
        rows=len(shown.rows),
        sections=more,
        # The server makes a leaderboard; on disk it must be there.
        leaderboard=served.leaderboard if served else LEADERBOARD_NAME if beside.is_file() else None,
    )
    more_columns = []
    for column in columns:
        values = {visible(run, NAME): datum_json(value) for run, value in column.values.items()}
        more_columns.append({"id": column.id, "title": column.title, "align": column.align, "values": values})
    data = {**shown.data(), "columns": more_columns}
    write_page(path, (before, chunk("index", data), *page.data(), after), mode=PUBLIC)
    return path


def index_rows(entries: Iterable[IndexEntry], served: ServedPages) -> dict[str, Any]:
    """Return the rows that update a page that is open in a browser."""
    shown = _IndexRow(served)
    for entry in entries:
        shown.add(entry)
    return shown.data()


class _IndexRow:
    """The rows of the index: the runs and subjects that the page shows."""

    def __init__(self, served: ServedPages | None) -> None:
        self._reports = served.reports if served else None
        self.runs: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []

    def add(self, entry: IndexEntry) -> None:
        damage = f", {count_of(entry.damaged, 'damaged line')}" if entry.damaged else ""
        self.rows += [_row(len(self.runs), subject, entry) for subject in entry.summary.subjects]
        self.runs.append(
            {
                "name": visible(entry.run, NAME),
                "title": visible(entry.summary.name, NAME),
                "state": entry.state,
                "started": entry.started,
                "cases": entry.cases,
                "page": f"{self._reports}{quote(entry.run)}" if self._reports else entry.page,
                "size": f"{entry.summary.cases:,} × {entry.summary.rounds:,}{damage}",
            }
        )

    def data(self) -> dict[str, Any]:
        """Return the rows as columns, which the scripts of the page read."""
        return {"runs": _columns(self.runs, _RUN), "rows": _columns(self.rows, _ROW)}


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


def _unreadable(found: Sequence[Unreadable]) -> list[Section]:
    if not found:
        return []
    rows = tuple((one.run, one.reason) for one in found)
    table = Table((Column("Run"), Column("Reason")), rows, "Runs that cannot be shown")
    checked = not all(one.run.endswith(".json") for one in found)  # the command checks runs, not result files
    hint = (TextBlock("`bakeoff runs check` lists the problems of each run.", tone="muted"),) if checked else ()
    return [Section("unreadable", "Not shown", (table, *hint))]


def write_leaderboard(results: Path, path: Path, *, served: ServedPages | None = None) -> Path:
    """Rank the subjects of every readable run, and write the page."""
    board = rank_results(Source(folder.path, RunFolderReader()) for folder in run_folders(results))
    return write_report_page(path, describe_leaderboard(board), served=served)


_MAX_HISTORY = 100  # scores of earlier runs that are returned


def run_overviews(results: Path) -> list[dict[str, Any]]:
    """Return a row for each run, oldest first, with the best scores so far on its cases."""
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
                "cost": known_cost(summary.spent),
                "history": history[-_MAX_HISTORY:],
            }
        )
    return rows


_QUICKLY_RANKED = 32_000_000
"""The total size of journals, in bytes, up to which each run updates the leaderboard; `bakeoff build` always does."""


def write_page_of(source: Source, target: Path | None, *, parts: Parts) -> Path:
    """Write the page of a run or log, by default beside it. `parts` adds its door's sections."""
    if is_log(source.path):
        beside = source.path.with_suffix(".html") if source.path.is_file() else Path(f"{source.path}.html")
        return write_source_page(source, target or beside, parts=parts)
    folder = RunFolder(source.path)
    if target is not None:
        return write_run_page(folder, target, parts=parts)
    return write_current_page(folder, parts=parts)


def write_pages_of(folder: RunFolder, *, parts: Parts) -> tuple[Path, Path]:
    """Write the page of a run and the index of its results folder."""
    page = write_current_page(folder, parts=parts)
    read_entry(folder)  # keeps the summary, so that the index does not read the journal again
    results = folder.path.parent.parent
    started = [each for each in run_folders(results) if each.started]
    if sum(each.journal_file.stat().st_size for each in started) <= _QUICKLY_RANKED:
        _write_leaderboard(results)
    return page, write_index_of(results)


def _write_leaderboard(results: Path) -> None:
    """Write the leaderboard beside the index, or remove an old one if there is nothing to rank."""
    path = results / LEADERBOARD_NAME
    try:
        write_leaderboard(results, path)
    except NothingToRank:
        path.unlink(missing_ok=True)


def write_index_of(results: Path, target: Path | None = None) -> Path:
    """Write the page that lists all runs and result files of a folder."""
    return write_index(target or results / INDEX_NAME, chain(read_entries(results), read_file_entries(results)))


def build_pages(results: Path, *, parts: Parts, say: Callable[[str], None]) -> int:
    """Write every page of a folder that is missing or out of date, and the leaderboard.

    Return the number of runs and result files that cannot be shown; `say` receives the reason for each.
    """
    refused = 0
    shown: Iterator[RunFolder | Source] = chain(run_folders(results), _result_files(results))
    for one in shown:
        try:
            _write_new_page(one, parts)
        except BakeoffError as error:
            refused += 1
            say(f"{one.path.name}: {error}")
    _write_leaderboard(results)
    return refused


def _write_new_page(what: RunFolder | Source, parts: Parts) -> None:
    """Write the page of a run or a result file if it is missing or out of date."""
    if isinstance(what, RunFolder):
        if not page_is_current(what):
            write_current_page(what, parts=parts)
        return
    page, made = what.path.with_suffix(".html"), what.path.stat().st_mtime_ns
    if not page.is_file() or page.stat().st_mtime_ns < made:
        write_source_page(what, page, parts=parts)

"""Summarise runs for the index, and cache the summaries until the journals change."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from pydantic import ValidationError

from bakeoff._kernel.environment import cache_folder
from bakeoff._kernel.files import read_file
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._kernel.text import visible
from bakeoff._version import __version__
from bakeoff.errors import BakeoffError
from bakeoff.plan import Plan
from bakeoff.report.readers import Reader, Source, known_readers
from bakeoff.report.render.html.render import PAGE_NAME
from bakeoff.report.render.html.run_data import State, read_plan, readable_errors
from bakeoff.report.render.html.run_page import Parts, no_parts, write_run_page
from bakeoff.report.summary import Summary, summarise
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
    damaged: int = 0  # lines of the journal that are left out
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


def read_file_entries(results: Path, readers: tuple[Reader, ...] | None = None) -> Iterator[IndexEntry | Unreadable]:
    """Yield every result file of a results folder, except those computed from a run of the same folder."""
    readers = known_readers() if readers is None else readers
    for path in sorted(results.glob("*.json")):
        reader = next((reader for reader in readers if reader.recognises(path)), None)
        if reader is None:
            continue
        try:
            source = Source(path, reader)
            if source.description.run is None or not (results / "runs" / source.description.run).is_dir():
                yield _of_file(source)
        except BakeoffError as error:
            yield Unreadable(run=visible(path.name), reason=visible(str(error), 500))


def _of_file(source: Source) -> IndexEntry:
    records = list(source.records())
    entry = _entry(
        visible(source.path.name),
        source.plan,
        summarise(source.plan, records),
        min((record.started for record in records), default=None),
    )
    page = source.path.with_suffix(".html")
    return entry.model_copy(
        update={"state": entry.summary.outcome, "page": quote(os.fsencode(page.name)) if page.is_file() else None}
    )


def _entry(run: str, plan: Plan, summary: Summary, started: float | None) -> IndexEntry:
    named = {spec.name: spec.options.get("model") for spec in plan.subjects}
    models = {name: model if isinstance(model, str) else json.dumps(model) for name, model in named.items() if model}
    cases = fingerprint([(case.id, case.attempt_digest) for case in plan.cases])
    return IndexEntry(run=run, started=started, cases=cases, models=models, summary=summary)


def read_entry(folder: RunFolder) -> IndexEntry:
    """Read a run from the cache if it has not changed, otherwise from its journal."""
    with readable_errors(folder):
        key = cache_key(folder)
        entry = _kept(folder, key) or _fresh(folder, key)
        running = folder.is_being_written()
    state: State = "running" if running else entry.summary.outcome
    page = f"runs/{quote(os.fsencode(folder.name))}/{PAGE_NAME}" if (folder.path / PAGE_NAME).is_file() else None
    return entry.model_copy(update={"state": state, "page": page})


def page_is_current(folder: RunFolder) -> bool:
    """Tell whether the page beside the journal was made here from the present plan and journal."""
    page = folder.path / PAGE_NAME
    with readable_errors(folder):
        return page.is_file() and load(folder, _PAGE, _page_key(cache_key(folder), page)) is not None


def write_current_page(folder: RunFolder, *, parts: Parts = no_parts) -> Path:
    """Write the page beside the journal and remember its input; later appends make it out of date."""
    with readable_errors(folder):
        before = cache_key(folder)
    page = write_run_page(folder, parts=parts)
    store(folder, _PAGE, _page_key(before, page), b"")
    return page


def _page_key(made_from: str, page: Path) -> str:
    """Include the page itself in the key: a page that came with a folder was not made here."""
    return fingerprint(made_from, file_state(page))


def _kept(folder: RunFolder, key: str) -> IndexEntry | None:
    kept = load(folder, _SUMMARY, key)
    try:
        return IndexEntry.model_validate_json(kept) if kept is not None else None
    except ValidationError:
        return None


def _fresh(folder: RunFolder, key: str) -> IndexEntry:
    plan = read_plan(folder)
    damaged: list[Damage] = []
    summary = summarise(plan, folder.latest_records(plan, damaged))
    entry = _entry(folder.label, plan, summary, _started(folder)).model_copy(update={"damaged": len(damaged)})
    store(folder, _SUMMARY, key, entry.model_dump_json().encode(errors="replace"))
    return entry


def _started(folder: RunFolder) -> float | None:
    """Return the time of the journal's first line."""
    if not folder.started:
        return None
    first = next(iter(read_journal(folder.journal_file)), None)
    time = first.facts.get("time") if isinstance(first, JournalMark) else None
    return float(time) if isinstance(time, int | float) else None


_FORMAT = 6
_FOLDER = "runs"
_LONGEST = 1024 * 1024  # bytes of one entry
_MOST = 64 * 1024 * 1024  # bytes of the whole cache
_BLOCK = 4096


def cache_key(folder: RunFolder) -> str:
    """Return a key that changes whenever the plan, the journal, the labels or the pictures do."""
    parts = folder.segment_files
    files = (folder.plan_file, *parts, folder.journal_file, folder.seal_file, folder.labels_file, folder.pictures)
    return fingerprint(_FORMAT, __version__, *map(file_state, files))


def load(folder: RunFolder, what: str, key: str) -> bytes | None:
    """Return the cached data of that key, or None."""
    try:
        found, _, data = read_file(cache_file(folder, what)).partition(b"\n")
    except OSError:
        return None
    return data if found == key.encode() else None


def store(folder: RunFolder, what: str, key: str, data: bytes) -> None:
    """Store data. Errors are ignored: the data is then computed again each time."""
    if len(data) > _LONGEST:
        return
    temporary = None
    try:
        place = cache_file(folder, what)
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=".new-")
        with os.fdopen(handle, "wb") as file:  # no fsync: it can be computed again
            file.write(key.encode() + b"\n" + data)
        Path(temporary).replace(place)
    except OSError:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def cache_file(folder: RunFolder, what: str) -> Path:
    name = hashlib.blake2b(os.fsencode(folder.path.resolve()), digest_size=16).hexdigest()
    return cache_folder() / _FOLDER / f"{name}.{what}"


def clean_up(most: int = _MOST) -> None:
    """Remove the oldest entries until the cache is small enough."""
    with suppress(OSError):  # another process may clean_up at the same time
        with os.scandir(cache_folder() / _FOLDER) as entries:
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

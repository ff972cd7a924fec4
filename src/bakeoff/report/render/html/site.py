"""Write the pages of a results folder: one for each run, the leaderboard and the index."""

from collections.abc import Callable
from itertools import chain
from pathlib import Path

from bakeoff.errors import BakeoffError
from bakeoff.report.leaderboard.ranking import NothingToRank
from bakeoff.report.readers import Source, is_log, known_readers
from bakeoff.report.render.html import (
    read_entries,
    read_file_entries,
    write_index,
    write_leaderboard,
    write_run_page,
    write_source_page,
)
from bakeoff.report.render.html.index_page import (
    INDEX_NAME,
    LEADERBOARD_NAME,
    page_is_current,
    read_entry,
    write_current_page,
)
from bakeoff.report.render.html.run_page import Parts
from bakeoff.storage.run_folder import RunFolder, run_folders

_QUICKLY_RANKED = 32_000_000
"""The bytes of all journals up to which each run updates the leaderboard; `bakeoff build` always does."""


def write_page_of(source: Source, target: Path | None, *, parts: Parts) -> Path:
    """Write the page of a run or of a log, by default beside it. `parts` returns what its door adds."""
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
    if _is_quickly_ranked(results):
        _write_leaderboard(results)
    return page, write_index_of(results)


def _write_leaderboard(results: Path) -> None:
    """Write the leaderboard beside the index, or remove an old one if there is nothing to rank any more."""
    path = results / LEADERBOARD_NAME
    try:
        write_leaderboard(results, path)
    except NothingToRank:
        path.unlink(missing_ok=True)


def _is_quickly_ranked(results: Path) -> bool:
    folders = [folder for folder in run_folders(results) if folder.started]
    if any(folder.segment_files for folder in folders):
        return False
    return sum(folder.journal_file.stat().st_size for folder in folders) <= _QUICKLY_RANKED


def write_index_of(results: Path, target: Path | None = None) -> Path:
    """Write the page that lists all runs and result files of a folder."""
    return write_index(target or results / INDEX_NAME, chain(read_entries(results), read_file_entries(results)))


def build_pages(results: Path, *, parts: Parts, say: Callable[[str], None]) -> int:
    """Write every page of a folder that is missing or out of date, and the leaderboard.

    Return how many runs and result files cannot be shown; `say` gets the reason for each.
    """
    refused = 0
    for folder in run_folders(results):
        try:
            if not page_is_current(folder):
                write_current_page(folder, parts=parts)
        except BakeoffError as error:
            refused += 1
            say(f"{folder.name}: {error}")
    for path in sorted(results.glob("*.json")):
        refused += not _build_file(path, parts, say)
    _write_leaderboard(results)
    return refused


def _build_file(path: Path, parts: Parts, say: Callable[[str], None]) -> bool:
    """Write the page of a result file unless it has a newer one. Return False if it cannot be shown."""
    page = path.with_suffix(".html")
    reader = next((reader for reader in known_readers() if reader.recognises(path)), None)
    if reader is None or (page.is_file() and page.stat().st_mtime_ns >= path.stat().st_mtime_ns):
        return True
    try:
        write_source_page(Source(path, reader), page, parts=parts)
    except BakeoffError as error:
        say(f"{path.name}: {error}")
        return False
    return True

"""Carry out `bakeoff report`, `index`, `build` and `view`: pages of run folders and result files."""

import os
import sys
import webbrowser
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Annotated

from typer import Argument

from bakeoff.cli.console import out, say
from bakeoff.cli.declare import command, flag, group_of
from bakeoff.cli.flags import NoOpen, Port, Results
from bakeoff.doors import parts_of
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.report.leaderboard.ranking import NothingToRank
from bakeoff.report.readers import Source, find_source, is_log, known_readers
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
from bakeoff.storage.run_folder import LATEST, RunFolder, run_folders
from bakeoff.storage.store_copy import fetch_all

app = group_of()

_QUICKLY_RANKED = 32_000_000
"""The bytes of all journals up to which each run updates the leaderboard; `bakeoff build` always does."""


@command(app, "report")
def report_runs(
    *,
    runs: Annotated[
        list[str] | None, Argument(metavar="RUN", help="Runs or result files. Default: the latest run.")
    ] = None,
    results: Results = Path("results"),
    output: Path | None = flag(None, "The page to write, for a single run.", "--output", "-o", metavar="FILE"),
    no_open: NoOpen = False,
) -> None:
    """Write the page of a run: one HTML file with every transcript.

    Example: bakeoff report latest -o page.html
    """
    sources = [find_source(results, name) for name in runs or [LATEST]]
    if output is not None and len(sources) > 1:
        raise UsageError(f"-o {output} names one file for {len(sources)} runs: leave it out, or name one run")
    pages = [_page_of(source, output) for source in sources]
    for page in pages:
        out().file.write(f"{page}\n")
    if not no_open:
        show(pages[0])


def _page_of(source: Source, target: Path | None) -> Path:
    if is_log(source.path):
        beside = source.path.with_suffix(".html") if source.path.is_file() else Path(f"{source.path}.html")
        return write_source_page(source, target or beside, parts=parts_of)
    folder = RunFolder(source.path)
    if target is not None:
        return write_run_page(folder, target, parts=parts_of)
    return write_current_page(folder, parts=parts_of)


def write_pages_of(folder: RunFolder) -> tuple[Path, Path]:
    """Write the page of a run and the index of its results folder."""
    page = write_current_page(folder, parts=parts_of)
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


@command(app, "index")
def index_results(
    *,
    results: Results = Path("results"),
    output: Path | None = flag(None, "The page to write. Default: index.html.", "--output", "-o", metavar="FILE"),
    no_open: NoOpen = False,
) -> None:
    """Write a page that lists all runs, with search, history and comparison.

    Example: bakeoff index --no-open
    """
    _refuse_missing(results)
    fetch_all(results, say)
    page = write_index_of(results, output)
    out().file.write(f"{page}\n")
    if not no_open:
        show(page)


@command(app, "build")
def build_results(*, results: Results = Path("results"), no_open: NoOpen = False) -> int:
    """Write every page that is missing or out of date, and the index.

    Example: bakeoff build --no-open
    """
    _refuse_missing(results)
    fetch_all(results, say)
    refused = 0
    for folder in run_folders(results):
        try:
            if not page_is_current(folder):
                write_current_page(folder, parts=parts_of)
        except BakeoffError as error:
            refused += 1
            say(f"{folder.name}: {error}")
    for path in sorted(results.glob("*.json")):
        refused += not _build_file(path)
    _write_leaderboard(results)
    index_results(results=results, output=None, no_open=no_open)
    return 1 if refused else 0


def _build_file(path: Path) -> bool:
    """Write the page of a result file unless it has a newer one. Return False if it cannot be shown."""
    page = path.with_suffix(".html")
    reader = next((reader for reader in known_readers() if reader.recognises(path)), None)
    if reader is None or (page.is_file() and page.stat().st_mtime_ns >= path.stat().st_mtime_ns):
        return True
    try:
        write_source_page(Source(path, reader), page, parts=parts_of)
    except BakeoffError as error:
        say(f"{path.name}: {error}")
        return False
    return True


def _refuse_missing(results: Path) -> None:
    """Refuse a folder that does not exist: its name is probably mistyped."""
    if not results.is_dir():
        raise UsageError(f"--results {results} is not a folder: name the one that holds your runs")


@command(app, "view")
def view_results(
    *,
    results: Results = Path("results"),
    port: Port = 0,
    no_open: NoOpen = False,
) -> None:
    """Serve the pages on this machine, and follow runs while they go on.

    Example: bakeoff view --port 8000
    """
    from bakeoff.report.view import serve

    fetch_all(results, say)

    def ready(address: str) -> None:
        out().file.write(f"{address}\n")
        out().file.flush()
        say("press Ctrl-C to stop; the address works only on this machine, and only with its token")
        if not no_open:
            open_address(address)

    with suppress(KeyboardInterrupt):
        serve(results, port, ready, parts=parts_of)


def show(page: Path) -> None:
    """Open a page in the browser."""
    open_address(page.resolve().as_uri())


def open_address(address: str) -> None:
    """Open an address in the browser, unless this is a CI job or there is no display."""
    display = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if display and not os.environ.get("CI"):
        webbrowser.open(address)

"""`bakeoff report`, `index`, `build` and `view`: pages from run folders and result files."""

import os
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from bakeoff.cli.console import err, out
from bakeoff.doors import sections_of
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.report.html import read_entries, read_file_entries, write_index, write_run_page, write_source_page
from bakeoff.report.html.entries import page_is_current, write_current_page
from bakeoff.report.html.index_page import INDEX_NAME
from bakeoff.report.readers import Source, find_source, known_readers
from bakeoff.storage.run_folder import LATEST, RunFolder, run_folders


def report_runs(results: Path, names: Sequence[str], target: Path | None, *, opened: bool) -> None:
    """One page for each run or result file, beside it or where it was asked for."""
    sources = [find_source(results, name) for name in names or [LATEST]]
    if target is not None and len(sources) > 1:
        raise UsageError(f"-o {target} is one file and there are {len(sources)} runs: leave it out, or name one run")
    pages = [_page_of(source, target) for source in sources]
    for page in pages:
        out().file.write(f"{page}\n")
    if opened:
        show(pages[0])


def _page_of(source: Source, target: Path | None) -> Path:
    if not source.path.is_dir():
        return write_source_page(source, target or source.path.with_suffix(".html"), sections=sections_of)
    folder = RunFolder(source.path)
    if target is not None:
        return write_run_page(folder, target, sections=sections_of)
    return write_current_page(folder, sections=sections_of)


def write_pages_of(folder: RunFolder) -> tuple[Path, Path]:
    """What a run leaves for its reader: its own page, and the index over the results it is among."""
    page = write_current_page(folder, sections=sections_of)
    results = folder.path.parent.parent
    return page, write_index(results / INDEX_NAME, chain(read_entries(results), read_file_entries(results)))


def index_results(results: Path, target: Path | None, *, opened: bool) -> None:
    _refuse_missing(results)
    page = write_index(target or results / INDEX_NAME, chain(read_entries(results), read_file_entries(results)))
    out().file.write(f"{page}\n")
    if opened:
        show(page)


def build_results(results: Path, *, opened: bool) -> int:
    """Every run's page that was not made from its plan and journal as they are, and the index; 1 if some run cannot
    be shown."""
    _refuse_missing(results)
    refused = 0
    for folder in run_folders(results):
        try:
            if not page_is_current(folder):
                write_current_page(folder, sections=sections_of)
        except BakeoffError as error:
            refused += 1
            err().print(f"{folder.name}: {error}", markup=False)
    for path in sorted(results.glob("*.json")):
        refused += not _build_file(path)
    index_results(results, None, opened=opened)
    return 1 if refused else 0


def _build_file(path: Path) -> bool:
    """The page of a result file, if it is one and has none that is newer; whether nothing went wrong."""
    page = path.with_suffix(".html")
    reader = next((reader for reader in known_readers() if reader.recognises(path)), None)
    if reader is None or (page.is_file() and page.stat().st_mtime_ns >= path.stat().st_mtime_ns):
        return True
    try:
        write_source_page(Source(path, reader), page, sections=sections_of)
    except BakeoffError as error:
        err().print(f"{path.name}: {error}", markup=False)
        return False
    return True


def _refuse_missing(results: Path) -> None:
    """A name that was mistyped is no reason to make a folder."""
    if not results.is_dir():
        raise UsageError(f"--results {results} is not a folder: name the one that has your runs, or make one first")


def view_results(results: Path, port: int, *, opened: bool) -> None:
    from bakeoff.report.view import serve

    def ready(address: str) -> None:
        out().file.write(f"{address}\n")
        out().file.flush()
        err().print("Ctrl-C ends it; the address works only on this machine, and only with its token")
        if opened:
            _open(address)

    with suppress(KeyboardInterrupt):  # which is how it is meant to end
        serve(results, port, ready, sections=sections_of)


def show(page: Path) -> None:
    _open(page.resolve().as_uri())


def _open(address: str) -> None:
    """In the browser, where there is someone to look at it."""
    if os.environ.get("CI") or not _has_display():
        return
    webbrowser.open(address)


def _has_display() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))

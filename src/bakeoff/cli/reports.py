"""`bakeoff report`, `index`, `build` and `view`: pages from run folders."""

import os
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bakeoff.cli.console import err, out
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.report.html import read_entries, write_index, write_run_page
from bakeoff.report.html.entries import page_is_current, write_current_page
from bakeoff.report.html.index_page import INDEX_NAME
from bakeoff.rundir import find_run, run_folders


def report_runs(results: Path, names: Sequence[str], target: Path | None, *, opened: bool) -> None:
    """One page for each run, beside its journal or where it was asked for."""
    folders = [find_run(results, name) for name in names or ["latest"]]
    if target is not None and len(folders) > 1:
        raise UsageError(f"-o {target} is one file and there are {len(folders)} runs: leave it out, or name one run")
    pages = [write_run_page(folder, target) if target else write_current_page(folder) for folder in folders]
    for page in pages:
        out().file.write(f"{page}\n")
    if opened:
        show(pages[0])


def index_results(results: Path, target: Path | None, *, opened: bool) -> None:
    _refuse_missing(results)
    page = write_index(target or results / INDEX_NAME, read_entries(results))
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
                write_current_page(folder)
        except BakeoffError as error:
            refused += 1
            err().print(f"{folder.name}: {error}", markup=False)
    index_results(results, None, opened=opened)
    return 1 if refused else 0


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
        serve(results, port, ready)


def show(page: Path) -> None:
    _open(page.resolve().as_uri())


def _open(address: str) -> None:
    """In the browser, where there is someone to look at it."""
    if os.environ.get("CI") or not _has_display():
        return
    webbrowser.open(address)


def _has_display() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))

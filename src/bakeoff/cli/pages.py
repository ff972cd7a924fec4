"""Implement `bakeoff report`, `index`, `build` and `view`: pages of run folders and result files."""

import os
import sys
import webbrowser
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument

from bakeoff.cli.console import out, say
from bakeoff.cli.declare import command, flag, group_of
from bakeoff.cli.flags import NoOpen, Port, Results
from bakeoff.errors import UsageError

app = group_of()


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

    from bakeoff.doors import parts_of
    from bakeoff.report.readers import find_source
    from bakeoff.report.render.html.index_page import write_page_of
    from bakeoff.storage.run_folder import LATEST

    sources = [find_source(results, name) for name in runs or [LATEST]]
    if output is not None and len(sources) > 1:
        raise UsageError(f"-o {output} names one file for {len(sources)} runs: leave it out, or name one run")
    pages = [write_page_of(source, output, parts=parts_of) for source in sources]
    for page in pages:
        out().file.write(f"{page}\n")
    if not no_open:
        open_page(pages[0])


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

    from bakeoff.report.render.html.index_page import write_index_of
    from bakeoff.storage.store_copy import fetch_all

    _refuse_missing(results)
    fetch_all(results, say)
    page = write_index_of(results, output)
    out().file.write(f"{page}\n")
    if not no_open:
        open_page(page)


@command(app, "build")
def build_results(*, results: Results = Path("results"), no_open: NoOpen = False) -> int:
    """Write every page that is missing or out of date, and the index.

    Example: bakeoff build --no-open
    """

    from bakeoff.doors import parts_of
    from bakeoff.report.render.html.index_page import build_pages
    from bakeoff.storage.store_copy import fetch_all

    _refuse_missing(results)
    fetch_all(results, say)
    refused = build_pages(results, parts=parts_of, say=say)
    index_results(results=results, output=None, no_open=no_open)
    return 1 if refused else 0


def _refuse_missing(results: Path) -> None:
    """Raise an error for a missing folder, whose name is probably mistyped."""
    if not results.is_dir():
        raise UsageError(f"--results {results} is not a folder: name the one that holds your runs")


@command(app, "view")
def view_results(*, results: Results = Path("results"), port: Port = 0, no_open: NoOpen = False) -> None:
    """Serve the pages on this machine, and follow runs while they go on.

    Example: bakeoff view --port 8000
    """

    from bakeoff.doors import parts_of
    from bakeoff.report.view import serve
    from bakeoff.storage.store_copy import fetch_all

    fetch_all(results, say)

    told = "press Ctrl-C to stop; the address works only on this machine, and only with its token"
    with suppress(KeyboardInterrupt):
        serve(results, port, partial(tell_address, told, opened=not no_open), parts=parts_of)


def tell_address(told: str, address: str, *, opened: bool) -> None:
    """Print the address of a server and a hint (`told`), and open it in the browser if `opened`."""
    out().file.write(f"{address}\n")
    out().file.flush()
    say(told)
    if opened:
        open_address(address)


def open_page(page: Path) -> None:
    """Open a page in the browser."""
    open_address(page.resolve().as_uri())


def open_address(address: str) -> None:
    """Open an address in the browser, unless this is a CI job or there is no display."""
    display = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if display and not os.environ.get("CI"):
        webbrowser.open(address)

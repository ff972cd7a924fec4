"""Print results to stdout, and everything else to stderr. Pipes get no colours and no bars."""

import codecs
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bakeoff._kernel.text import visible

if TYPE_CHECKING:
    from typing_extensions import Buffer

_PLAINER = dict(zip("▁▂▃▄▅▆▇█░–−×·…", "_.-:=+*#.--x*~", strict=True))


def out() -> Console:
    """Return the console for results."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("plainer", _plainer)
        sys.stdout.reconfigure(errors="plainer")
    console = Console(highlight=False, markup=False, emoji=False)
    # A pipe has no width, and a table folded to 80 columns is of no use to a program.
    return console if console.is_terminal else Console(highlight=False, markup=False, emoji=False, width=160)


def err() -> Console:
    """Return the console for progress, warnings and hints."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(message: str) -> None:
    """Print a line to stderr, with control characters made visible."""
    err().print(visible(message, 4000))


def print_json(value: object) -> None:
    """Print a value as JSON to stdout."""
    out().file.write(json.dumps(value, indent=2) + "\n")


def warn(warnings: Iterable[str]) -> None:
    """Print each warning on a line of its own to stderr."""
    for warning in warnings:
        say(f"warning: {warning}")


def table(*headings: str, right: Iterable[str] = ()) -> Table:
    """Return an empty table; the columns in `right` are right-aligned."""
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in headings:
        made.add_column(heading, overflow="fold", justify="right" if heading in right else "left")
    return made


def add_row(table: Table, *cells: str | Text) -> None:
    """Add a row to a table, with control characters in its texts made visible."""
    table.add_row(*(cell if isinstance(cell, Text) else Text(visible(cell)) for cell in cells))


def can_ask() -> bool:
    """Tell whether a person can be asked: stdin and stdout are terminals, and this is no CI job."""
    # A program that was started without these streams has None in their place, whatever their types say.
    terminals = all(stream and stream.isatty() for stream in (sys.stdin, sys.stdout))
    return terminals and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"


@contextmanager
def results_alone_on_stdout() -> Iterator[None]:
    """Redirect what subjects and scorers print to stderr, with control characters made visible."""
    said = io.TextIOWrapper(io.BufferedWriter(_Notices()), "utf-8", "replace", line_buffering=True)
    with said as printed, redirect_stdout(printed):
        yield


class _Notices(io.RawIOBase):
    """A stream that prints each written line as a notice."""

    def __init__(self) -> None:
        self._begun = b""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2  # stderr, for programs that are started with this stream

    def write(self, data: "Buffer", /) -> int:
        *lines, self._begun = (self._begun + bytes(data)).split(b"\n")
        for line in lines:
            say(line.decode(errors="replace"))
        return memoryview(data).nbytes

    def close(self) -> None:
        if not self.closed and self._begun:
            say(self._begun.decode(errors="replace"))
            self._begun = b""
        super().close()


@contextmanager
def telling_of_damage() -> Iterator[None]:
    """Report the number of damaged lines in each run that was read, when the block ends."""
    from bakeoff.storage.journal_lines import collect_damage  # loads pydantic, which --help does not need

    with collect_damage() as damaged:
        try:
            yield
        finally:
            for run, lines in damaged.items():
                left_out = "damaged line is" if lines == 1 else "damaged lines are"
                say(f"{lines:,} {left_out} left out; `bakeoff runs check {visible(run)}` lists them")


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """Replace bars and dashes that the encoding lacks with simpler characters of the same width."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_PLAINER.get(char) or ascii(char)[1:-1] for char in missing), error.end

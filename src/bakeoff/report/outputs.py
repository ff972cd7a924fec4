"""A report as blocks of data: what it says, apart from how a terminal, Markdown or a page shows it.

Text that came from outside (names, outputs, reasons) is a `Quote`. Each way of showing makes a quote harmless in its
own manner: control characters become visible everywhere, Markdown puts it in a code span, a page escapes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_TICKS = "▁▂▃▄▅▆▇█"
_LONGEST_SPARK = 20


@dataclass(frozen=True, slots=True)
class Quote:
    """Text that is not ours."""

    text: str


Words = str | Quote
"""One piece of text in a cell or a sentence."""


@dataclass(frozen=True, slots=True)
class Heading:
    words: tuple[Words, ...]
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    words: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    numeric: bool = False
    least_width: int = 0  # columns of a terminal below which this column is left out


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; every row has one cell for each column."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Words, ...], ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """A bulleted list, one sentence each."""

    items: tuple[tuple[Words, ...], ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """Lines of a unified diff, all of them from outside."""

    title: Words
    lines: tuple[str, ...]


Block = Heading | Paragraph | Grid | Listing | Difference
Blocks = Sequence[Block]


def heading(*words: Words, level: int = 2) -> Heading:
    return Heading(words, level)


def paragraph(*words: Words) -> Paragraph:
    return Paragraph(words)


def columns(*titles: str) -> tuple[Column, ...]:
    """Columns from their titles; a title that ends in `>` is of numbers."""
    return tuple(Column(title.removesuffix(">"), numeric=title.endswith(">")) for title in titles)


def sparkline(shares: Sequence[float]) -> str:
    """Scores between 0 and 1 as small bars, the last twenty of them; always on the whole scale, so rows compare."""
    return "".join(_TICKS[min(7, max(0, int(8 * share)))] for share in shares[-_LONGEST_SPARK:])

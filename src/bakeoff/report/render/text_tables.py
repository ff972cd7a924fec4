"""Fit tables to the width of a terminal, without importing rich.

Names and denominators are never left out. If the width is too small, drawings are dropped first, then texts are
shortened, then columns are dropped in the order of `Column.drop`. Losses in dropped columns are listed below the table.
"""

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from bakeoff._kernel.text import visible
from bakeoff.report.blocks import (
    Block,
    Blocks,
    BulletList,
    Column,
    Datum,
    Phrase,
    Quote,
    Table,
    TextBlock,
    Tone,
    as_datum,
    pieces,
    sparkline,
)
from bakeoff.report.formatting import UNKNOWN

WIDE = 100
"""The width from which on a table has two spaces between its columns."""

_MAX_QUOTE_LENGTH = 200
_MAX_TEXT_LENGTH = 2000
_FOLDED = 24  # the width that a text column gets before other columns are dropped for it
_TITLE = 16  # characters in a line of a title that is folded
_BAR = 10
_DROPPED_BEFORE_COMPACT = 8
_BARS = Column("", drop=_DROPPED_BEFORE_COMPACT + 1, optional=True)


@dataclass(frozen=True, slots=True)
class TextCell:
    """The text of a cell as a terminal shows it, and its tone."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table fitted to the width, and the notes below it."""

    columns: tuple[Column, ...]  # with the titles to show
    rows: tuple[tuple[TextCell, ...], ...]
    gap: int
    notes: tuple[str, ...] = ()


def plain_text(phrase: Phrase) -> str:
    """Return a phrase on one line, with control characters made visible."""
    return "".join(
        visible(part.text, _MAX_QUOTE_LENGTH) if isinstance(part, Quote) else visible(part, _MAX_TEXT_LENGTH)
        for part in pieces(phrase)
    )


def fit_table(table: Table, width: int, measure: Callable[[str], int] = len) -> TextTable:
    """Return the fullest version of a table that fits. If none fits, return the smallest one with folded names.

    Args:
        table: a table with at least one row.
        width: the width of the terminal, in columns.
        measure: returns the width of a text; letters of some scripts take two columns.
    """
    rows = [[as_datum(value) for value in row] for row in table.rows]
    columns = list(table.columns)
    if any(datum.span for row in rows for datum in row):
        columns.append(_BARS)
        rows = [[*row, _bar(row)] for row in rows]
    layout = _Layout(columns, rows, list(range(len(columns))), 2 if width >= WIDE else 1)
    while layout.width(measure) > width:
        droppable = max(layout.shown, key=lambda place: columns[place].drop)
        if not layout.compact and columns[droppable].drop <= _DROPPED_BEFORE_COMPACT:
            layout.compact = True
        elif columns[droppable].drop:
            layout.shown.remove(droppable)
        else:
            break
    return TextTable(
        columns=tuple(Column(layout.title(columns[place]), columns[place].align) for place in layout.shown),
        rows=tuple(tuple(TextCell(layout.text(row[place]), row[place].tone) for place in layout.shown) for row in rows),
        gap=layout.gap,
        notes=tuple(layout.notes()),
    )


def split_table(table: Table, width: int, measure: Callable[[str], int] = len) -> list[TextTable]:
    """Split a table that is too wide into several tables, with column titles on several lines.

    Each has the first column and as many others as fit. Nothing is left out. A table with more
    columns than rows is transposed first.
    """
    whole = fit_table(table, width, measure)
    if _needed(whole, measure) > width and len(table.columns) - 1 > len(table.rows):
        whole = _turned(whole)
    if _needed(whole, measure) <= width:
        return [whole]
    rows = whole.rows
    first = min(_FOLDED, max(measure(row[0].text) for row in rows))
    titles = [Column(folded_name(column.title), column.align) for column in whole.columns]
    groups: list[list[int]] = []
    room = 0
    for place, column in enumerate(titles[1:], 1):
        needed = whole.gap + max(map(measure, (*column.title.split("\n"), *(row[place].text for row in rows))))
        if not groups or needed > room:
            groups.append([0])
            room = width - first
        groups[-1].append(place)
        room -= needed
    return [
        TextTable(
            columns=tuple(titles[place] for place in group),
            rows=tuple(tuple(row[place] for place in group) for row in rows),
            gap=whole.gap,
            notes=whole.notes if group is groups[-1] else (),
        )
        for group in groups
    ]


def _needed(table: TextTable, measure: Callable[[str], int]) -> int:
    """Return the width that a table needs if its first column is folded."""
    widths = [
        max(map(measure, (*column.title.split("\n"), *(row[place].text for row in table.rows))))
        for place, column in enumerate(table.columns)
    ]
    return min(widths[0], _FOLDED) + sum(widths[1:]) + table.gap * (len(widths) - 1)


def _turned(table: TextTable) -> TextTable:
    """Return a table with its rows as columns."""
    columns = (Column(""), *(Column(folded_name(row[0].text), "end") for row in table.rows))
    rows = tuple(
        (TextCell(column.title), *(row[place] for row in table.rows))
        for place, column in enumerate(table.columns[1:], 1)
    )
    return replace(table, columns=columns, rows=rows)


def folded_name(name: str, most: int = _TITLE) -> str:
    """Return a name on several lines, broken after signs such as `:` and `/` where possible."""
    lines = [""]
    for part in re.findall(r"[^:/_ -]*[:/_ -]|[^:/_ -]+", name):
        if len(lines[-1] + part) > most and lines[-1]:
            lines.append("")
        lines[-1] += part
    return "\n".join(line[at : at + most] for line in lines for at in range(0, len(line), most))


@dataclass(slots=True)
class _Layout:
    """The columns of a table that are shown, and whether their texts are short."""

    columns: list[Column]
    rows: list[list[Datum]]
    shown: list[int]
    gap: int
    compact: bool = False

    def title(self, column: Column) -> str:
        return column.short if self.compact and column.short else visible(column.title, _MAX_QUOTE_LENGTH)

    def text(self, datum: Datum) -> str:
        text = datum.short if self.compact and datum.short else plain_text(datum.text)
        return " ".join(filter(None, (sparkline(datum.trail), text)))

    def width(self, measure: Callable[[str], int]) -> int:
        """Return the width that the table needs."""
        total = self.gap * (len(self.shown) - 1)
        for place in self.shown:
            column = self.columns[place]
            texts = (*self.title(column).split("\n"), *(self.text(row[place]) for row in self.rows))
            widest = max(map(measure, texts))
            total += widest if column.numeric or column is _BARS else min(widest, _FOLDED)
        return total

    def notes(self) -> list[str]:
        """List the losses that are not in the table, and the columns that a wider terminal would show."""
        found, hidden = [], []
        for place, column in enumerate(self.columns):
            gone = place not in self.shown
            lost = [row for row in self.rows if row[place].tone == "lost"]
            lost = [row for row in lost if gone or (self.compact and row[place].short)]
            found += [f"{column.title} of {plain_text(row[0].text)}: {plain_text(row[place].text)}" for row in lost]
            if gone and not column.optional and any(row[place].tone not in ("lost", "muted") for row in self.rows):
                hidden.append(column.title)
        return [*found, *([f"A wider terminal also shows: {', '.join(hidden)}"] if hidden else [])]


def _bar(row: list[Datum]) -> Datum:
    share = next((datum.span.value for datum in row if datum.span), 0.0)
    full = min(_BAR, max(0, round(_BAR * share)))
    tone: Tone = "fail" if share < 0.5 else "partial" if share < 0.75 else "pass"
    return Datum("█" * full + "░" * (_BAR - full), tone=tone)


_NARROWEST = 40
_ONE_COLUMN = f"{UNKNOWN}·…"  # characters beyond ASCII that take one column


def block_lines(blocks: Blocks, width: int, *, coloured: bool = False) -> list[str]:
    """Return blocks as lines that fit the width."""
    width = max(_NARROWEST, width)
    return plain_lines(blocks, width, coloured=coloured) or _wrapped_lines(blocks, width, coloured=coloured)


def plain_lines(blocks: Blocks, width: int, *, coloured: bool = False) -> list[str] | None:
    """Return blocks as lines without loading rich, which takes long; None if something would have to be wrapped."""
    lines: list[str] = []
    for number, block in enumerate(blocks):
        found = _lines_of(block, width)
        fits = all(len(line) <= width for line in found or ())
        if found is None or not fits or not all(char.isascii() or char in _ONE_COLUMN for char in "".join(found)):
            return None
        if coloured and isinstance(block, Table):
            found[0] = f"\x1b[1m{found[0]}\x1b[0m"
        lines += ["", *found] if number else found
    return lines


def _lines_of(block: Block, width: int) -> list[str] | None:
    match block:
        case TextBlock():
            return [plain_text(block.text)]
        case BulletList():
            return [f"· {plain_text(item)}" for item in block.items]
        case Table():
            return [line.rstrip() for line in _table_lines(block, width)]
        case _:
            return None


def _table_lines(block: Table, width: int) -> Iterator[str]:
    fitted = fit_table(block, width)
    rows = [[column.title for column in fitted.columns], *([cell.text for cell in row] for row in fitted.rows)]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        aligned = (
            cell.rjust(wide) if column.numeric else cell.ljust(wide)
            for column, cell, wide in zip(fitted.columns, row, widths, strict=True)
        )
        yield (" " * fitted.gap).join(aligned)
    yield from fitted.notes


def _wrapped_lines(blocks: Blocks, width: int, *, coloured: bool) -> list[str]:
    from rich.console import Console

    from bakeoff.report.render.terminal import print_blocks

    file = io.StringIO()
    console = Console(
        file=file,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        force_terminal=coloured,
        color_system="standard" if coloured else None,
        legacy_windows=False,
    )
    print_blocks(console, blocks)
    return [line.rstrip() for line in file.getvalue().splitlines()]

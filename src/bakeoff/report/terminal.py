"""Summaries and blocks for the terminal: aligned at any width, without colour where it is not wanted.

Nothing from outside reaches the terminal but through `visible`: control characters are shown, never emitted.
"""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from bakeoff.report.outputs import Block, Blocks, Difference, Grid, Heading, Listing, Paragraph, Quote, Words
from bakeoff.report.summary import Summary
from bakeoff.report.terminal_summary import WIDE, render_summary
from bakeoff.report.words import visible

_LONGEST_QUOTE = 120


def print_summary(console: Console, summary: Summary) -> None:
    console.print(render_summary(summary, console.width))


def print_blocks(console: Console, blocks: Blocks) -> None:
    """Each block after an empty line, for the width of this console."""
    for number, block in enumerate(blocks):
        if number:
            console.print()
        console.print(render_block(block, console.width))


def render_block(block: Block, width: int = WIDE) -> RenderableType:
    match block:
        case Heading():
            return Text(_words(block.words), style="bold" if block.level > 2 else "bold underline")
        case Paragraph():
            return Text(_words(block.words))
        case Listing():
            return _listing(block)
        case Grid():
            return _grid(block, width)
        case Difference():
            return Group(Text(f"{_words((block.title,))}:", style="dim"), *map(_difference_line, block.lines))


def _words(words: Sequence[Words]) -> str:
    return "".join(
        visible(word.text, _LONGEST_QUOTE) if isinstance(word, Quote) else visible(word, 2000) for word in words
    )


def _listing(block: Listing) -> Table:
    """A table, so that a wrapped line stands under the words and not under the bullet."""
    table = Table.grid(padding=(0, 1, 0, 0))
    for item in block.items:
        table.add_row(Text("·"), Text(_words(item)))
    return table


def _grid(block: Grid, width: int) -> Table:
    shown = [place for place, column in enumerate(block.columns) if column.least_width <= width]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2 if width >= WIDE else 1, 0, 0))
    for place in shown:
        column = block.columns[place]
        justify = "right" if column.numeric else "left"
        table.add_column(Text(column.title), justify=justify, no_wrap=column.numeric, overflow="fold")  # type: ignore[arg-type]
    for row in block.rows:
        table.add_row(*(Text(_words((row[place],))) for place in shown))
    return table


def _difference_line(line: str) -> Text:
    style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
    return Text(f"  {visible(line, _LONGEST_QUOTE)}", style=style)

"""Render blocks for the terminal: aligned at any width, without colour where it is not wanted."""

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text as Line

from bakeoff._kernel.text import visible
from bakeoff.report.blocks import Block, Blocks, BulletList, Code, Facts, Heading, Report, Table, TextBlock, text_blocks
from bakeoff.report.render.text_tables import TextTable, fit_table, plain_text, split_table

_STYLES = {
    "strong": "bold",
    "muted": "dim",
    "pass": "green",
    "partial": "yellow",
    "lost": "yellow",
    "fail": "red",
    "timeout": "red",
}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_MAX_LINE_LENGTH = 120


def print_blocks(console: Console, content: Report | Blocks) -> None:
    """Print a report or blocks, fitted to the width of the console, with empty lines between blocks."""
    for number, block in enumerate(text_blocks(content)):
        if number:
            console.print()
        console.print(render_block(block, console.width))


def render_block(block: Block, width: int) -> RenderableType:
    """Return what `rich` draws for one block."""
    match block:
        case Heading():
            return Line(plain_text(block.text), style="bold" if block.level > 2 else "bold underline")
        case TextBlock():
            return Line(plain_text(block.text), style=_STYLES.get(block.tone, ""))
        case BulletList():
            return _listing([plain_text(item) for item in block.items])
        case Facts():
            return _listing([f"{visible(name)}: {visible(value, 2000)}" for name, value in block.pairs])
        case Table():
            tables = split_table(block, width, cell_len) if block.splits else [fit_table(block, width, cell_len)]
            parts: list[RenderableType] = []
            for fitted in tables:
                parts += [Line(""), _grid(fitted)] if parts else [_grid(fitted)]
                parts += [Line(note, style="dim") for note in fitted.notes]
            return Group(*parts)
        case Code():
            lines = [
                Line(f"  {visible(line, _MAX_LINE_LENGTH)}", style=_DIFF_STYLES.get(line[:1], "dim"))
                for line in block.text.split("\n")
            ]
            return Group(Line(f"{visible(block.title)}:", style="dim"), *lines)
        case _:
            return Group()


def _listing(items: list[str]) -> Grid:
    """Return a grid, in which wrapped lines are indented to the text after the bullet."""
    table = Grid.grid(padding=(0, 1, 0, 0))
    for item in items:
        table.add_row(Line("·"), Line(item))
    return table


def _grid(fitted: TextTable) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, fitted.gap, 0, 0))
    for column in fitted.columns:
        if column.numeric:
            grid.add_column(Line(column.title), justify="right", no_wrap=True)
        else:
            grid.add_column(Line(column.title), overflow="fold")
    for row in fitted.rows:
        grid.add_row(*(Line(cell.text, style=_STYLES.get(cell.tone, "")) for cell in row))
    return grid

"""Render blocks as lines of text, without loading rich where nothing has to be wrapped: loading it takes long."""

import io
from collections.abc import Iterator

from bakeoff.report.blocks import Block, Blocks, BulletList, Table, TextBlock
from bakeoff.report.formatting import UNKNOWN
from bakeoff.report.render.text_tables import fit_table, plain_text

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
        if found is None or not all(len(line) <= width and _fits_columns(line) for line in found):
            return None
        if coloured and isinstance(block, Table):
            found[0] = f"\x1b[1m{found[0]}\x1b[0m"
        lines += ["", *found] if number else found
    return lines


def _fits_columns(line: str) -> bool:
    return line.isascii() or all(char.isascii() or char in _ONE_COLUMN for char in line)


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

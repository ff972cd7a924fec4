"""The summary as plain lines, where it fits the terminal as it is: what lays out wrapped text takes long to load."""

from collections.abc import Iterator

from bakeoff.report.blocks import Block, Blocks, BulletList, Table, Text
from bakeoff.report.text_tables import fit_table, plain_text
from bakeoff.report.words import UNKNOWN

_NARROW = f"{UNKNOWN}·…"  # characters beyond ASCII that are known to take one column


def plain_lines(blocks: Blocks, width: int, *, coloured: bool = False) -> list[str] | None:
    """Each block after an empty line; None where something would have to be wrapped, or may not be one column wide."""
    lines: list[str] = []
    for number, block in enumerate(blocks):
        found = _lines(block, width)
        if found is None or not all(len(line) <= width and _is_plain(line) for line in found):
            return None
        if coloured and isinstance(block, Table):
            found[0] = f"\x1b[1m{found[0]}\x1b[0m"
        lines += ["", *found] if number else found
    return lines


def _is_plain(line: str) -> bool:
    return line.isascii() or all(char.isascii() or char in _NARROW for char in line)


def _lines(block: Block, width: int) -> list[str] | None:
    match block:
        case Text():
            return [plain_text(block.text)]
        case BulletList():
            return [f"· {plain_text(item)}" for item in block.items]
        case Table():
            return [line.rstrip() for line in _table(block, width)]
        case _:
            return None


def _table(block: Table, width: int) -> Iterator[str]:
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

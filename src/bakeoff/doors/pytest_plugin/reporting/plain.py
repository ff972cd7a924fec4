"""The summary as plain lines, where it fits the terminal as it is: what lays out wrapped text takes long to load."""

from collections.abc import Iterator, Sequence

from bakeoff.report.outputs import Block, Blocks, Grid, Listing, Paragraph, Quote, Words
from bakeoff.report.words import UNKNOWN, visible

_LONGEST_QUOTE = 120
_LONGEST = 2000
_WIDE = 100  # columns from which a table has more air
_NARROW = f"{UNKNOWN}·…"  # characters beyond ASCII that are known to take one column


def plain_lines(blocks: Blocks, width: int, *, coloured: bool = False) -> list[str] | None:
    """Each block after an empty line; None where something would have to be wrapped, or may not be one column wide."""
    lines: list[str] = []
    for number, block in enumerate(blocks):
        found = _lines(block, width)
        if found is None or not all(len(line) <= width and _is_plain(line) for line in found):
            return None
        if coloured and isinstance(block, Grid):
            found[0] = f"\x1b[1m{found[0]}\x1b[0m"
        lines += ["", *found] if number else found
    return lines


def _is_plain(line: str) -> bool:
    return line.isascii() or all(char.isascii() or char in _NARROW for char in line)


def _lines(block: Block, width: int) -> list[str] | None:
    match block:
        case Paragraph():
            return [_words(block.words)]
        case Listing():
            return [f"· {_words(item)}" for item in block.items]
        case Grid():
            return [line.rstrip() for line in _table(block, width)]
        case _:
            return None


def _table(block: Grid, width: int) -> Iterator[str]:
    shown = [place for place, column in enumerate(block.columns) if column.least_width <= width]
    titles = [block.columns[place].title for place in shown]
    rows = [titles, *([_words((row[place],)) for place in shown] for row in block.rows)]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    between = "  " if width >= _WIDE else " "
    for row in rows:
        aligned = (
            cell.rjust(wide) if block.columns[place].numeric else cell.ljust(wide)
            for place, cell, wide in zip(shown, row, widths, strict=True)
        )
        yield between.join(aligned)


def _words(words: Sequence[Words]) -> str:
    return "".join(
        visible(word.text, _LONGEST_QUOTE) if isinstance(word, Quote) else visible(word, _LONGEST) for word in words
    )

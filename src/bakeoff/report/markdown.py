"""Blocks as GitHub-flavoured Markdown that untrusted text cannot break out of.

A quote becomes a code span: nothing inside one is a mention, a link, an issue number, HTML or emphasis. Its fence is
longer than any run of backticks in it. Our own words are escaped too, so that a name that slipped in does no harm.
"""

import re
from collections import Counter
from dataclasses import replace

from bakeoff.report.outputs import Block, Blocks, Difference, Grid, Heading, Listing, Paragraph, Quote, Words
from bakeoff.report.words import visible

LONGEST = 65_000
"""GitHub takes 65,536 characters in a comment."""

LONGEST_QUOTE = 300
_NOTE = 500  # room for what is said about the rest
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&])")
_REFERENCE = re.compile(r"([@#])(?=\w)")
_LINK = re.compile(r"(?i)\b(https?|ftp|mailto):|\bwww\.")
_BREAK = "\u200b"  # a backslash does not stop GitHub from seeing a mention; a character of no width does


def to_markdown(blocks: Blocks, longest: int = LONGEST) -> str:
    """All blocks, or as many as there is room for and a note of what was left out."""
    written = [_block(block) for block in blocks]
    if _length(written) <= longest:
        return "\n\n".join(written) + "\n"
    room = longest - _NOTE
    whole = next(number for number in range(len(blocks) + 1) if _length(written[: number + 1]) > room)
    part = _shortened(blocks[whole], room - _length(written[:whole]))
    kept = [*written[:whole], *([_block(part)] if part else [])]
    left_out = _count(blocks[whole:]) - (_count([part]) if part else Counter())
    while kept and isinstance(blocks[len(kept) - 1], Heading):
        kept.pop()  # with nothing under it
    what = ", ".join(f"{name} ({number:,})" for name, number in left_out.items()) or "the rest"
    return "\n\n".join([*kept, f"Left out, as there is room for {longest:,} characters: {what}."]) + "\n"


def _length(written: list[str]) -> int:
    return sum(len(text) + 2 for text in written)


def _shortened(block: Block, room: int) -> Block | None:
    """The beginning of a table or list that fits; nothing of what makes no sense in part."""
    match block:
        case Grid():
            room -= _length([_table(replace(block, rows=()))])
            rows = block.rows[: _fitting([_row(row) for row in block.rows], room)]
            return replace(block, rows=rows) if rows else None
        case Listing():
            items = block.items[: _fitting([_words(item) + "- " for item in block.items], room)]
            return replace(block, items=items) if items else None
    return None


def _fitting(lines: list[str], room: int) -> int:
    """How many of the lines there is room for."""
    for number, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return number
    return len(lines)


def _count(blocks: Blocks) -> Counter[str]:
    found: Counter[str] = Counter()
    for block in blocks:
        match block:
            case Grid():
                found["rows of tables"] += len(block.rows)
            case Listing():
                found["items of lists"] += len(block.items)
            case Difference():
                found["differences"] += 1
            case Paragraph():
                found["paragraphs"] += 1
    return found


def code_span(text: str, *, in_table: bool = False) -> str:
    """Untrusted text on one line, shown as it is and interpreted as nothing."""
    shown = visible(text, LONGEST_QUOTE)
    if not shown.strip():
        return "–"
    if in_table:  # a row is split at bars before code spans are seen, and `\\|` would end in one
        shown = shown.replace("\\|", "\\ |").replace("|", "\\|")
    fence = "`" * (_longest_run(shown) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def plain(text: str) -> str:
    """Words of ours, as words and nothing else."""
    shown = _LINK.sub(
        lambda match: match.group().replace(":", f":{_BREAK}").replace(".", f".{_BREAK}"), visible(text, 2000)
    )
    shown = _SPECIAL.sub(r"\\\1", shown)
    return _REFERENCE.sub(rf"\1{_BREAK}", shown)


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {_words(block.words)}"
        case Paragraph():
            return _words(block.words)
        case Listing():
            return "\n".join(f"- {_words(item)}" for item in block.items)
        case Grid():
            return _table(block)
        case Difference():
            return _fenced(block)


def _words(words: tuple[Words, ...], *, in_table: bool = False) -> str:
    return "".join(
        code_span(word.text, in_table=in_table) if isinstance(word, Quote) else plain(word) for word in words
    )


def _table(grid: Grid) -> str:
    head = _row(tuple(column.title for column in grid.columns))
    rule = "|" + "|".join("---:" if column.numeric else "---" for column in grid.columns) + "|"
    return "\n".join([head, rule, *map(_row, grid.rows)])


def _row(cells: tuple[Words, ...]) -> str:
    return "| " + " | ".join(_words((cell,), in_table=True) for cell in cells) + " |"


def _fenced(difference: Difference) -> str:
    lines = [visible(line, LONGEST_QUOTE) for line in difference.lines]
    fence = "`" * max(3, 1 + max(map(_longest_run, lines), default=0))
    return "\n".join([f"{_words((difference.title,))}:", "", f"{fence}diff", *lines, fence])


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)

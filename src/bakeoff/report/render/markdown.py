"""Render blocks as GitHub-flavoured Markdown that untrusted text cannot break out of.

A quote becomes a code span: nothing inside it is a mention, a link, an issue number, HTML or emphasis. Its fence is
longer than any run of backticks in it. Other text is escaped too, so that a name without a `Quote` does no harm.
"""

import re
from collections import Counter
from dataclasses import replace

from bakeoff._kernel.text import visible
from bakeoff.report.blocks import (
    Block,
    Blocks,
    BulletList,
    Code,
    Facts,
    Heading,
    Phrase,
    Quote,
    Report,
    Table,
    TextBlock,
    Value,
    as_datum,
    joined,
    pieces,
    sparkline,
    text_blocks,
)

MAX_COMMENT_LENGTH = 65_000
"""The length limit of a comment. GitHub accepts 65,536 characters."""

MAX_QUOTE_LENGTH = 300
_NOTE = 500  # characters reserved for the note about what was left out
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&])")
_REFERENCE = re.compile(r"([@#])(?=\w)")
_LINK = re.compile(r"(?i)\b(https?|ftp|mailto):|\bwww\.")
_BREAK = "\u200b"  # a zero-width space; a backslash does not stop GitHub from seeing a mention


def to_markdown(content: Report | Blocks, longest: int = MAX_COMMENT_LENGTH) -> str:
    """Return a report or blocks as Markdown of at most `longest` characters.

    Blocks at the end that do not fit are left out, and a note counts them.
    """
    blocks = text_blocks(content)
    written = [_block(block) for block in blocks]
    if _length(written) <= longest:
        return "\n\n".join(written) + "\n"
    room = longest - _NOTE
    whole = next(number for number in range(len(blocks) + 1) if _length(written[: number + 1]) > room)
    part = _shortened(blocks[whole], room - _length(written[:whole]))
    kept = [*written[:whole], *([_block(part)] if part else [])]
    left_out = _count(blocks[whole:]) - (_count([part]) if part else Counter())
    while kept and isinstance(blocks[len(kept) - 1], Heading):
        kept.pop()  # a heading with nothing below it
    counts = ", ".join(f"{name} ({number:,})" for name, number in left_out.items()) or "the rest"
    return "\n\n".join([*kept, f"Left out to stay below {longest:,} characters: {counts}."]) + "\n"


def _length(written: list[str]) -> int:
    return sum(len(text) + 2 for text in written)


def _shortened(block: Block, room: int) -> Block | None:
    """Return the beginning of a table or list that fits; None for other blocks, which cannot be cut."""
    match block:
        case Table():
            room -= _length([_table(replace(block, rows=()))])
            rows = block.rows[: _fitting([_row(row) for row in block.rows], room)]
            return replace(block, rows=rows) if rows else None
        case BulletList():
            items = block.items[: _fitting([_phrase(item) + "- " for item in block.items], room)]
            return replace(block, items=items) if items else None
    return None


def _fitting(lines: list[str], room: int) -> int:
    """Return the number of lines that fit."""
    for number, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return number
    return len(lines)


def _count(blocks: Blocks) -> Counter[str]:
    found: Counter[str] = Counter()
    for block in blocks:
        match block:
            case Table():
                found["table rows"] += len(block.rows)
            case BulletList():
                found["list items"] += len(block.items)
            case Code():
                found["texts"] += 1
            case TextBlock():
                found["paragraphs"] += 1
    return found


def code_span(text: str, *, in_table: bool = False) -> str:
    """Return untrusted text as a code span on one line, in which Markdown interprets nothing."""
    shown = visible(text, MAX_QUOTE_LENGTH)
    if not shown.strip():
        return "–"
    if in_table:  # a row is split at bars before code spans are read, and `\\|` would end in one
        shown = shown.replace("\\|", "\\ |").replace("|", "\\|")
    fence = "`" * (_longest_run(shown) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def plain(text: str) -> str:
    """Return our own text, escaped."""
    shown = _LINK.sub(lambda match: re.sub("([:.])", rf"\1{_BREAK}", match.group()), visible(text, 2000))
    shown = _SPECIAL.sub(r"\\\1", shown)
    return _REFERENCE.sub(rf"\1{_BREAK}", shown)


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {_phrase(block.text)}"
        case TextBlock():
            return _phrase(block.text)
        case BulletList():
            return "\n".join(f"- {_phrase(item)}" for item in block.items)
        case Facts():
            return "\n".join(f"- {plain(name)}: {code_span(value)}" for name, value in block.pairs)
        case Table():
            return _table(block)
        case Code():
            lines = [visible(line, MAX_QUOTE_LENGTH) for line in block.text.split("\n")]
            fence = "`" * max(3, 1 + max(map(_longest_run, lines), default=0))
            language = block.language if block.language.isalnum() else ""
            return "\n".join([f"{code_span(block.title)}:", "", f"{fence}{language}", *lines, fence])
        case _:
            return ""


def _phrase(phrase: Phrase, *, in_table: bool = False) -> str:
    parts = pieces(phrase)
    return "".join(
        code_span(each.text, in_table=in_table) if isinstance(each, Quote) else plain(each) for each in parts
    )


def _table(table: Table) -> str:
    head = _row(tuple(column.title for column in table.columns))
    rule = "|" + "|".join("---:" if column.numeric else "---" for column in table.columns) + "|"
    return "\n".join([head, rule, *map(_row, table.rows)])


def _row(cells: tuple[Value, ...]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(value: Value) -> str:
    datum = as_datum(value)
    text = _phrase(datum.text, in_table=True) if joined(datum.text) or not datum.trail else ""
    return " ".join(filter(None, (sparkline(datum.trail), text)))


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)

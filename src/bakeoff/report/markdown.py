"""Blocks as GitHub-flavoured Markdown that untrusted text cannot break out of.

A quote becomes a code span: nothing inside one is a mention, a link, an issue number, HTML or emphasis. Its fence is
longer than any run of backticks in it. Our own words are escaped too, so that a name that slipped in does no harm.
"""

import re

from bakeoff.report.outputs import Block, Blocks, Difference, Grid, Heading, Listing, Paragraph, Quote, Words
from bakeoff.report.words import visible

LONGEST_QUOTE = 300
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&])")
_REFERENCE = re.compile(r"([@#])(?=\w)")
_LINK = re.compile(r"(?i)\b(https?|ftp|mailto):|\bwww\.")
_BREAK = "\u200b"  # a backslash does not stop GitHub from seeing a mention; a character of no width does


def to_markdown(blocks: Blocks) -> str:
    return "\n\n".join(_block(block) for block in blocks) + "\n"


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

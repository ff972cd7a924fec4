"""Blocks as one self-contained page: no script, no network, nothing in it but escaped text and one style sheet."""

import base64
import hashlib
from html import escape

from bakeoff.report.outputs import Block, Blocks, Difference, Grid, Heading, Listing, Paragraph, Quote, Words
from bakeoff.report.words import visible

LONGEST_QUOTE = 2000

# What the shared sheet has no words for: a plain text's rhythm, quotes without marks, lines that came or went.
_MORE_STYLE = """
main>*{margin-block:.75rem}
main>h2,main>h3{margin-block-start:2rem}
main>ul{padding-inline-start:1.25rem}
q{quotes:none;overflow-wrap:break-word}
td:last-child>q{display:inline-block;min-width:11rem}
ins{color:light-dark(#1a7f37,#4ac26b);text-decoration:none}
del{color:light-dark(#b3261e,#ff7b72);text-decoration:none}
"""


def to_page(title: str, blocks: Blocks) -> str:
    """In the look of every other page, which is why this loads that package only when a page is wanted."""
    from bakeoff.report.html.render import stylesheet

    style = stylesheet() + _MORE_STYLE
    first = [f"<h1>{_words(block.words)}</h1>" for block in blocks[:1] if isinstance(block, Heading)]
    body = "\n".join([*first, *map(_block, blocks[len(first) :])])
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{_escaped(title)}</title><style>{style}</style></head><body>\n"
        f'<header class="top"><span class="brand">bakeoff</span></header>\n<main id="main">\n'
        f"{body}\n</main></body></html>\n"
    )


def _policy(style: str) -> str:
    """Nothing but this style: no script, no picture, no request, no form."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"<h{block.level}>{_words(block.words)}</h{block.level}>"
        case Paragraph():
            return f"<p>{_words(block.words)}</p>"
        case Listing():
            return f"<ul>{''.join(f'<li>{_words(item)}</li>' for item in block.items)}</ul>"
        case Grid():
            return _table(block)
        case Difference():
            lines = "\n".join(map(_line, block.lines))
            return f'<p>{_words((block.title,))}:</p><pre tabindex="0">{lines}</pre>'


def _table(grid: Grid) -> str:
    classes = [' class="end"' if column.numeric else "" for column in grid.columns]
    head = "".join(
        f'<th scope="col"{kind}>{_escaped(column.title)}</th>'
        for column, kind in zip(grid.columns, classes, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{_words((cell,))}</td>" for cell, kind in zip(row, classes, strict=True))
        + "</tr>\n"
        for row in grid.rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>"
    return f'<div class="scroll" role="region" aria-label="Table" tabindex="0">{table}</div>'


def _words(words: tuple[Words, ...]) -> str:
    return "".join(f"<q>{_escaped(word.text)}</q>" if isinstance(word, Quote) else _escaped(word) for word in words)


def _line(line: str) -> str:
    tag = {"+": "ins", "-": "del"}.get(line[:1])
    return f"<{tag}>{_escaped(line)}</{tag}>" if tag else _escaped(line)


def _escaped(text: str) -> str:
    return escape(visible(text, LONGEST_QUOTE))

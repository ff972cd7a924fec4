"""Blocks as one self-contained page: no script, no network, nothing in it but escaped text and one style sheet."""

import base64
import hashlib
from html import escape

from bakeoff.report.outputs import Block, Blocks, Difference, Grid, Heading, Listing, Paragraph, Quote, Words
from bakeoff.report.words import visible

LONGEST_QUOTE = 2000

_STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:#8882;--plus:#1a7f37;--minus:#b3261e}
@media(prefers-color-scheme:dark){:root{--plus:#4ac26b;--minus:#ff7b72}}
body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}
.wide{overflow-x:auto}table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .8rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
.n{text-align:right;white-space:nowrap}q,q:before,q:after{quotes:none}q{overflow-wrap:anywhere}
pre{overflow-x:auto;background:var(--soft);padding:.8rem;border-radius:.4rem;font-size:.85rem}
ins{color:var(--plus);text-decoration:none}del{color:var(--minus);text-decoration:none}
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"


def to_page(title: str, blocks: Blocks) -> str:
    body = "\n".join(map(_block, blocks))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_escaped(title)}</title><style>{_STYLE}</style></head><body><main>\n{body}\n</main></body></html>\n"
    )


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
    classes = [' class="n"' if column.numeric else "" for column in grid.columns]
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
    return f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>'


def _words(words: tuple[Words, ...]) -> str:
    return "".join(f"<q>{_escaped(word.text)}</q>" if isinstance(word, Quote) else _escaped(word) for word in words)


def _line(line: str) -> str:
    tag = {"+": "ins", "-": "del"}.get(line[:1])
    return f"<{tag}>{_escaped(line)}</{tag}>" if tag else _escaped(line)


def _escaped(text: str) -> str:
    return escape(visible(text, LONGEST_QUOTE))

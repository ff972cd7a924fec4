"""Write Markdown."""

import re
from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. Cells may hold Markdown, and no line breaks."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell(each) for each in line)} |" for line in lines)


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Return text as inline code, or nothing for no text."""
    return f"`{text}`" if text else ""


def plain(markdown: str) -> str:
    """Return Markdown without its marks: links, code and emphasis become their texts."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    return " ".join(re.sub(r"[`*]", "", text).split())


def first_sentence(markdown: str) -> str:
    """Return the first sentence of the first paragraph that is text."""
    without_code = re.sub(r"^(```|~~~).*?^\1", "", markdown, flags=re.MULTILINE | re.DOTALL)
    for paragraph in re.split(r"\n\s*\n", without_code):
        if re.match(r"[\w`*\[\"(]", paragraph.strip()):
            return re.split(r"(?<=[.?!])\s", plain(paragraph), maxsplit=1)[0].removesuffix(":")
    return ""

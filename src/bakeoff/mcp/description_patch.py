"""Make a patch that gives a tool another description in the source of its server."""

import os
import re
import tokenize
from ast import literal_eval
from collections.abc import Iterator
from difflib import unified_diff
from inspect import cleandoc
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from bakeoff._kernel.text import visible
from bakeoff.mcp.snapshot import SNAPSHOT_FORMAT

_SOURCES = (
    *(".py", ".ts", ".js", ".mjs", ".cjs", ".tsx", ".go", ".rs", ".java", ".kt", ".cs", ".rb", ".php", ".swift"),
    *(".json", ".yaml", ".yml", ".toml"),
)
_SKIPPED = frozenset({"node_modules", "__pycache__", "results", "mcp-report", "dist", "build", "target", "venv"})
_MAX_SIZE = 1 << 20
_MAX_FILES = 5_000
_LINE = re.compile(r".*\n|.+")  # as git counts lines, to which a form feed is no end of one
_UNSAFE = frozenset("\"'`\\${}%")
_LITERAL = re.compile(r"[rRuU]?(\"\"\"|'''|\"|')")  # of a text, and not of one with places to fill
_MAX_NAMED = 5
_NO_NEWLINE = "\\ No newline at end of file"


class DescriptionPatch(NamedTuple):
    """A patch, or the reason why there is none."""

    text: str | None
    refused: str = ""


class _Place(NamedTuple):
    """The content of a string in a source file, without the quotes and the white space at its ends."""

    file: Path
    text: str
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.start) + 1


def description_patch(folder: Path, before: str, after: str) -> DescriptionPatch:
    """Return a patch, in the form of `git diff`, for the only string below a folder that is the present description.

    A text that could end a string, continue it on another line or fill a place in it is not put into source code.
    """
    if not before.strip():
        return DescriptionPatch(None, "the tool has no description to replace")
    if unsafe := [char for char in after if char in _UNSAFE or not char.isprintable()]:
        return DescriptionPatch(None, f"the new text has {unsafe[0]!r}, which can mean something else in source code")
    places = [place for file, text in _sources(folder) for place in _places(file, text, before)]
    names = [visible(f"{place.file.relative_to(folder).as_posix()}:{place.line}", 200) for place in places]
    if not places:
        return DescriptionPatch(None, f"no string in the source below {folder} is the present text and nothing else")
    if len(places) > 1:
        shown = ", ".join(names[:_MAX_NAMED]) + (" and others" if len(names) > _MAX_NAMED else "")
        return DescriptionPatch(None, f"the present text is in {len(places)} places: {shown}")
    place, name = places[0], places[0].file.relative_to(folder).as_posix()
    if not name.isprintable():
        return DescriptionPatch(None, f"a patch cannot name the file {name!r}")
    ending = "\t" if " " in name else ""  # where the name ends, as git writes it
    changed = place.text[: place.start] + after + place.text[place.end :]
    old, new = (_LINE.findall(each) for each in (place.text, changed))
    lines = unified_diff(old, new, f"a/{name}{ending}", f"b/{name}{ending}")
    return DescriptionPatch("".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}\n" for line in lines))


def _places(file: Path, text: str, before: str) -> Iterator[_Place]:
    """Yield the strings of a file that are the description: by tokens in Python, by quotes elsewhere."""
    if file.suffix == ".py":
        yield from _python_places(file, text, before)
        return
    for found in re.finditer(rf"([\"'`])({re.escape(before)})\1", text):
        yield _Place(file, text, *found.span(2))


def _python_places(file: Path, text: str, before: str) -> Iterator[_Place]:
    """Yield the string literals with this value; servers remove the indentation of docstrings."""
    lines = _LINE.findall(text)
    starts = [0, *accumulate(map(len, lines))]
    try:
        for token in tokenize.generate_tokens(iter([*lines, ""]).__next__):
            quoted = _LITERAL.match(token.string) if token.type == tokenize.STRING else None
            if quoted is None or cleandoc(str(literal_eval(token.string))).strip() != cleandoc(before).strip():
                continue
            start = starts[token.start[0] - 1] + token.start[1] + len(quoted[0])
            end = starts[token.end[0] - 1] + token.end[1] - len(quoted[1])
            content = text[start:end]
            start += len(content) - len(content.lstrip())
            yield _Place(file, text, start, max(start, end - len(content) + len(content.rstrip())))
    except (SyntaxError, ValueError, tokenize.TokenError):
        return  # Python cannot read the rest


def _sources(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the source files below a folder that are small enough, with their texts. Snapshots are left out."""
    seen = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(files):
            if not name.endswith(_SOURCES):
                continue
            seen += 1
            if seen > _MAX_FILES:
                return
            file = Path(place, name)
            try:
                if file.is_file() and file.stat().st_size <= _MAX_SIZE:
                    text = file.read_bytes().decode()  # line endings stay as they are
                    if not (name.endswith(".json") and SNAPSHOT_FORMAT in text):
                        yield file, text
            except (OSError, ValueError):
                continue

"""Read `[tool.bakeoff]` of pyproject.toml, with the lines of its keys."""

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from bakeoff._kernel.yaml import Key, PlacedYaml
from bakeoff.doors.eval.sources import read_text
from bakeoff.errors import UsageError

PYPROJECT = "pyproject.toml"
_TABLE = ("tool", "bakeoff")
_HEADER = re.compile(r"\s*(\[\[?)([^\]]+)\]\]?\s*(?:#.*)?")
_ASSIGNED = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_NAME = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
_ERROR_LINE = re.compile(r"at line (\d+)")


def has_table(file: Path) -> bool:
    """Tell whether a pyproject.toml has our table, or seems to have it where it is not TOML."""
    try:
        text = read_text(file)
    except UsageError:
        return False
    try:
        return _table(tomllib.loads(text)) is not None
    except tomllib.TOMLDecodeError:
        return "[tool.bakeoff" in text


def read_pyproject(file: Path) -> PlacedYaml:
    """Return our table with the lines of its keys."""
    text = read_text(file)
    try:
        table = _table(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        found = _ERROR_LINE.search(str(error))
        raise UsageError(f"{file}:{found[1] if found else 1}: this is not TOML: {error}") from error
    if table is None:
        raise UsageError(f"{file}:1: there is no table [tool.bakeoff]: write one, or name another file")
    return PlacedYaml(file, to_jsonable_python(table), _lines(text))


def _table(document: dict[str, Any]) -> Any:
    tool = document.get("tool")
    return tool.get("bakeoff") if isinstance(tool, dict) else None


def _lines(text: str) -> dict[Key, int]:
    """Return the line of each key that begins a line. Values inside of a line or of a list have that of their key.

    The standard library reads TOML without places. A key in a text of several lines may be taken for one of ours: then
    an error names a line that is somewhat off.
    """
    lines: dict[Key, int] = {}
    counts: dict[Key, int] = {}
    inside: Key | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if (header := _HEADER.fullmatch(line)) is not None:
            inside = _below(tuple(_names(header[2])), counts, repeated=header[1] == "[[")
            key = inside
        elif inside is not None and (assigned := _ASSIGNED.match(line)) is not None:
            key = (*inside, *_names(assigned[1]))
        else:
            continue
        for end in range(0 if key is None else len(key) + 1):
            lines.setdefault(key[:end] if key else (), number)
    return lines


def _names(text: str) -> list[str]:
    return [name.strip("\"'") for name in _NAME.findall(text)]


def _below(names: tuple[str, ...], counts: dict[Key, int], *, repeated: bool) -> Key | None:
    """Return the key of a header below our table, with the place in a list of tables."""
    if names[: len(_TABLE)] != _TABLE:
        return None
    key: Key = ()
    for at, name in enumerate(names[len(_TABLE) :], len(_TABLE) + 1):
        key = (*key, name)
        if repeated and at == len(names):
            counts[key] = counts.get(key, -1) + 1
        if key in counts:
            key = (*key, counts[key])
    return key

"""Find the configuration that a user means, and read it by its format."""

import re
import sys
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from bakeoff._kernel.yaml import Key, PlacedYaml, read_yaml
from bakeoff.doors.data_files import read_text
from bakeoff.doors.eval.config import CONFIG_NAME, PromptSuite
from bakeoff.doors.eval.read import suite_of
from bakeoff.errors import UsageError

PYPROJECT = "pyproject.toml"
NAMES = (CONFIG_NAME, "bakeoff.yml", PYPROJECT, "promptfooconfig.yaml", "promptfooconfig.yml")
"""The files to look for in a folder; the first one that exists is used."""


def read_suite(path: Path | None, judge: str | None = None) -> PromptSuite:
    """Read the configuration at a path: a file, or a folder that has one. `judge` replaces the judge that it names."""
    file = find_config(path)
    if (folder := str(file.resolve().parent)) not in sys.path:
        sys.path.append(folder)  # functions that it names may lie beside it, like files of cases
    if file.suffix == ".toml":
        return suite_of(read_pyproject(file), judge)
    placed = read_yaml(file)
    keys = set(placed.value) if isinstance(placed.value, dict) else set()
    by_its_keys = keys & {"providers", "tests", "defaultTest"} and not keys & {"subjects", "cases", "scorers"}
    if by_its_keys or file.name.startswith("promptfooconfig"):
        from bakeoff.doors.eval.promptfoo import suite_of_promptfoo  # most configurations are ours

        return suite_of_promptfoo(placed, judge)
    return suite_of(placed, judge)


def find_config(path: Path | None) -> Path:
    """Return the configuration at a path: a file, or the first known name in a folder; None is the current folder.

    A `pyproject.toml` counts only with a table of ours. Raises `UsageError` if there is no configuration.
    """
    folder = path or Path()
    if path is not None and not path.is_dir():
        if not path.exists():
            beside = path.parent.iterdir() if path.parent.is_dir() else ()
            near = get_close_matches(path.name, [each.name for each in beside], n=1)
            if near:
                raise UsageError(f"{path} does not exist: did you mean {str(path.with_name(near[0]))!r}?")
            raise UsageError(
                f"{path} does not exist: name a file such as {CONFIG_NAME}, or write one with `bakeoff init eval`"
            )
        return path
    there = (folder / name for name in NAMES if (folder / name).is_file())
    found = next((file for file in there if file.name != PYPROJECT or has_table(file)), None)
    if found is None:
        raise UsageError(
            f"there is no {CONFIG_NAME} in {folder.resolve()}: name a file, or write one with `bakeoff init eval`"
        )
    return found


_TABLE = ("tool", "bakeoff")
_HEADER = re.compile(r"\s*(\[\[?)([^\]]+)\]\]?\s*(?:#.*)?")
_ASSIGNED = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_NAME = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
_ERROR_LINE = re.compile(r"at line (\d+)")


def has_table(file: Path) -> bool:
    """Tell whether a pyproject.toml has our table. Where it is not valid TOML, look for the text `[tool.bakeoff`."""
    try:
        text = read_text(file)
    except UsageError:
        return False
    try:
        return _table(tomllib.loads(text)) is not None
    except tomllib.TOMLDecodeError:
        return "[tool.bakeoff" in text


def read_pyproject(file: Path) -> PlacedYaml:
    """Return the table `[tool.bakeoff]` with the lines of its keys, in the form of a YAML file.

    Raises `UsageError` if the file is not TOML or has no such table.
    """
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
    """Return the line of each key that begins a line, because the standard library does not.

    Values inside a line or a list have the line of their key. If a line of a multi-line text looks
    like one of our keys, an error may name the wrong line.
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

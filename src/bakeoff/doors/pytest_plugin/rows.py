"""Read the rows of a suite. A row that cannot be used is kept, with its problem."""

import csv
import inspect
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError
from pydantic_core import to_json

from bakeoff._kernel.json import as_json, clean
from bakeoff._kernel.text import escaped, visible
from bakeoff.doors.pytest_plugin.loops import run_here
from bakeoff.doors.pytest_plugin.suite import Data
from bakeoff.errors import UsageError
from bakeoff.plan import Case

_LONGEST_SLUG = 50
_LARGEST_FILE = 256 * 1024 * 1024
_NOT_IN_A_SLUG = re.compile(r"[^\w.+=]+")
_SUFFIXES = ".jsonl, .json, .csv, .yaml or .yml"


@dataclass(frozen=True, slots=True)
class Row:
    """One row. `id` is its name in pytest's ids; with a `problem` it cannot be run."""

    id: str
    values: Mapping[str, Any]
    problem: str | None = None

    @property
    def input(self) -> Any:
        return self.values.get("input")

    @property
    def shown_input(self) -> str:
        """Return the input as text; none for a row that could not be read."""
        value = as_json(self.input) if self.values else ""
        return value if isinstance(value, str) else to_json(value).decode()

    @property
    def expected(self) -> JsonValue:
        return as_json(self.values.get("expected"))


class EvalCase:
    """Give a test function its row: `case.input`, and every other value by its name."""

    __slots__ = ("_row",)

    def __init__(self, row: Row) -> None:
        self._row = row

    @property
    def input(self) -> Any:
        return self._row.input

    @property
    def name(self) -> str:
        return str(self._row.values.get("name", self._row.id))

    @property
    def expected(self) -> Any:
        return self._row.values.get("expected")

    @property
    def row(self) -> dict[str, Any]:
        """Return the whole row."""
        return dict(self._row.values)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and name in self._row.values:
            return self._row.values[name]
        raise AttributeError(f"case {self._row.id!r} has no {name!r}: its row has {', '.join(self._row.values)}")

    def __getitem__(self, name: str) -> Any:
        return self._row.values[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self._row.values.get(name, default)

    def __repr__(self) -> str:
        return f"EvalCase({dict(self._row.values)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return EvalCase, (self._row,)


def read_rows(data: Data, folder: Path) -> list[Row]:
    """Return every row, each with an id of its own. Raise UsageError if there is nothing to read rows from.

    Args:
        data: what `eval_suite` was given.
        folder: where relative paths start.
    """
    found = list(_placed(data, folder))
    if not found:
        raise UsageError("there is no data, so the eval would test nothing: give at least one row")
    return _named(found)


def _placed(data: Any, folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield each row, after a text that says where it is."""
    if callable(data):
        data = data()
        data = run_here(data) if inspect.isawaitable(data) else data
    if isinstance(data, str | PathLike):
        yield from _from_file(folder / data)
        return
    if inspect.isasyncgen(data):
        data = run_here(_all_of(data))
    if not isinstance(data, Iterable) or isinstance(data, Mapping):
        raise UsageError(f"data is {_shown(data)}: give a list of rows, a function that returns one, or a file")
    yield from ((f"row {number}", row) for number, row in enumerate(data, 1))


async def _all_of(rows: Any) -> list[Any]:
    return [row async for row in rows]


def _from_file(path: Path) -> Iterator[tuple[str, Any]]:
    readers = {".jsonl": _jsonl, ".json": _json, ".csv": _csv, ".yaml": _yaml, ".yml": _yaml}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UsageError(f"data file {str(path)!r}: rows are read from {_SUFFIXES}")
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise UsageError(f"data file {path} is larger than {_LARGEST_FILE // 1024 // 1024} MB")
        yield from reader(path)
    except OSError as error:
        raise UsageError(f"data file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"data file {path} is not UTF-8 text (byte {error.start}): save it as UTF-8") from error


def _jsonl(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield f"{path.name}:{number}", _from_json(line)


def _json(path: Path) -> Iterator[tuple[str, Any]]:
    rows = _from_json(path.read_text("utf-8-sig"))
    if not isinstance(rows, list):
        raise UsageError(f"data file {path}: {rows if isinstance(rows, _Unreadable) else 'the file is not a list'}")
    yield from ((f"{path.name}, row {number}", row) for number, row in enumerate(rows, 1))


class _Unreadable(str):
    """Why a row cannot be read."""

    __slots__ = ()


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return _Unreadable(f"this is not JSON: {error}")


def _csv(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield f"{path.name}:{line}", _Unreadable(f"this is not CSV: {error}")
                return
            where = f"{path.name}:{max(line, 2)}"
            if None in cells:
                yield where, _Unreadable("it has more cells than the first line has names")
            else:  # an empty cell gives no value
                yield where, {name: cell for name, cell in cells.items() if cell not in (None, "")}


def _yaml(path: Path) -> Iterator[tuple[str, Any]]:
    from bakeoff._kernel.yaml_with_lines import read_yaml

    placed = read_yaml(path)
    if not isinstance(placed.value, list):
        raise UsageError(f"data file {path}: the file is not a list of rows")
    for place, row in enumerate(placed.value):
        yield placed.where((place,)).replace(str(path), path.name), row


def _named(found: Iterable[tuple[str, Any]]) -> list[Row]:
    """Give each row an id. Names given by the author must differ; others are made from the input, and made unique."""
    taken: set[str] = set()
    places: dict[str, str] = {}  # of explicit names
    met: Counter[str] = Counter()
    rows = []
    for where, row in found:
        problem = _problem(row)
        values = clean(row) if problem is None else {}
        name = values.get("name")
        wanted = escaped(name) if name is not None else _slug(values.get("input")) if values else _slug(where)
        if name is not None and problem is None:
            first = places.setdefault(name, where)
            if first != where:
                problem = f"the name {name!r} is already used by {first}: rename one"
        unique = wanted
        while unique in taken:
            met[wanted] += 1
            unique = f"{wanted}-{met[wanted] + 1}"
        taken.add(unique)
        rows.append(Row(unique, values, f"{where}: {problem}" if problem else None))
    return rows


def _problem(row: Any) -> str | None:
    if isinstance(row, _Unreadable):
        return str(row)
    if not isinstance(row, Mapping):
        return f"{_shown(row)} is not a row: write it as {{'input': …, 'expected': …}}"
    if "input" not in row:
        return f"it has no 'input', only {', '.join(map(repr, row)) or 'nothing'}"
    if odd := [key for key in row if not isinstance(key, str)]:
        return f"the key {odd[0]!r} is not a text"
    name = row.get("name", "x")
    if not isinstance(name, str) or not name.strip():
        return f"the name {_shown(name)} is not a text that can be shown"
    return _problem_of_files(row)


def graded_by(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `Command` grades with: `hidden` files, and with them `files` and the `answer_file`."""
    if not isinstance(values.get("hidden"), Mapping):
        return {}
    return {name: values[name] for name in ("hidden", "files", "answer_file") if name in values}


def _problem_of_files(row: Mapping[str, Any]) -> str | None:
    if not (files := graded_by(row)):
        return None
    try:
        Case(id="row", prompt="", **files)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = first["loc"][:-2] if first["loc"][-1] == "[key]" else first["loc"]  # the message has the key
        return f"{'.'.join(map(str, place))}: {first['msg'].removeprefix('Value error, ')}"
    return None


def _slug(value: Any) -> str:
    text = value if isinstance(value, str) else _shown(value)
    slug = _NOT_IN_A_SLUG.sub("-", text[: 4 * _LONGEST_SLUG]).strip("-")
    if len(slug) > _LONGEST_SLUG:
        slug = slug[:_LONGEST_SLUG].rpartition("-")[0] or slug[:_LONGEST_SLUG]
    return slug or "case"


def _shown(value: Any) -> str:
    return visible(repr(value), 200)

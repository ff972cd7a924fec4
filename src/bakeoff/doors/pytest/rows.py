"""Read the rows of a suite. A row that cannot be used is kept, with its problem."""

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue, ValidationError
from pydantic_core import to_json

from bakeoff._kernel.json import as_json, clean
from bakeoff._kernel.text import count_of, escaped, free_name, in_our_words, visible, without_command
from bakeoff.doors.pytest.gather import UNREAD
from bakeoff.doors.pytest.loops import run_here
from bakeoff.doors.pytest.suite import Data
from bakeoff.errors import UsageError
from bakeoff.plan import Case, PassRule

_MAX_SLUG_LENGTH = 50
_NOT_IN_A_SLUG = re.compile(r"[^\w.+=]+")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")  # in the `repr` of an object; it differs from process to process
_NO = ("", "0", "false", "no")  # texts in a cell `skip` that do not skip
_NOT_FOR_ROWS = ("parametrize", "usefixtures")  # marks
_PARAM = type(pytest.param())
ENDS_THE_SESSION = (KeyboardInterrupt, pytest.exit.Exception)


@dataclass(frozen=True, slots=True)
class EvalRow:
    """One row. `id` is its name in pytest's ids; with a `problem` it cannot be run."""

    id: str
    values: Mapping[str, Any]
    problem: str | None = None
    error: BaseException | None = None  # raised by the user's code when it was asked for rows
    marks: tuple[pytest.MarkDecorator, ...] = ()  # of pytest, for this row alone

    @property
    def input(self) -> Any:
        return self.values.get("input")

    @property
    def shown_input(self) -> str:
        """Return the input as text; empty for a row that could not be read."""
        value = as_json(self.input) if self.values else ""
        shown = value if isinstance(value, str) else to_json(value).decode()
        return shown if isinstance(self.input, str) else _ADDRESS.sub("", shown)

    def rule(self, of_suite: PassRule) -> PassRule:
        """Return the pass rule of the suite, with the row's own threshold if it has one."""
        if "threshold" not in self.values or self.problem is not None:
            return of_suite
        return of_suite.model_copy(update={"threshold": _own_threshold(self.values["threshold"])})

    @property
    def expected(self) -> JsonValue:
        """Return the expected value as data, with objects as texts."""
        return as_json(self.values.get("expected"))


class EvalCase:
    """The row for a test function: `case.input`, and all other values as attributes or items."""

    __slots__ = ("_row",)

    def __init__(self, row: EvalRow) -> None:
        self._row = row

    @property
    def input(self) -> Any:
        return self._row.input

    @property
    def name(self) -> str:
        """Return the name of the row, or else the id in its test's name."""
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
        """Return a value of the row, or the default if it has none of this name."""
        return self._row.values.get(name, default)

    def __repr__(self) -> str:
        return f"EvalCase({dict(self._row.values)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return EvalCase, (self._row,)


def read_rows(data: Data, folder: Path) -> list[EvalRow]:
    """Return every row, each with an id of its own. If not all can be read, the last row holds the error.

    Args:
        data: the `data` of `eval_suite`.
        folder: the folder to which paths are relative.
    """
    found: list[tuple[str, Any]] = []
    try:
        for placed in _placed(data, folder):
            found.append(placed)  # noqa: PERF402 - those before an error are kept
        if not found:
            raise UsageError("there is no data, so the eval would test nothing: give at least one row")
    except ENDS_THE_SESSION:
        raise
    except BaseException as error:  # noqa: BLE001 - the user's code may raise anything
        rows = _named(found)
        ours = isinstance(error, UsageError)
        said = str(error) if ours else f"{type(error).__name__}: {error}"
        after = f" after {count_of(len(rows), 'row')}" if rows else ""
        name = free_name("data", {row.id for row in rows}, "{}-{}")
        return [*rows, EvalRow(name, {}, f"{UNREAD}{after}: {said}", None if ours else error)]
    return _named(found)


def _placed(data: Any, folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield each row with a text that names its place."""
    if callable(data):
        data = data()
        data = run_here(data) if inspect.isawaitable(data) else data
    if isinstance(data, str | PathLike):
        yield from _from_file(folder / data)
        return
    if inspect.isasyncgen(data):
        made: list[Any] = []
        try:
            run_here(_read_into(made, data))
        finally:
            yield from _numbered(made)
        return
    if not isinstance(data, Iterable) or isinstance(data, Mapping):
        raise UsageError(f"data is {_shown(data)}: give a list of rows, a function that returns one, or a file")
    yield from _numbered(data)


def _numbered(rows: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"row {number}", row) for number, row in enumerate(rows, 1))


async def _read_into(made: list[Any], rows: Any) -> None:
    async for row in rows:
        made.append(row)  # noqa: PERF401 - those before an error are kept


def _from_file(path: Path) -> Iterator[tuple[str, Any]]:
    from bakeoff.doors.data_files import placed_rows

    for place, row in placed_rows(path):
        is_table = path.suffix.lower() in (".csv", ".tsv") and isinstance(row, dict)
        given = {name: cell for name, cell in row.items() if cell != ""} if is_table else row  # "" gives no value
        yield place.replace(str(path), path.name), given


def _named(found: Iterable[tuple[str, Any]]) -> list[EvalRow]:
    """Give each row a unique id: its name, which must be unique, or one made from its input."""
    taken: set[str] = set()
    places: dict[str, str] = {}  # of explicit names
    met: Counter[str] = Counter()
    rows = []
    for where, given in found:
        row, id_, marks = _of_param(given)
        problem = _problem(row) or _problem_of_marks(marks)
        values = clean(row) if problem is None else {}
        name = id_ if isinstance(id_, str) else values.get("name")
        wanted = (
            without_command(escaped(name))
            if name is not None
            else _slug(values.get("input"))
            if values
            else _slug(where)
        )
        if name is not None and problem is None:
            first = places.setdefault(name, where)
            if first != where:
                problem = f"the name {name!r} is already used by {first}: rename one"
        unique = wanted
        while unique in taken:
            met[wanted] += 1
            unique = f"{wanted}-{met[wanted] + 1}"
        taken.add(unique)
        rows.append(EvalRow(unique, values, f"{where}: {problem}" if problem else None, marks=_marks(values, marks)))
    return rows


def _of_param(given: Any) -> tuple[Any, Any, Sequence[Any]]:
    """Return the row, the id and the marks of a `pytest.param`. For other rows, id and marks are empty."""
    if not isinstance(given, _PARAM):
        return given, None, ()
    row = given.values[0] if len(given.values) == 1 else given.values
    return row, given.id, list(given.marks)


def _marks(values: Mapping[str, Any], of_param: Sequence[Any]) -> tuple[pytest.MarkDecorator, ...]:
    """Return the marks of a row: those of its `pytest.param`, its `marks` and its `skip`."""
    skip = values.get("skip")
    skipped = skip.strip().lower() not in _NO if isinstance(skip, str) else bool(skip)
    skips = [pytest.mark.skip(reason=skip if isinstance(skip, str) else "its row says so")] if skipped else []
    own = [getattr(pytest.mark, one) if isinstance(one, str) else one for one in _listed(values.get("marks"))]
    every = (*of_param, *own, *skips)
    return tuple(
        getattr(pytest.mark, one.name).with_args(*one.args, **one.kwargs) if isinstance(one, pytest.Mark) else one
        for one in every
    )


def _listed(value: Any) -> list[Any]:
    """Return a mark, a list of marks, or a text with names of marks as a list."""
    if isinstance(value, str):
        return value.replace(",", " ").split()
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def _own_threshold(value: Any) -> Any:
    """Return the threshold of a row as a number; the cells of a CSV file are texts."""
    if isinstance(value, str):
        return None if value.strip().lower() in ("none", "null") else float(value)
    return value


def _problem_of_marks(marks: Iterable[Any]) -> str | None:
    for one in marks:
        if isinstance(one, str) and one.isidentifier():
            try:
                getattr(pytest.mark, one)
            except pytest.fail.Exception as error:  # --strict-markers
                return f"the mark {one!r}: {error}"
        elif not isinstance(one, pytest.Mark | pytest.MarkDecorator):
            return f"{_shown(one)} is not a mark: give `pytest.mark.slow`, or its name as a text"
        elif one.name in _NOT_FOR_ROWS:
            return f"the mark {one.name!r} cannot be that of a row: mark the function"
    return None


def _problem(row: Any) -> str | None:
    if isinstance(row, UsageError):
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
    try:
        PassRule(threshold=_own_threshold(row.get("threshold")))
    except (ValueError, TypeError):
        return f"threshold {_shown(row['threshold'])} is not between 0 and 1, or None"
    return _problem_of_marks(_listed(row.get("marks"))) or _problem_of_files(row)


def graded_by(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row that `Command` grades with: `hidden`, and with it `files` and `answer_file`."""
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
        return f"{'.'.join(map(str, place))}: {in_our_words(first)}"
    return None


def _slug(value: Any) -> str:
    text = value if isinstance(value, str) else _shown(value)
    slug = _NOT_IN_A_SLUG.sub("-", text[: 4 * _MAX_SLUG_LENGTH]).strip("-")
    if len(slug) > _MAX_SLUG_LENGTH:
        slug = slug[:_MAX_SLUG_LENGTH].rpartition("-")[0] or slug[:_MAX_SLUG_LENGTH]
    return slug or "case"


def _shown(value: Any) -> str:
    if type(value) in (set, frozenset):  # their order differs from process to process
        return visible(f"{{{', '.join(sorted(map(repr, value)))}}}", 200)
    return visible(_ADDRESS.sub("", repr(value)), 200)

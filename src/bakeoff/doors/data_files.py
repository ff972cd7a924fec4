"""Read rows of cases from files: CSV, JSON, JSON lines, YAML and Parquet. Nothing in them is ever executed."""

import csv
from collections.abc import Callable, Iterator
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_jsonable_python

from bakeoff._kernel import files
from bakeoff._kernel.yaml import ConfigError, parse_yaml
from bakeoff.errors import UsageError

MAX_FILE_SIZE = 256 * 1024 * 1024

PlacedValue = tuple[str, Any]
"""A place, as `file:line`, and the value there."""


def placed_rows(file: Path) -> Iterator[PlacedValue]:
    """Yield each row of a file with its place. The value of a row that cannot be read is a `UsageError`.

    Raises `UsageError` for a file that cannot be read to its end.
    """
    readers: dict[str, Callable[[Path], Iterator[PlacedValue]]] = {
        ".csv": _csv_rows,
        ".tsv": partial(_csv_rows, delimiter="\t"),
        ".jsonl": _json_lines,
        ".ndjson": _json_lines,
        ".json": _json_rows,
        ".yaml": _yaml_rows,
        ".yml": _yaml_rows,
        ".parquet": arrow_rows,
    }
    reader = readers.get(file.suffix.lower())
    if reader is None:
        raise UsageError(f"{file.name} is of no kind that has cases: name a file of {', '.join(readers)}")
    return reader(file)


def read_text(file: Path) -> str:
    """Return the text of a file that a configuration names. Raise `UsageError` if it cannot be read."""
    return files.read_text(file, MAX_FILE_SIZE)


def _csv_rows(file: Path, delimiter: str = ",") -> Iterator[PlacedValue]:
    reader = csv.reader(StringIO(read_text(file), newline=""), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        if not any(header):
            raise UsageError(f"{file}:1: the first line has to name the columns, such as `input,expected`")
        if twice := [name for at, name in enumerate(header) if name in header[:at]]:
            raise UsageError(f"{file}:1: the column {twice[0]!r} is here twice: rename one")
        line = reader.line_num + 1
        for cells in reader:
            if len(cells) > len(header):
                way_out = f"put a value with `{delimiter}` in double quotes"
                yield f"{file}:{line}", UsageError(f"{len(cells)} values for {len(header)} columns: {way_out}")
            elif any(cells):
                yield f"{file}:{line}", dict(zip(header, cells, strict=False))
            line = reader.line_num + 1
    except csv.Error as error:
        raise UsageError(f"{file}:{reader.line_num}: this is not CSV: {error}") from error


def _json_lines(file: Path) -> Iterator[PlacedValue]:
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.strip():
            yield f"{file}:{number}", _parsed(line)


def _json_rows(file: Path) -> Iterator[PlacedValue]:
    found = _parsed(read_text(file))
    if isinstance(found, UsageError):
        raise UsageError(f"{file}:1: {found}")
    if not isinstance(found, list):
        raise UsageError(f"{file}:1: a JSON file of cases is a list of objects, such as [{{…}}, {{…}}]")
    for number, each in enumerate(found, 1):
        yield f"{file}: item {number}", each


def _parsed(text: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        return UsageError(f"this is not JSON: {error}")


def _yaml_rows(file: Path) -> Iterator[PlacedValue]:
    placed = parse_yaml(read_text(file), file)
    if not isinstance(placed.value, list):
        raise ConfigError([f"{file}:1: a YAML file of cases is a list of objects: begin each with `- `"])
    for number, each in enumerate(placed.value):
        yield placed.where((number,)), each


def arrow_rows(file: Path) -> Iterator[PlacedValue]:
    """Yield the rows of a Parquet file; read any other file as an Arrow stream."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        hint = "needs pyarrow, which is not installed: run `pip install 'bakeoff[parquet]'`"
        raise UsageError(f"{file} {hint}") from error
    kind = "Parquet" if file.suffix.lower() == ".parquet" else "Arrow"
    try:
        with pyarrow.memory_map(str(file)) as source:
            stream = kind == "Arrow"
            batches = pyarrow.ipc.open_stream(source) if stream else parquet.ParquetFile(source).iter_batches()
            for number, values in enumerate((row for batch in batches for row in batch.to_pylist()), 1):
                yield f"{file}: row {number}", plain(values)
    except (OSError, pyarrow.ArrowException) as error:
        raise UsageError(f"{file} cannot be read as {kind}: {first_line(error)}") from error


def plain(values: Any) -> Any:
    """Return Python values as JSON: dates as texts, bytes in base64, and NaN or infinity as null."""
    return to_jsonable_python(values, fallback=str, bytes_mode="base64", inf_nan_mode="null")


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or else its type."""
    return (str(error).splitlines() or [type(error).__name__])[0]

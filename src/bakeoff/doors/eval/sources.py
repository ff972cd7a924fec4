"""Read rows of cases from files and folders: CSV, JSON, JSON lines, YAML, Parquet, and data sets of Hugging Face.

A row is plain data with a place, as `file:line`. Nothing in it is ever executed, and its scorers name no code and no
model.
"""

import csv
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from glob import glob
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json, to_jsonable_python

from bakeoff._kernel import files
from bakeoff._kernel.files import with_home
from bakeoff._kernel.imports import import_target
from bakeoff._kernel.yaml import ConfigError, Key, PlacedYaml, parse_yaml
from bakeoff.errors import UsageError

MAX_FILE_SIZE = 256 * 1024 * 1024
MAX_CASES = 1_000_000


class DataRow(NamedTuple):
    """One row with its place."""

    where: str
    values: Mapping[str, Any]

    def placed(self) -> "PlacedRow":
        """Return the row for messages that name its place and a key."""
        return PlacedRow(Path(self.where), dict(self.values), dict.fromkeys(_keys(dict(self.values)), 1))


def _keys(value: Any, key: Key = ()) -> Iterator[Key]:
    """Yield the keys of a value and of all within it."""
    yield key
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield from _keys(inner, (*key, name))


class PlacedRow(PlacedYaml):
    """A row whose keys all have one place: its file is already the whole place, with the line."""

    def where(self, key: Key) -> str:  # noqa: ARG002 - all keys have the same place
        """Return the file and the line of the row, for messages."""
        return str(self.file)


def find_files(pattern: str, folder: Path) -> list[Path]:
    """Return the files of a path or pattern, relative to a folder, in the order of their names."""
    path = folder / with_home(pattern)
    if path.exists() or not any(mark in pattern for mark in "*?["):
        return [path]
    return sorted(file for name in glob(str(path), recursive=True) if (file := Path(name)).is_file())  # noqa: PTH207


def rows_of_file(file: Path) -> Iterator[DataRow]:
    """Yield the rows of a file. Raise `UsageError` for one that cannot be read."""
    readers: dict[str, Callable[[Path], Iterator[DataRow]]] = {
        ".csv": _csv_rows,
        ".tsv": partial(_csv_rows, delimiter="\t"),
        ".jsonl": _json_lines,
        ".ndjson": _json_lines,
        ".json": _json_rows,
        ".yaml": _yaml_rows,
        ".yml": _yaml_rows,
        ".parquet": _arrow_rows,
    }
    reader = readers.get(file.suffix.lower())
    if reader is None:
        raise UsageError(f"{file.name} is of no kind that has cases: name a file of {', '.join(readers)}")
    return reader(file)


def read_text(file: Path) -> str:
    """Return the text of a file that a configuration names. Raise `UsageError` if it cannot be read."""
    return files.read_text(file, MAX_FILE_SIZE)


def read_texts(
    pattern: str, folder: Path, sources: list[Path], problem: Callable[[str], None]
) -> Iterator[tuple[Path, str]]:
    """Yield the files of a path or pattern with their texts, and add them to `sources`. Problems are told."""
    found = find_files(pattern, folder)
    if not found:
        problem(f"no file matches {pattern!r}")
    for file in found:
        sources.append(file)
        try:
            yield file, read_text(file)
        except UsageError as error:
            problem(str(error))


def number_in(text: str) -> float | str:
    """Return the number that a cell holds, or its text, which is then refused at its place."""
    try:
        return float(text)
    except ValueError:
        return text


def _csv_rows(file: Path, delimiter: str = ",") -> Iterator[DataRow]:
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
                raise UsageError(
                    f"{file}:{line}: {len(cells)} values for {len(header)} columns: put a value with `{delimiter}` "
                    "in double quotes"
                )
            if any(cells):
                yield DataRow(f"{file}:{line}", dict(zip(header, cells, strict=False)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise UsageError(f"{file}:{reader.line_num}: this is not CSV: {error}") from error


def _json_lines(file: Path) -> Iterator[DataRow]:
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.strip():
            yield _row(f"{file}:{number}", _parsed(line, f"{file}:{number}"))


def _json_rows(file: Path) -> Iterator[DataRow]:
    found = _parsed(read_text(file), f"{file}:1")
    if not isinstance(found, list):
        raise UsageError(f"{file}:1: a JSON file of cases is a list of objects, such as [{{…}}, {{…}}]")
    for number, each in enumerate(found, 1):
        yield _row(f"{file}: item {number}", each)


def _parsed(text: str, where: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise UsageError(f"{where}: this is not JSON: {error}") from error


def _yaml_rows(file: Path) -> Iterator[DataRow]:
    placed = parse_yaml(read_text(file), file)
    if not isinstance(placed.value, list):
        raise ConfigError([f"{file}:1: a YAML file of cases is a list of objects: begin each with `- `"])
    for number, each in enumerate(placed.value):
        yield _row(placed.where((number,)), each)


def _row(where: str, value: Any) -> DataRow:
    if not isinstance(value, dict):
        raise UsageError(f"{where}: a case is an object with names and values, and not {type(value).__name__}")
    return DataRow(where, value)


def _arrow_rows(file: Path) -> Iterator[DataRow]:
    """Yield the rows of a Parquet file, or of any other file as those of an Arrow stream."""
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
                yield DataRow(f"{file}: row {number}", _plain(values))
    except (OSError, pyarrow.ArrowException) as error:
        raise UsageError(f"{file} cannot be read as {kind}: {_first_line(error)}") from error


def _plain(values: Any) -> Any:
    """Return values of Python as JSON: dates as texts, bytes in base64, and what is no number as null."""
    return to_jsonable_python(values, fallback=str, bytes_mode="base64", inf_nan_mode="null")


def dataset_rows(folder: Path, split: str | None) -> Iterator[DataRow]:
    """Yield the rows of a data set that `save_to_disk` wrote, or whose Parquet files were downloaded.

    `split` may be None if there is only one to choose. Raises `UsageError` if the folder is no data set. Nothing is
    downloaded.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: name the folder of a data set that is on disk")
    if (folder / "dataset_dict.json").is_file():
        splits = _names(_load(folder / "dataset_dict.json").get("splits"))
        folder, split = folder / _chosen(folder, splits, split), None
    if (folder / "state.json").is_file():
        files = [each.get("filename") for each in _load(folder / "state.json").get("_data_files") or [] if each]
        for name in _names(files):
            yield from _arrow_rows(folder / name)
        return
    found = sorted(folder.rglob("*.parquet"))
    if not found:
        raise UsageError(f"{folder} is not a data set: it has neither state.json nor Parquet files")
    splits = list(dict.fromkeys(_split_of(file) for file in found))
    wanted = _chosen(folder, splits, split)
    for file in found:
        if _split_of(file) == wanted:
            yield from _arrow_rows(file)


def _names(given: Any) -> list[str]:
    """Return names of a data set's own files: plain ones, so that none leads out of its folder."""
    names = [str(each) for each in given or ()]
    if wrong := [name for name in names if Path(name).name != name or name in (".", "..")]:
        raise UsageError(f"{wrong[0]!r} is not the name of a file in the data set")
    return names


def _split_of(file: Path) -> str:
    return file.stem.partition("-")[0]


def _chosen(folder: Path, splits: list[str], split: str | None) -> str:
    if split is None and len(splits) == 1:
        return splits[0]
    if split not in splits:
        told = f"has no split {split!r}" if split else "has several splits"
        raise UsageError(f"{folder} {told}: write `split: …`; there are {', '.join(splits)}")
    return split


def _load(file: Path) -> dict[str, Any]:
    found = _parsed(read_text(file), str(file))
    if not isinstance(found, dict):
        raise UsageError(f"{file} is not an object")
    return found


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def function_rows(target: str, who: str) -> Iterator[DataRow]:
    """Yield what a function of the user yields: objects, or texts that are inputs.

    The function is called without arguments, and at most `MAX_CASES` + 1 items are taken. Raises `UsageError`, which
    begins with `who`, if it raises or yields something else.
    """
    function = import_target(target, who)
    try:
        made = list(islice(function(), MAX_CASES + 1))
    except Exception as error:
        raise UsageError(f"{who}: {target} raised {type(error).__name__}: {_first_line(error)}") from error
    for number, each in enumerate(made, 1):
        value = {"input": each} if isinstance(each, str) else each
        if hasattr(value, "_asdict"):
            value = value._asdict()
        if not isinstance(value, Mapping):
            raise UsageError(f"{who}: item {number} of {target} is {type(each).__name__}: yield objects or texts")
        yield DataRow(f"{target}: item {number}", _plain(dict(value)))

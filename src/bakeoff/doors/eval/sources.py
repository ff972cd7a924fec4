"""Read rows of cases from files and folders: CSV, JSON, JSON lines, YAML, Parquet, and data sets of Hugging Face.

A row is plain data with a place, as `file:line`. Nothing in it is ever executed, and its scorers must not name code or
models.
"""

from collections.abc import Callable, Iterator, Mapping
from glob import glob
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json

from bakeoff._kernel.files import with_home
from bakeoff._kernel.imports import import_target
from bakeoff._kernel.yaml import Key, PlacedYaml
from bakeoff.doors.data_files import arrow_rows, first_line, placed_rows, plain, read_text
from bakeoff.errors import UsageError

MAX_CASES = 1_000_000


class DataRow(NamedTuple):
    """One row with its place."""

    where: str
    values: Mapping[str, Any]

    def placed(self) -> "PlacedRow":
        """Return the row in a form from which messages can name its place and a key."""
        return PlacedRow(Path(self.where), dict(self.values), dict.fromkeys(_keys(dict(self.values)), 1))


def _keys(value: Any, key: Key = ()) -> Iterator[Key]:
    """Yield the key of a value and the keys of all values inside it."""
    yield key
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield from _keys(inner, (*key, name))


class PlacedRow(PlacedYaml):
    """A row whose keys all have the same place, which already includes file and line."""

    def where(self, key: Key) -> str:  # noqa: ARG002 - all keys have the same place
        """Return the file and line of the row for messages, whatever the key."""
        return str(self.file)


def find_files(pattern: str, folder: Path) -> list[Path]:
    """Return the files of a path or pattern, relative to a folder, in the order of their names."""
    path = folder / with_home(pattern)
    if path.exists() or not any(mark in pattern for mark in "*?["):
        return [path]
    return sorted(file for name in glob(str(path), recursive=True) if (file := Path(name)).is_file())  # noqa: PTH207


def rows_of_file(file: Path) -> Iterator[DataRow]:
    """Yield the rows of a file. Raise `UsageError` for one that cannot be read."""
    for where, value in placed_rows(file):
        if isinstance(value, UsageError):
            raise UsageError(f"{where}: {value}")
        if not isinstance(value, dict):
            raise UsageError(f"{where}: a case is an object with names and values, and not {type(value).__name__}")
        yield DataRow(where, value)


def read_texts(
    pattern: str, folder: Path, sources: list[Path], problem: Callable[[str], None]
) -> Iterator[tuple[Path, str]]:
    """Yield the files of a pattern with their texts; also add the files to `sources`."""
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
    """Return the number in a cell, or the text itself, which is then reported at its place."""
    try:
        return float(text)
    except ValueError:
        return text


def dataset_rows(folder: Path, split: str | None) -> Iterator[DataRow]:
    """Yield the rows of a data set that `save_to_disk` wrote, or whose Parquet files were downloaded.

    `split` may be None if there is only one. Nothing is downloaded. Raises `UsageError` if the
    folder is not a data set.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: name the folder of a data set that is on disk")
    if (folder / "dataset_dict.json").is_file():
        splits = _names(_load(folder / "dataset_dict.json").get("splits"))
        folder, split = folder / _chosen(folder, splits, split), None
    if (folder / "state.json").is_file():
        files = [each.get("filename") for each in _load(folder / "state.json").get("_data_files") or [] if each]
        for name in _names(files):
            yield from map(DataRow._make, arrow_rows(folder / name))
        return
    found = sorted(folder.rglob("*.parquet"))
    if not found:
        raise UsageError(f"{folder} is not a data set: it has neither state.json nor Parquet files")
    splits = list(dict.fromkeys(_split_of(file) for file in found))
    wanted = _chosen(folder, splits, split)
    for file in found:
        if _split_of(file) == wanted:
            yield from map(DataRow._make, arrow_rows(file))


def _names(given: Any) -> list[str]:
    """Return the file names of a data set. Only plain names are accepted, so that none leads out of the folder."""
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
    try:
        found = from_json(read_text(file))
    except ValueError as error:
        raise UsageError(f"{file}: this is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise UsageError(f"{file} is not an object")
    return found


def function_rows(target: str) -> Iterator[DataRow]:
    """Yield rows from a function of the user, which yields objects, or texts that are inputs.

    The function is called without arguments, and at most `MAX_CASES` + 1 items are taken. Raises `UsageError` if it
    raises or yields something else.
    """
    function = import_target(target, "cases")
    try:
        made = list(islice(function(), MAX_CASES + 1))
    except Exception as error:
        raise UsageError(f"cases: {target} raised {type(error).__name__}: {first_line(error)}") from error
    for number, each in enumerate(made, 1):
        value = {"input": each} if isinstance(each, str) else each
        if hasattr(value, "_asdict"):
            value = value._asdict()
        if not isinstance(value, Mapping):
            raise UsageError(f"cases: item {number} of {target} is {type(each).__name__}: yield objects or texts")
        yield DataRow(f"{target}: item {number}", plain(dict(value)))

"""Write rows as Parquet, in groups that fit in memory. Needs the extra `parquet`."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from bakeoff.errors import UsageError
from bakeoff.report.export_rows import Field, Value

_MOST_ROWS = 2000
_MOST_CHARACTERS = 16 * 1024 * 1024  # of one group: a row may hold a text of any length
_WHOLE = 2**63


def write_parquet(fields: tuple[Field, ...], rows: Iterator[dict[str, Value]], path: Path) -> None:
    """Write the rows group by group."""
    arrow, parquet = _libraries()
    schema = arrow.schema([(field.name, _type(arrow, field)) for field in fields])
    whole = [field.name for field in fields if field.kind == "whole"]
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for group in _groups(rows):
            for row in group:
                _check(row, whole)
            columns = {field.name: [row[field.name] for row in group] for field in fields}
            writer.write_table(arrow.table(_with_times(fields, columns), schema=schema))


def _libraries() -> tuple[Any, Any]:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(
            "--format parquet needs pyarrow, which is not installed: pip install 'bakeoff[parquet]' or use --format csv"
        ) from error
    return arrow, parquet


def _type(arrow: Any, field: Field) -> Any:
    types = {
        "text": arrow.string(),
        "json": arrow.string(),
        "whole": arrow.int64(),
        "real": arrow.float64(),
        "flag": arrow.bool_(),
        "time": arrow.timestamp("ms", tz="UTC"),
    }
    return types[field.kind]


def _groups(rows: Iterator[dict[str, Value]]) -> Iterator[list[dict[str, Value]]]:
    group: list[dict[str, Value]] = []
    characters = 0
    for row in rows:
        group.append(row)
        characters += sum(len(value) for value in row.values() if isinstance(value, str))
        if len(group) >= _MOST_ROWS or characters >= _MOST_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _check(row: dict[str, Value], whole: list[str]) -> None:
    for name in whole:
        value = row[name]
        if isinstance(value, int) and not -_WHOLE <= value < _WHOLE:
            raise UsageError(
                f"case {row['case']!r:.100}: {name} does not fit into the 64 bits of Parquet: use --format csv"
            )


def _with_times(fields: tuple[Field, ...], columns: dict[str, list[Value]]) -> dict[str, Any]:
    times = [field.name for field in fields if field.kind == "time"]
    parsed = {
        name: [datetime.fromisoformat(value) if isinstance(value, str) else None for value in columns[name]]
        for name in times
    }
    return {**columns, **parsed}

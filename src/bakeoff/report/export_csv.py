"""Write rows as CSV that a spreadsheet shows and never executes.

A text stays on its line: control characters are escaped as in Python, and backslashes are doubled, so that different
texts stay different. Data is JSON, and stays valid JSON if it has to be cut.
"""

import csv
import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, TextIO

from bakeoff.report.export_rows import Field, Value

LONGEST_CELL = 32_000
"""The longest cell. Spreadsheets take 32,767 characters; Parquet has the whole text."""

_SIGNS = "=+@＝＋＠－-"  # also as full-width letters
_JOINERS = "\u200c\u200d"  # scripts and emoji need them
_FORMULA = re.compile(rf"[\s{_JOINERS}\ufeff]*[{_SIGNS}]")
# With a decimal comma, spreadsheets split cells at semicolons, in quotes or not.
_SECOND_CELL = re.compile(rf";(?={_FORMULA.pattern})")
# Only the characters outside this range are inspected one by one.
_TO_ESCAPE = re.compile(r"[^ !-\[\]-~]")
_SHORTER = (1000, 100, 10)  # lengths of the texts in JSON, tried in this order


def write_csv(fields: tuple[Field, ...], rows: Iterator[dict[str, Value]], file: TextIO) -> None:
    """Write a header and then row by row."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([safe_cell(field.name) for field in fields])
    for row in rows:
        writer.writerow([_cell(field, row[field.name]) for field in fields])


def safe_cell(text: str) -> str:
    """Escape control characters, and put an apostrophe before anything that a spreadsheet would take for a formula."""
    shown = _TO_ESCAPE.sub(_escape, text[: LONGEST_CELL + 1])
    shown = _SECOND_CELL.sub(r"\\x3b", shown)
    if len(shown) > LONGEST_CELL:
        shown = f"{shown[:LONGEST_CELL]}…"
    return f"'{shown}" if _FORMULA.match(text.lstrip("'")) else shown


def json_cell(text: str) -> str:
    """Return JSON that fits a cell, with its texts cut if necessary, and without semicolons."""
    for longest in (None, *_SHORTER):
        shown = text if longest is None else json.dumps(_shortened(json.loads(text), longest))
        shown = shown.replace(";", "\\u003b")  # in JSON a semicolon occurs only in strings
        if len(shown) <= LONGEST_CELL:
            return shown
    return json.dumps(f"{len(text)} characters, too many for a cell")


def _cell(field: Field, value: Value) -> Value:
    if not isinstance(value, str):
        return value
    return json_cell(value) if field.kind == "json" else safe_cell(value)


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if char == "\\":
        return "\\\\"
    if char.isprintable() or char in _JOINERS or unicodedata.category(char) == "Zs":
        return char
    return repr(char)[1:-1]


def _shortened(data: Any, longest: int) -> Any:
    match data:
        case str():
            return data if len(data) <= longest else f"{data[:longest]}…"
        case list():
            return [_shortened(item, longest) for item in data]
        case dict():
            return {key: _shortened(item, longest) for key, item in data.items()}
    return data

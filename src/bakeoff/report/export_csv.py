"""Rows as CSV that a spreadsheet shows and never carries out.

A text stays on its line: control characters are escapes as Python and JSON have them, and a backslash is doubled, so
that no two texts become one. Data is JSON, and stays JSON where it has to be cut.
"""

import csv
import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, TextIO

from bakeoff.report.export_rows import Field, Value

LONGEST_CELL = 32_000
"""Spreadsheets take 32,767 characters in a cell; Parquet has the whole text."""

_SIGNS = "=+@＝＋＠－-"  # also as full-width letters
_JOINERS = "\u200c\u200d"  # without which scripts and emoji fall apart
_FORMULA = re.compile(rf"[\s{_JOINERS}\ufeff]*[{_SIGNS}]")
# Where a comma is the decimal sign, spreadsheets part cells at semicolons, in quotes or not.
_SECOND_CELL = re.compile(rf";(?={_FORMULA.pattern})")
# Most of a text needs no look: what is left is asked what it is.
_TO_ESCAPE = re.compile(r"[^ !-\[\]-~]")
_SHORTER = (1000, 100, 10)  # characters that each text of JSON may keep, tried in this order


def write_csv(fields: tuple[Field, ...], rows: Iterator[dict[str, Value]], file: TextIO) -> None:
    """One row at a time, with a line of names first."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([safe_cell(field.name) for field in fields])
    for row in rows:
        writer.writerow([_cell(field, row[field.name]) for field in fields])


def safe_cell(text: str) -> str:
    """Control characters as escapes; what a spreadsheet would take for a formula behind an apostrophe."""
    shown = _TO_ESCAPE.sub(_escape, text[: LONGEST_CELL + 1])
    shown = _SECOND_CELL.sub(r"\\x3b", shown)
    if len(shown) > LONGEST_CELL:
        shown = f"{shown[:LONGEST_CELL]}…"
    return f"'{shown}" if _FORMULA.match(text.lstrip("'")) else shown


def json_cell(text: str) -> str:
    """JSON that is short enough, with its texts cut if need be, and without the sign at which cells are parted."""
    for longest in (None, *_SHORTER):
        shown = text if longest is None else json.dumps(_shortened(json.loads(text), longest))
        shown = shown.replace(";", "\\u003b")  # in JSON a semicolon stands only in texts
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

"""Rows as CSV that a spreadsheet shows and never carries out."""

import csv
from collections.abc import Iterator
from typing import TextIO

from bakeoff.report.export_rows import Field, Value
from bakeoff.report.words import visible

LONGEST_CELL = 32_000
"""Spreadsheets take 32,767 characters in a cell; Parquet has the whole text."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")  # also as full-width letters


def write_csv(fields: tuple[Field, ...], rows: Iterator[dict[str, Value]], file: TextIO) -> None:
    """One row at a time, with a line of names first."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([safe_cell(field.name) for field in fields])
    for row in rows:
        writer.writerow([_cell(row[field.name]) for field in fields])


def safe_cell(text: str) -> str:
    """Control characters as escapes; what a spreadsheet would take for a formula behind an apostrophe."""
    shown = visible(text, LONGEST_CELL)
    return f"'{shown}" if text.lstrip(" \n\v\f").startswith(_FORMULA) else shown


def _cell(value: Value) -> Value:
    return safe_cell(value) if isinstance(value, str) else value

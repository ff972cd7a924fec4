"""Write a run as CSV or Parquet: one row for each finished trial. The names of the columns are stable.

A CSV never contains formulas that a spreadsheet would execute. A text stays on its line: control characters are escaped
as in Python, and backslashes are doubled, so that different texts stay different. Data is JSON, and stays valid JSON if
it has to be cut. Parquet needs the extra `parquet`; its rows are written in groups that fit in memory.
"""

import csv
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO

from bakeoff._kernel.text import free_name
from bakeoff.errors import UsageError
from bakeoff.plan import Plan
from bakeoff.record import Failure, Phase, Record, Transcript, Usage
from bakeoff.report.formatting import as_text, utc
from bakeoff.report.run_records import RunRecords
from bakeoff.storage.ledger import Ledger, describe
from bakeoff.verdict import Verdict

Kind = Literal["text", "json", "whole", "real", "flag", "time"]
Value = str | int | float | bool | None

MAX_CELL_LENGTH = 32_000
"""The length of the longest cell. Spreadsheets accept 32,767 characters; Parquet has the whole text."""

_SIGNS = "=+@＝＋＠－-"  # also as full-width letters
_JOINERS = "\u200c\u200d"  # scripts and emoji need them
_FORMULA = re.compile(rf"[\s{_JOINERS}\ufeff]*[{_SIGNS}]")
# With a decimal comma, spreadsheets split cells at semicolons, in quotes or not.
_SECOND_CELL = re.compile(rf";(?={_FORMULA.pattern})")
# Only the characters outside this range are inspected one by one.
_TO_ESCAPE = re.compile(r"[^ !-\[\]-~]")
_SHORTER = (1000, 100, 10)  # lengths of the texts in JSON, tried in this order

_MAX_ROWS = 2000
_MAX_CHARACTERS = 16 * 1024 * 1024  # of one group: a row may hold a text of any length
_WHOLE = 2**63


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the table: its name, which is stable, and the kind of its values."""

    name: str
    kind: Kind


class _TrialRow(NamedTuple):
    """The data that a row is made of."""

    run: str
    record: Record
    used: Usage
    tags: str
    case_verdict: Verdict | None
    ledger: str

    @property
    def transcript(self) -> Transcript:
        return self.record.transcript or Transcript()

    def failure(self, value: Callable[[Failure], str]) -> str | None:
        return value(self.record.failure) if self.record.failure else None


def _seconds(phase: Phase | None) -> float | None:
    return phase.seconds if phase else None


def _time(seconds: float) -> str | None:
    """Return a time as ISO 8601 in UTC, or None if it is outside the calendar."""
    moment = utc(seconds)
    return moment.isoformat(timespec="milliseconds") if moment else None


def _scores_json(record: Record) -> str:
    return json.dumps([score.model_dump(mode="json", exclude_defaults=True) for score in record.scores])


_COLUMNS: dict[str, tuple[Kind, Callable[[_TrialRow], Value]]] = {
    "run": ("text", lambda trial: trial.run),
    "subject": ("text", lambda trial: trial.record.subject),
    "case": ("text", lambda trial: trial.record.case),
    "round": ("whole", lambda trial: trial.record.round + 1),
    "verdict": ("text", lambda trial: str(trial.record.verdict)),
    "score": ("real", lambda trial: trial.record.value if trial.record.verdict.counts else None),
    "started": ("time", lambda trial: _time(trial.record.started)),
    "seconds": ("real", lambda trial: trial.record.seconds),
    "prepare_seconds": ("real", lambda trial: _seconds(trial.record.prepare)),
    "attempt_seconds": ("real", lambda trial: _seconds(trial.record.attempt)),
    "score_seconds": ("real", lambda trial: _seconds(trial.record.score)),
    "tries": ("whole", lambda trial: trial.record.tries),
    "bound": ("flag", lambda trial: trial.record.bound),
    "requests": ("whole", lambda trial: trial.used.requests),
    "input_tokens": ("whole", lambda trial: trial.used.input),
    "output_tokens": ("whole", lambda trial: trial.used.output),
    "cache_read_tokens": ("whole", lambda trial: trial.used.cache_read),
    "cache_write_tokens": ("whole", lambda trial: trial.used.cache_write),
    "reasoning_tokens": ("whole", lambda trial: trial.used.reasoning),
    "cost_usd": ("real", lambda trial: trial.used.cost),
    "judging_cost_usd": ("real", lambda trial: trial.record.judging.cost),
    "steps": ("whole", lambda trial: len(trial.transcript.steps)),
    "tool_calls": ("whole", lambda trial: len(trial.transcript.tool_calls)),
    "failure_kind": ("text", lambda trial: trial.failure(lambda failure: failure.kind)),
    "failure_type": ("text", lambda trial: trial.failure(lambda failure: failure.type)),
    "failure_message": ("text", lambda trial: trial.failure(lambda failure: failure.message)),
    "output": ("text", lambda trial: as_text(trial.record.transcript.output) if trial.record.transcript else None),
    "scores": ("json", lambda trial: _scores_json(trial.record)),
    "tags": ("json", lambda trial: trial.tags),
    "case_verdict": ("text", lambda trial: trial.case_verdict and str(trial.case_verdict)),
    "ledger": ("text", lambda trial: trial.ledger),
}


def fields_of(plan: Plan) -> tuple[Field, ...]:
    """Return the fixed columns, then one for each scorer of the plan."""
    fixed = (Field(name, kind) for name, (kind, _) in _COLUMNS.items())
    return (*fixed, *(Field(f"score.{name}", "real") for name in unique_names(plan.scorer_names)))


def rows_of(name: str, run_records: RunRecords, ledger: Ledger | None = None) -> Iterator[dict[str, Value]]:
    """Yield a row for each record, with the verdict of its case and the ledger of the run."""
    plan = run_records.plan
    whole = describe(ledger or run_records.summary.ledger, "trial")
    tags = {case.id: json.dumps(case.tags, sort_keys=True) for case in plan.cases}
    scorers = plan.scorer_names
    cell, verdict = None, None
    for record in run_records.records():
        if cell != (record.subject, record.case):  # records come case by case
            cell = (record.subject, record.case)
            verdict = run_records.case_verdict(*cell).verdict
        trial = _TrialRow(name, record, record.used, tags[record.case], verdict, whole)
        yield {column: value(trial) for column, (_, value) in _COLUMNS.items()} | _scores(record, scorers)


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the names, with numbers added to repeated ones."""
    found: list[str] = []
    for name in names:
        found.append(free_name(name, {*found} | ({*names} - {name}), "{} {}"))
    return found


def _scores(record: Record, scorers: list[str]) -> dict[str, Value]:
    """Return the scores by scorer. Scorers of the same name get their scores in order."""
    found: dict[str, list[float | None]] = {}
    for score in record.scores:
        found.setdefault(score.name, []).append(score.value)
    values = [found[name].pop(0) if found.get(name) else None for name in scorers]
    return {f"score.{name}": value for name, value in zip(unique_names(scorers), values, strict=True)}


def write_csv(fields: tuple[Field, ...], rows: Iterator[dict[str, Value]], file: TextIO) -> None:
    """Write a header and the rows, one at a time."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([safe_cell(field.name) for field in fields])
    for row in rows:
        writer.writerow([_cell(field.kind, row[field.name]) for field in fields])


def safe_cell(text: str) -> str:
    """Escape control characters, and put an apostrophe before anything that a spreadsheet would take for a formula."""
    shown = _TO_ESCAPE.sub(_escape, text[: MAX_CELL_LENGTH + 1])
    shown = _SECOND_CELL.sub(r"\\x3b", shown)
    if len(shown) > MAX_CELL_LENGTH:
        shown = f"{shown[:MAX_CELL_LENGTH]}…"
    return f"'{shown}" if _FORMULA.match(text.lstrip("'")) else shown


def json_cell(text: str) -> str:
    """Return JSON without semicolons that fits a cell; cut its texts if necessary."""
    for longest in (None, *_SHORTER):
        shown = text if longest is None else json.dumps(_shortened(json.loads(text), longest))
        shown = shown.replace(";", "\\u003b")  # in JSON a semicolon occurs only in strings
        if len(shown) <= MAX_CELL_LENGTH:
            return shown
    return json.dumps(f"{len(text)} characters, too many for a cell")


def _cell(kind: Kind, value: Value) -> Value:
    if not isinstance(value, str):
        return value
    return json_cell(value) if kind == "json" else safe_cell(value)


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


def write_parquet(fields: tuple[Field, ...], rows: Iterator[dict[str, Value]], path: Path) -> None:
    """Write a Parquet file group by group, so that a large run takes little memory.

    Raises `UsageError` if pyarrow is not installed.
    """
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(
            "--format parquet needs pyarrow, which is not installed: pip install 'bakeoff[parquet]' or use --format csv"
        ) from error
    types: dict[Kind, Any] = {
        "text": arrow.string(),
        "json": arrow.string(),
        "whole": arrow.int64(),
        "real": arrow.float64(),
        "flag": arrow.bool_(),
        "time": arrow.timestamp("ms", tz="UTC"),
    }
    schema = arrow.schema([(field.name, types[field.kind]) for field in fields])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for group in _groups(rows):
            columns = {field.name: [_parquet_value(field, row) for row in group] for field in fields}
            writer.write_table(arrow.table(columns, schema=schema))


def _groups(rows: Iterator[dict[str, Value]]) -> Iterator[list[dict[str, Value]]]:
    group: list[dict[str, Value]] = []
    characters = 0
    for row in rows:
        group.append(row)
        characters += sum(len(value) for value in row.values() if isinstance(value, str))
        if len(group) >= _MAX_ROWS or characters >= _MAX_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _parquet_value(field: Field, row: dict[str, Value]) -> Value | datetime:
    value = row[field.name]
    if field.kind == "time" and isinstance(value, str):
        return datetime.fromisoformat(value)
    if field.kind == "whole" and isinstance(value, int) and not -_WHOLE <= value < _WHOLE:
        where = f"case {row['case']!r:.100}: {field.name}"
        raise UsageError(f"{where} does not fit into the 64 bits of Parquet: use --format csv")
    return value

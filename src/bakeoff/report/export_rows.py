"""Flatten a run to one row per finished trial for CSV and Parquet. The names of the columns are stable."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count
from typing import Literal

from bakeoff.plan import Plan
from bakeoff.record import Record
from bakeoff.report.formatting import as_text
from bakeoff.report.run_records import RunRecords

Kind = Literal["text", "json", "whole", "real", "flag", "time"]
Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: Kind


_FIXED = (
    Field("run", "text"),
    Field("subject", "text"),
    Field("case", "text"),
    Field("round", "whole"),
    Field("verdict", "text"),
    Field("score", "real"),
    Field("started", "time"),
    Field("seconds", "real"),
    Field("prepare_seconds", "real"),
    Field("attempt_seconds", "real"),
    Field("score_seconds", "real"),
    Field("tries", "whole"),
    Field("bound", "flag"),
    Field("requests", "whole"),
    Field("input_tokens", "whole"),
    Field("output_tokens", "whole"),
    Field("cache_read_tokens", "whole"),
    Field("cache_write_tokens", "whole"),
    Field("reasoning_tokens", "whole"),
    Field("cost_usd", "real"),
    Field("judging_cost_usd", "real"),
    Field("steps", "whole"),
    Field("tool_calls", "whole"),
    Field("failure_kind", "text"),
    Field("failure_type", "text"),
    Field("failure_message", "text"),
    Field("output", "text"),
    Field("scores", "json"),
    Field("tags", "json"),
    Field("case_verdict", "text"),
)


def fields_of(plan: Plan) -> tuple[Field, ...]:
    """Return the fixed columns, then one for each scorer of the plan."""
    return (*_FIXED, *(Field(f"score.{name}", "real") for name in unique_names(_scorers(plan))))


def rows_of(name: str, run_records: RunRecords) -> Iterator[dict[str, Value]]:
    """Yield a row for each record; `case_verdict` is that of its case over all rounds."""
    plan = run_records.plan
    tags = {case.id: json.dumps(case.tags, sort_keys=True) for case in plan.cases}
    scorers = _scorers(plan)
    for record in run_records.records():
        verdict = run_records.case_verdict(record.subject, record.case).verdict
        facts = {"run": name, "tags": tags[record.case], "case_verdict": verdict and str(verdict)}
        yield {**facts, **_row(record), **_scores(record, scorers)}


def _scorers(plan: Plan) -> list[str]:
    return [scorer.name or scorer.kind for scorer in plan.scorers]


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the names, with numbers added to repeated ones."""
    taken: set[str] = set()
    found = []
    for name in names:
        numbered = (f"{name} {number}" for number in count(2))
        free = next(one for one in chain([name], numbered) if one not in taken and (one == name or one not in names))
        taken.add(free)
        found.append(free)
    return found


def _scores(record: Record, scorers: list[str]) -> dict[str, Value]:
    """Return the scores by scorer; the first score of a name belongs to the first scorer of that name, and so on."""
    found: dict[str, list[float | None]] = {}
    for score in record.scores:
        found.setdefault(score.name, []).append(score.value)
    values = [found[name].pop(0) if found.get(name) else None for name in scorers]
    return {f"score.{name}": value for name, value in zip(unique_names(scorers), values, strict=True)}


def _row(record: Record) -> dict[str, Value]:
    failure, spent, transcript = record.failure, record.used, record.transcript
    return {
        "subject": record.subject,
        "case": record.case,
        "round": record.round + 1,
        "verdict": str(record.verdict),
        "score": record.value if record.verdict.counts else None,
        "started": _time(record.started),
        "seconds": record.seconds,
        "prepare_seconds": record.prepare.seconds if record.prepare else None,
        "attempt_seconds": record.attempt.seconds if record.attempt else None,
        "score_seconds": record.score.seconds if record.score else None,
        "tries": record.tries,
        "bound": record.bound,
        "requests": spent.requests,
        "input_tokens": spent.input,
        "output_tokens": spent.output,
        "cache_read_tokens": spent.cache_read,
        "cache_write_tokens": spent.cache_write,
        "reasoning_tokens": spent.reasoning,
        "cost_usd": spent.cost,
        "judging_cost_usd": record.judging.cost,
        "steps": len(transcript.steps) if transcript else 0,
        "tool_calls": len(transcript.tool_calls) if transcript else 0,
        "failure_kind": failure.kind if failure else None,
        "failure_type": failure.type if failure else None,
        "failure_message": failure.message if failure else None,
        "output": as_text(transcript.output) if transcript else None,
        "scores": json.dumps([score.model_dump(mode="json", exclude_defaults=True) for score in record.scores]),
    }


def _time(seconds: float) -> str | None:
    """Return ISO 8601 in UTC, or None for a time outside the calendar."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None

"""Say in a few words why a trial did not pass."""

from bakeoff._kernel.text import shorten
from bakeoff.record import Record, Score
from bakeoff.report.formatting import visible

_LONGEST = 300


def why(record: Record) -> str:
    """Return the failure of a trial, or else the reasons of the scores below 1 and then of those that are missing."""
    if record.failure:
        return shorten(f"{record.failure.type}: {record.failure.message}", _LONGEST)
    low = (
        f"{score.name}: {score.reason}" if score.reason else f"{score.name} {score.value:.2f}" for score in _low(record)
    )
    missing = (f"{score.name}: {score.reason or 'unscored'}" for score in record.scores if score.value is None)
    return shorten("; ".join([*low, *missing]), _LONGEST)


def failure_class(record: Record) -> str:
    """Return the class that a scorer names; else the type of the error, or the scorers whose score is below 1."""
    named = (score.metadata.get("failure_class") for score in record.scores)
    if called := next((name for name in named if isinstance(name, str) and name), None):
        return visible(called, 80)
    if record.failure:
        return visible(record.failure.type, 80)
    return visible(", ".join(sorted({score.name for score in _low(record)})), 80) or "unscored"


def failure_message(record: Record) -> str:
    """Return the message of the error, or the first reason of a score below 1."""
    if record.failure:
        return visible(record.failure.message, 200)
    return visible(next((score.reason for score in _low(record) or record.scores if score.reason), ""), 200)


def _low(record: Record) -> list[Score]:
    """Return the scores below 1, the worst first."""
    low = ((score.value, score) for score in record.scores if score.value is not None and score.value < 1)
    return [score for _, score in sorted(low, key=lambda pair: pair[0])]

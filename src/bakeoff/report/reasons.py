"""Say in a few words why a trial did not pass."""

import re

from bakeoff._kernel.text import shorten, visible
from bakeoff.record import Record, Score

_MAX_TEXT_LENGTH = 300

# The parts that vary between messages of one cause, each with the sign that replaces it.
_VARYING = (
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "ID"),
    (re.compile(r"'[^'\n]{1,200}'"), "'…'"),
    (re.compile(r'"[^"\n]{1,200}"'), '"…"'),
    (re.compile(r"`[^`\n]{1,200}`"), "`…`"),
    (re.compile(r"(?<![\w.])(?:/[\w.@+-]{1,100})+/"), "…/"),
    (re.compile(r"\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64}\b", re.IGNORECASE), "ID"),
    (re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}\b"), "ADDRESS"),
    (re.compile(r"(?<!HTTP )(?<!status )(?<!code )(?<!errno )(?<!\d)\d+(?:[.,]\d+)*"), "N"),
)


def why(record: Record) -> str:
    """Return the failure of a trial, or else the reasons for low and for missing scores."""
    if record.failure:
        return shorten(f"{record.failure.type}: {record.failure.message}", _MAX_TEXT_LENGTH)
    told = [f"{one.name}: {one.reason}" if one.reason else f"{one.name} {one.value:.2f}" for one in _low(record)]
    told += [f"{score.name}: {score.reason or 'unscored'}" for score in record.scores if score.value is None]
    return shorten("; ".join(told), _MAX_TEXT_LENGTH)


def failure_class(record: Record) -> str:
    """Return the failure class from a scorer, or else the error type or the failing scorers."""
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


def normalised(message: str) -> str:
    """Return a message without numbers, ids, paths and quoted text, which differ where the cause is the same."""
    for varying, sign in _VARYING:
        message = varying.sub(sign, message)
    return " ".join(message.split())


def _low(record: Record) -> list[Score]:
    """Return the scores below 1, the worst first."""
    low = ((score.value, score) for score in record.scores if score.value is not None and score.value < 1)
    return [score for _, score in sorted(low, key=lambda pair: pair[0])]

"""Keys and recordings of the requests that command-line agents send through the meter.

The key leaves out what differs between runs: identifiers, dates, durations, ports, names of temporary folders.
"""

import re
from collections.abc import Mapping
from typing import Any

from bakeoff._kernel.model import fingerprint
from bakeoff.record import Usage
from bakeoff.replay.http import HttpAnswer
from bakeoff.replay.store import Key, Recording

KIND = "meter"

_IGNORED_FIELDS = {
    *("metadata", "user", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "client_metadata"),
    *("session_id", "conversation_id", "trace_id", "request_id", "labels"),
}
_VOLATILE = (
    (re.compile(r"(?<![0-9a-f])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![0-9a-f])", re.IGNORECASE), "<uuid>"),
    (
        re.compile(r"(?<!\d)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)?"),
        "<date>",
    ),
    (re.compile(r"\b\d{1,2}/\d{1,2}/\d{4}\b"), "<date>"),
    (
        re.compile(
            r"\b(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? )?"
            r"(?:\d{1,2} )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* (?:\d{1,2},? )?\d{4}\b"
        ),
        "<date>",
    ),
    (re.compile(r"(?<!\d)\d{1,2}:\d\d:\d\d(?:\.\d+)?(?: ?[AP]M)?\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|sec|seconds?)\b"), "<duration>"),
    # Codex names each piece of a command's output, as a line or as JSON.
    (re.compile(r"(?<=Chunk ID: )[0-9a-f]{4,16}\b"), "<chunk>"),
    (re.compile(r"(?<=\"chunk_id\":)\s*\"[0-9a-f]{4,16}\""), '"<chunk>"'),
    (re.compile(r"(?<=\"wall_time_seconds\":)\s*[\d.eE+-]+"), "<duration>"),
    # Gemini makes the ids of calls from the time in milliseconds.
    (re.compile(r"(?<=[_-])1[5-9]\d{11}(?=[_-]|$)"), "<time>"),
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "<port>"),
    (re.compile(r"bakeoff-place-\w+"), "<place>"),
    (re.compile(r"(?<=/tmp/)[\w.-]*(?=[/\s\"'`]|$)"), "<temporary>"),
)


class RecordedExchange(Recording, HttpAnswer):
    """One request of an agent and the answer that the agent received."""

    case: str
    usage: Usage
    estimated: bool = False
    seconds: float = 0.0


def exchange_key(trial: Mapping[str, Any], path: str, body: Mapping[str, Any], turn: int) -> Key:
    """Return the key of one request. `turn` counts how often the trial has asked the same before."""
    asked = {**trial, "path": path, "body": lasting(body), "turn": turn}
    return Key(KIND, asked, fingerprint(asked))


def lasting(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request body without the parts that differ between runs."""
    return {name: _steady(value) for name, value in body.items() if name not in _IGNORED_FIELDS}


def _steady(value: Any) -> Any:
    if isinstance(value, str):
        for pattern, placeholder in _VOLATILE:
            value = pattern.sub(placeholder, value)
        return value
    if isinstance(value, dict):
        return {name: _steady(item) for name, item in value.items()}
    return [_steady(item) for item in value] if isinstance(value, list) else value

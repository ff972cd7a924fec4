"""Make keys and recordings for requests of command-line agents through the meter.

Keys leave out parts that vary between runs: identifiers, dates, durations, ports, processes,
temporary folders. An agent's next request has the output of its last command, so keys also depend
on the programs that agents run.
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
    (re.compile(r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2} +\d{1,2}:\d\d\b"), "<date>"),
    (re.compile(r"(?<!\d)\d{1,2}:\d\d:\d\d(?:\.\d+)?(?: ?[AP]M)?\b"), "<time>"),
    # Jest prints a test's time only if slow, and an estimate only if the last run differed.
    (re.compile(r" \(\d+(?:\.\d+)? ?m?s\)|, estimated \d+(?:\.\d+)? s\b"), ""),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|sec|seconds?)\b"), "<duration>"),
    (re.compile(r"(\bduration_ms:? )[\d.]+"), r"\1<duration>"),  # Node's own test runner
    # Codex gives each piece of output an id, in a line or in JSON.
    (re.compile(r"(?<=Chunk ID: )[0-9a-f]{4,16}\b"), "<chunk>"),
    (re.compile(r"(?<=\"chunk_id\":)\s*\"[0-9a-f]{4,16}\""), '"<chunk>"'),
    (re.compile(r"(?<=\"wall_time_seconds\":)\s*[\d.eE+-]+"), "<duration>"),
    # Gemini derives the ids of calls from the time.
    (re.compile(r"(?<=[_-])1[5-9]\d{11}(?=[_-]|$)"), "<time>"),
    # Gemini and Qwen print process ids, Codex and Claude only those of background processes.
    (re.compile(r"(\bp[pg]?ids?\b[\"']?[:= ] ?)\d+(?:, ?\d+)*", re.IGNORECASE), r"\1<process>"),
    (re.compile(r"(\bsession[_ ]id\b[\"']?:? ?)\d+", re.IGNORECASE), r"\1<process>"),
    (re.compile(r"(?<=background with ID: )[\w-]+|(?<=/tasks/)[\w-]+(?=\.output\b)"), "<process>"),
    (re.compile(r"\b20000[0-4]\d{4}\b"), "<user>"),  # of a trial, if Bakeoff runs as root
    (re.compile(r"\b0x[0-9a-f]{6,16}\b", re.IGNORECASE), "<address>"),  # of objects in Python's messages
    (re.compile(r"\b[0-9a-f]{40}\b|(?<=[ )])[0-9a-f]{7,12}(?=\] )"), "<commit>"),
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "<port>"),
    # Eight characters. Claude replaces `_` by `-` in the names of project folders.
    (re.compile(r"bakeoff-place-[\w-]{8}"), "<place>"),
    (re.compile(r"(?<=/tmp/)[\w.-]+"), "<temporary>"),
)


class RecordedExchange(Recording, HttpAnswer):
    """A request of an agent, and the answer that it received."""

    case: str
    usage: Usage
    estimated: bool = False
    seconds: float = 0.0


def exchange_key(trial: Mapping[str, Any], path: str, body: Mapping[str, Any], turn: int) -> Key:
    """Return the key of a request. `turn` counts earlier equal requests in the trial."""
    asked = {**trial, "path": path, "body": lasting(body), "turn": turn}
    return Key(KIND, asked, fingerprint(asked))


def lasting(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request body without parts that vary between runs."""
    return {name: _steady(value) for name, value in body.items() if name not in _IGNORED_FIELDS}


def _steady(value: Any) -> Any:
    if isinstance(value, str):
        for pattern, placeholder in _VOLATILE:
            value = pattern.sub(placeholder, value)
        return value
    if isinstance(value, dict):
        return {name: _steady(item) for name, item in value.items()}
    return [_steady(item) for item in value] if isinstance(value, list) else value

"""Keys and recordings of the requests that command-line agents send through the meter.

The key leaves out the parts that differ between runs: identifiers, dates, durations, ports, processes, names of
temporary folders. The output of a command is in the next request of an agent, so the key depends on the programs that
agents run too.
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
    # Jest names the time of a test only if it was slow, and an estimate only if the last run took another time.
    (re.compile(r" \(\d+(?:\.\d+)? ?m?s\)|, estimated \d+(?:\.\d+)? s\b"), ""),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|sec|seconds?)\b"), "<duration>"),
    (re.compile(r"(\bduration_ms:? )[\d.]+"), r"\1<duration>"),  # Node's own test runner
    # Codex names each piece of a command's output, as a line or as JSON.
    (re.compile(r"(?<=Chunk ID: )[0-9a-f]{4,16}\b"), "<chunk>"),
    (re.compile(r"(?<=\"chunk_id\":)\s*\"[0-9a-f]{4,16}\""), '"<chunk>"'),
    (re.compile(r"(?<=\"wall_time_seconds\":)\s*[\d.eE+-]+"), "<duration>"),
    # Gemini makes the ids of calls from the time in milliseconds.
    (re.compile(r"(?<=[_-])1[5-9]\d{11}(?=[_-]|$)"), "<time>"),
    # Gemini and Qwen name processes of a command, Codex and Claude one that goes on in the background.
    (re.compile(r"(\bp[pg]?ids?\b[\"']?[:= ] ?)\d+(?:, ?\d+)*", re.IGNORECASE), r"\1<process>"),
    (re.compile(r"(\bsession[_ ]id\b[\"']?:? ?)\d+", re.IGNORECASE), r"\1<process>"),
    (re.compile(r"(?<=background with ID: )[\w-]+|(?<=/tasks/)[\w-]+(?=\.output\b)"), "<process>"),
    (re.compile(r"\b20000[0-4]\d{4}\b"), "<user>"),  # of a trial that Bakeoff runs as root
    (re.compile(r"\b0x[0-9a-f]{6,16}\b", re.IGNORECASE), "<address>"),  # of objects in Python's messages
    (re.compile(r"\b[0-9a-f]{40}\b|(?<=[ )])[0-9a-f]{7,12}(?=\] )"), "<commit>"),
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "<port>"),
    # Eight characters, of which Claude writes `_` as `-` in the name of its folder for a project.
    (re.compile(r"bakeoff-place-[\w-]{8}"), "<place>"),
    (re.compile(r"(?<=/tmp/)[\w.-]+"), "<temporary>"),
)


class RecordedExchange(Recording, HttpAnswer):
    """One request of an agent and the answer that the agent received."""

    case: str
    usage: Usage
    estimated: bool = False
    seconds: float = 0.0


def exchange_key(trial: Mapping[str, Any], path: str, body: Mapping[str, Any], turn: int) -> Key:
    """Return the key of one request. `turn` is the number of earlier equal requests in the trial."""
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

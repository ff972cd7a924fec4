"""Exchanges that were recorded, and the questions they answer, in the folder that other model calls are recorded in.

A question is the request without what differs from run to run: identities, dates, durations, the names of temporary
folders. The same question may be asked more than once in a trial; then the answers come in the order they were given.
"""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff.errors import InfraError
from bakeoff.models.replay import Recordings
from bakeoff.record import Usage

FOLDER = "meter"  # below the folder of the recordings

_NOT_ASKED = {
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
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "<port>"),
    (re.compile(r"bakeoff-place-\w+"), "<place>"),
    (re.compile(r"(?<=/tmp/)[\w.-]*(?=[/\s\"'`]|$)"), "<temporary>"),
)


class RecordedExchange(FrozenModel):
    """One question, as it was asked, and its answer, as the agent saw it."""

    case: str
    asked: dict[str, Any]
    status: int
    headers: dict[str, str]
    body: str
    encoded: bool = False  # the body is base64, for it was no text
    usage: Usage
    estimated: bool = False
    seconds: float = 0.0

    @property
    def content(self) -> bytes:
        return base64.b64decode(self.body) if self.encoded else self.body.encode()


def body_fields(content: bytes) -> dict[str, Any]:
    try:
        return {"body": content.decode(), "encoded": False}
    except UnicodeDecodeError:
        return {"body": base64.b64encode(content).decode(), "encoded": True}


def lasting(body: Mapping[str, Any]) -> dict[str, Any]:
    """The request without what does not last."""
    return {name: _steady(value) for name, value in body.items() if name not in _NOT_ASKED}


def _steady(value: Any) -> Any:
    if isinstance(value, str):
        for pattern, word in _VOLATILE:
            value = pattern.sub(word, value)
        return value
    if isinstance(value, dict):
        return {name: _steady(item) for name, item in value.items()}
    return [_steady(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class ExchangeQuestion:
    """What is asked, and by which trial."""

    case: str
    asked: dict[str, Any]
    digest: str


def exchange_question(trial: Mapping[str, Any], path: str, body: Mapping[str, Any], turn: int) -> ExchangeQuestion:
    """`turn` counts how often the trial has asked the same before."""
    asked = {**trial, "path": path, "body": lasting(body), "turn": turn}
    return ExchangeQuestion(str(trial["case"]), asked, fingerprint(asked))


@dataclass(frozen=True, slots=True)
class ExchangeStore:
    """The recordings of a run, seen as exchanges."""

    recordings: Recordings

    @property
    def mode(self) -> str:
        return self.recordings.mode

    def find(self, question: ExchangeQuestion) -> RecordedExchange | None:
        """The recording, where it is to be used. In strict mode there must be one."""
        if self.mode not in ("auto", "strict"):
            return None
        path = self._path(question)
        try:
            return RecordedExchange.model_validate_json(path.read_bytes())
        except FileNotFoundError as error:
            if self.mode != "strict":
                return None
            raise InfraError(
                f"case {question.case!r}: nothing is recorded under {question.digest}; "
                "record it first with replay mode `auto` or `record`",
                permanent=True,
            ) from error
        except (OSError, ValueError) as error:
            raise InfraError(f"recording {path} cannot be read, delete it: {error}", permanent=True) from error

    def keep(self, question: ExchangeQuestion, about: Mapping[str, Any]) -> None:
        if self.mode not in ("auto", "record"):
            return
        recorded = RecordedExchange(case=question.case, asked=question.asked, **about)
        redacted = self.recordings.redactor.model(recorded)
        path = self._path(question)
        try:
            write_atomically(path, json.dumps(to_jsonable_python(redacted), indent=1).encode())
        except OSError as error:
            raise InfraError(f"recording {path} cannot be written: {error.strerror}", permanent=True) from error

    def _path(self, question: ExchangeQuestion) -> Path:
        return self.recordings.folder / FOLDER / question.digest[:2] / f"{question.digest}.json"

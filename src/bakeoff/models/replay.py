"""Recording model calls and replaying them, so that the same question need not be paid for twice.

A recording is named by the hash of what was asked (model, address, settings, messages, tools, output schema) and for
which trial (case, subject, round), so that two trials never share an answer. What changes from run to run without
changing the question is left out.
"""

import difflib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_core import to_jsonable_python

from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff.errors import InfraError
from bakeoff.models.prices import Price
from bakeoff.record import Usage
from bakeoff.storage.redaction import Redactor

RECORDINGS = "recordings"
"""The name of the resource under which a run's subjects and scorers find its recordings."""

# What differs from run to run, or from server to server, without being part of the question.
_VOLATILE = {
    "timestamp",
    "run_id",
    "conversation_id",
    "usage",
    "provider_name",
    "provider_url",
    "provider_details",
    "provider_response_id",
    "model_name",
    "metadata",
    "id",
    "signature",
    "failed_attempts",
    "history_digest",
    "workspace_ref",
}
_NOT_ASKED = {"timeout", "request_timeout", "max_retries"}  # settings that change nothing in the answer
_MOST_COMPARED = 200
_RESPONSE: TypeAdapter[ModelResponse] = TypeAdapter(ModelResponse)


class Recorded(FrozenModel):
    """One question, as it was asked, and its answer."""

    case: str
    asked: dict[str, Any]
    answer: dict[str, Any]
    usage: Usage
    measured: bool = True
    price: Price | None = None
    seconds: float = 0.0

    @property
    def response(self) -> ModelResponse:
        return _RESPONSE.validate_python(self.answer)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a model, for one trial."""

    case: str
    asked: dict[str, Any]
    digest: str


def question(
    *,
    subject: str,
    case: str,
    round_: int,
    model: str,
    endpoint: str,
    settings: ModelSettings,
    messages: list[ModelMessage],
    parameters: ModelRequestParameters,
) -> Question:
    asked = {
        "subject": subject,
        "case": case,
        "round": round_,
        "model": model,
        "endpoint": endpoint,
        "settings": {key: value for key, value in settings.items() if key not in _NOT_ASKED},
        "messages": [_message(message) for message in to_jsonable_python(messages)],
        "tools": [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}
            for tool in parameters.function_tools
        ],
        "output": parameters.output_object and parameters.output_object.json_schema,
    }
    return Question(case, asked, fingerprint(asked))


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """The message without what does not last. What users, models and tools said inside it is left as it is."""
    return {**_lasting(message), "parts": [_lasting(part) for part in message["parts"]]}


def _lasting(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in _VOLATILE and value is not None}


@dataclass(frozen=True, slots=True)
class Recordings:
    """The recordings in one folder, and whether they are to be used, made, or both."""

    mode: str = "off"
    folder: Path = Path()
    redactor: Redactor = field(default_factory=lambda: Redactor({}))
    _by_case: dict[str, list[Path]] = field(default_factory=dict, repr=False)  # filled by the first strict miss

    def find(self, asked: Question) -> Recorded | None:
        """The recording of this question, where it is to be used. In strict mode there must be one."""
        if self.mode not in ("auto", "strict"):
            return None
        recorded = self._read(self._path(asked))
        if recorded is None and self.mode == "strict":
            raise InfraError(self._nothing_recorded(asked), permanent=True)
        return recorded

    def keep(self, asked: Question, response: ModelResponse, about: Mapping[str, Any]) -> None:
        """Write down an answer, and about it whatever a recording has room for."""
        if self.mode not in ("auto", "record"):
            return
        answer = _RESPONSE.dump_python(response, mode="json")
        recorded = Recorded(case=asked.case, asked=asked.asked, answer=answer, **about)
        path = self._path(asked)
        try:
            write_atomically(path, _as_json(self.redactor.model(recorded)))
        except OSError as error:
            raise InfraError(f"recording {path} cannot be written: {error.strerror}", permanent=True) from error

    def _path(self, asked: Question) -> Path:
        return self.folder / asked.digest[:2] / f"{asked.digest}.json"

    def _read(self, path: Path) -> Recorded | None:
        try:
            recorded = Recorded.model_validate(json.loads(path.read_bytes()))
            _ = recorded.response  # must be readable too
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise InfraError(
                f"recording {path} cannot be read, delete it: {_first_line(error)}", permanent=True
            ) from error
        return recorded

    def _readable(self, path: Path) -> Recorded | None:
        with suppress(InfraError):
            return self._read(path)
        return None

    def _nothing_recorded(self, asked: Question) -> str:
        where = f"case {asked.case!r}, round {asked.asked['round'] + 1}: nothing is recorded under {asked.digest}"
        nearest = self._nearest(asked)
        if nearest is None:
            return f"{where}; record it first with replay mode `auto` or `record`"
        before, now = (json.dumps(item, indent=1, sort_keys=True).splitlines() for item in (nearest.asked, asked.asked))
        changes = [line for line in difflib.unified_diff(before, now, n=0, lineterm="") if line[:2] not in ("--", "++")]
        shown = "\n".join(changes[:20])
        return f"{where}; against the nearest recording (case {nearest.case!r}) this changed:\n{shown}"

    def _nearest(self, asked: Question) -> Recorded | None:
        """The recording whose question is most like this one, those of the same case first."""
        if not self._by_case:
            for path in sorted(self.folder.glob("*/*.json")):
                if found := self._readable(path):
                    self._by_case.setdefault(found.case, []).append(path)
        others = (path for paths in self._by_case.values() for path in paths)
        near = self._by_case.get(asked.case) or islice(others, _MOST_COMPARED)
        text = json.dumps(asked.asked, sort_keys=True)

        def likeness(found: Recorded) -> float:
            other = json.dumps(found.asked, sort_keys=True)
            return difflib.SequenceMatcher(None, other[-5000:], text[-5000:], autojunk=False).quick_ratio()

        return max(filter(None, map(self._readable, near)), key=likeness, default=None)


def _as_json(recorded: Recorded) -> bytes:
    """Escaped down to ASCII: models emit lone surrogates, which UTF-8 has no bytes for and JSON has."""
    return json.dumps(to_jsonable_python(recorded), indent=1).encode()


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"
    return str(error)

"""Store recordings of model calls, HTTP requests, tools and metered traffic.

A recording is a JSON file, named by its kind and the digest of its question: `<kind>/<first two
digits>/<digest>.json`. Recordings of model calls omit the kind.

The key of a call by a subject or scorer covers the question (model, address, settings, messages,
tools, output schema) and the trial (case, subject, round), so that trials never share answers.
"""

import difflib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from bakeoff._kernel.choices import ReplayMode
from bakeoff._kernel.files import os_errors_explained, read_file, write_atomically
from bakeoff._kernel.json import parse_json
from bakeoff._kernel.model import FrozenModel, fingerprint, first_problem
from bakeoff.errors import InfraError
from bakeoff.options import RunOptions
from bakeoff.protocols import Task
from bakeoff.storage.redaction import Redactor

RECORDINGS = "recordings"
"""The name of the resource under which subjects, scorers and the meter find the run's store."""

MAX_RECORDED_BYTES = 32 << 20
"""The size of the largest answer that is recorded. Larger ones are passed on without a recording."""

_MAX_COMPARED = 200
_MAX_DIFF_LINES, _MAX_LINE_CHARACTERS = 20, 500


class Recording(FrozenModel):
    """The content of a recording file: a question and, in subclasses, its answer."""

    asked: dict[str, Any]


Found = TypeVar("Found", bound=Recording)


@dataclass(frozen=True, slots=True)
class Key:
    """A question, and the digest that names its recording. `kind` is empty for model calls."""

    kind: str
    asked: Mapping[str, Any]
    digest: str


@dataclass(frozen=True, slots=True)
class Store:
    """The recordings in one folder. The mode allows reading, writing or both."""

    mode: ReplayMode = "off"
    folder: Path = Path()
    redactor: Redactor = field(default_factory=lambda: Redactor({}))
    _paths: dict[str, dict[str, list[Path]]] = field(default_factory=dict, repr=False)  # by kind and group

    @property
    def writes(self) -> bool:
        """Return True if the mode allows writing recordings."""
        return self.mode in ("auto", "record")

    def find(self, key: Key, content: type[Found]) -> Found | None:
        """Return the recording of a question; None if the question has to be asked.

        Raise InfraError if the recording is unreadable or, in strict mode, missing.
        """
        if self.mode not in ("auto", "strict"):
            return None
        path = self._path(key)
        try:
            return content.model_validate(parse_json(read_file(path)))
        except FileNotFoundError as error:
            if self.mode != "strict":
                return None
            raise InfraError(self._explain_miss(key), permanent=True) from error
        except (OSError, ValueError) as error:
            reason = str(error.strerror if isinstance(error, OSError) else error)
            reason = first_problem(error) if isinstance(error, ValidationError) else reason
            raise InfraError(f"recording {path} cannot be read, delete it: {reason}", permanent=True) from error

    def keep(self, key: Key, recording: Recording) -> None:
        """If the mode allows, write a recording without secrets. Raise InfraError if this fails."""
        if not self.writes:
            return
        path = self._path(key)
        redacted = self.redactor.model(recording)
        kind = partial(InfraError, permanent=True)
        with os_errors_explained(f"recording {path}", "written", kind=kind):
            # ASCII only, because UTF-8 cannot encode lone surrogates, which models emit.
            write_atomically(path, json.dumps(to_jsonable_python(redacted), indent=1).encode())

    def _path(self, key: Key) -> Path:
        return self.folder / key.kind / key.digest[:2] / f"{key.digest}.json"

    def _explain_miss(self, key: Key) -> str:
        missing = f"replay is strict, and nothing is recorded under {key.digest} ({_description(key.asked)})"
        nearest = self._nearest(key)
        if nearest is None:
            return f"{missing}; record it first with `--replay auto`, or `--eval-replay=auto` for pytest"
        path, asked = nearest
        compared = difflib.unified_diff(_lines(asked), _lines(key.asked), n=0, lineterm="")
        changes = [line for line in compared if line[:2] not in ("--", "++")]
        shown = "\n".join(line[:_MAX_LINE_CHARACTERS] for line in changes[:_MAX_DIFF_LINES])
        return f"{missing}; the nearest recording, {path.stem} ({_description(asked)}), differs in:\n{shown}"

    def _nearest(self, key: Key) -> tuple[Path, dict[str, Any]] | None:
        """Return the recorded question most similar to this one, preferably of the same group."""
        if key.kind not in self._paths:
            groups: dict[str, list[Path]] = {}
            for path, asked in _readable(sorted((self.folder / key.kind).glob("??/*.json"))):
                groups.setdefault(_group(asked), []).append(path)
            self._paths[key.kind] = groups
        recorded = self._paths[key.kind]
        paths = recorded.get(_group(key.asked)) or list(islice(chain(*recorded.values()), _MAX_COMPARED))
        wanted = _lines(key.asked)
        counted, end = Counter(wanted), "\n".join(wanted)[-5000:]

        def likeness(found: tuple[Path, dict[str, Any]]) -> tuple[float, float]:
            lines = _lines(found[1])
            shared = 2 * (counted & Counter(lines)).total() / (len(wanted) + len(lines))
            other = "\n".join(lines)[-5000:]
            return shared, difflib.SequenceMatcher(None, other, end, autojunk=False).quick_ratio()

        return max(_readable(paths), key=likeness, default=None)


def recordings_resource(options: RunOptions) -> dict[str, Store]:
    """Return the store named by the options, as a resource; empty if replay is off."""
    if options.replay == "off":
        return {}
    return {RECORDINGS: Store(options.replay, options.recordings, options.redactor())}


def recordings_of(resources: Mapping[str, Any]) -> Store:
    """Return the store among a run's resources. Without one, replay is off."""
    store: Store = resources.get(RECORDINGS) or Store()
    return store


def _group(asked: Mapping[str, Any]) -> str:
    """Return the case of a question, or the address or function that an application used."""
    if "case" in asked:
        return f"case {asked['case']!r}"
    return " ".join(str(asked[name]) for name in ("method", "url", "function") if asked.get(name))


def _description(asked: Mapping[str, Any]) -> str:
    return f"{_group(asked)}, round {asked['round'] + 1}" if "case" in asked and "round" in asked else _group(asked)


def _lines(asked: Mapping[str, Any]) -> list[str]:
    """Return a question as lines to compare. Long texts are split into lines."""
    return json.dumps(asked, indent=1, sort_keys=True).replace("\\n", "\\n\n").splitlines()


def _readable(paths: list[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the question of each recording. Damaged files are skipped."""
    for path in paths:
        try:
            content = parse_json(read_file(path))
        except (OSError, ValueError):
            continue
        if isinstance(content, dict) and isinstance(content.get("asked"), dict):
            yield path, content["asked"]


# Fields of messages that vary between runs or servers and do not affect the answer.
_VOLATILE = {
    *("timestamp", "run_id", "conversation_id", "usage", "provider_name", "provider_url", "provider_details"),
    *("provider_response_id", "model_name", "metadata", "id", "signature", "failed_attempts", "history_digest"),
    "workspace_ref",
}
_IGNORED_SETTINGS = {"timeout", "request_timeout", "max_retries"}  # no effect on answers


def model_call_key(
    task: Task,
    *,
    model: str,
    endpoint: str,
    settings: Mapping[str, Any],
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    output: Mapping[str, Any] | None,
) -> Key:
    """Return the key of a call. Messages, tools and output schema are given as JSON data."""
    asked = {
        "subject": task.subject,
        "case": task.case_id,
        "round": task.round,
        "model": model,
        "endpoint": endpoint,
        "settings": {name: value for name, value in settings.items() if name not in _IGNORED_SETTINGS},
        "messages": [
            {**_lasting(message), "parts": [_lasting(part) for part in message["parts"]]} for message in messages
        ],
        "tools": list(tools),
        "output": output,
    }
    return Key("", asked, fingerprint(asked))


def _lasting(data: Mapping[str, Any]) -> dict[str, Any]:
    """Drop fields that vary, but keep fields of the same names inside contents."""
    return {name: value for name, value in data.items() if name not in _VOLATILE and value is not None}

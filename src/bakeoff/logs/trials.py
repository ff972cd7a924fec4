"""Define what all formats share: a log, its trials, and the conversion of their values."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AliasChoices, AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bakeoff._kernel.files import in_megabytes, open_file, read_file
from bakeoff._kernel.json import as_json, clean_text, parse_json
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import visible
from bakeoff.errors import RunFolderError
from bakeoff.plan import Case, SubjectSpec
from bakeoff.record import NO_USAGE, Failure, Score, Step, Text, Transcript, Usage
from bakeoff.report.readers import reason_of

RECORDED = "recorded"
"""The kind of a subject or scorer that is known only from a log."""
MAX_LOG_SIZE = 256 << 20
MAX_ROUNDS = 100_000
_MAX_TAGS = 50
_MAX_NAME_LENGTH = 200
MAX_NUMBER = 10**15  # JavaScript's integers are exact up to here
END_OF_TIME = 253_402_300_800  # the year 10000
_EXCEPTION = re.compile(r"(?:[\w.]+\.)?([A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Timeout))\b")
_REPR = re.compile(r"([A-Za-z_]\w*)\((['\"])(.*)\2\)", re.DOTALL)  # of an exception with one text

Model = TypeVar("Model", bound=BaseModel)


class LoggedObject(FrozenModel):
    """An object of a log. Fields that we do not use are ignored: newer versions of a tool add some."""

    model_config = ConfigDict(extra="ignore", frozen=True)


Count = Annotated[int, Field(ge=0, le=MAX_NUMBER)]
Amount = Annotated[
    Annotated[float, Field(ge=0, le=MAX_NUMBER)] | None,
    BeforeValidator(lambda value: None if isinstance(value, float) and not isfinite(value) else value),
]
"""Seconds or money; None is unknown, and so is NaN."""


def named(*names: str | AliasPath, default: Any = None, **rules: Any) -> Any:
    """Return a field that is read from the first of these names or paths."""
    return Field(default=default, validation_alias=AliasChoices(*names), **rules)


class LoggedUsage(LoggedObject):
    """Tokens and cost, under any of the names that the tools have for them. None is unknown."""

    requests: Count | None = named("requests", "numRequests")
    input: Count | None = named(
        *("prompt_tokens", "total_prompt_tokens", "n_input_tokens", "input_tokens", "inputTokenCount", "prompt"),
        "inputTokens",
    )
    output: Count | None = named(
        *("completion_tokens", "total_completion_tokens", "n_output_tokens", "output_tokens"),
        *("outputTokenCount", "completion", "outputTokens"),
    )
    cache_read: Count | None = named(
        *("cached_tokens", "total_cached_tokens", "n_cache_tokens", "input_tokens_cache_read", "cache_read_tokens"),
        AliasPath("completionDetails", "cacheReadInputTokens"),
    )
    cache_write: Count | None = named(
        *("input_tokens_cache_write", "cache_write_tokens"),
        AliasPath("completionDetails", "cacheCreationInputTokens"),
    )
    reasoning: Count | None = named("reasoning_tokens", "reasoningTokens", AliasPath("completionDetails", "reasoning"))
    cost: Amount = named("cost_usd", "total_cost_usd", "total_cost", "evaluationCost", "cost")

    def usage(self) -> Usage:
        """Return the counts as usage. Counts that are not known are 0; an unknown cost stays unknown."""
        counts = {name: getattr(self, name, 0) or 0 for name in Usage.model_fields}
        return Usage(**counts | {"cost": self.cost})


class LoggedTrial(FrozenModel):
    """One trial of a log. None means unknown; for `round`, it means the next round."""

    case: Case
    subject: SubjectSpec
    round: int | None = Field(default=None, ge=0, lt=MAX_ROUNDS)
    started: float | None = None
    tries: int = 1
    prepare_seconds: float | None = None
    attempt_seconds: float | None = None
    waited: float = 0.0
    score_seconds: float | None = None
    failure: Failure | None = None
    transcript: Transcript | None = None
    artefacts: dict[str, str] = {}
    scores: tuple[Score, ...] = ()  # those that count
    asides: tuple[Score, ...] = ()  # shown beside them
    judging: Usage = NO_USAGE

    def added_to(self, other: "LoggedTrial | None") -> "LoggedTrial":
        """Return the time and usage of this round of a case and of the others, without an answer."""
        both = [self] if other is None else [other, self]
        used = [each.transcript.usage for each in both if each.transcript]
        seconds = [each.attempt_seconds for each in both if each.attempt_seconds is not None]
        return self.model_copy(
            update={
                "transcript": Transcript(usage=sum(used, NO_USAGE)) if used else None,
                "attempt_seconds": sum(seconds) if seconds else None,
                "waited": sum(each.waited for each in both),
                "judging": sum((each.judging for each in both), NO_USAGE),
            }
        )


@dataclass(frozen=True)
class ForeignLog:
    """A log of another tool, whose trials can be read more than once."""

    tool: str
    format: str
    name: str
    trials: Callable[[], Iterator[LoggedTrial]]
    version: str | None = None
    created: float | None = None
    planned: tuple[str, ...] = ()  # the ids of all cases, including those without a trial
    rounds: int = 1  # the planned number
    sparse: bool = True  # the log does not say that every subject should have every case
    threshold: float | None = None  # as named in the log
    content_known: bool = True  # False: only the ids of cases are known
    reduced: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict
    )  # by scorer and case: one value of all rounds


def read_json(path: Path) -> Any:
    """Read a whole JSON file. Raise an error that names the file if it is too large, too deep or not JSON."""
    data = read_file(path, MAX_LOG_SIZE)
    try:
        return parse_json(data)
    except ValueError as error:
        raise RunFolderError(f"{path} is not readable JSON: {visible(str(error), 300)}") from error


def json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the value of each line of a JSON Lines file that is not empty, with its place for errors."""
    with open_file(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LOG_SIZE + 1), b""), 1):
            if len(line) > MAX_LOG_SIZE:
                raise RunFolderError(f"{path}:{number} is longer than {in_megabytes(MAX_LOG_SIZE)}")
            if not line.strip():
                continue
            try:
                yield f"line {number}", parse_json(line)
            except ValueError as error:
                raise RunFolderError(f"{path}:{number} is not readable JSON: {visible(str(error), 200)}") from error


def check(model: type[Model], data: Any, path: Path, place: str = "") -> Model:
    """Return a part of a log as a model. Raise an error that names the file and the place in it."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        where = f"{visible(place, 200)}: " if place else ""
        raise RunFolderError(f"{path}: {where}{reason_of(error)}") from error


def check_items(model: type[Model], lists: Mapping[str, Iterable[Any]], path: Path) -> Iterator[Model]:
    """Check the items of a log's lists and yield them as models. Errors quote the names in `lists`."""
    for name, items in lists.items():
        for place, item in enumerate(items):
            yield check(model, item, path, f"{name}[{place}]")


def name_of(text: object, otherwise: str = "unnamed") -> str:
    """Return a text as the name of a case, subject or scorer: printable and not too long."""
    found = visible(clean_text(str(text)), _MAX_NAME_LENGTH)
    return found if found.strip() else otherwise


def text_of(value: object) -> str:
    """Return a text unchanged, None as an empty string, and other data as JSON."""
    from bakeoff.report.formatting import as_text

    return clean_text(as_text(as_json(value)))


def tags_of(metadata: Any) -> dict[str, str]:
    """Return the short and simple values of metadata as tags."""
    given = metadata if isinstance(metadata, dict) else {}
    flat = {name: value for name, value in given.items() if isinstance(value, str | int | float | bool)}
    kept = [(name, str(value)) for name, value in flat.items() if len(str(name)) <= 60 and len(str(value)) <= 100]
    return {visible(name): visible(value) for name, value in kept[:_MAX_TAGS]}


def seconds_of(moment: object) -> float | None:
    """Return the seconds since 1970 of an ISO time (UTC if it names no zone), or None."""
    if not isinstance(moment, str) or len(moment) > 60:
        return None
    try:
        found = datetime.fromisoformat(moment)
        seconds = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds < END_OF_TIME else None


def seconds_between(first: object, last: object) -> float | None:
    """Return the seconds between two ISO times; None if one is unknown or the order is wrong."""
    start, end = seconds_of(first), seconds_of(last)
    return None if start is None or end is None or end < start else end - start


def subject_of(name: object, options: Mapping[Any, Any] | None = None, kind: str = RECORDED) -> SubjectSpec:
    """Return a subject that is known only from a log. Options without a value are left out."""
    known = {str(key): as_json(value) for key, value in (options or {}).items() if value not in (None, "", {}, [])}
    return SubjectSpec(kind=kind, name=name_of(name), options=known)


def text_steps(output: object, finish_reason: str | None = None) -> tuple[Step, ...]:
    """Return an answer as the only step of a transcript; no step if there is none."""
    return (Step(parts=(Text(text=text_of(output)),), finish_reason=finish_reason),) if output is not None else ()


def score_of(name: object, value: object, reason: object = "", **metadata: Any) -> Score:
    """Return a score. A value that is no number from 0 to 1 leaves it unscored, and stays in the metadata."""
    number = float(value) if isinstance(value, bool | int | float) and 0 <= value <= 1 else None
    metadata = {"value": as_json(value), **metadata} if number is None else metadata
    known = {key: as_json(item) for key, item in metadata.items() if item is not None}
    return Score(name=name_of(name, "score"), value=number, reason=text_of(reason), metadata=known)


def broken_score(name: object, failure: Failure) -> Score:
    """Return the score of a scorer that ended with an exception."""
    return Score(name=name_of(name), failure=failure.model_copy(update={"kind": "grader"}))


def broken(message: object, detail: object = "", kind: str = "", *, otherwise: str = "Error") -> Failure:
    """Return the failure of a trial that ended with an exception, which is never counted as the subject's fault."""
    text = text_of(message).strip()
    if shown := _REPR.fullmatch(text):
        kind, text = kind or shown[1], shown[3]
    found = _EXCEPTION.match(kind or text)
    return Failure(
        kind="infra",
        type=found[1] if found else visible(kind, 60) or otherwise,
        message=text or "the log does not say why",
        detail=text_of(detail),
    )


_HEAD = 1 << 16
# A string without an end is one token up to the end: read again from each of its quotes, it would take minutes.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.?)*+(?:"|\Z)|[{}\[\]]')


def first_bytes(path: Path, count: int = _HEAD) -> bytes:
    """Return the first bytes of a file."""
    with open_file(path) as file:
        return file.read(count)


def outer_keys(head: bytes) -> tuple[set[str], set[str]]:
    """Return the keys in `head` of a file's first JSON object, and of the objects inside it."""
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    keys: tuple[set[str], set[str]] = (set(), set())
    depth = 0
    for found in _TOKEN.finditer(text) if text.startswith("{") else ():
        if found[0] in "{[":
            depth += 1
        elif found[0] in "}]":
            depth -= 1
            if depth == 0:
                break
        elif depth in (1, 2) and text[found.end() : found.end() + 20].lstrip().startswith(":"):
            keys[depth - 1].add(found[0][1:-1])
    return keys


def child_folders(folder: Path) -> list[Path]:
    """Return the subfolders of a folder, sorted by name."""
    return sorted(each for each in folder.iterdir() if not each.is_symlink() and each.is_dir())


def file_in(folder: Path, *names: str) -> Path | None:
    """Return a file below a folder, or None if there is none or a link leads to it."""
    path = folder
    for name in names:
        path = path / name
        if path.is_symlink():
            return None
    return path if path.is_file() else None

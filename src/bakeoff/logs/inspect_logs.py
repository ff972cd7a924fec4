"""Read logs of Inspect: `.eval` archives, sample by sample, and its `.json` logs.

An archive may be hostile: nothing is unpacked to disk, and every size is bounded.
"""

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AliasPath, BeforeValidator, Field

from bakeoff._kernel.files import in_megabytes, open_file
from bakeoff._kernel.json import as_json, parse_json
from bakeoff._kernel.text import visible
from bakeoff.errors import RunFolderError
from bakeoff.logs.trials import (
    MAX_ROUNDS,
    Amount,
    ForeignLog,
    LoggedObject,
    LoggedTrial,
    LoggedUsage,
    broken,
    check,
    check_items,
    name_of,
    named,
    read_json,
    score_of,
    seconds_of,
    subject_of,
    tags_of,
    text_of,
)
from bakeoff.plan import Case, SubjectSpec
from bakeoff.record import NO_USAGE, Failure, Reasoning, Score, Step, Text, ToolCall, Transcript, Usage

MAX_MEMBER_SIZE = 128 << 20
_MAX_UNPACKED = 1 << 30  # bytes of all members, or more if the archive is large
_DENSEST = 1000  # members may be up to this many times larger than the archive; only bombs are more
_ZSTANDARD = 93
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)
_LOCAL_HEADER = struct.Struct("<4s22xHH")


class Archive:
    """A zip file that is open for reading. Its members are read one at a time."""

    def __init__(self, path: Path, most_unpacked: int = _MAX_UNPACKED) -> None:
        self.path = path
        self._most_unpacked = most_unpacked
        self._file = open_file(path)
        try:
            self._zip = zipfile.ZipFile(self._file)
        except BaseException as error:
            self._file.close()
            if isinstance(error, zipfile.BadZipFile | NotImplementedError | ValueError):
                raise RunFolderError(f"{path} is not a whole zip archive: {visible(str(error), 200)}") from error
            raise
        self._size, self._unpacked = os.fstat(self._file.fileno()).st_size, 0
        # Of several members with the same name, the last counts, as in Inspect.
        self.names = tuple({each.filename: None for each in self._zip.infolist()})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._zip.close()
        self._file.close()

    def __contains__(self, name: str) -> bool:
        return name in self._zip.NameToInfo

    def read_json(self, name: str) -> Any:
        """Return the value of a member. A zip bomb is refused while it is unpacked, whatever size its header states."""
        try:
            data = self._unpack(self._zip.getinfo(name))
        except _DAMAGE as error:
            raise self._problem(name, f"cannot be unpacked: {error}") from error
        if len(data) > MAX_MEMBER_SIZE:
            raise self._problem(name, f"is larger than {in_megabytes(MAX_MEMBER_SIZE)}, the most that is read")
        self._unpacked += len(data)
        if self._unpacked > max(self._most_unpacked, _DENSEST * self._size):
            raise self._problem(name, f"is refused: all is more than {_DENSEST:,} times as large as the archive")
        try:
            return parse_json(data)
        except ValueError as error:
            raise self._problem(name, f"is not readable JSON: {error}") from error

    def _unpack(self, member: zipfile.ZipInfo) -> bytes:
        if member.compress_type != _ZSTANDARD:
            with self._zip.open(member) as file:
                return file.read(MAX_MEMBER_SIZE + 1)
        data = _zstandard(self._packed(member))
        if len(data) <= MAX_MEMBER_SIZE and zlib.crc32(data) != member.CRC:
            raise zipfile.BadZipFile("its checksum does not match")
        return data

    def _packed(self, member: zipfile.ZipInfo) -> bytes:
        """Return the compressed bytes of a member, because `zipfile` cannot read Zstandard before Python 3.14."""
        self._file.seek(member.header_offset)
        signature, name, extra = _LOCAL_HEADER.unpack(self._file.read(_LOCAL_HEADER.size).ljust(_LOCAL_HEADER.size))
        if signature != b"PK\x03\x04" or member.flag_bits & 1 or member.compress_size > MAX_MEMBER_SIZE:
            raise zipfile.BadZipFile("its header is damaged, or it is encrypted or too large")
        self._file.seek(name + extra, os.SEEK_CUR)
        return self._file.read(member.compress_size)

    def _problem(self, name: str, what: str) -> RunFolderError:
        return RunFolderError(f"{self.path}: {visible(name, 200)} {visible(what, 300)}")


def _zstandard(packed: bytes) -> bytes:
    """Unpack data of one or more frames, up to one byte over the limit."""
    import zstandard  # not above: few logs need it

    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(packed, read_across_frames=True) as data:
            return data.read(MAX_MEMBER_SIZE + 1)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


NAME = "inspect"
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_ATTACHED = "attachment://"
_REDUCTIONS = "reductions.json"
_OWN = "bakeoff"  # the package and the scorer of logs that `bakeoff export` wrote

Json = dict[str, Any]
_Objects = Annotated[dict[str, Any], BeforeValidator(lambda value: {} if value is None else value)]


class _InspectError(LoggedObject):
    message: str
    traceback: str = ""


class _Limit(LoggedObject):
    type: str
    limit: Any = None
    reason: str | None = None


class _Score(LoggedObject):
    value: Any = None
    answer: Any = None
    explanation: Any = None
    metadata: _Objects = {}


class _InspectSample(LoggedObject):
    id: int | str
    epoch: int = Field(default=1, ge=1, le=MAX_ROUNDS)
    input: str | list[Any] = ""
    choices: list[Any] | None = None
    target: str | list[Any] = ""
    messages: list[Json] = []
    output: _Objects = {}
    scores: dict[str, _Score] | None = None
    metadata: _Objects = {}
    model_usage: dict[str, LoggedUsage] = {}
    role_usage: dict[str, LoggedUsage] = {}
    started_at: str | None = None
    total_time: Amount = None
    working_time: Amount = None
    error: _InspectError | None = None
    error_retries: list[Any] | None = None
    attachments: dict[str, str] = {}
    limit: _Limit | None = None


class _ScorerSpec(LoggedObject):
    name: str
    model: Any = named(AliasPath("options", "model"))


class _ReducedSample(LoggedObject):
    sample_id: int | str | None = None
    value: Any = None


class _Reduction(LoggedObject):
    """The scores of a scorer, one for all epochs of a sample."""

    scorer: str
    reducer: str | None = None
    samples: list[_ReducedSample] = []


class _Spec(LoggedObject):
    task: str
    model: str
    created: str | None = None
    solver: str | None = None
    task_args: _Objects = {}
    model_args: _Objects = {}
    model_generate_config: _Objects = {}
    sample_ids: list[int | str] | None = named(AliasPath("dataset", "sample_ids"))
    epochs: int | None = named(AliasPath("config", "epochs"), ge=1, le=MAX_ROUNDS)
    reducers: list[str] | None = named(AliasPath("config", "epochs_reducer"))
    scorers: list[_ScorerSpec] | None = None
    grader: str | None = named(AliasPath("model_roles", "grader", "model"))
    packages: _Objects = {}
    metadata: _Objects = {}

    @property
    def judges(self) -> dict[str, str]:
        """Return the model that judged for each scorer of Inspect that asks one."""
        graded = [each for each in self.scorers or () if each.name.rpartition("/")[2].startswith("model_graded")]
        return {each.name.rpartition("/")[2]: self._model(each.model) or self.grader or self.model for each in graded}

    def _model(self, given: Any) -> str:
        found = [each.get("model") if isinstance(each, dict) else each for each in _listed(given)]
        return ", ".join(each for each in found if isinstance(each, str))


class _Header(LoggedObject):
    version: int = 2
    eval: _Spec


def read_archive(path: Path) -> ForeignLog:
    """Read an `.eval` archive, unpacking one sample at a time."""
    with Archive(path) as archive:
        # A log whose evaluation was killed has a start, and no header yet.
        member = next((name for name in ("header.json", "_journal/start.json") if name in archive), None)
        if member is None:
            raise RunFolderError(f"{path} is not a log of Inspect: it has no header.json")
        header = check(_Header, archive.read_json(member), path, member)
        reductions = archive.read_json(_REDUCTIONS) if _REDUCTIONS in archive and _reducers(header) else []

    def samples() -> Iterator[_InspectSample]:
        with Archive(path) as archive:
            for name in archive.names:
                if name.startswith("samples/") and name.endswith(".json"):
                    yield check(_InspectSample, archive.read_json(name), path, name)

    reduced = check_items(_Reduction, {_REDUCTIONS: _listed(reductions)}, path)
    return _log(header, samples, reduced, "Inspect log (.eval)")


def read_json_log(path: Path) -> ForeignLog:
    """Read a log in Inspect's JSON format. The whole file is read at once."""
    data = read_json(path)
    header = check(_Header, data, path)
    listed = data.get("samples") or []
    if not isinstance(listed, list):
        raise RunFolderError(f"{path}: samples: a list is expected")

    reduced = check_items(_Reduction, {"reductions": _listed(data.get("reductions"))}, path)
    return _log(header, lambda: check_items(_InspectSample, {"samples": listed}, path), reduced, "Inspect log (.json)")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _reducers(header: _Header) -> list[str]:
    """Return how the scores of all epochs become one, except as their mean, which is the score of a case."""
    return [name for name in header.eval.reducers or () if name != "mean"]


def _log(header: _Header, samples: Any, reductions: Iterator[_Reduction], format_: str) -> ForeignLog:
    spec = header.eval
    ours = _OWN in spec.packages
    threshold = spec.metadata.get("bakeoff_threshold") if ours else None
    settings = {name: getattr(spec, name) for name in ("solver", "task_args", "model_args")}
    settings["generate_config"] = spec.model_generate_config
    name = spec.metadata.get("bakeoff_subject") if ours else None
    subject = subject_of(name or spec.model, {"model": name_of(spec.model), **settings})
    version = spec.packages.get("inspect_ai")
    reduced: dict[str, dict[str, Any]] = {}
    for scorer, sample in ((each, sample) for each in reductions for sample in each.samples if _reducers(header)):
        for score in _scores(scorer.scorer, _Score(value=sample.value)) if scorer.reducer in _reducers(header) else ():
            value = score.metadata.get("value", score.value)
            reduced.setdefault(f"{score.name} ({scorer.reducer})", {})[name_of(sample.sample_id)] = value
    plain = not reduced or "mean" in (spec.reducers or ())
    return ForeignLog(
        tool="Inspect",
        version=name_of(version) if version else None,
        format=format_,
        name=name_of(spec.task),
        trials=lambda: (_trial(sample, spec, subject, ours=ours, counts=plain) for sample in samples()),
        reduced=reduced,
        created=seconds_of(spec.created),
        planned=tuple(name_of(each) for each in spec.sample_ids or ()),
        rounds=spec.epochs or 1,
        sparse=spec.sample_ids is None,
        threshold=threshold if isinstance(threshold, int | float) and 0 <= threshold <= 1 else None,
    )


def _trial(sample: _InspectSample, spec: _Spec, subject: SubjectSpec, *, ours: bool, counts: bool) -> LoggedTrial:
    sample = _with_attachments(sample)
    judges, by_role = spec.judges, sample.role_usage.get("grader")
    used = sum(map(_usage, sample.model_usage.values()), NO_USAGE)
    others = {*judges.values()} - {spec.model}
    graders = [each for name, each in sample.model_usage.items() if name in others] if by_role is None else [by_role]
    judging = sum(map(_usage, graders), NO_USAGE)
    rest = used - judging
    if min(rest.input, rest.output, rest.cost or 0) < 0:
        rest = used  # if judging counts more than the total, the total does not include it
    scores = [score for name, each in (sample.scores or {}).items() for score in _scores(name, each, judges.get(name))]
    counted = [score for score in scores if counts and (not ours or score.name == _OWN)]
    total, working = sample.total_time, sample.working_time
    return LoggedTrial(
        case=_case(sample),
        subject=subject,
        round=sample.epoch - 1,
        started=seconds_of(sample.started_at),
        tries=1 + len(sample.error_retries or ()),
        attempt_seconds=total,
        waited=max(0.0, total - working) if total is not None and working is not None else 0.0,
        failure=_failure(sample),
        transcript=_transcript(sample, rest),
        scores=tuple(counted),
        asides=tuple(score for score in scores if score not in counted),
        judging=judging,
    )


def _with_attachments(sample: _InspectSample) -> _InspectSample:
    """Insert the long texts, which Inspect stores only once for each sample, in their places."""
    if not sample.attachments:
        return sample

    def resolved(value: Any) -> Any:
        if isinstance(value, str) and value.startswith(_ATTACHED):
            return sample.attachments.get(value.removeprefix(_ATTACHED), value)
        if isinstance(value, dict):
            return {key: resolved(item) for key, item in value.items()}
        return [resolved(item) for item in value] if isinstance(value, list) else value

    names = ("input", "target", "messages", "output")
    return sample.model_copy(update={name: resolved(getattr(sample, name)) for name in names})


def _case(sample: _InspectSample) -> Case:
    choices = [f"{chr(ord('A') + place)}) {text_of(each)}" for place, each in enumerate(sample.choices or ())]
    given, target = sample.input, sample.target
    if isinstance(given, str):
        prompt = text_of(given)
    else:  # several messages are marked by their roles
        messages = [each for each in given if isinstance(each, dict)]
        marks = [f"{text_of(each.get('role'))}: " for each in messages] if len(messages) > 1 else [""]
        prompt = "\n\n".join(mark + _said(each) for mark, each in zip(marks, messages, strict=False))
    return Case(
        id=name_of(sample.id),
        prompt="\n\n".join([prompt, *(["\n".join(choices)] if choices else [])]),
        expected=as_json(target[0] if isinstance(target, list) and len(target) == 1 else target) or None,
        tags=tags_of({key: value for key, value in sample.metadata.items() if not key.startswith("bakeoff_")}),
    )


def _said(message: Json) -> str:
    """Return the text of a message, without its reasoning."""
    return "\n".join(part.text for part in _parts(message) if isinstance(part, Text))


def _parts(message: Json) -> Iterator[Text | Reasoning]:
    """Yield text and reasoning. A placeholder stands for pictures and other media."""
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            yield Text(text=text_of(part.get("text")))
        elif kind == "reasoning":
            yield Reasoning(text=text_of(part.get("reasoning")))
        elif kind is not None:
            yield Text(text=f"[{name_of(kind)}]")


def _transcript(sample: _InspectSample, used: Usage) -> Transcript:
    answers = {str(each.get("tool_call_id")): each for each in sample.messages if each.get("role") == "tool"}
    own = [message for message in sample.messages if message.get("role") == "assistant"]
    steps = []
    for message in own:
        calls = message.get("tool_calls")
        made = [_call(call, answers) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
        steps.append(Step(parts=(*(part for part in _parts(message) if part.text), *made)))
    output = sample.output.get("completion") or (_said(own[-1]) if own else None)
    return Transcript(
        output=as_json(output),
        steps=tuple(steps),
        usage=used.model_copy(update={"requests": len(steps)}),
        metadata={"limit": as_json(sample.limit.model_dump(exclude_none=True))} if sample.limit else {},
    )


def _call(call: Json, answers: Mapping[str, Json]) -> ToolCall:
    id_ = call.get("id")
    answer = answers.get(id_) if isinstance(id_, str) else None
    error = answer.get("error") if answer else call.get("parse_error")
    message = error.get("message") if isinstance(error, dict) else error
    return ToolCall(
        name=name_of(call.get("function") or "tool"),
        arguments=as_json(call.get("arguments")),
        result=_said(answer) if answer else None,
        error=None if message is None else text_of(message),
        id=id_ if isinstance(id_, str) else None,
    )


def _scores(name: str, given: _Score, judge: str | None = None) -> Iterator[Score]:
    """Yield one score, or one for each key of a scorer that returns several."""
    several = given.value if isinstance(given.value, dict) else None
    about = {"answer": given.answer, "judge": judge, **({"metadata": given.metadata} if given.metadata else {})}
    for key, value in several.items() if several is not None else [("", given.value)]:
        title = f"{name}/{key}" if several is not None else name
        yield score_of(title, _number(value), given.explanation or "", **about)


def _number(value: Any) -> Any:
    """Return the number that a value stands for, by Inspect's own rules."""
    if not isinstance(value, str):
        return value
    known = _LETTERS.get(value, _LETTERS.get(value.lower()) if len(value) > 1 else None)
    with suppress(ValueError):
        return float(value) if known is None else known
    return value


def _failure(sample: _InspectSample) -> Failure | None:
    """Return why a sample has no result. If it reached a limit but was scored, it has a result."""
    if sample.error is not None:
        return broken(sample.error.message, sample.error.traceback)
    if sample.limit is None or sample.scores:
        return None
    limit = sample.limit
    message = limit.reason or f"the sample met its {limit.type} limit and was not scored"
    kind = "infra" if limit.type == "operator" else "budget"
    return Failure(kind=kind, type="LimitExceeded", message=f"{message} ({text_of(limit.limit)})")


def _usage(given: LoggedUsage) -> Usage:
    """Return the usage. Inspect's input tokens exclude cache reads and writes."""
    used = given.usage()
    return used.model_copy(update={"input": used.input + used.cache_read + used.cache_write})

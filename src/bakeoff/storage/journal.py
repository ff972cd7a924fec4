"""The journal: append-only JSON lines, the source of truth of a run.

    start    a process began to write
    usage    tokens and money as they arrive, with the run's total so far
    record   one finished trial; the last one of a trial counts
    end      the process finished its work, and why

Every line carries the schema version `v` it was written with. Long strings of a record lie in blobs; a line lists where
they belong, so nothing in a subject's own output can be mistaken for a reference.
"""

import asyncio
import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from bakeoff._kernel.files import PRIVATE, sync_folder
from bakeoff.errors import RunFolderError
from bakeoff.record import NO_USAGE, SCHEMA, Phase, Record, Transcript, Usage
from bakeoff.storage.blobs import Blobs
from bakeoff.storage.redaction import Redactor

INLINE_BYTES = 16 * 1024  # a line this short is written as it is, without looking for long strings
_PLAIN_RECORD = b'{"type":"record","v":%d,"record":' % SCHEMA
_DEEP = 100  # more brackets than this in a line, or more bytes than the next, and we make sure it can be read back
_LONG_NUMBER = 4000
_LOCK_TRIES, _LOCK_PAUSE = 20, 0.01
_MOST = 10**15  # tokens, dollars or seconds of one record: nothing measured has more, and sums of these have an end

Line = dict[str, Any]
Upgrade = Callable[[Line], Line]
UPGRADES: Mapping[int, Upgrade] = {}
"""From the schema version that a line was written with to the next one."""


class _Newer(RunFolderError):
    pass


def upgrade(line: Line, version: int, upgrades: Mapping[int, Upgrade] = UPGRADES, newest: int = SCHEMA) -> Line:
    """A line as the newest schema would have written it."""
    if version > newest:
        raise _Newer(f"schema {version} is newer than this bakeoff's {newest}: upgrade bakeoff to read it")
    for step in range(version, newest):
        line = upgrades[step](line)
    return line


@dataclass(frozen=True, slots=True)
class Damage:
    """A line that could not be read."""

    line: int
    reason: str
    newer: bool = False  # nothing is wrong with it but that a newer bakeoff wrote it


@dataclass(frozen=True, slots=True)
class Spent:
    """Spending as it arrived: the run's total so far, and what was added to it by which trial."""

    total: Usage
    trial: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Mark:
    """A process began or ended its work on the run."""

    kind: Literal["start", "end"]
    facts: Mapping[str, Any] = field(default_factory=dict)


Entry = Record | Spent | Mark | Damage


def read_journal(path: Path) -> Iterator[Entry]:
    """Every entry in the order written. A torn last line was never reported finished and is passed over."""
    for _, entry in read_journal_with_places(path):
        yield entry


def read_journal_with_places(path: Path) -> Iterator[tuple[int, Entry]]:
    """Every entry with the byte at which it begins, for `record_at`."""
    blobs = Blobs(path.parent / "blobs")
    place = 0
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if not raw.endswith(b"\n"):
                return
            yield place, _read_line(raw, number, blobs)
            place += len(raw)


def read_journal_backwards(path: Path, step: int = 1024 * 1024) -> Iterator[Entry]:
    """Every entry, the last one first, so that the entry that counts for a trial is the first one met."""
    blobs = Blobs(path.parent / "blobs")
    for raw in _lines_backwards(path, step):
        yield _read_line(raw, 0, blobs)


def record_at(path: Path, place: int) -> Record:
    """The record that begins at that byte."""
    with path.open("rb") as file:
        file.seek(place)
        entry = _read_line(file.readline(), 0, Blobs(path.parent / "blobs"))
    if not isinstance(entry, Record):
        raise RunFolderError(f"{path}: the record at byte {place} is gone")
    return entry


def beyond_measure(record: Record) -> str | None:
    """A number that nobody can have measured, in words; sums over such numbers have no end."""
    for usage in (record.spent, record.transcript.usage) if record.transcript else (record.spent,):
        if found := _beyond(usage):
            return found
    for name in ("prepare", "attempt", "score"):
        phase: Phase | None = getattr(record, name)
        if phase is not None and not (abs(phase.seconds) <= _MOST and abs(phase.waited) <= _MOST):
            return f"{name} of {max(abs(phase.seconds), abs(phase.waited)):g} seconds is nothing that was measured"
    return None


def _beyond(usage: Usage) -> str | None:
    if usage is NO_USAGE:
        return None
    for name, number in usage.__dict__.items():  # every record passes here; pydantic's own way takes ten times as long
        if number is not None and not -_MOST <= number <= _MOST:
            return f"{name} of more than {_MOST:g} is nothing that was measured"
    return None


def _measured(record: Record) -> Record:
    if found := beyond_measure(record):
        raise ValueError(found)
    return record


def _lines_backwards(path: Path, step: int) -> Iterator[bytes]:
    pieces: list[bytes] = []  # of a line whose beginning is still to be read, the last first; joined once
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        torn = True  # what follows the last newline
        while end > 0:
            start = max(0, end - step)
            file.seek(start)
            first, *lines = file.read(end - start).split(b"\n")
            if lines:
                lines[-1] = b"".join((lines[-1], *reversed(pieces)))
                pieces = []
                if torn:
                    lines.pop()
                    torn = False
            pieces.append(first)
            yield from (line + b"\n" for line in reversed(lines))
            end = start
        if not torn:
            yield b"".join((*reversed(pieces), b"\n"))


def _read_line(raw: bytes, number: int, blobs: Blobs) -> Entry:
    try:
        if raw.startswith(_PLAIN_RECORD):
            return _measured(Record.model_validate_json(raw[len(_PLAIN_RECORD) : -2]))
        line = from_json(raw)
        return _entry(upgrade(line, int(line["v"])), blobs)
    except ValidationError as error:
        first = error.errors()[0]
        return Damage(number, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
    except _Newer as error:
        return Damage(number, str(error), newer=True)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RunFolderError) as error:
        return Damage(number, f"{type(error).__name__}: {error}")


def _entry(line: Line, blobs: Blobs) -> Entry:
    match line["type"]:
        case "record":
            if references := line.get("blobs"):
                blobs.put_back(line["record"], references)
            return _measured(Record.model_validate(line["record"]))
        case "usage":
            total, usage = Usage.model_validate(line["total"]), Usage.model_validate(line["usage"])
            if found := _beyond(total) or _beyond(usage):
                raise ValueError(found)
            return Spent(total, str(line["trial"]), usage)
        case "start" | "end" as kind:
            return Mark(kind, line)
        case unknown:
            raise ValueError(f"unknown type {unknown!r}")


class JournalWriter:
    """Appends to one journal, alone: a lock keeps every other process out until it is closed.

    `append` and `append_record` only queue; `commit` makes what is queued durable in one write and one fsync, `flush`
    writes it so that it outlives this process, if not the machine.
    """

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self._blobs = Blobs(path.parent / "blobs")
        self._redactor = redactor
        self._descriptor = _open_alone(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._broken = False
        self._queued: list[bytes | Line] = []  # a dict is a record so long that it needs blobs

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, kind: str, **fields: Any) -> None:
        """Queue a line that is not a record."""
        self._queued.append(to_json({"type": kind, "v": SCHEMA, **fields}) + b"\n")

    def append_record(self, record: Record) -> None:
        """Queue a record."""
        data = _storable(record)
        if self._redactor.finds(data):
            data = _storable(_without_secrets(record, self._redactor))
        if len(data) > INLINE_BYTES:
            self._queued.append(from_json(data))
        else:
            self._queued.append(_PLAIN_RECORD + data + b"}\n")

    async def commit(self) -> None:
        """Return when everything queued so far can no longer be lost."""
        queued, self._queued = self._queued, []
        if queued:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._write, queued)

    def flush(self) -> None:
        """Write what is queued, from a program that has no loop to wait on and need not wait for the disk."""
        queued, self._queued = self._queued, []
        if queued:
            self._write(queued, durable=False)

    def close(self) -> None:
        """Write what is still queued and let others have the journal."""
        queued, self._queued = self._queued, []
        try:
            if queued and not self._broken:
                self._thread.submit(self._write, queued).result()
        finally:
            self._thread.shutdown()
            os.close(self._descriptor)

    def _write(self, queued: list[bytes | Line], *, durable: bool = True) -> None:
        start = os.lseek(self._descriptor, 0, os.SEEK_END)
        try:
            lines = [item if isinstance(item, bytes) else self._with_blobs(item) for item in queued]
            _write_all(self._descriptor, b"".join(lines))
            if durable:
                os.fsync(self._descriptor)
        except OSError as error:
            self._broken = True
            os.ftruncate(self._descriptor, start)  # half a batch must not stand before the next one
            raise RunFolderError(
                f"the journal cannot be written: {error.strerror}. Everything reported finished is safe: "
                "make room, then `bakeoff resume`"
            ) from error

    def _with_blobs(self, record: Line) -> bytes:
        references = self._blobs.take_out(record)
        return to_json({"type": "record", "v": SCHEMA, "blobs": references, "record": record}) + b"\n"


def _without_secrets(record: Record, redactor: Redactor) -> Record:
    """What was said may have been cut anywhere; names never are, and a resumed run has to find them as they were."""
    names = {name: redactor.text(getattr(record, name)) for name in ("case", "subject", "attempt_key", "score_key")}
    redacted = redactor.model(record, cut=True)
    pairs = zip(redacted.scores, record.scores, strict=True)
    scores = tuple(score.model_copy(update={"name": redactor.text(was.name)}) for score, was in pairs)
    return redacted.model_copy(update={**names, "scores": scores})


def _storable(record: Record) -> bytes:
    """The record as JSON that can be read back, whatever a subject put into it."""
    try:
        return _readable(record)
    except (PydanticSerializationError, ValueError) as error:
        reason = str(error)
    return _readable(_without_free_data(record, reason))


def _readable(record: Record) -> bytes:
    """The record as JSON; an error where that could not be read back: nested too deep, or a number too long."""
    data = record.__pydantic_serializer__.to_json(record, exclude_defaults=True)
    if len(data) > _LONG_NUMBER or data.count(b"[") + data.count(b"{") > _DEEP:
        from_json(_PLAIN_RECORD + data + b"}")
    return data


def _without_free_data(record: Record, reason: str) -> Record:
    """The same outcome without the places where a subject or scorer may put any data it likes."""
    note = {"not stored": reason}
    usage = record.transcript.usage if record.transcript else Usage()
    scores = tuple(score.model_copy(update={"reason": "", "metadata": note}) for score in record.scores)
    bare = Transcript(usage=usage, metadata=dict(note))
    cleared = {"transcript": bare, "scores": scores, "artefacts": {}, "refused": {}}
    phases = {name: _without_failure_text(getattr(record, name)) for name in ("prepare", "attempt", "score")}
    return record.model_copy(update=cleared | phases)


def _without_failure_text(phase: Any) -> Any:
    if phase is None or phase.failure is None:
        return phase
    return phase.model_copy(update={"failure": phase.failure.model_copy(update={"message": "", "detail": ""})})


def _open_alone(path: Path) -> int:
    """Open for appending under a lock, without the torn line that a crash may have left."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE)
    except OSError as error:
        raise RunFolderError(f"{path} cannot be opened: {error.strerror}") from error
    try:
        _lock(descriptor)
    except OSError as error:
        os.close(descriptor)
        raise RunFolderError(
            f"run {path.parent.name} is being written by another process: wait for it, or stop it first"
        ) from error
    _drop_torn_line(descriptor)
    sync_folder(path.parent)
    return descriptor


def _lock(descriptor: int) -> None:
    """Whoever asks whether a journal is being written holds a lock for a moment; that is not yet another writer."""
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE)
        else:
            return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _drop_torn_line(descriptor: int) -> None:
    end = position = os.lseek(descriptor, 0, os.SEEK_END)
    step = 64 * 1024
    while position > 0:
        position = max(0, position - step)
        newline = os.pread(descriptor, min(step, end - position), position).rfind(b"\n")
        if newline >= 0:
            position += newline + 1
            break
    if position < end:
        os.ftruncate(descriptor, position)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

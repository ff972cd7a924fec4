"""The journal: append-only JSON lines, a run's source of truth.

    start    a process began to write
    usage    tokens and money as they arrive, with the run's total so far
    record   one finished trial; the last one of a trial counts
    end      the process finished its work, and why
    repair   `bakeoff runs check --repair` put damaged lines aside

Every line has its schema version `v`, its number and a checksum (see `journal_lines`). Long strings
of records are in blobs. The line lists their places, so that no output can be taken for a
reference.

`seal.json` beside the journal has totals of the journal and a digest of the plan, as of the last
finished process. So a journal that lost its end, or is gone, is noticed. More lines may follow,
because the run may have been resumed and the process killed.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from bakeoff._kernel.files import (
    in_megabytes,
    lock_file,
    open_file,
    open_to_append,
    os_errors_explained,
    read_file,
    sync_folder,
    write_atomically,
)
from bakeoff._kernel.model import first_problem
from bakeoff.errors import RunFolderError
from bakeoff.record import NO_USAGE, SCHEMA, Phase, Record, Transcript, Usage
from bakeoff.storage.blobs import Blobs
from bakeoff.storage.journal_lines import (
    JOURNAL,
    MAX_LINE_LENGTH,
    UNSEALED,
    Damage,
    Totals,
    count_lines,
    end_of_lines,
    line_end,
    lines_backwards,
    lines_forwards,
    lost_newline,
    seal_line,
    sequence_damage,
)
from bakeoff.storage.redaction import Redactor

SEAL = "seal.json"
_MAX_SEAL_SIZE = 1 << 20
_SEAL_VERSION = 1
INLINE_BYTES = 16 * 1024  # records up to this length are written without moving long strings into blobs
_PLAIN_RECORD = b'{"type":"record","v":%d,"record":' % SCHEMA
_UNSEALED_RECORD = b'{"type":"record","v":%d,"record":' % UNSEALED  # its fields have not changed
# Records with more brackets or bytes are read back before writing: they may be nested too deeply,
# or have too long numbers, for the reader.
_MANY_BRACKETS = 100
_MANY_BYTES = 4000
MAX_RECORD_SIZE = MAX_LINE_LENGTH - (1 << 20)  # leaves room for type, blob places and checksum
_STEP = 1 << 20  # bytes read at a time
_LOCK_TRIES, _LOCK_PAUSE = 20, 0.01
_MAX_NUMBER = 10**15  # tokens, dollars or seconds; more cannot be real

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SpentTokens:
    """One report of usage: of the trial, and the new total of the run."""

    total: Usage
    trial: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class JournalMark:
    """A line about a process: it started, it ended, or it repaired the journal."""

    kind: Literal["start", "end", "repair"]
    facts: Mapping[str, Any] = field(default_factory=dict)


Entry = Record | SpentTokens | JournalMark | Damage


def read_journal(path: Path) -> Iterator[Entry]:
    """Yield all entries in order. At the end, yield damage such as missing lines.

    Skip an incomplete last line, which was never reported as finished.
    """
    return (entry for _, entry in read_journal_with_places(path))


def read_journal_with_places(path: Path) -> Iterator[tuple[int, Entry]]:
    """Yield all entries with the byte offsets where they begin, for `record_at`."""
    blobs = Blobs(path.parent / "blobs")
    place, sealed = 0, _sealed(path)
    with open_file(path) as journal:
        for number, (place, raw) in enumerate(lines_forwards(journal), 1):
            yield place, read_line(raw, number, blobs)
        for damage in sequence_damage(journal, sealed):
            yield place, damage


def read_journal_backwards(path: Path, step: int = _STEP) -> Iterator[Entry]:
    """Yield all entries, last first. At the end, yield damage such as missing lines.

    So the first record of a trial is the one that counts.
    """
    blobs = Blobs(path.parent / "blobs")
    lines: int | None = None  # counted only if a line is damaged
    sealed = _sealed(path)
    with open_file(path) as journal:
        for later, raw in enumerate(lines_backwards(journal, step)):
            entry = read_line(raw, 0, blobs)
            if isinstance(entry, Damage):
                if lines is None:
                    with open_file(path) as whole:
                        lines = count_lines(whole)[0].lines
                entry = replace(entry, line=lines - later)
            yield entry
        yield from sequence_damage(journal, sealed)


def _sealed(journal: Path) -> Totals | None:
    """Return the totals in the journal's seal, if it has one."""
    seal = intact_seal(journal.parent) if journal.name == JOURNAL else None
    return seal.journal if seal is not None else None


def record_at(path: Path, place: int) -> Record:
    """Return the record that begins at a byte offset."""
    with open_file(path) as journal:
        journal.seek(place)
        entry = read_line(journal.readline(MAX_LINE_LENGTH), 0, Blobs(path.parent / "blobs"))
    if not isinstance(entry, Record):
        raise RunFolderError(f"{path}: there is no record at byte {place} any more")
    return entry


def records_of(path: Path, attempt_key: str) -> Iterator[Record]:
    """Yield the records with an attempt key, newest first."""
    blobs, key = Blobs(path.parent / "blobs"), b'"attempt_key":' + to_json(attempt_key)
    with open_file(path) as journal:
        for raw in lines_backwards(journal, _STEP):
            entry = read_line(raw, 0, blobs) if raw is not None and key in raw else None
            if isinstance(entry, Record) and entry.attempt_key == attempt_key:
                yield entry


def implausible_number(record: Record) -> str | None:
    """Describe the first number in a record that is too large to be real, or return None."""
    for usage in (record.spent, record.transcript.usage) if record.transcript else (record.spent,):
        if found := _beyond(usage):
            return found
    for name in ("prepare", "attempt", "score"):
        phase: Phase | None = getattr(record, name)
        if phase is not None and not (abs(phase.seconds) <= _MAX_NUMBER and abs(phase.waited) <= _MAX_NUMBER):
            return f"{name} of {max(abs(phase.seconds), abs(phase.waited)):g} seconds is too large to be a measurement"
    return None


def _beyond(usage: Usage) -> str | None:
    """Describe the first number in a usage that is too large to be real, or return None."""
    if usage is NO_USAGE:
        return None
    for name, number in usage.__dict__.items():  # ten times as fast as model_dump
        if number is not None and not -_MAX_NUMBER <= number <= _MAX_NUMBER:
            return f"{name} of more than {_MAX_NUMBER:g} is too large to be a measurement"
    return None


def _measured(data: bytes | Line) -> Record:
    """Parse a record from JSON. Raise ValueError if a number is too large to be real."""
    record = Record.model_validate_json(data) if isinstance(data, bytes) else Record.model_validate(data)
    if found := implausible_number(record):
        raise ValueError(found)
    return record


def read_line(raw: bytes | None, number: int, blobs: Blobs) -> Entry:
    """Return the entry of a complete line, or the damage if it cannot be read.

    Args:
        raw: the line with its newline; None for a line that is too long.
        number: its number in the journal, for messages.
        blobs: where the long strings of records are.
    """
    if raw is None:
        return Damage(number, f"it is longer than {in_megabytes(MAX_LINE_LENGTH)}, the most that is read")
    end = line_end(raw)
    if end is not None and not end.intact:
        return Damage(number, "its checksum does not match: it was changed after it was written")
    try:
        if end is not None and raw.startswith(_PLAIN_RECORD):
            return _measured(raw[len(_PLAIN_RECORD) : end.begin])
        if end is None and raw.startswith(_UNSEALED_RECORD) and raw.endswith(b"}}\n"):
            return _measured(raw[len(_UNSEALED_RECORD) : -2])
        line = from_json(raw if end is None else raw[: end.begin] + b"}")
        version = int(line["v"])
        if end is None and UNSEALED < version <= SCHEMA:
            return Damage(number, "it has no checksum: its end is not as it was written")
        if version > SCHEMA:
            why = f"schema {version} is newer than {SCHEMA}, the newest this bakeoff knows: upgrade bakeoff to read it"
            return Damage(number, why, newer=True)
        return _entry(line, blobs)
    except ValidationError as error:
        return Damage(number, first_problem(error))
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RunFolderError) as error:
        return Damage(number, f"{type(error).__name__}: {error}")


def _entry(line: Line, blobs: Blobs) -> Entry:
    match line["type"]:
        case "record":
            if references := line.get("blobs"):
                blobs.put_back(line["record"], references)
            return _measured(line["record"])
        case "usage":
            total, usage = Usage.model_validate(line["total"]), Usage.model_validate(line["usage"])
            if found := _beyond(total) or _beyond(usage):
                raise ValueError(found)
            return SpentTokens(total, str(line["trial"]), usage)
        case "start" | "end" | "repair" as kind:
            return JournalMark(kind, line)
        case unknown:
            raise ValueError(f"unknown type {unknown!r}")


class JournalWriter(AbstractContextManager["JournalWriter"]):
    """Appends to a journal under a lock, which keeps other processes out until it is closed.

    `append` and `append_record` only queue lines. `commit` writes the queue durably, with one write
    and one fsync. `flush` writes without fsync, which is not safe if the machine crashes. Closing
    the writer seals the journal if the last line is an `end`.
    """

    def __init__(self, path: Path, redactor: Redactor, *, pause: Callable[[float], object] = time.sleep) -> None:
        self._folder = path.parent
        self._blobs = Blobs(path.parent / "blobs")
        self._redactor = redactor
        with os_errors_explained(path, "opened"):
            self._descriptor = _open_and_lock(path, pause)
            with _closed_on_error(self._descriptor):  # a crash may have left an incomplete line
                if lost_newline(self._descriptor) is not None:
                    way_out = f"`bakeoff runs check --repair {self._folder.name}` keeps its trial"
                    raise RunFolderError(f"{path}: the last line is damaged: {way_out}")
                os.ftruncate(self._descriptor, end_of_lines(self._descriptor))
                sync_folder(self._folder)
                with open_file(path) as journal:
                    self._totals, self._number = count_lines(journal)
        self._ended = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._broken = False
        self._queued: list[bytes | Line] = []  # a Line is a long record, whose strings go into blobs

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, kind: str, **fields: Any) -> None:
        """Queue a line that is not a record."""
        self._queued.append(to_json({"type": kind, "v": SCHEMA, **fields})[:-1])
        self._ended = kind == "end"

    def append_record(self, record: Record) -> None:
        """Queue a record."""
        data = _storable(record)
        if self._redactor.finds(data):
            data = _storable(_redacted(record, self._redactor))
        self._queued.append(_PLAIN_RECORD + data if len(data) <= INLINE_BYTES else from_json(data))
        self._ended = False

    async def commit(self) -> None:
        """Write the queued lines in a thread, and return when they are safely on disk."""
        if queued := self._take_queued():
            await asyncio.get_running_loop().run_in_executor(self._thread, self._write, queued)

    def flush(self) -> None:
        """Write the queued lines without waiting for the disk or an event loop."""
        if queued := self._take_queued():
            self._write(queued, durable=False)

    def close(self) -> None:
        """Write the queued lines, seal the journal after an `end` line, and release the lock."""
        try:
            if (queued := self._take_queued()) and not self._broken:
                self._thread.submit(self._write, queued).result()
            if self._ended and not self._broken:
                seal_journal(self._folder, self._totals)
        finally:
            self._thread.shutdown()
            os.close(self._descriptor)

    def _take_queued(self) -> list[bytes | Line]:
        queued, self._queued = self._queued, []
        return queued

    def _write(self, queued: list[bytes | Line], *, durable: bool = True) -> None:
        """Write queued lines, all or none. Raise RunFolderError if the disk refuses them."""
        start = os.lseek(self._descriptor, 0, os.SEEK_END)
        totals = replace(self._totals)
        try:
            lines: list[bytes] = []
            for number, item in enumerate(queued, self._number + 1):
                if isinstance(item, dict):
                    references = self._blobs.take_out(item)
                    item = to_json({"type": "record", "v": SCHEMA, "blobs": references, "record": item})[:-1]
                lines.append(seal_line(item, number, totals))
            write_all(self._descriptor, b"".join(lines))
            if durable:
                os.fsync(self._descriptor)
        except OSError as error:
            self._broken = True
            os.ftruncate(self._descriptor, start)  # a batch is written completely or not at all
            raise RunFolderError(
                f"the journal cannot be written: {error.strerror}. All trials reported as finished are safe: "
                "free disk space, then run `bakeoff resume`"
            ) from error
        self._totals, self._number = totals, self._number + len(lines)


def without_secrets(record: Record, redactor: Redactor) -> Record:
    """Return the record without secrets, for sending or writing."""
    return _redacted(record, redactor) if redactor.finds(_storable(record)) else record


def _redacted(record: Record, redactor: Redactor) -> Record:
    """Redact the record. Texts may have been cut anywhere; names are complete."""
    names = {name: redactor.text(getattr(record, name)) for name in ("case", "subject", "attempt_key", "score_key")}
    redacted = redactor.model(record, cut=True)
    pairs = zip(redacted.scores, record.scores, strict=True)
    scores = tuple(score.model_copy(update={"name": redactor.text(was.name)}) for score, was in pairs)
    return redacted.model_copy(update={**names, "scores": scores})


def _storable(record: Record) -> bytes:
    """Return the record as readable JSON, even if a subject put unusual data into it."""
    try:
        return _readable(record)
    except (PydanticSerializationError, ValueError) as error:
        reason = str(error)
    return _readable(_without_free_data(record, reason))


def _readable(record: Record) -> bytes:
    """Return the record as JSON. Raise ValueError if it could not be read again."""
    data = record.__pydantic_serializer__.to_json(record, exclude_defaults=True)
    if len(data) > MAX_RECORD_SIZE:
        raise ValueError(f"it is larger than {in_megabytes(MAX_RECORD_SIZE)}, the most that is stored of a trial")
    if len(data) > _MANY_BYTES or data.count(b"[") + data.count(b"{") > _MANY_BRACKETS:
        from_json(_PLAIN_RECORD + data + b"}")
    return data


def _without_free_data(record: Record, reason: str) -> Record:
    """Return the record without the fields for free data of subjects and scorers."""
    note = {"not stored": reason}
    usage = record.transcript.usage if record.transcript else Usage()
    scores = tuple(score.model_copy(update={"reason": "", "metadata": note}) for score in record.scores)
    bare = Transcript(usage=usage, metadata=dict(note))
    cleared: dict[str, Any] = {"transcript": bare, "scores": scores, "artefacts": {}, "refused": {}}
    for name in ("prepare", "attempt", "score"):
        phase: Phase | None = getattr(record, name)
        if phase is not None and phase.failure is not None:
            failure = phase.failure.model_copy(update={"message": "", "detail": ""})
            cleared[name] = phase.model_copy(update={"failure": failure})
    return record.model_copy(update=cleared)


@contextmanager
def hold_journal(path: Path) -> Iterator[None]:
    """Keep other processes from writing the journal. If there is none, make an empty one."""
    with os_errors_explained(path, "opened"):
        descriptor = _open_and_lock(path, time.sleep)
    try:
        yield
    finally:
        os.close(descriptor)


def _open_and_lock(path: Path, pause: Callable[[float], object]) -> int:
    """Open the journal for appending, lock it, and return its descriptor."""
    while True:
        descriptor = open_to_append(path)
        with _closed_on_error(descriptor):
            tries = 1
            while not lock_file(descriptor, path):  # `RunFolder.is_being_written` may hold it briefly
                if tries == _LOCK_TRIES:
                    name = path.parent.name
                    raise RunFolderError(f"another process is writing run {name}: wait for it, or stop it first")
                tries += 1
                pause(_LOCK_PAUSE)
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        os.close(descriptor)  # a repair has replaced the file


@contextmanager
def _closed_on_error(descriptor: int) -> Iterator[None]:
    try:
        yield
    except BaseException:
        os.close(descriptor)
        raise


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes, in as many writes as needed."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


# --- the seal --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seal:
    """The totals of a journal and the digest of its plan, at the time of sealing."""

    journal: Totals = field(default_factory=Totals)
    plans: tuple[str, ...] = ()  # the SHA-256 of the plan, or of old and new plan


def plan_digest(data: bytes) -> str:
    """Return the digest of a plan's file, as a seal has it."""
    return sha256(data).hexdigest()


def read_seal(folder: Path) -> Seal | None:
    """Return the seal of a run folder, or None. Raise RunFolderError if it is damaged."""
    path = folder / SEAL
    with os_errors_explained(path, "read"):
        try:
            raw = read_file(path, _MAX_SEAL_SIZE)
        except FileNotFoundError:
            return None
    found = line_end(raw)
    try:
        if found is None or not found.intact:
            raise ValueError("its checksum does not match")
        data = from_json(raw)
        if data["v"] > _SEAL_VERSION:
            raise ValueError("a newer bakeoff wrote it: upgrade bakeoff to read it")
        return Seal(Totals(int(data["lines"]), int(data["sum"], 16)), tuple(map(str, data["plan"])))
    except (ValueError, KeyError, TypeError) as error:
        raise RunFolderError(f"{path} is damaged: {error}; `bakeoff runs check --repair` makes a new one") from error


def intact_seal(folder: Path) -> Seal | None:
    """Return the seal of a run folder; None if it is missing or damaged."""
    with suppress(RunFolderError):
        return read_seal(folder)
    return None


def write_seal(folder: Path, seal: Seal) -> None:
    """Replace the seal of a run folder. Raise RunFolderError if it cannot be written."""
    totals = {"lines": seal.journal.lines, "sum": f"{seal.journal.sum:08x}"}
    body = to_json({"type": "seal", "v": _SEAL_VERSION, **totals, "plan": seal.plans})
    with os_errors_explained(folder / SEAL, "written"):
        write_atomically(folder / SEAL, seal_line(body[:-1], 1, Totals()))


def seal_journal(folder: Path, totals: Totals) -> None:
    """Seal the journal in its present state. The seal of the plan stays."""
    write_seal(folder, replace(_known_seal(folder), journal=replace(totals)))


def seal_plans(folder: Path, *plans: str) -> None:
    """Seal the plan, or old and new plan during a replacement. The journal's seal stays."""
    known = _known_seal(folder)
    if known.plans != plans:
        write_seal(folder, replace(known, plans=plans))


def _known_seal(folder: Path) -> Seal:
    """Return the seal, or an empty one if there is none. Raise RunFolderError if it is damaged."""
    return read_seal(folder) or Seal()

"""Repair a journal: keep intact lines in order, move the others to a file, seal the result."""

import os
import re
import tempfile
import time
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zlib import crc32

from pydantic_core import from_json, to_json

from bakeoff._kernel.files import PRIVATE, open_file, sync_folder
from bakeoff.errors import RunFolderError
from bakeoff.record import SCHEMA, Record
from bakeoff.storage.blobs import Blobs
from bakeoff.storage.journal import JournalMark, Seal, hold_journal, read_line, write_seal
from bakeoff.storage.journal_lines import (
    Damage,
    Totals,
    end_of_lines,
    line_end,
    lines_forwards,
    lost_newline,
    seal_line,
)
from bakeoff.storage.labels import read_labels
from bakeoff.storage.run_folder import RunFolder

ASIDE = "journal.damaged.jsonl"
"""The file of lines that were put aside. Nothing is ever removed from it."""
_TRIAL = re.compile(rb'"case":("(?:[^"\\]|\\.)*"),"subject":("(?:[^"\\]|\\.)*"),"round":(\d+)')
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Aside:
    """A line that was put aside, with the trial that it seems to belong to."""

    line: int
    reason: str
    trial: str | None


@dataclass(frozen=True, slots=True)
class Repair:
    """The result of a repair: lines that were put aside, and the number of missing ones."""

    kept: int
    missing: int  # number of lost lines
    aside: tuple[Aside, ...]
    plan_accepted: bool  # a plan that differs from the sealed one was accepted
    changed: bool


class _KeptRecords(NamedTuple):
    number: int  # lines are sorted by it
    place: int
    line: bytes | None  # the corrected line, if the file's is not right


@dataclass(slots=True)
class _Lines:
    """The lines of a journal, divided into intact and damaged ones."""

    kept: dict[int, _KeptRecords] = field(default_factory=dict)  # by number
    aside: list[Aside] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)  # start and end of each part to put aside
    slots: int = 0  # how many numbers are or were used by lines
    in_order: bool = True

    def put_aside(self, line: int, reason: str, raw: bytes | None, place: tuple[int, int]) -> None:
        """Note a line that cannot be kept."""
        self.aside.append(Aside(line, reason, _trial(raw)))
        self.places.append(place)


def repair_run(folder: RunFolder) -> Repair:
    """Repair the journal and the seal of a run, so that it can be read and resumed. No data is deleted.

    Unreadable lines are moved to a file beside the journal. An intact run is not changed. Raise
    `RunFolderError` if the journal cannot be read, for example without permission.
    """
    plan, accepted = folder.plan_as_it_is()
    folder.check_version()
    with hold_journal(folder.journal_file), open_file(folder.journal_file) as journal:
        around = list(folder.outer_damage())
        lines = _sorted_out(journal, Blobs(folder.path / "blobs"))
        missing = max(0, folder.sealed_lines(), *(kept.number for kept in lines.kept.values())) - lines.slots
        changed = bool(around or accepted or lines.places or missing > 0 or not lines.in_order)
        if changed:
            _put_aside(folder.path / ASIDE, journal, lines.places)
            totals = _rewrite(folder.journal_file, journal, lines, max(0, missing))
            write_seal(folder.path, Seal(totals, (plan,)))
    return Repair(len(lines.kept), max(0, missing), tuple(lines.aside), accepted, changed)


def _sorted_out(journal: BinaryIO, blobs: Blobs) -> _Lines:
    found = _Lines()
    last = 0
    last_end = [(end_of_lines(journal.fileno()), None)]
    journal.seek(0)
    lines = chain(lines_forwards(journal), last_end)
    for number, ((place, raw), (end_place, _)) in enumerate(pairwise(lines), 1):
        entry, end = read_line(raw, number, blobs), line_end(raw) if raw is not None else None
        if isinstance(entry, Damage) and entry.newer:
            raise RunFolderError(f"the journal cannot be repaired: line {number}: {entry.reason}")
        due = end.number if end is not None and end.intact else last + 1
        reason = entry.reason if isinstance(entry, Damage) else None
        if reason is None and due in found.kept:
            reason = f"line {due:,} stands here again"
        else:
            found.slots += 1
        if reason is not None:
            found.put_aside(number, reason, raw, (place, end_place))
        else:
            found.in_order = found.in_order and due == last + 1
            found.kept[due] = _KeptRecords(due, place, None)
        last = due
    _take_last(journal, found, last + 1)
    return found


def _take_last(journal: BinaryIO, found: _Lines, number: int) -> None:
    """Keep a last line that lost only its newline. Put an incomplete one aside, not as damage."""
    begin, size = end_of_lines(journal.fileno()), os.fstat(journal.fileno()).st_size
    line = lost_newline(journal.fileno())
    end = line_end(line) if line is not None else None
    due = end.number if end is not None else number
    if line is not None and due not in found.kept:
        found.kept[due] = _KeptRecords(due, begin, line)
        found.slots += 1
        found.in_order = False
    elif line is not None:
        found.put_aside(number, f"line {due:,} stands here again", line, (begin, size))
    elif begin < size and (found.places or not found.in_order):
        found.places.append((begin, size))


def _trial(raw: bytes | None) -> str | None:
    """Return the trial that a damaged line seems to belong to, or None."""
    found = _TRIAL.search(raw) if raw is not None else None
    if found is None:
        return None
    try:
        case, subject = from_json(found[1]), from_json(found[2])
    except ValueError:
        return None
    return f"round {int(found[3]) + 1} of case {case!r:.100} with subject {subject!r:.100}"


def _put_aside(path: Path, file: BinaryIO, places: list[tuple[int, int]]) -> None:
    """Append parts of the journal to a file, durably and in small steps."""
    if not places:
        return
    if path.is_symlink():  # a link could lead to any file
        raise RunFolderError(f"{path} is a link, which is not followed: rename it, and repeat the command")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, PRIVATE)
    with os.fdopen(descriptor, "ab") as into:
        for begin, end in places:
            file.seek(begin)
            while begin < end and (piece := file.read(min(_CHUNK, end - begin))):
                into.write(piece)
                begin += len(piece)
        into.flush()
        os.fsync(descriptor)
    sync_folder(path.parent)


def _rewrite(path: Path, file: BinaryIO, lines: _Lines, missing: int) -> Totals:
    """Replace the journal by the kept lines, sorted by number and renumbered."""
    totals = Totals()
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as into:
            for number, kept in enumerate(sorted(lines.kept.values()), 1):
                file.seek(kept.place)
                raw = kept.line or file.readline()
                if (end := line_end(raw)) is None:
                    totals.add(crc32(raw))
                    into.write(raw)
                else:
                    into.write(seal_line(raw[: end.begin], number, totals))
            facts = {"time": time.time(), "aside": len(lines.aside), "missing": missing}
            body = to_json({"type": "repair", "v": SCHEMA, **facts})[:-1]
            into.write(seal_line(body, totals.lines + 1, totals))
            into.flush()
            os.fchmod(into.fileno(), PRIVATE)
            os.fsync(into.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    return totals


@dataclass(slots=True)
class RunDamage:
    """The damage in the files of a run."""

    folder: RunFolder
    records: int = 0
    lines: int = 0
    without_checksum: int = 0
    ended: bool = False
    damaged: list[Damage] = field(default_factory=list)
    labels: int = 0  # damaged lines of labels
    plan: str | None = None  # what is wrong with the plan

    @property
    def any(self) -> bool:
        """Return True if any file of the run is damaged."""
        return bool(self.damaged or self.labels or self.plan)


def find_damage(folder: RunFolder) -> RunDamage:
    """Read all files of a run, and return what is damaged."""
    found = RunDamage(folder)
    try:
        folder.read_plan()
    except RunFolderError as error:
        found.plan = str(error)
    for entry in folder.entries():
        found.records += isinstance(entry, Record)
        if isinstance(entry, Damage):
            found.damaged.append(entry)
        elif isinstance(entry, JournalMark):
            found.ended = entry.kind == "end"
    found.lines, found.without_checksum = folder.count_checksums()
    found.labels = read_labels(folder.labels_file).damaged
    return found

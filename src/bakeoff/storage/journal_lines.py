"""The lines of a journal. Each ends with its number and checksum, so that damage is noticed.

    {"type":"record","v":2,"record":{…},"n":7,"crc":"8a2f01c4"}

`n` counts the lines of the file from 1. `crc` is the CRC-32 of everything before it. An `end` line
also has the number of lines before it, and the sum of their checksums modulo 2³². Lines of version
1 have none of this. Checksums show accidental damage, signatures (`bakeoff runs sign`) any change.

`collect_damage` counts the damaged lines of each run that any part of a command reads.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple
from zlib import crc32

from pydantic_core import from_json

from bakeoff._kernel.files import MAX_FILE_SIZE
from bakeoff._kernel.text import count_of

JOURNAL = "journal.jsonl"
"""The file of a journal in its run folder."""
UNSEALED = 1
"""The last schema version whose lines have no number and no checksum."""
MAX_LINE_LENGTH = MAX_FILE_SIZE
"""The longest line that is read. A longer one is damage: reading it would take ten times its length in memory."""
_SKIPPED = 1 << 20  # bytes of a line that is too long, read at a time

_CRC = len(b',"crc":"01234567"}\n')
_DIGITS = len(b'01234567"}\n')
_MAX_END_LENGTH = 60  # bytes from the number on, or from the totals to the number
_TOTALS = re.compile(rb',"lines":(\d{1,18}),"sum":"([0-9a-f]{8})"\Z')
_SEALED = b'{"type":"end",'


@dataclass(frozen=True, slots=True)
class Damage:
    """A journal line that cannot be read, or lines that are missing or misplaced."""

    line: int
    reason: str
    newer: bool = False  # the line is intact, but a newer bakeoff wrote it


@dataclass(slots=True)
class Totals:
    """The number of lines in a journal, and the sum of their checksums modulo 2³²."""

    lines: int = 0
    sum: int = 0

    def add(self, crc: int) -> None:
        """Count another line with this checksum."""
        self.lines += 1
        self.sum = (self.sum + crc) & 0xFFFFFFFF


class LineEnd(NamedTuple):
    """The number and checksum at the end of a line."""

    number: int
    begin: int  # where it begins in the line
    crc: int  # the actual checksum of the line
    intact: bool  # whether the stored checksum is right
    before: Totals | None  # of the earlier lines, in an `end` line


def seal_line(body: bytes, number: int, totals: Totals) -> bytes:
    """Make a line from JSON without its closing bracket, and add it to the totals."""
    if body.startswith(_SEALED):
        body += b',"lines":%d,"sum":"%08x"' % (totals.lines, totals.sum)
    body += b',"n":%d' % number
    crc = crc32(body)
    totals.add(crc)
    return body + b',"crc":"%08x"}\n' % crc


def line_end(raw: bytes) -> LineEnd | None:
    """Return the end of a line; None if the line has no checksum."""
    if raw[-_CRC:-_DIGITS] != b',"crc":"' or (begin := raw.rfind(b',"n":', -_MAX_END_LENGTH)) < 0:
        return None  # ten times as fast as one pattern
    try:
        number, crc = int(raw[begin + 5 : -_CRC]), int(raw[-_DIGITS:-3], 16)
    except ValueError:
        return None
    before = None
    if raw.startswith(_SEALED) and (found := _TOTALS.search(raw, max(0, begin - _MAX_END_LENGTH), begin)):
        begin, before = found.start(), Totals(int(found[1]), int(found[2], 16))
    found_crc = crc32(memoryview(raw)[:-_CRC])
    return LineEnd(number, begin, found_crc, found_crc == crc and raw.endswith(b'"}\n'), before)


def lines_forwards(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yield the complete lines of a file with their offsets; None for lines that are too long."""
    place = 0
    while raw := file.readline(MAX_LINE_LENGTH):
        length, last = len(raw), raw
        while not last.endswith(b"\n") and (last := file.readline(_SKIPPED)):
            length += len(last)
        if not last.endswith(b"\n"):
            return
        yield place, raw if length == len(raw) else None
        place += length


def lines_backwards(file: BinaryIO, step: int) -> Iterator[bytes | None]:
    """Yield the complete lines of a file, last first; None for lines that are too long."""
    pieces: list[bytes] = []  # of an incomplete line, last piece first
    length = 0  # of these pieces and the dropped ones
    end = file.seek(0, os.SEEK_END)
    torn = True  # until the text after the last newline has been dropped

    def joined(beginning: bytes) -> bytes | None:
        return None if length + len(beginning) >= MAX_LINE_LENGTH else b"".join((beginning, *reversed(pieces), b"\n"))

    while end > 0:
        start = max(0, end - step)
        file.seek(start)
        first, *lines = file.read(end - start).split(b"\n")
        if lines:
            if not torn:
                yield joined(lines[-1])
            torn, pieces, length = False, [], 0
            yield from (line + b"\n" for line in reversed(lines[:-1]))
        pieces.append(first)
        length += len(first)
        if length >= MAX_LINE_LENGTH:
            pieces = []
        end = start
    if not torn:
        yield joined(b"")


def end_of_lines(descriptor: int) -> int:
    """Return the offset of the end of a file's last complete line."""
    end = position = os.lseek(descriptor, 0, os.SEEK_END)
    step = 64 * 1024
    while position > 0:
        position = max(0, position - step)
        newline = os.pread(descriptor, min(step, end - position), position).rfind(b"\n")
        if newline >= 0:
            return position + newline + 1
    return 0


def lost_newline(descriptor: int) -> bytes | None:
    """Return the last line if it is complete except that another byte replaces its newline.

    A crash cannot cause this, because it leaves only the beginning of a line.
    """
    end, size = end_of_lines(descriptor), os.lseek(descriptor, 0, os.SEEK_END)
    if not 0 < size - end <= MAX_LINE_LENGTH:
        return None
    line = os.pread(descriptor, size - end - 1, end) + b"\n"
    found = line_end(line)
    return line if found is not None and found.intact else None


def count_lines(file: BinaryIO) -> tuple[Totals, int]:
    """Return the totals of a file's complete lines, and the number of the last line."""
    totals, number = Totals(), 0
    for _, raw in lines_forwards(file):
        found = line_end(raw) if raw is not None else None
        number = found.number if found is not None and found.intact else number + 1
        totals.add(_crc(raw, found))
    return totals, number


def _crc(raw: bytes | None, found: LineEnd | None) -> int:
    return found.crc if found is not None else 0 if raw is None else crc32(raw)


def sequence_damage(file: BinaryIO, sealed: Totals | None = None) -> Iterator[Damage]:
    """Yield damage that no single line shows: missing, doubled, moved or replaced lines.

    Args:
        file: the journal, read from the beginning.
        sealed: the totals in the journal's seal; later lines may follow.
    """
    sealed = sealed or Totals()
    totals, due = Totals(), 1  # `due` is the number that the next line should have
    clean = True  # until damage is found, since sums are then wrong too
    numbered = False  # whether a line had a number
    file.seek(0)
    for _, raw in lines_forwards(file):
        found = line_end(raw) if raw is not None else None
        sum_before, reason = totals.sum, None
        totals.add(_crc(raw, found))
        if found is not None and found.intact:
            reason = _misplaced(found, due, sum_before if clean else None)
            due, numbered = found.number + 1, True
        else:
            if numbered or found is not None or raw is None:
                clean = False  # reported when the line is read, except in version 1
            if found is None and raw is not None and numbered and is_unsealed(raw):
                reason = "it has no checksum, although lines before it have one"
            due += 1
        if reason is None and clean and totals.lines == sealed.lines and totals != sealed:
            reason = "the checksums up to here do not add up to the sum that was sealed: a line was replaced"
        if reason is not None:
            clean = False
            yield Damage(totals.lines, reason)
    if lost_newline(file.fileno()) is not None:
        yield Damage(totals.lines + 1, "its last byte is not the end of a line any more")
    if (lost := sealed.lines - totals.lines) > 0:
        had = f"the journal ends here, but had {count_of(sealed.lines, 'line')} when it was sealed"
        yield Damage(totals.lines + 1, f"{had}: {count_of(lost, 'line is', 'lines are')} missing")


def _misplaced(found: LineEnd, due: int, sum_before: int | None) -> str | None:
    """Return what is wrong with the number or totals of an intact line, or None."""
    if found.number > due:
        return f"{count_of(found.number - due, 'line is', 'lines are')} missing before it"
    if found.number < due:
        return f"it is line {found.number:,}, which stands here again or was moved"
    if found.before is not None and sum_before is not None and found.before.sum != sum_before:
        return "the checksums of the lines before it do not add up to the sum it holds: a line was replaced"
    return None


def is_unsealed(raw: bytes) -> bool:
    """Return True if a line without a checksum may be of version 1, which had none."""
    try:
        line = from_json(raw)
    except ValueError:
        return False
    return isinstance(line, dict) and line.get("v") == UNSEALED


_NOTES: ContextVar[dict[str, int] | None] = ContextVar("damage", default=None)


def note_damage(run: str, lines: int) -> None:
    """Note that a reader skipped damaged lines of a run. Outside `collect_damage`, do nothing."""
    notes = _NOTES.get()
    if notes is not None and lines:
        notes[run] = lines


@contextmanager
def collect_damage() -> Iterator[dict[str, int]]:
    """Collect the numbers of damaged lines that readers find during the block, by run."""
    found: dict[str, int] = {}
    token = _NOTES.set(found)
    try:
        yield found
    finally:
        _NOTES.reset(token)

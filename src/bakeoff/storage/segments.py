"""The files of a journal: `journal.jsonl`, and the segments that older versions made of the earlier lines of long runs.

    segments/000001.jsonl.zst    the first lines, compressed: zstd frames one after another, of at most 1 MB each
    segments/000002.jsonl        the lines after them, which a killed process did not compress
    journal.jsonl                the lines after them; lines are appended to this file only

`open_journal` reads them as one file, so that readers need not know. The segments are unpacked into a temporary file,
once per process. Files may be made by others: nothing is unpacked that would take more than `MAX_RATIO` times its size,
and what cannot be unpacked is read as one line that says so. Newer runs have no segments.
"""

import io
import mmap
import os
import re
import stat
import struct
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import BinaryIO

from bakeoff._kernel.files import open_file, read_file, sync_folder
from bakeoff.errors import RunFolderError
from bakeoff.storage.journal_lines import DAMAGE_NOTE, Totals, count_lines, end_of_lines, line_end, lines_backwards

JOURNAL = "journal.jsonl"
SEGMENTS = "segments"
DAMAGED_SEGMENTS = "journal.damaged-*"
"""The segments that could not be read in full, as they were before a repair."""
MAX_FRAME_SIZE = 1 << 20
MAX_SEGMENT_SIZE = 256 << 20  # of the file; it is held in memory while it is unpacked
MAX_RATIO = 256
_NAME = re.compile(r"(\d{6,9})\.jsonl(\.zst)?")
_MAGIC = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", re.DOTALL)  # of a frame, and of one to be skipped
_HEADER = struct.Struct("<II")  # of a frame to be skipped: its magic number and size
_SKIPPABLE = 0x184D2A50  # and the 15 numbers after it
_MAX_HEADER_LENGTH = 18
_ROOM = 1024  # bytes that a frame may have besides twice its content
_MAX_GAPS = 1000  # between frames; the rest is one gap
_TRIES = 100  # a repair may replace a file while it is being opened
_BUFFER = 256 << 10
_STEP = 1 << 20
_MAX_FIRST_LENGTH = 1 << 20  # bytes of the first line that are compared


def list_segments(folder: Path) -> list[Path]:
    """Return the segments of a run folder in order; of one that is there twice, the plain one."""
    if _misplaced(folder):
        return []
    try:
        paths = sorted((folder / SEGMENTS).iterdir(), reverse=True)  # a compressed one comes before its plain form
    except FileNotFoundError:
        return []
    found = {int(match[1]): path for path in paths if (match := _NAME.fullmatch(path.name))}
    return [found[number] for number in sorted(found)]


def _misplaced(folder: Path) -> bool:
    """Return True if something else has the name of the folder of segments, such as a link to those of another run."""
    try:
        return not stat.S_ISDIR((folder / SEGMENTS).lstat().st_mode)
    except FileNotFoundError:
        return False


@dataclass(frozen=True, slots=True)
class _UnpackedSegments:
    """The lines of segments, and which of these cannot be read in full."""

    lines: "mmap.mmap | bytes" = b""
    damaged: frozenset[Path] = frozenset()
    unreadable: tuple[str, ...] = ()  # those that could not be opened, each with the reason; later, they may be read


class _JoinedJournal(io.RawIOBase):
    """The lines of segments and `journal.jsonl`, which may grow, read as one file."""

    def __init__(self, early: "mmap.mmap | bytes", tail: BinaryIO) -> None:
        self._early, self._tail, self._at = early, tail.fileno(), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        end = len(self._early) + os.fstat(self._tail).st_size
        self._at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: end}[whence])
        return self._at

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override] # what BufferedReader gives
        behind = self._at - len(self._early)
        early = self._early[self._at : self._at + len(buffer)] if behind < 0 else b""
        data = early or os.pread(self._tail, len(buffer), behind)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class OpenJournal(AbstractContextManager["OpenJournal"]):
    """A journal that is open for reading.

    `file` has all its lines. `tail` is `journal.jsonl` alone, whose first byte is byte `begin` of `file`.
    `unreadable` says which segments could not be opened, each with the reason. Later, their lines may be read.
    """

    def __init__(self, tail: BinaryIO, early: _UnpackedSegments, files: ExitStack) -> None:
        self.tail, self._files = tail, files
        self.unreadable, self.begin = early.unreadable, len(early.lines)
        self.file = io.BufferedReader(_JoinedJournal(early.lines, tail), _BUFFER) if early.lines else tail

    def __exit__(self, *_: object) -> None:
        self._files.close()

    @property
    def size(self) -> int:
        """Return how many bytes the journal has, an incomplete last line included."""
        return self.begin + os.fstat(self.tail.fileno()).st_size

    @property
    def end(self) -> int:
        """Return the offset behind the last complete line."""
        return self.begin + end_of_lines(self.tail.fileno())

    def count(self) -> tuple[Totals, int]:
        """Return the totals of all lines, and the number of the last one."""
        self.file.seek(0)
        return count_lines(self.file)

    def lines_with(self, text: bytes) -> Iterator[bytes]:
        """Yield the lines that hold a text, the last one first."""
        return (line for line in lines_backwards(self.file, _STEP) if line is not None and text in line)


def open_journal(path: Path) -> OpenJournal:
    """Open a journal with its segments, even while it is repaired. Raise OSError if it cannot be read."""
    for _ in range(_TRIES):
        with ExitStack() as files:
            tail = files.enter_context(open_file(path))
            if path.name == JOURNAL and _misplaced(path.parent):
                note = _note(f"{SEGMENTS} is a link or a file, not a folder")
                return OpenJournal(tail, _UnpackedSegments(note), files.pop_all())
            if path.name != JOURNAL or not (segments := list_segments(path.parent)):
                return OpenJournal(tail, _UnpackedSegments(), files.pop_all())
            with suppress(FileNotFoundError):  # it was removed just now
                early = _unpacked(segments[: len(segments) - _repeated(tail, segments)])
                if os.path.samestat(os.fstat(tail.fileno()), path.stat()):
                    return OpenJournal(tail, early, files.pop_all())
    raise RunFolderError(f"{path} cannot be read: its segments change all the time")


def _repeated(tail: BinaryIO, segments: list[Path]) -> int:
    """Return how many of the last segments have lines that `journal.jsonl` has too, because a process was killed.

    That is the last one, if it was being made; or all, if a repair had already written them to `journal.jsonl`.
    """
    first = tail.readline(_MAX_FIRST_LENGTH)
    tail.seek(0)
    end = line_end(first)
    if end is not None and end.intact and end.number == 1:
        return len(segments)
    if not first or segments[-1].suffix == ".zst":
        return 0
    try:
        with _open_segment(segments[-1]) as file:
            return int(file.readline(_MAX_FIRST_LENGTH) == first)
    except FileNotFoundError:
        raise
    except (OSError, RunFolderError):  # reading it reports it
        return 0


# --- unpacking ------------------------------------------------------------------------------------------------------


def _unpacked(segments: list[Path]) -> _UnpackedSegments:
    """Return the lines of segments. Raise FileNotFoundError if one is not there any more."""
    states = (path.lstat() for path in segments)
    found = _unpack(tuple(segments), tuple((state.st_ino, state.st_size, state.st_mtime_ns) for state in states))
    if found.unreadable:
        _unpack.cache_clear()
    return found


@lru_cache(maxsize=2)
def _unpack(segments: tuple[Path, ...], states: tuple[tuple[int, ...], ...]) -> _UnpackedSegments:  # noqa: ARG001
    """Unpack segments into a temporary file. `states` identify what they hold."""
    damaged, unreadable = set[Path](), list[str]()
    with tempfile.TemporaryFile() as into:
        for path in segments:
            begin = into.tell()
            try:
                for lines in _lines_of(path):
                    into.write(lines)
                    if lines.startswith(DAMAGE_NOTE):
                        damaged.add(path)
            except FileNotFoundError:
                raise
            except (OSError, RunFolderError) as error:
                damaged.add(path)
                reason = str(error)
                if isinstance(error, OSError):
                    unreadable.append(reason := f"{_label(path)} cannot be read: {error.strerror}")
                into.seek(begin)
                into.truncate()
                into.write(_note(reason))
        into.flush()
        all_lines = mmap.mmap(into.fileno(), 0, access=mmap.ACCESS_READ) if into.tell() else b""
    return _UnpackedSegments(all_lines, frozenset(damaged), tuple(unreadable))


def _lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a segment in parts, and lines in place of what cannot be unpacked.

    Raise OSError if the file cannot be read, and RunFolderError if it would take too much room, or is no file.
    """
    with _open_segment(path) as file:
        if path.suffix != ".zst":
            while data := file.read(_STEP):
                yield data
            return
    data = read_file(path, MAX_SEGMENT_SIZE)
    room = max(MAX_RATIO * len(data), MAX_FRAME_SIZE)
    for lines in _unpack_frames(data, _label(path)):
        room -= len(lines)
        if room < 0:
            raise RunFolderError(f"{_label(path)} would unpack to more than {MAX_RATIO} times its size: it is not read")
        yield lines


def _open_segment(path: Path) -> BinaryIO:
    """Open the file of a segment. Raise OSError if it cannot be read, and RunFolderError if it is not a segment.

    No run has a link there: one may lead to the segment of another run.
    """
    if not stat.S_ISREG(path.lstat().st_mode):
        raise RunFolderError(f"{_label(path)} is a link, a folder or a device: it is not read")
    return open_file(path)


def _label(path: Path) -> str:
    """Return the path of a segment within its run folder, for messages."""
    return f"{path.parent.name}/{path.name}"


def _note(reason: str) -> bytes:
    """Return a line that stands for lines that cannot be read."""
    return DAMAGE_NOTE + reason.encode(errors="replace") + b"\n"


def _unpack_frames(data: bytes, label: str) -> Iterator[bytes]:
    """Yield the content of each frame, and a note in place of frames that are damaged."""
    from zstandard import ZstdError

    place, gaps, in_gap = 0, 0, False
    for number in count(1):
        if place >= len(data):
            return
        try:
            lines, place = _unpack_frame(data, place)
            in_gap = False
        except (ZstdError, ValueError, MemoryError) as error:
            lines = b"" if in_gap else _note(f"{label}: frame {number}, at byte {place:,}, cannot be unpacked: {error}")
            gaps, in_gap = gaps + 1, True
            found = _MAGIC.search(data, place + 1) if gaps < _MAX_GAPS else None
            place = found.start() if found else len(data)
        yield lines


def _unpack_frame(data: bytes, place: int) -> tuple[bytes, int]:
    """Return the content of the frame that begins at a place, and where the frame ends. Raise an error if it cannot."""
    from zstandard import ZstdDecompressor, get_frame_parameters

    header = data[place : place + _MAX_HEADER_LENGTH]
    if len(header) >= _HEADER.size and _HEADER.unpack_from(header)[0] & ~0xF == _SKIPPABLE:
        end = place + _HEADER.size + _HEADER.unpack_from(header)[1]
        if end > len(data):
            raise ValueError("its end is missing")
        return b"", end
    known = get_frame_parameters(header)
    if not 0 < known.content_size <= MAX_FRAME_SIZE or known.window_size > 2 * MAX_FRAME_SIZE:  # it would be reserved
        raise ValueError("it is too large, or its header is damaged")
    frame = data[place : place + 2 * known.content_size + _ROOM]
    lines = ZstdDecompressor().decompress(frame, allow_extra_data=True)  # no more than the header says, unlike below
    finding_end = ZstdDecompressor().decompressobj()
    finding_end.decompress(frame)
    return lines, place + len(frame) - len(finding_end.unused_data)


# --- after a repair -------------------------------------------------------------------------------------------------


def remove_segments(folder: Path) -> None:
    """Remove all segments of a run folder, whose lines the journal has. What cannot be read in full is kept beside it.

    The last one goes first: what is left is always the beginning of the journal. Something else that has the name of
    their folder is kept, too. Raise OSError if a step fails.
    """
    for path in reversed(list_segments(folder)):
        for form in {path, path.with_name(f"{path.name.removesuffix('.zst')}.zst")}:
            with suppress(FileNotFoundError):
                if _unpacked([form]).damaged:
                    _keep_damaged(form, folder)
                else:
                    form.unlink()
    if _misplaced(folder):
        _keep_damaged(folder / SEGMENTS, folder)


def _keep_damaged(path: Path, folder: Path) -> None:
    """Rename a file to the first free name beside the journal."""
    end = "".join(path.suffixes)
    names = (folder / (DAMAGED_SEGMENTS.replace("*", f"{number:03d}") + end) for number in count(1))
    path.rename(next(name for name in names if not os.path.lexists(name)))
    sync_folder(folder)

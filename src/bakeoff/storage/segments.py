"""The files of a journal: `journal.jsonl`, to which lines are appended, and the segments of a long run before it.

    segments/000001.jsonl.zst    lines that are complete, compressed (`segment_file`)
    segments/000002.jsonl        the same, not compressed yet
    journal.jsonl                the lines after them

`open_journal` reads them as one file, so that readers need not know. When `journal.jsonl` has grown beyond
`SEGMENT_BYTES`, its writer makes it a segment in steps, after each of which the process may be killed:

    1. link journal.jsonl to segments/N.jsonl      readers ignore a segment with the lines of journal.jsonl
    2. rename a new, empty file to journal.jsonl   it is locked before: no other process can write in between
    3. compress N.jsonl, in a thread, and rename the result to N.jsonl.zst      of both, N.jsonl is read
    4. remove N.jsonl

The next writer finishes what a killed one has left.
"""

import errno
import io
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from itertools import accumulate, count
from pathlib import Path
from typing import BinaryIO

from bakeoff._kernel.files import PRIVATE, lock_file, open_file, sync_folder
from bakeoff.errors import RunFolderError
from bakeoff.storage.journal_lines import DAMAGE_NOTE, Totals, count_lines, end_of_lines, line_end, lines_backwards
from bakeoff.storage.segment_file import Segment, compress_segment, open_segment, read_segment

JOURNAL = "journal.jsonl"
SEGMENTS = "segments"
DAMAGED_SEGMENTS = "journal.damaged-*"
"""The segments that could not be read in full, as they were before a repair."""
SEGMENT_BYTES = 16 << 20
"""A longer `journal.jsonl` becomes a segment. One with instant trials has 38,000 of them."""
_NAME = re.compile(r"(\d{6,9})\.jsonl(\.zst)?")
_TRIES = 100  # a writer may replace a file while it is being opened
_BUFFER = 256 << 10
_STEP = 1 << 20
_MAX_FIRST_LENGTH = 1 << 20  # bytes of the first line that are compared


@dataclass(frozen=True, slots=True)
class SegmentName:
    """The file of a segment."""

    number: int
    path: Path

    @property
    def compressed(self) -> bool:
        """Return True if this is the compressed form."""
        return self.path.suffix == ".zst"


def segment_path(folder: Path, number: int, *, compressed: bool = True) -> Path:
    """Return the path of a segment of a run folder."""
    return folder / SEGMENTS / f"{number:06d}.jsonl{'.zst' if compressed else ''}"


def list_segments(folder: Path) -> list[SegmentName]:
    """Return the segments of a run folder in order; of one that is there twice, the plain one."""
    if _misplaced(folder):
        return []
    try:
        paths = sorted((folder / SEGMENTS).iterdir(), reverse=True)  # a compressed one comes before its plain form
    except FileNotFoundError:
        return []
    found = {int(match[1]): path for path in paths if (match := _NAME.fullmatch(path.name))}
    return [SegmentName(number, found[number]) for number in sorted(found)]


def _misplaced(folder: Path) -> bool:
    """Return True if something else has the name of the folder of segments, such as a link to those of another run."""
    try:
        return not stat.S_ISDIR((folder / SEGMENTS).lstat().st_mode)
    except FileNotFoundError:
        return False


class _Part:
    """A file of plain lines: a segment that is not compressed, or `journal.jsonl` itself."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    @property
    def size(self) -> int:
        return os.fstat(self.file.fileno()).st_size

    def read(self, offset: int, most: int) -> bytes:
        """Return at most `most` bytes from this offset on."""
        return os.pread(self.file.fileno(), most, offset)


class _Note(_Part):
    """One line that stands for a segment that cannot be read: now, or because of what it is."""

    def __init__(self, text: str, *, now: bool = False) -> None:
        self.text, self.now = text, now
        self._line = DAMAGE_NOTE + text.encode(errors="replace") + b"\n"
        super().__init__(io.BytesIO(self._line))

    @property
    def size(self) -> int:
        return len(self._line)

    def read(self, offset: int, most: int) -> bytes:
        return self._line[offset : offset + most]


class _CompressedSegment:
    """A compressed segment, which is opened when it is read. The frame that was unpacked last is kept."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.size = segment.size
        self._file: BinaryIO | None = None
        self._kept: tuple[int, bytes] = (-1, b"")

    @property
    def file(self) -> BinaryIO:
        if self._file is None:
            self._file = open_segment(self.segment.path)
        return self._file

    def read(self, offset: int, most: int) -> bytes:
        """Return bytes from this offset on: at most `most`, and none of the next frame."""
        number = self.segment.frame_at(offset)
        if self._kept[0] != number:
            self._kept = number, self.segment.read_frame(self.file, number)
        begin = offset - self.segment.plain[number]
        return self._kept[1][begin : begin + most]

    def close(self) -> None:
        """Close the file and forget the unpacked frame. The next `read` opens it again."""
        if self._file is not None:
            self._file.close()
        self._file, self._kept = None, (-1, b"")


class _JoinedJournal(io.RawIOBase):
    """Several files read as one. The last one may grow."""

    def __init__(self, parts: list[_Part | _CompressedSegment]) -> None:
        self._parts = parts
        self.begins = list(accumulate((part.size for part in parts[:-1]), initial=0))
        self._at = 0
        self._current: _Part | _CompressedSegment = parts[0]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        end = self.begins[-1] + self._parts[-1].size if whence == os.SEEK_END else 0
        self._at = max(0, offset + (end if whence == os.SEEK_END else self._at if whence == os.SEEK_CUR else 0))
        return self._at

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override] # what BufferedReader gives
        number = bisect_right(self.begins, self._at) - 1
        part = self._parts[number]
        if part is not self._current and isinstance(self._current, _CompressedSegment):
            self._current.close()
        self._current = part
        data = part.read(self._at - self.begins[number], len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class OpenJournal(AbstractContextManager["OpenJournal"]):
    """A journal that is open for reading.

    `file` has all its lines. `tail` is `journal.jsonl` alone, whose first byte is byte `begin` of `file`.
    """

    def __init__(self, tail: BinaryIO, parts: list[_Part | _CompressedSegment], files: ExitStack) -> None:
        self.tail = tail
        self._parts, self._files = parts, files
        self.file, self.begin = tail, 0
        if parts:
            joined = _JoinedJournal([*parts, _Part(tail)])
            self.file, self.begin = io.BufferedReader(joined, _BUFFER), joined.begins[-1]

    def __exit__(self, *_: object) -> None:
        for part in self._parts:
            if isinstance(part, _CompressedSegment):
                part.close()
        self._files.close()

    @property
    def size(self) -> int:
        """Return how many bytes the journal has, an incomplete last line included."""
        return self.begin + os.fstat(self.tail.fileno()).st_size

    @property
    def end(self) -> int:
        """Return the offset behind the last complete line."""
        return self.begin + end_of_lines(self.tail.fileno())

    @property
    def unreadable(self) -> list[str]:
        """Return which segments could not be opened, each with the reason. Later, their lines may be read."""
        return [part.text for part in self._parts if isinstance(part, _Note) and part.now]

    def count(self) -> tuple[Totals, int]:
        """Return the totals of all lines, and the number of the last one."""
        self.file.seek(0)
        return count_lines(self.file)

    def lines_with(self, text: bytes) -> Iterator[bytes]:
        """Yield the lines that hold a text, the last one first."""
        return (line for line in lines_backwards(self.file, _STEP) if line is not None and text in line)


def open_journal(path: Path) -> OpenJournal:
    """Open a journal with its segments, whatever its writer does meanwhile. Raise OSError if it cannot be read."""
    for _ in range(_TRIES):
        with ExitStack() as files:
            tail = files.enter_context(open_file(path))
            if path.name == JOURNAL and _misplaced(path.parent):
                return OpenJournal(tail, [_Note(f"{SEGMENTS} is a link or a file, not a folder")], files.pop_all())
            if path.name != JOURNAL or not (names := list_segments(path.parent)):
                return OpenJournal(tail, [], files.pop_all())
            with suppress(FileNotFoundError):  # it was compressed just now
                parts = [_open_part(name, files) for name in names[: len(names) - _repeated(tail, names)]]
                if os.path.samestat(os.fstat(tail.fileno()), path.stat()):
                    return OpenJournal(tail, parts, files.pop_all())
    raise RunFolderError(f"{path} cannot be read: its segments change all the time")


def _open_part(name: SegmentName, files: ExitStack) -> _Part | _CompressedSegment:
    try:
        if name.compressed:
            return _CompressedSegment(read_segment(name.path))
        return _Part(files.enter_context(open_segment(name.path)))
    except FileNotFoundError:
        raise
    except OSError as error:
        return _Note(f"{SEGMENTS}/{name.path.name} cannot be read: {error.strerror}", now=True)
    except RunFolderError as error:
        return _Note(str(error))


def _repeated(tail: BinaryIO, names: list[SegmentName]) -> int:
    """Return how many of the last segments have lines that `journal.jsonl` has too, because a process was killed.

    That is the last one, if it was being made; or all, if a repair had already written them to `journal.jsonl`.
    """
    first = tail.readline(_MAX_FIRST_LENGTH)
    tail.seek(0)
    end = line_end(first)
    if end is not None and end.intact and end.number == 1:
        return len(names)
    if not first or names[-1].compressed:
        return 0
    try:
        with open_segment(names[-1].path) as file:
            return int(file.readline(_MAX_FIRST_LENGTH) == first)
    except FileNotFoundError:
        raise
    except (OSError, RunFolderError):  # reading it reports it
        return 0


# --- writing --------------------------------------------------------------------------------------------------------


def begin_segment(journal: Path) -> int:
    """Make `journal.jsonl` a segment, and return the descriptor of a new one, which is locked.

    The caller holds the lock of the old one, and has synced it. Raise OSError if a step fails; nothing has changed
    then, nor after Ctrl-C.
    """
    folder, old = journal.parent, journal.stat()
    number = max((name.number for name in list_segments(folder)), default=0) + 1
    plain, new = segment_path(folder, number, compressed=False), folder / ".new-journal"
    plain.parent.mkdir(mode=0o700, exist_ok=True)
    if _misplaced(folder):
        raise NotADirectoryError(errno.ENOTDIR, "it is a link", str(plain.parent))
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, PRIVATE)
    try:
        lock_file(descriptor, new)
        os.link(journal, plain)
        sync_folder(plain.parent)
        sync_folder(folder)
        new.replace(journal)
        with suppress(OSError):  # a crash of the machine leaves the old name, which is the same file as the segment
            sync_folder(folder)
    except BaseException:
        _take_back(journal, plain, old)  # before others can lock the new one
        os.close(descriptor)
        new.unlink(missing_ok=True)
        raise
    return descriptor


def _take_back(journal: Path, plain: Path, old: os.stat_result) -> None:
    """Make a segment that was just begun the journal again: its writer goes on with it."""
    with suppress(FileNotFoundError):
        if os.path.samestat(plain.lstat(), old):
            if os.path.samestat(journal.stat(), old):
                plain.unlink()
            else:
                plain.replace(journal)


def finish_segments(names: list[SegmentName]) -> None:
    """Compress the segments that are not yet. Raise OSError if that fails: they stay as they are."""
    for name in names:
        packed = segment_path(name.path.parent.parent, name.number)
        with suppress(FileNotFoundError, RunFolderError):  # it was already done, or is damage, which readers report
            if not name.compressed and compress_segment(name.path, packed):
                name.path.unlink()
                sync_folder(name.path.parent)


def drop_repeated(journal: Path) -> None:
    """Remove what a killed writer or repair has left: segments whose lines are in `journal.jsonl`, and parts of files.

    The caller holds the lock.
    """
    names = list_segments(journal.parent)
    if names:
        with open_file(journal) as tail:
            repeated = _repeated(tail, names)
        _remove(names[len(names) - repeated :])
    parts = [] if _misplaced(journal.parent) else (journal.parent / SEGMENTS).glob(".new-*")
    for part in (*parts, journal.parent / ".new-journal"):
        part.unlink(missing_ok=True)


def remove_segments(folder: Path) -> None:
    """Remove all segments of a run folder, whose lines the journal has. What cannot be read in full is kept beside it.

    Nothing is removed if something else has the name of their folder: that is kept, too. Raise OSError if a step fails.
    """
    _remove(list_segments(folder))
    if _misplaced(folder):
        _keep_damaged(folder / SEGMENTS, folder)


def _remove(names: list[SegmentName]) -> None:
    """Remove segments in both forms, the last one first: what is left is always the beginning of the journal.

    Those that cannot be read in full are kept beside the journal. Raise OSError if that cannot be found out.
    """
    for name in reversed(names):
        for path in {name.path, segment_path(name.path.parent.parent, name.number)}:
            with suppress(FileNotFoundError):
                whole = False
                with suppress(RunFolderError):
                    open_segment(path).close()
                    whole = path.suffix != ".zst" or not read_segment(path).damaged()
                if whole:
                    path.unlink()
                else:
                    _keep_damaged(path, path.parent.parent)


def _keep_damaged(path: Path, folder: Path) -> None:
    """Rename a file to the first free name beside the journal."""
    end = "".join(path.suffixes)
    names = (folder / (DAMAGED_SEGMENTS.replace("*", f"{number:03d}") + end) for number in count(1))
    path.rename(next(name for name in names if not os.path.lexists(name)))
    sync_folder(folder)

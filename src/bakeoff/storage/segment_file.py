"""One compressed segment of a journal: a file that `zstd -d` reads, with an index at its end.

    frame …     whole lines, about 112 kB of them in each zstd frame
    index       a skippable frame: 4 bytes for each record, 12 for each frame, then the totals

The index is derived from the frames. One that is damaged is not used: the frames are found by walking through their
headers instead. Files may be made by others: no frame of more than 1 MB is unpacked, and no segment whose lines would
take more than `MAX_RATIO` times its size. A frame that cannot be unpacked is read as one line that says so.
"""

import os
import re
import stat
import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

from bakeoff._kernel.files import PRIVATE, in_megabytes, open_file, sync_folder
from bakeoff.errors import RunFolderError
from bakeoff.storage.journal_lines import DAMAGE_NOTE, Totals, count_lines

FRAME_BYTES = 112 << 10  # and the rest of a line: beyond 128 kB, zstd compresses records less well
MAX_FRAME_SIZE = 1 << 20
MAX_SEGMENT_SIZE = 1 << 30
"""A larger plain segment, which only a journal of an older version can be, is not compressed."""
MAX_RATIO = 256
"""Segments that zstd makes smaller than by this factor stay plain; such a file is refused."""
_LEVEL = 3  # on records: 5.4 times smaller at 330 MB/s; higher levels save nothing and take three times as long
# Also matches such a name in the data of a subject: one hash too many, which costs a lookup a frame.
_KEY = re.compile(rb'"attempt_key":("[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")')
_SKIPPABLE = 0x184D2A5B
_FRAME_MAGIC = b"\x28\xb5\x2f\xfd"
_HEADER = struct.Struct("<II")  # of a skippable frame: its magic number and size
_ROW = struct.Struct("<III")  # of a frame: its size in the file, its size unpacked, how many records begin in it
_FACTS = struct.Struct("<QIQII")  # lines, their sum, the last number, frames, checksum of the hashes of keys
_END = struct.Struct("<I8s")  # checksum of rows and facts, magic
_KEY_HASH = struct.Struct("<I")
_MAGIC = b"bakeoff1"
_MAX_HEADER_LENGTH = 18
_MAX_BLOCKS = 4096  # of a frame
_MAX_GAPS = 1000  # between frames of a file without an index; the rest is one gap
_NOTE_BYTES = 200  # room for the sentence that stands for a gap
_SEARCHED = 1 << 20
_RLE = 1  # a block of one byte, repeated


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """How many lines a segment has with the sum of their checksums, and the number of the last one."""

    totals: Totals
    number: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Where the frames of a segment lie, in its file and among its plain bytes."""

    path: Path
    places: "array[int]"  # in the file: where each frame begins, then where the last one ends
    plain: "array[int]"  # unpacked: the same
    counted: RecordCounts | None = None  # None without an index
    keys: tuple[int, int, int] | None = None  # offset, size and checksum of the hashes of keys
    records: tuple[int, ...] = ()  # how many records begin in each frame

    @property
    def size(self) -> int:
        return self.plain[-1]

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"

    def frame_at(self, offset: int) -> int:
        """Return the number of the frame that holds a plain byte."""
        return bisect_right(self.plain, offset) - 1

    def read_frame(self, file: BinaryIO, number: int) -> bytes:
        """Unpack a frame. For one that is damaged, return a line of the same length that says so."""
        begin, end = self.places[number], self.places[number + 1]
        size = self.plain[number + 1] - self.plain[number]
        try:
            return _unpacked(os.pread(file.fileno(), end - begin, begin), size)
        except _errors() as error:
            return _note(f"{self.name}: frame {number + 1} of {len(self.records)} cannot be unpacked: {error}", size)

    def unpack(self) -> bytes:
        """Return all lines."""
        with open_segment(self.path) as file:
            return b"".join(self.read_frame(file, number) for number in self._frames())

    def damaged(self) -> bool:
        """Tell whether a frame cannot be unpacked. All are tried."""
        with open_segment(self.path) as file:
            return any(self.read_frame(file, number).startswith(DAMAGE_NOTE) for number in self._frames())

    def _frames(self) -> Iterator[int]:
        """Yield the numbers of the frames that hold lines."""
        return (number for number in range(len(self.places) - 1) if self.plain[number] < self.plain[number + 1])

    def frames_with(self, file: BinaryIO, key: bytes) -> list[int] | None:
        """Return the frames that may hold records of an attempt key, which is given as JSON; the last one first.

        Return None without an index. Hashes of two keys may be equal: the records tell.
        """
        if self.keys is None:
            return None
        offset, size, checksum = self.keys
        data = os.pread(file.fileno(), size, offset)
        if len(data) != size or crc32(data) != checksum:
            return None
        wanted, found = _KEY_HASH.pack(crc32(key)), set()
        ends = list(accumulate(self.records))
        at = data.find(wanted)
        while at >= 0:
            if at % _KEY_HASH.size == 0:
                found.add(bisect_right(ends, at // _KEY_HASH.size))
            at = data.find(wanted, at + 1)
        return sorted(found, reverse=True)


def _errors() -> tuple[type[Exception], ...]:
    from zstandard import ZstdError

    return (ZstdError, ValueError, MemoryError)


def _unpacked(data: bytes, size: int) -> bytes:
    from zstandard import ZstdDecompressor, get_frame_parameters

    if not 0 < size <= MAX_FRAME_SIZE:
        raise ValueError(f"it is larger than {in_megabytes(MAX_FRAME_SIZE)}")
    known = get_frame_parameters(data)
    if known.content_size != size or known.window_size > 2 * MAX_FRAME_SIZE:  # unpacking reserves what these say
        raise ValueError("its header does not fit the index")
    return ZstdDecompressor().decompress(data, allow_extra_data=False)


def _note(text: str, size: int) -> bytes:
    return (DAMAGE_NOTE + text.encode(errors="replace")[: size - 2]).ljust(size - 1)[: size - 1] + b"\n"


# --- writing --------------------------------------------------------------------------------------------------------


def compress_segment(
    plain: Path, into: Path, counted: RecordCounts | None = None, frame_bytes: int = FRAME_BYTES
) -> bool:
    """Compress a plain segment, durably and completely or not at all. Return False if it has to stay plain.

    Its lines are counted, unless the caller knows.
    """
    temporary = into.with_name(f".new-{into.name}")
    with open_segment(plain) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_SEGMENT_SIZE:
            return False
        try:
            fits = size <= MAX_RATIO * _write_segment(file, temporary, counted, frame_bytes)
            if fits:
                temporary.replace(into)
                sync_folder(into.parent)
        finally:
            temporary.unlink(missing_ok=True)
    return fits


def _write_segment(plain: BinaryIO, path: Path, counted: RecordCounts | None, frame_bytes: int) -> int:
    """Write a segment durably, and return its size."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE)
    with os.fdopen(descriptor, "wb") as into:
        table, keys = _write_frames(plain, into, frame_bytes)
        if counted is None:
            plain.seek(0)
            counted = RecordCounts(*count_lines(plain))
        into.write(make_index(table, keys, counted))
        into.flush()
        os.fsync(descriptor)
        return into.tell()


def _write_frames(file: BinaryIO, into: BinaryIO, frame_bytes: int) -> tuple[bytes, bytes]:
    """Write the frames, and return their rows and the hashes of their keys."""
    from zstandard import ZstdCompressor

    compressor = ZstdCompressor(level=_LEVEL, write_checksum=True)
    table, keys = bytearray(), bytearray()
    for data in _frames(file, frame_bytes):
        frame, found = compressor.compress(data), [_KEY_HASH.pack(crc32(key)) for key in _KEY.findall(data)]
        into.write(frame)
        table += _ROW.pack(len(frame), len(data), len(found))
        keys += b"".join(found)
    return bytes(table), bytes(keys)


def make_index(table: bytes, keys: bytes, counted: RecordCounts) -> bytes:
    """Return the index of a segment, from the rows of its frames and the hashes of its keys."""
    totals = counted.totals
    facts = _FACTS.pack(totals.lines, totals.sum, counted.number, len(table) // _ROW.size, crc32(keys))
    header = _HEADER.pack(_SKIPPABLE, len(keys) + len(table) + len(facts) + _END.size)
    return header + keys + table + facts + _END.pack(crc32(table + facts), _MAGIC)


def _frames(file: BinaryIO, frame_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a file, about as many at a time as a frame has. Lines beyond 1 MB are cut into several."""
    while data := file.read(frame_bytes):
        yield data if data.endswith(b"\n") else data + file.readline(MAX_FRAME_SIZE - len(data))


# --- reading --------------------------------------------------------------------------------------------------------


def open_segment(path: Path) -> BinaryIO:
    """Open the file of a segment. Raise OSError if it cannot be read, and RunFolderError if it is none of ours.

    No run has a link there: one may lead to the segment of another run.
    """
    if not stat.S_ISREG(path.lstat().st_mode):
        raise RunFolderError(f"{path.parent.name}/{path.name} is a link, a folder or a device: it is not read")
    return open_file(path)


def read_segment(path: Path) -> Segment:
    """Find the frames of a compressed segment: by its index or, if that is damaged, by their headers.

    Raise OSError if the file cannot be read, and RunFolderError if it would take too much room, or is no file.
    """
    with open_segment(path) as file:
        size = os.fstat(file.fileno()).st_size
        segment = _from_index(path, file, size) or _from_headers(path, file, size)
    if segment.size <= max(MAX_RATIO * size, _SEARCHED):
        return segment
    raise RunFolderError(f"{segment.name} would unpack to more than {MAX_RATIO} times its size: it is not read")


def _from_index(path: Path, file: BinaryIO, size: int) -> Segment | None:
    """Return the segment as its index describes it. Return None if the index does not fit the file."""
    length = _FACTS.size + _END.size
    last = os.pread(file.fileno(), length, max(0, size - length))
    if len(last) != length or not last.endswith(_MAGIC):
        return None
    lines, sum_, number, frames, keys_checksum = _FACTS.unpack_from(last)
    begin = size - length - frames * _ROW.size
    if begin < _HEADER.size:
        return None
    table = os.pread(file.fileno(), frames * _ROW.size, begin)
    if crc32(table + last[: _FACTS.size]) != _END.unpack_from(last, _FACTS.size)[0]:
        return None
    packed, plain, records = zip(*_ROW.iter_unpack(table), strict=True) if frames else ((), (), ())
    keys = begin - _KEY_HASH.size * sum(records)
    if sum(packed) != keys - _HEADER.size or max(plain, default=0) > MAX_FRAME_SIZE or min(plain, default=1) < 1:
        return None
    counted = RecordCounts(Totals(lines, sum_), number)
    return Segment(path, _sums(packed), _sums(plain), counted, (keys, begin - keys, keys_checksum), records)


def _sums(sizes: Any) -> "array[int]":
    return array("Q", accumulate(sizes, initial=0))


def _from_headers(path: Path, file: BinaryIO, size: int) -> Segment:
    """Find the frames without an index. What lies between them counts as a frame that cannot be unpacked."""
    packed, plain = array("Q"), array("Q")
    place = gaps = 0
    while place < size:
        found = _walk_frame(file.fileno(), place, size) if gaps < _MAX_GAPS else None
        if found is None:
            gaps += 1
            found = (_next_frame(file.fileno(), place + 1, size) if gaps < _MAX_GAPS else size) - place, _NOTE_BYTES
        packed.append(found[0])
        plain.append(found[1])
        place += found[0]
    return Segment(path, _sums(packed), _sums(plain), records=(0,) * len(packed))


def _walk_frame(descriptor: int, place: int, size: int) -> tuple[int, int] | None:
    """Return the size of the frame at a place, and that of its content: 0 for an index. Return None if it is none."""
    from zstandard import ZstdError, frame_header_size, get_frame_parameters

    header = os.pread(descriptor, _MAX_HEADER_LENGTH, place)
    if len(header) >= _HEADER.size and _HEADER.unpack_from(header)[0] & ~0xF == _SKIPPABLE & ~0xF:
        end = place + _HEADER.size + _HEADER.unpack_from(header)[1]
        return (end - place, 0) if end <= size else None
    try:
        known, at = get_frame_parameters(header), place + frame_header_size(header)
    except (ZstdError, ValueError):
        return None
    for _ in range(_MAX_BLOCKS if 0 < known.content_size <= MAX_FRAME_SIZE else 0):
        block = int.from_bytes(os.pread(descriptor, 3, at), "little")
        at += 3 + (1 if block >> 1 & 3 == _RLE else block >> 3)
        if at > size:
            return None
        if block & 1:
            at += 4 if known.has_checksum else 0
            return (at - place, known.content_size) if at <= size else None
    return None


def _next_frame(descriptor: int, place: int, size: int) -> int:
    """Return where the next frame seems to begin, or the end of the file."""
    while place < size:
        at = os.pread(descriptor, _SEARCHED, place).find(_FRAME_MAGIC)
        if at >= 0:
            return place + at
        place += _SEARCHED - len(_FRAME_MAGIC) + 1
    return size

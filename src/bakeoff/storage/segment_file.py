"""One compressed segment of a journal: zstd frames one after another, each with about 112 kB of lines.

`zstd -d` reads such a file. The headers of the frames say where each begins and how long it is unpacked, so that any
part is read by itself. Files may be made by others: no frame of more than 1 MB is unpacked, and no segment whose lines
would take more than `MAX_RATIO` times its size. A frame that cannot be unpacked is read as one line that says so.
Segments of older versions end with an index in a skippable frame, which is skipped.
"""

import os
import stat
import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from bakeoff._kernel.files import PRIVATE, in_megabytes, open_file, sync_folder
from bakeoff.errors import RunFolderError
from bakeoff.storage.journal_lines import DAMAGE_NOTE

FRAME_BYTES = 112 << 10  # and the rest of a line: beyond 128 kB, zstd compresses records less well
MAX_FRAME_SIZE = 1 << 20
MAX_SEGMENT_SIZE = 1 << 30
"""A larger plain segment, which only a journal of an older version can be, is not compressed."""
MAX_RATIO = 256
"""Segments that zstd makes smaller than by this factor stay plain; such a file is refused."""
_LEVEL = 3  # on records: 5.4 times smaller at 330 MB/s; higher levels save nothing and take three times as long
_SKIPPABLE = 0x184D2A50  # and the 15 numbers after it
_FRAME_MAGIC = b"\x28\xb5\x2f\xfd"
_HEADER = struct.Struct("<II")  # of a skippable frame: its magic number and size
_MAX_HEADER_LENGTH = 18
_MAX_BLOCKS = 4096  # of a frame
_MAX_GAPS = 1000  # between frames; the rest is one gap
_NOTE_BYTES = 200  # room for the sentence that stands for a gap
_SEARCHED = 1 << 20
_RLE = 1  # a block of one byte, repeated


@dataclass(frozen=True, slots=True)
class Segment:
    """The places of the frames of a segment, in its file and among its plain bytes."""

    path: Path
    places: "array[int]"  # in the file: where each frame begins, then where the last one ends
    plain: "array[int]"  # unpacked: the same

    @property
    def size(self) -> int:
        """Return how many bytes the lines have when they are unpacked."""
        return self.plain[-1]

    @property
    def name(self) -> str:
        """Return the path within the run folder, for messages."""
        return f"{self.path.parent.name}/{self.path.name}"

    def frame_at(self, offset: int) -> int:
        """Return the number of the frame that holds a plain byte."""
        return bisect_right(self.plain, offset) - 1

    def read_frame(self, file: BinaryIO, number: int) -> bytes:
        """Unpack a frame. For one that is damaged, return a line of the same length that says so."""
        begin, end = self.places[number], self.places[number + 1]
        size = self.plain[number + 1] - self.plain[number]
        from zstandard import ZstdDecompressor, ZstdError, get_frame_parameters

        try:
            if not 0 < size <= MAX_FRAME_SIZE:
                raise ValueError(f"it is larger than {in_megabytes(MAX_FRAME_SIZE)}")
            data = os.pread(file.fileno(), end - begin, begin)
            known = get_frame_parameters(data)
            if known.content_size != size or known.window_size > 2 * MAX_FRAME_SIZE:  # unpacking reserves as much
                raise ValueError("its header is damaged")
            return ZstdDecompressor().decompress(data, allow_extra_data=False)
        except (ZstdError, ValueError, MemoryError) as error:
            why = f"{self.name}: frame {number + 1} of {len(self.places) - 1} cannot be unpacked: {error}"
            return (DAMAGE_NOTE + why.encode(errors="replace")[: size - 2]).ljust(size - 1)[: size - 1] + b"\n"

    def unpack(self) -> bytes:
        """Return all lines."""
        with open_segment(self.path) as file:
            return b"".join(self.read_frame(file, number) for number in self._frames())

    def damaged(self) -> bool:
        """Return True if a frame cannot be unpacked. All are tried."""
        with open_segment(self.path) as file:
            return any(self.read_frame(file, number).startswith(DAMAGE_NOTE) for number in self._frames())

    def _frames(self) -> Iterator[int]:
        """Yield the numbers of the frames that hold lines."""
        return (number for number in range(len(self.places) - 1) if self.plain[number] < self.plain[number + 1])


# --- writing --------------------------------------------------------------------------------------------------------


def compress_segment(plain: Path, into: Path, frame_bytes: int = FRAME_BYTES) -> bool:
    """Compress a plain segment, durably and completely or not at all. Return False if it has to stay plain."""
    from zstandard import ZstdCompressor

    compressor = ZstdCompressor(level=_LEVEL, write_checksum=True)
    temporary = into.with_name(f".new-{into.name}")
    with open_segment(plain) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_SEGMENT_SIZE:
            return False
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE)
            with os.fdopen(descriptor, "wb") as packed:
                for data in _frames(file, frame_bytes):
                    packed.write(compressor.compress(data))
                packed.flush()
                os.fsync(descriptor)
                fits = size <= MAX_RATIO * packed.tell()
            if fits:
                temporary.replace(into)
                sync_folder(into.parent)
        finally:
            temporary.unlink(missing_ok=True)
    return fits


def _frames(file: BinaryIO, frame_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a file, about as many at a time as a frame has. Lines beyond 1 MB are cut into several."""
    while data := file.read(frame_bytes):
        yield data if data.endswith(b"\n") else data + file.readline(MAX_FRAME_SIZE - len(data))


# --- reading --------------------------------------------------------------------------------------------------------


def open_segment(path: Path) -> BinaryIO:
    """Open the file of a segment. Raise OSError if it cannot be read, and RunFolderError if it is not a segment.

    No run has a link there: one may lead to the segment of another run.
    """
    if not stat.S_ISREG(path.lstat().st_mode):
        raise RunFolderError(f"{path.parent.name}/{path.name} is a link, a folder or a device: it is not read")
    return open_file(path)


def read_segment(path: Path) -> Segment:
    """Find the frames of a compressed segment by their headers.

    Raise OSError if the file cannot be read, and RunFolderError if it would take too much room, or is no file.
    """
    about = path.lstat()
    segment = _read_headers(path, (about.st_ino, about.st_size, about.st_mtime_ns))
    if segment.size <= max(MAX_RATIO * about.st_size, _SEARCHED):
        return segment
    raise RunFolderError(f"{segment.name} would unpack to more than {MAX_RATIO} times its size: it is not read")


@lru_cache(maxsize=256)
def _read_headers(path: Path, about: tuple[int, int, int]) -> Segment:
    """Find the frames of a file, which `about` identifies. What lies between them is read as a damaged frame."""
    size = about[1]
    places, plain = array("Q", [0]), array("Q", [0])
    gaps = 0
    with open_segment(path) as file:
        while (place := places[-1]) < size:
            found = _walk_frame(file.fileno(), place, size) if gaps < _MAX_GAPS else None
            if found is None:
                gaps += 1
                end = _next_frame(file.fileno(), place + 1, size) if gaps < _MAX_GAPS else size
                found = end - place, _NOTE_BYTES
            places.append(place + found[0])
            plain.append(plain[-1] + found[1])
    return Segment(path, places, plain)


def _walk_frame(descriptor: int, place: int, size: int) -> tuple[int, int] | None:
    """Return the size of the frame at a place, and that of its content. Return None if there is no frame."""
    from zstandard import ZstdError, frame_header_size, get_frame_parameters

    header = os.pread(descriptor, _MAX_HEADER_LENGTH, place)
    if len(header) >= _HEADER.size and _HEADER.unpack_from(header)[0] & ~0xF == _SKIPPABLE:
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

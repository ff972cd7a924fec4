"""Keep pictures of answers in a run folder, or the reasons why there are none.

Pictures are added after grading and are not part of records. Since run folders are shared,
everything is checked again on reading.
"""

import struct
import zlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bakeoff._kernel.files import open_file, write_atomically
from bakeoff._kernel.model import fingerprint
from bakeoff.plan import Case
from bakeoff.storage.run_folder import RunFolder

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {2: 3, 6: 4}  # colour types: RGB and RGBA
_PLAIN = (8, 0, 0, 0)  # bits of a channel, compression, filter method, interlace
_FILTERS = 5


class BadPictureError(ValueError):
    """Raised for data that is too large, or not a PNG as browsers write it."""


def encode_again(data: bytes, *, width: int, height: int) -> bytes:
    """Decode a PNG and encode its pixels again, without any other data.

    Raise `BadPictureError` for other formats, and for pictures larger than `width` × `height`.
    """
    header, packed = _parts(data)
    wide, high, bits, colour, *method = struct.unpack(">IIBBBBB", header)
    if (bits, *method) != _PLAIN or colour not in _CHANNELS:
        raise BadPictureError("it is not a plain PNG with 8 bits for each colour")
    if not (0 < wide <= width and 0 < high <= height):
        raise BadPictureError(f"it has {wide} × {high} pixels; at most {width} × {height} are allowed")
    line = 1 + wide * _CHANNELS[colour]  # each line begins with a filter number
    unpacking = zlib.decompressobj()
    try:
        rows = unpacking.decompress(packed, line * high + 1)  # limits memory
    except zlib.error as error:
        raise BadPictureError(f"its pixels cannot be read: {error}") from error
    if len(rows) != line * high or not unpacking.eof:
        raise BadPictureError("it has more or fewer pixels than its header says")
    if any(number >= _FILTERS for number in islice(rows, 0, None, line)):
        raise BadPictureError("a row has an unknown filter")
    return b"".join(
        (_SIGNATURE, _chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(rows, 9)), _chunk(b"IEND", b""))
    )


def _parts(data: bytes) -> tuple[bytes, bytes]:
    """Return the header and the compressed pixels."""
    if not data.startswith(_SIGNATURE):
        raise BadPictureError("it is not a PNG")
    header, packed, at = b"", [], len(_SIGNATURE)
    while at + 12 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        content = data[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            header = content
        elif kind == b"IDAT":
            packed.append(content)
        at += 12 + size
    if len(header) != 13:
        raise BadPictureError("its header is missing")
    return header, b"".join(packed)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


WIDTH, HEIGHT = 480, 800
"""The largest picture, in pixels."""
MAX_BYTES = 1_000_000
_MAX_LENGTH = 1000  # characters of a problem
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG, or the reason why there is none."""

    png: bytes = b""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Pictures:
    """The pictures of one run."""

    folder: Path

    @classmethod
    def of(cls, run: RunFolder) -> "Pictures":
        """Return the pictures of a run, if any."""
        return cls(run.pictures)

    def write(self, key: str, picture: Picture) -> None:
        """Store a picture, or the reason why there is none. A picture replaces a reason."""
        if picture.problem:
            write_atomically(self._path(key, "txt"), picture.problem[:_MAX_LENGTH].encode(errors="replace"))
        else:
            write_atomically(self._path(key, "png"), picture.png)
            self._path(key, "txt").unlink(missing_ok=True)

    def has(self, key: str) -> bool:
        """Return True if there is a picture, or a reason for its absence."""
        return self.shows(key) or self._path(key, "txt").exists()

    def shows(self, key: str) -> bool:
        """Return True if there is a picture."""
        return self._path(key, "png").exists()

    def read(self, key: str) -> Picture | None:
        """Return an answer's picture, or the reason for its absence; None if neither exists."""
        if (text := _start_of(self._path(key, "txt"), 4 * _MAX_LENGTH)) is not None:
            return Picture(problem=text.decode(errors="replace")[:_MAX_LENGTH])
        if (data := _start_of(self._path(key, "png"), MAX_BYTES + 1)) is None:
            return None
        try:
            return Picture(png=encode_again(data, width=WIDTH, height=HEIGHT))
        except BadPictureError as error:
            return Picture(problem=f"the picture in the run folder is not shown: {error}")

    def _path(self, key: str, ending: str) -> Path:
        return self.folder / f"{key}.{ending}"


def picture_key(case: Case, answer: str) -> str:
    """Return the key of an answer's picture. Equal answers to a case share a picture."""
    return fingerprint(_FORMAT, case.score_digest, case.picture, answer)


def _start_of(path: Path, size: int) -> bytes | None:
    try:
        with open_file(path) as file:
            return file.read(size)
    except OSError:
        return None

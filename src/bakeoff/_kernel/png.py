"""Check pictures that untrusted programs made, and encode them again: only their pixels are kept."""

import struct
import zlib
from itertools import islice

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {2: 3, 6: 4}  # colour types: RGB and RGBA
_PLAIN = (8, 0, 0, 0)  # bits of a channel, compression, filter method, interlace
_FILTERS = 5


class BadPictureError(ValueError):
    """Data that is no PNG of the kind that browsers write, or one that is too large."""


def encode_again(data: bytes, *, width: int, height: int) -> bytes:
    """Return the same pixels as a PNG of ours, without any other part of the data.

    Raise `BadPictureError` for other formats, and for pictures larger than `width` × `height`.
    """
    header, packed = _parts(data)
    wide, high, bits, colour, *method = struct.unpack(">IIBBBBB", header)
    if (bits, *method) != _PLAIN or colour not in _CHANNELS:
        raise BadPictureError("it is not a plain PNG with 8 bits for each colour")
    if not (0 < wide <= width and 0 < high <= height):
        raise BadPictureError(f"it has {wide} × {high} pixels; at most {width} × {height} are allowed")
    line = 1 + wide * _CHANNELS[colour]  # each begins with the number of its filter
    rows = _unpacked(packed, line * high)
    if any(number >= _FILTERS for number in islice(rows, 0, None, line)):
        raise BadPictureError("a row has an unknown filter")
    return b"".join(
        (_SIGNATURE, _chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(rows, 9)), _chunk(b"IEND", b""))
    )


def _parts(data: bytes) -> tuple[bytes, bytes]:
    """Return the header and the packed pixels."""
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


def _unpacked(packed: bytes, size: int) -> bytes:
    """Return exactly that many bytes; never more are unpacked."""
    unpacking = zlib.decompressobj()
    try:
        rows = unpacking.decompress(packed, size + 1)
    except zlib.error as error:
        raise BadPictureError(f"its pixels cannot be read: {error}") from error
    if len(rows) != size or not unpacking.eof:
        raise BadPictureError("it has more or fewer pixels than its header says")
    return rows


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

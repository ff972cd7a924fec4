"""Pictures of untrusted programs: only their pixels are kept."""

import struct
import zlib

import pytest

from bakeoff.storage.pictures import BadPictureError, encode_again

SIGNATURE = b"\x89PNG\r\n\x1a\n"
LIMITS = {"width": 4, "height": 4}


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(rows: bytes, *more: bytes, width: int = 2, height: int = 2, bits: int = 8, colour: int = 2) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return b"".join(
        (SIGNATURE, chunk(b"IHDR", header), *more, chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    )


ROW = b"\x00" + b"\x10\x20\x30" * 2


def test_the_pixels_are_kept_and_everything_else_is_left_out() -> None:
    made = encode_again(png(2 * ROW, chunk(b"tEXt", b"Comment\x00<script>")), **LIMITS)
    assert made == encode_again(png(2 * ROW), **LIMITS)
    assert b"script" not in made
    assert zlib.decompress(made[made.index(b"IDAT") + 4 : -16]) == 2 * ROW


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"<svg onload='alert(1)'/>", "not a PNG", id="markup"),
        pytest.param(SIGNATURE, "header is missing", id="nothing"),
        pytest.param(png(2 * ROW, bits=16), "plain PNG", id="16 bits"),
        pytest.param(png(2 * ROW, colour=3), "plain PNG", id="palette"),
        pytest.param(png(2 * ROW, width=5), "at most 4 × 4", id="wide"),
        pytest.param(png(2 * ROW, height=0), "at most 4 × 4", id="no height"),
        pytest.param(png(ROW), "more or fewer pixels", id="too few"),
        pytest.param(png(bytes(10_000_000)), "more or fewer pixels", id="a bomb"),
        pytest.param(png(2 * (b"\x09" + ROW[1:])), "unknown filter", id="filter"),
        pytest.param(png(2 * ROW).replace(b"IDAT\x78", b"IDAT\x00"), "cannot be read", id="no zlib"),
        pytest.param(png(2 * ROW)[:-20], "more or fewer pixels", id="cut"),
    ],
)
def test_what_is_no_plain_picture_of_that_size_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(BadPictureError, match=why):
        encode_again(data, **LIMITS)

"""Pictures in a run folder: written once for each answer, and checked again when they are read."""

import os
import struct
import zlib
from pathlib import Path

from bakeoff.plan import Case
from bakeoff.storage.pictures import Picture, Pictures, picture_key


def small_png() -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00\x10\x20\x30", 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def test_a_picture_is_read_as_it_was_written(tmp_path: Path) -> None:
    pictures = Pictures(tmp_path / "pictures")
    assert not pictures.has("a")
    assert pictures.read("a") is None
    pictures.write("a", Picture(png=small_png()))
    assert pictures.read("a") == Picture(png=small_png())


def test_a_problem_stands_until_there_is_a_picture(tmp_path: Path) -> None:
    pictures = Pictures(tmp_path)
    pictures.write("a", Picture(problem="it threw an error"))
    assert pictures.has("a")
    assert not pictures.shows("a")
    assert pictures.read("a") == Picture(problem="it threw an error")
    pictures.write("a", Picture(png=small_png()))
    assert pictures.read("a") == Picture(png=small_png())


def test_what_someone_else_put_there_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"<svg onload='alert(1)'/>")
    os.mkfifo(tmp_path / "b.png")
    found = Pictures(tmp_path).read("a")
    assert found is not None
    assert found.problem == "the picture in the run folder is not shown: it is not a PNG"
    assert Pictures(tmp_path).read("b") is None  # and does not wait for the pipe


def test_the_same_answer_to_the_same_case_has_one_picture() -> None:
    case = Case(id="c", prompt="p")
    other = Case(id="c", prompt="p", picture={"picture.ts": "export default { a: 1 };"})
    assert picture_key(case, "x") == picture_key(case, "x")
    assert len({picture_key(case, "x"), picture_key(case, "y"), picture_key(other, "x")}) == 3
    assert (case.attempt_digest, case.score_digest) == (other.attempt_digest, other.score_digest)

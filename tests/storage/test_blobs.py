"""Large texts, stored once."""

from pathlib import Path

from bakeoff.storage.blobs import Blobs


def test_a_blob_is_written_once(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    digest = blobs.write("é".encode())
    before = blobs.path(digest).stat()
    assert blobs.write("é".encode()) == digest
    assert blobs.path(digest).stat().st_mtime_ns == before.st_mtime_ns
    assert blobs.read(digest) == "é"


def test_a_damaged_blob_is_repaired_when_its_text_is_written_again(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    digest = blobs.write(b"hello")
    blobs.path(digest).write_bytes(b"hellooo")
    assert blobs.write(b"hello") == digest
    assert blobs.read(digest) == "hello"

"""Journals with segments in an object store: uploaded in plain pieces. Segments of older versions are fetched."""

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import zstandard

from bakeoff.errors import RunFolderError
from bakeoff.storage.object_store import ObjectStore
from bakeoff.storage.run_folder import RunFolder
from bakeoff.storage.segments import SEGMENTS, open_journal
from bakeoff.storage.store_copy import MAX_PIECE_SIZE, JournalPiece, fetch_files, fetch_run, journal_pieces, sizes_of
from bakeoff.storage.store_upload import RunUpload, upload_run

from .damage import make_run
from .s3_server import s3_server
from .segmented import SMALL


@dataclass(frozen=True)
class MeetingStore(ObjectStore):
    """Hold a reader of a segment for a moment, so that another one can read the same, and count those that meet."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(2))
    met: list[str] = field(default_factory=list)

    def read(self, key: str) -> bytes | None:
        data = super().read(key)
        with suppress(threading.BrokenBarrierError):
            if key.endswith(".zst"):
                self.barrier.wait(0.5)
                self.met.append(key)
        return data


@dataclass(frozen=True)
class RefusingStore(ObjectStore):
    """Refuse a piece of the journal once, as a journal does that cannot be opened."""

    refuse: threading.Event = field(default_factory=threading.Event)
    refused: threading.Event = field(default_factory=threading.Event)
    written: threading.Event = field(default_factory=threading.Event)

    def write(self, key: str, data: bytes) -> None:
        if "/journal/" in key and self.refuse.is_set():
            self.refuse.clear()
            self.refused.set()
            raise RunFolderError("the journal cannot be read: its segments change all the time")
        super().write(key, data)
        if "/journal/" in key and self.refused.is_set():
            self.written.set()


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    with s3_server("bucket") as environment:
        yield environment


@pytest.fixture
def store(server: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ObjectStore:
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    return ObjectStore(f"s3://bucket/{tmp_path.name}")


def pieces_of(store: ObjectStore) -> list[JournalPiece]:
    return journal_pieces(sizes_of(store, "runs/run"))


def plain_journal(folder: RunFolder) -> bytes:
    with open_journal(folder.journal_file) as journal:
        return journal.file.read()


def unpacked(segment: Path) -> bytes:
    with segment.open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()


def upload_segments(store: ObjectStore, run: RunFolder) -> None:
    """Upload a run as older versions did: each segment as it is, and the rest of the journal as a piece."""
    begin = 0
    for file in run.segment_files:
        piece = JournalPiece(begin, 1, len(unpacked(file)), segment=True)
        store.write(f"runs/run/{piece.name}", file.read_bytes())
        begin = piece.end
    store.write(f"runs/run/{JournalPiece(begin, 1, 0).name}", run.journal_file.read_bytes())
    store.write("runs/run/plan.json", run.plan_file.read_bytes())


def test_a_journal_with_segments_is_uploaded_once_and_fetched_whole(store: ObjectStore, tmp_path: Path) -> None:
    run = make_run(tmp_path / "here/runs/run", SMALL)
    assert len(run.segment_files) > 3
    upload_run(store, run.path)
    [piece] = pieces_of(store)
    assert piece == JournalPiece(0, 1, len(plain_journal(run)))
    upload_run(store, run.path)
    assert pieces_of(store) == [piece]
    assert fetch_run(store, tmp_path / "there", "run")
    assert list(RunFolder(tmp_path / "there/runs/run").entries()) == list(run.entries())


def test_a_copy_that_is_behind_catches_up_with_a_segment(store: ObjectStore, tmp_path: Path) -> None:
    run = make_run(tmp_path / "here/runs/run", SMALL)
    upload_segments(store, run)
    behind = tmp_path / "there/runs/run"
    shutil.copytree(run.path, behind, ignore=shutil.ignore_patterns(SEGMENTS))
    data = plain_journal(run)
    (behind / "journal.jsonl").write_bytes(data[:1000])
    assert fetch_run(store, tmp_path / "there", "run")
    assert plain_journal(RunFolder(behind)) == data
    with (behind / "journal.jsonl").open("ab") as file:
        file.write(b"more\n")
    upload_run(store, behind)
    assert fetch_run(store, tmp_path / "elsewhere", "run")
    assert plain_journal(RunFolder(tmp_path / "elsewhere/runs/run")) == data + b"more\n"


def test_readers_at_the_same_time_fetch_a_run_one_after_the_other(store: ObjectStore, tmp_path: Path) -> None:
    run = make_run(tmp_path / "here/runs/run", SMALL)
    upload_segments(store, run)
    meeting, there = MeetingStore(store.address), tmp_path / "there"
    with ThreadPoolExecutor(3) as readers:
        assert all(readers.map(lambda _: fetch_run(meeting, there, "run"), range(3)))
    assert meeting.met == []
    assert plain_journal(RunFolder(there / "runs/run")) == plain_journal(run)


def test_a_copy_with_other_trials_than_a_segment_is_not_overwritten(store: ObjectStore, tmp_path: Path) -> None:
    upload_segments(store, make_run(tmp_path / "here/runs/run", SMALL))
    copy = tmp_path / "there/runs/run"
    copy.mkdir(parents=True)
    (copy / "journal.jsonl").write_bytes(b"mine\n")
    with pytest.raises(RunFolderError, match="have different journals"):
        fetch_run(store, tmp_path / "there", "run")
    assert (copy / "journal.jsonl").read_bytes() == b"mine\n"


def test_an_upload_is_tried_again_after_the_journal_could_not_be_read(store: ObjectStore, tmp_path: Path) -> None:
    run, refusing = make_run(tmp_path / "here/runs/run"), RefusingStore(store.address)
    with RunUpload(refusing, run.path, interval=0.05) as upload:
        refusing.refuse.set()
        with run.journal_file.open("ab") as file:
            file.write(b"more\n")
        assert refusing.refused.wait(30)
        assert refusing.written.wait(30), "the thread goes on"
    assert upload.problem is None
    assert fetch_run(store, tmp_path / "there", "run")
    assert plain_journal(RunFolder(tmp_path / "there/runs/run")) == plain_journal(run)


def test_a_segment_that_was_damaged_in_the_store_is_named(store: ObjectStore, tmp_path: Path) -> None:
    upload_segments(store, make_run(tmp_path / "here/runs/run", SMALL))
    name = f"runs/run/{pieces_of(store)[0].name}"
    store.write(name, (store.read(name) or b"").replace(b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfe"))
    with pytest.raises(RunFolderError, match=r"journal/0{15}-000001-\d{15}\.zst cannot be used: it is damaged"):
        fetch_run(store, tmp_path / "there", "run")


@pytest.mark.parametrize("name", ["", f"-{1000:015d}.zst", f"-{MAX_PIECE_SIZE + 1:015d}.zst"])
def test_a_piece_that_is_too_large_for_memory_is_named_and_not_read(name: str, tmp_path: Path) -> None:
    piece = f"journal/{0:015d}-000001{name}"
    sizes = {"plan.json": 10, piece: 1000 if str(MAX_PIECE_SIZE + 1) in name else MAX_PIECE_SIZE + 1}
    nobody = ObjectStore("s3://bucket/of-nobody")  # reading it would fail otherwise
    with pytest.raises(RunFolderError, match=rf"of-nobody/runs/run/{piece} is not fetched: it has 64 MB"):
        fetch_files(nobody, tmp_path / "runs/run", sizes)


def test_a_segment_of_a_writer_that_was_replaced_does_not_count() -> None:
    old, new = "journal/{:015d}-000001", "journal/{:015d}-000002"
    sizes = {old.format(0): 100, old.format(100): 50, new.format(100): 70}
    late = f"{old.format(0)}-{160:015d}.zst"
    assert journal_pieces({**sizes, late: 30}) == [JournalPiece(0, 1, 100), JournalPiece(100, 2, 70)]
    early = f"{old.format(0)}-{100:015d}.zst"
    assert journal_pieces({**sizes, early: 30}) == [JournalPiece(0, 1, 100, segment=True), JournalPiece(100, 2, 70)]

"""Journals in an object store: uploaded in pieces, fetched by one reader at a time, never overwritten."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bakeoff.errors import RunFolderError
from bakeoff.storage.object_store import ObjectStore
from bakeoff.storage.run_folder import RunFolder
from bakeoff.storage.store_copy import MAX_PIECE_SIZE, JournalPiece, fetch_files, fetch_run, journal_pieces, sizes_of
from bakeoff.storage.store_upload import RunUpload, upload_run

from .damage import make_run
from .s3_server import s3_server


@dataclass(frozen=True)
class MeetingStore(ObjectStore):
    """Hold a reader of a journal for a moment, so that another one can read the same, and count those that meet."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(2))
    met: list[str] = field(default_factory=list)

    def read(self, key: str) -> bytes | None:
        data = super().read(key)
        with suppress(threading.BrokenBarrierError):
            if "/journal/" in key:
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
            raise RunFolderError("the journal cannot be read")
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


def test_a_journal_is_uploaded_once_and_fetched_whole(store: ObjectStore, tmp_path: Path) -> None:
    run = make_run(tmp_path / "here/runs/run")
    upload_run(store, run.path)
    [piece] = pieces_of(store)
    assert piece == JournalPiece(0, 1, run.journal_file.stat().st_size)
    upload_run(store, run.path)
    assert pieces_of(store) == [piece]
    assert fetch_run(store, tmp_path / "there", "run")
    assert list(RunFolder(tmp_path / "there/runs/run").entries()) == list(run.entries())


def test_readers_at_the_same_time_fetch_a_run_one_after_the_other(store: ObjectStore, tmp_path: Path) -> None:
    run = make_run(tmp_path / "here/runs/run")
    upload_run(store, run.path)
    meeting, there = MeetingStore(store.address), tmp_path / "there"
    with ThreadPoolExecutor(3) as readers:
        assert all(readers.map(lambda _: fetch_run(meeting, there, "run"), range(3)))
    assert meeting.met == []
    assert (there / "runs/run" / "journal.jsonl").read_bytes() == run.journal_file.read_bytes()


def test_a_copy_with_other_trials_is_not_overwritten(store: ObjectStore, tmp_path: Path) -> None:
    upload_run(store, make_run(tmp_path / "here/runs/run").path)
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
    assert (tmp_path / "there/runs/run" / "journal.jsonl").read_bytes() == run.journal_file.read_bytes()


def test_a_piece_that_is_too_large_for_memory_is_named_and_not_read(tmp_path: Path) -> None:
    piece = f"journal/{0:015d}-000001"
    sizes = {"plan.json": 10, piece: MAX_PIECE_SIZE + 1}
    nobody = ObjectStore("s3://bucket/of-nobody")  # reading it would fail otherwise
    with pytest.raises(RunFolderError, match=rf"of-nobody/runs/run/{piece} is not fetched: it has 64 MB"):
        fetch_files(nobody, tmp_path / "runs/run", sizes)


def test_a_journal_that_an_older_version_divided_is_refused(tmp_path: Path) -> None:
    sizes = {"plan.json": 10, f"journal/{0:015d}-000001-{1000:015d}.zst": 100}
    with pytest.raises(RunFolderError, match="an older version divided its journal into compressed parts"):
        fetch_files(ObjectStore("s3://bucket/of-nobody"), tmp_path / "runs/run", sizes)

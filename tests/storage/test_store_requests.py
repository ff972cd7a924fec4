"""Test how many requests the runs in an object store take, counted by a real S3 server on loopback."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bakeoff.storage.object_store import ObjectStore
from bakeoff.storage.run_folder import RunFolder
from bakeoff.storage.store_copy import fetch_all, fetch_run, results_folder
from bakeoff.storage.store_upload import RunUpload, upload_run

from .damage import make_run
from .s3_server import s3_server

pytestmark = pytest.mark.full

RUNS = 8


class Requests:
    """The requests that a server got, as lines such as `GET /bucket/key`."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._seen = 0

    def new(self) -> list[str]:
        """Return those since the last call."""
        found = re.findall(r'"([A-Z]+ \S+) HTTP', self._log.read_text())
        new, self._seen = found[self._seen :], len(found)
        return new


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, str], Requests]]:
    log = tmp_path_factory.mktemp("server") / "requests.log"
    with s3_server("bucket", log=log) as environment:
        yield environment, Requests(log)


@pytest.fixture
def requests(server: tuple[dict[str, str], Requests], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Requests:
    for name, value in server[0].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "here"))
    server[1].new()
    return server[1]


@pytest.fixture
def store(requests: Requests, tmp_path: Path) -> ObjectStore:
    """Return an empty place in the store."""
    return ObjectStore(f"s3://bucket/{tmp_path.name}")


def written(requests: Requests) -> list[str]:
    """Return the objects that were written since the last look, but those of leases."""
    puts = [request.partition("/runs/")[2] for request in requests.new() if request.startswith("PUT ")]
    return [key for key in puts if key and "/lease/" not in key]


def listed(store: ObjectStore) -> list[str]:
    """Fetch all runs as `bakeoff runs list` does, and return their names."""
    results = results_folder(Path(store.address))
    fetch_all(results, print)
    return [path.name for path in (results / "runs").iterdir()]


def test_listing_runs_that_have_not_changed_takes_one_request_each(
    store: ObjectStore, requests: Requests, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "made/runs/one")
    files = {path.relative_to(run.path).as_posix(): path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    files["journal/000000000000000-000001"] = files.pop("journal.jsonl")
    names = [f"2026-01-01T00-00-{number:02d}-one" for number in range(RUNS)]
    store.write_some({f"runs/{name}/{file}": data for name in names for file, data in files.items()})
    requests.new()
    assert sorted(listed(store)) == names
    assert len(requests.new()) <= RUNS * (len(files) + 1) + 3, "a listing and each object, once"
    assert sorted(listed(store)) == names
    assert len(requests.new()) <= RUNS + 3

    store.write(f"runs/{names[0]}/journal/000000000000000-000002", files["journal/000000000000000-000001"] + b"more\n")
    requests.new()
    listed(store)
    read = [request for request in requests.new() if "/journal/" in request]
    assert len(read) == 1, "of a run that went on, what is new"
    copy = results_folder(Path(store.address)) / "runs" / names[0] / "journal.jsonl"
    assert copy.read_bytes().endswith(b"more\n")


def test_a_copy_that_was_changed_is_compared_with_the_store_again(
    store: ObjectStore, requests: Requests, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "made/runs/one")
    upload_run(store, run.path)
    for _ in range(2):
        fetch_run(store, tmp_path / "there", "one")
    requests.new()
    shutil.copy(run.journal_file, tmp_path / "there/runs/one/journal.jsonl")
    fetch_run(store, tmp_path / "there", "one")
    assert len([request for request in requests.new() if "/journal/" in request]) == 1


def test_uploading_a_run_that_has_not_changed_writes_nothing_but_its_lease(
    store: ObjectStore, requests: Requests, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "made/runs/one")
    upload_run(store, run.path)
    requests.new()
    upload_run(store, run.path)
    assert written(requests) == []
    with run.journal_file.open("ab") as file:
        file.write(b"more\n")
    upload_run(store, run.path)
    (piece,) = written(requests)
    assert re.search(r"/journal/\d{15}-000003$", piece), "what has changed is written under the new lease"
    fetch_run(store, tmp_path / "there", "one")
    assert list(RunFolder(tmp_path / "there/runs/one").entries()) == list(run.entries())


def test_a_file_of_the_same_length_that_was_changed_is_uploaded(
    store: ObjectStore, requests: Requests, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "made/runs/one")
    run.signature_file.write_bytes(b"first")
    upload_run(store, run.path)
    run.signature_file.write_bytes(b"other")
    requests.new()
    upload_run(store, run.path)
    assert written(requests) == ["one/signature.json"]


def test_between_uploads_only_blobs_that_new_lines_name_are_looked_at(
    store: ObjectStore, requests: Requests, tmp_path: Path
) -> None:
    made, run = make_run(tmp_path / "made/runs/one"), RunFolder(tmp_path / "growing/runs/one")
    shutil.copytree(made.path, run.path, ignore=shutil.ignore_patterns("blobs"))
    lines = made.journal_file.read_bytes()
    half = lines.index(b"\n", len(lines) // 2) + 1
    run.journal_file.write_bytes(lines[:half])
    with RunUpload(store, run.path, interval=1000):
        shutil.copytree(made.path / "blobs", run.path / "blobs")
        run.journal_file.write_bytes(lines)
    blobs = {path.name for path in (made.path / "blobs").rglob("*") if path.is_file()}
    named = {name for name in blobs if name.encode() in lines[half:]}
    assert named
    assert named < blobs
    assert {request.rpartition("/")[2] for request in written(requests) if "/blobs/" in request} == named
    upload_run(store, run.path)
    assert {request.rpartition("/")[2] for request in written(requests)} == blobs - named, "the beginning looks at all"

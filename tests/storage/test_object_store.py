"""Runs in an object store, against a real S3 server on loopback."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bakeoff.engine.run import run
from bakeoff.engine.run_control import RunControl
from bakeoff.errors import RunFolderError, UsageError
from bakeoff.options import RunOptions
from bakeoff.record import Record
from bakeoff.storage.labels import append_label, read_labels
from bakeoff.storage.object_store import ObjectStore, StoreError
from bakeoff.storage.run_folder import RunFolder, find_run
from bakeoff.storage.store_copy import (
    fetch_run,
    journal_pieces,
    parse_address,
    results_folder,
    store_of,
    stored_runs,
    unjoined_pieces,
)
from bakeoff.storage.store_upload import LeaseLost, RunUpload, StoreLease, upload_run

from ..warm_bakeoff import WarmBakeoff
from .s3_server import SECRET, free_port, s3_server
from .sleeping_run import INTERVAL, TRIALS, plan
from .test_labels import label

ROOT = Path(__file__).parents[2]
ADDRESS = "s3://bucket/results"


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    with s3_server("bucket") as environment:
        yield environment


@pytest.fixture
def store(server: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ObjectStore:
    """An empty place in the store; this process finds it."""
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "here"))
    return ObjectStore(f"{ADDRESS}/{tmp_path.name}")


async def finished(results: Path, folder: Path | None = None) -> tuple[list[str], RunControl]:
    """Run or resume the trials in this process. Return the cases that were run, and the control."""
    control = RunControl()
    options = RunOptions(results=results, folder=folder, jobs=2, upload_interval=INTERVAL)
    return [record.case async for record in run(plan(), options, control=control)], control


def start(store: ObjectStore, state: Path, *more: str) -> "subprocess.Popen[str]":
    """Run the trials in a process of its own, which can be killed."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.storage.sleeping_run", store.address, *more],
        cwd=ROOT,
        env={**os.environ, "XDG_STATE_HOME": str(state)},
        stdout=subprocess.PIPE,
        text=True,
    )


def records_in(folder: RunFolder) -> list[Record]:
    return [entry for entry in folder.entries() if isinstance(entry, Record)]


@pytest.mark.full
def test_a_killed_run_is_resumed_from_the_store_on_another_machine(store: ObjectStore, tmp_path: Path) -> None:
    first = start(store, tmp_path / "first")
    assert first.stdout is not None
    for _ in range(TRIALS // 3):
        assert first.stdout.readline().startswith("finished")
    while not (names := stored_runs(store)) or not journal_pieces(_sizes(store, names[0])):
        assert first.stdout.readline(), "nothing was uploaded while the run went on"
    first.send_signal(signal.SIGKILL)
    first.communicate()

    results = results_folder(Path(store.address))
    assert fetch_run(store, results, names[0])
    kept = {record.case: record.started for record in records_in(RunFolder(results / "runs" / names[0]))}
    assert kept, "what was uploaded can be read"
    told: list[str] = []
    for _ in range(100):  # the lease of the killed process has to expire
        second = start(store, tmp_path / "second", names[0])
        told = second.communicate()[0].splitlines()
        if second.returncode == 0:
            break
    assert told[-2:] == ["problem None", "stopped False"]
    again = {line.split()[1] for line in told if line.startswith("finished")}
    assert not again & kept.keys(), "no trial that the store had is run again"

    folder = find_run(results, names[0])
    final = records_in(folder)
    assert Counter(record.case for record in final) == Counter({f"case-{n}": 1 for n in range(TRIALS)})
    assert {record.case: record.started for record in final}.items() >= kept.items()
    assert not any(SECRET in file.read_text() for file in tmp_path.rglob("*") if file.is_file())


@pytest.mark.full
def test_a_store_that_fails_during_a_run_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_bakeoff: WarmBakeoff
) -> None:
    port = free_port()
    store = ObjectStore("s3://bucket/results")
    with s3_server("bucket", port) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        running = start(store, tmp_path)
        assert running.stdout is not None
        assert running.stdout.readline().startswith("finished")
    told = running.communicate()[0]
    assert running.returncode == 0
    assert "cannot be used" in told.splitlines()[-2], "the end of the run says so"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (path,) = results_folder(Path(store.address)).glob("runs/*")
    assert len(records_in(RunFolder(path))) == TRIALS
    with s3_server("bucket", port):  # it has forgotten everything
        assert warm_bakeoff.run("runs", "upload", str(path), cwd=tmp_path, env=os.environ).returncode == 0
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
        fetched = find_run(results_folder(Path(store.address)), "latest")
        assert fetched.journal_file.read_bytes() == (path / "journal.jsonl").read_bytes()
        assert len(records_in(fetched)) == TRIALS, "the blobs were uploaded too"
        checked = warm_bakeoff.run("runs", "check", f"{store.address}/runs/{path.name}", cwd=tmp_path, env=os.environ)
        exported = warm_bakeoff.run("export", "--results", store.address, cwd=tmp_path, env=os.environ)
        assert (checked.returncode, exported.returncode) == (0, 0)
        assert exported.stdout.count("\n") == TRIALS + 1


def test_two_writers_cannot_take_one_run(store: ObjectStore) -> None:
    now = [1000.0]
    first = StoreLease.acquire(store, "runs/one", 60, lambda: now[0])
    with pytest.raises(StoreError, match="is being written by process"):
        StoreLease.acquire(store, "runs/one", 60, lambda: now[0])
    now[0] += 61
    StoreLease.acquire(store, "runs/one", 60, lambda: now[0])
    with pytest.raises(LeaseLost, match="another process has taken over"):
        first.renew()


async def test_a_run_that_lost_its_lease_stops(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIALS", "2000")
    control, records = RunControl(), 0
    options = RunOptions(results=results_folder(Path(store.address)), jobs=2, upload_interval=INTERVAL)
    async for _ in run(plan(), options, control=control):
        records += 1
        if records == 1:
            (name,) = stored_runs(store)
            assert store.create(f"runs/{name}/lease/000002", b"{}")
    assert control.stopped
    assert records < 2000
    assert "another process has taken over" in (control.upload_problem or "")


@pytest.mark.full
async def test_a_command_whose_run_was_taken_over_does_not_advise_to_upload(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIALS", "2000")
    control = RunControl()
    async for _ in run(plan(), RunOptions(results=Path(store.address)), control=control):
        control.stop()
    (name,) = stored_runs(store)
    words = ["resume", f"{store.address}/runs/{name}", "--trust", "--no-open", "--upload-interval", "0.2"]
    resumed = subprocess.Popen([sys.executable, "-m", "bakeoff", *words], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    sizes: set[int] = set()
    while len(sizes) < 3 and resumed.poll() is None:  # until it uploads trials
        sizes.update(size for file, size in _sizes(store, name).items() if re.fullmatch(r"journal/0*-000002", file))
        time.sleep(0.1)
    assert store.create(f"runs/{name}/lease/000003", b"{}")
    told = " ".join(resumed.communicate()[1].split())
    assert "another process has taken over" in told
    assert "runs upload" not in told


class RepeatingStore(ObjectStore):
    """Makes each object twice, as a library does that did not get the first answer."""

    def create(self, key: str, data: bytes) -> bool:
        return super().create(key, data) and super().create(key, data)


def test_a_lease_whose_request_was_repeated_is_ours(store: ObjectStore) -> None:
    assert StoreLease.acquire(RepeatingStore(store.address), "runs/one").number == 1


def test_a_lease_that_a_careless_server_gave_to_two_belongs_to_the_later_one(store: ObjectStore) -> None:
    first = StoreLease.acquire(store, "runs/one")
    StoreLease.acquire(store, "runs/two")
    store.write("runs/one/lease/000001", store.read("runs/two/lease/000001") or b"")
    with pytest.raises(LeaseLost):
        first.check()


class SlowStore(ObjectStore):
    """Takes so long to write blobs that the lease has to be renewed meanwhile."""

    def write_some(self, contents: Mapping[str, bytes]) -> None:
        before = self.read("runs/one/lease/000001")
        for _ in range(600):
            if self.read("runs/one/lease/000001") != before:
                super().write_some(contents)
                return
            time.sleep(0.1)
        raise AssertionError("the lease is not renewed")


def test_a_lease_is_renewed_during_a_long_upload(store: ObjectStore, tmp_path: Path) -> None:
    blob = tmp_path / "results/runs/one/blobs" / "aa" / ("a" * 64)
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"large")
    with RunUpload(SlowStore(store.address), tmp_path / "results/runs/one", interval=0.2):
        pass
    assert store.read(f"runs/one/blobs/aa/{blob.name}") == b"large"


class TakenOverStore(ObjectStore):
    """Lets another process take over while blobs are uploaded."""

    def write_some(self, contents: Mapping[str, bytes]) -> None:
        super().write_some(contents)
        self.write("runs/one/lease/000002", b"{}")


def test_a_writer_that_was_replaced_leaves_the_plan_of_the_other(store: ObjectStore, tmp_path: Path) -> None:
    folder = tmp_path / "results/runs/one"
    (folder / "blobs/aa").mkdir(parents=True)
    (folder / "blobs/aa" / ("a" * 64)).write_bytes(b"large")
    (folder / "plan.json").write_bytes(b"{}")
    store.write("runs/one/plan.json", b"newer")
    with pytest.raises(LeaseLost):
        upload_run(TakenOverStore(store.address), folder)
    assert store.read("runs/one/plan.json") == b"newer"


def test_labels_of_two_machines_are_joined(store: ObjectStore, tmp_path: Path) -> None:
    places = [tmp_path / "ann/runs/one", tmp_path / "bob/runs/one"]
    for place in places:
        place.mkdir(parents=True)
        (place / "plan.json").write_bytes(b"{}")
        append_label(place / "labels.jsonl", label(1, "pass", place.parts[-3]))
    append_label(places[0] / "labels.jsonl", label(2, "fail", "both", time=20.0))
    append_label(places[1] / "labels.jsonl", label(2, "pass", "both", time=10.0))
    for place in places:
        upload_run(store, place)
    fetch_run(store, tmp_path / "later", "one")
    found = read_labels(tmp_path / "later/runs/one/labels.jsonl")
    assert found.damaged == 0
    assert found.by_labeller.keys() == {"ann", "bob", "both"}
    assert [one.label for one in found.by_labeller["both"].values()] == ["fail"], "the later one counts"


def test_a_released_lease_can_be_taken_at_once(store: ObjectStore) -> None:
    StoreLease.acquire(store, "runs/one").release()
    assert StoreLease.acquire(store, "runs/one").number == 2


def test_of_two_objects_made_at_once_one_is_refused(store: ObjectStore) -> None:
    assert store.create("one", b"first")
    assert not store.create("one", b"second")
    assert store.read("one") == b"first"


def test_what_a_writer_uploads_after_it_was_replaced_does_not_count(store: ObjectStore, tmp_path: Path) -> None:
    for lease, text in ((1, b"old\nlate\n"), (2, b"old\nnew\n")):
        store.write(f"runs/one/journal/000000000000000-{lease:06d}", text)
    store.write("runs/one/journal/000000000000008-000001", b"later still\n")
    store.write("runs/one/plan.json", b"{}")
    fetch_run(store, tmp_path / "results", "one")
    assert (tmp_path / "results/runs/one/journal.jsonl").read_bytes() == b"old\nnew\n"


@pytest.mark.parametrize(
    ("pieces", "found"),
    [
        ({(0, 1): b"one\n", (8, 1): b"three\n"}, "{0}0-000001 ends at byte 4, and {0}8-000001 begins at byte 8"),
        ({(0, 1): b"one\ntwo\n", (4, 2): b"other\n"}, "{0}0-000001 ends at byte 8, and {0}4-000002 begins at byte 4"),
        ({(4, 1): b"two\n"}, "the piece of byte 0 is missing, and {0}4-000001 begins at byte 4"),
    ],
)
def test_pieces_that_do_not_join_are_named_and_the_machine_with_the_whole_run_mends_them(
    pieces: dict[tuple[int, int], bytes], found: str, store: ObjectStore, tmp_path: Path
) -> None:
    store.write("runs/one/plan.json", b"{}")
    store.write("runs/one/lease/000002", b"{}")
    for (begin, lease), text in pieces.items():
        store.write(f"runs/one/journal/{begin:015d}-{lease:06d}", text)
    with pytest.raises(RunFolderError) as raised:
        fetch_run(store, tmp_path / "there", "one")
    assert found.format("journal/" + "0" * 14) in str(raised.value)
    assert "If a process is uploading it now, try again" in str(raised.value), "it writes one piece after another"
    assert f"delete journal/{'0' * 14}" in str(raised.value)
    whole = results_folder(Path(store.address)) / "runs/one"
    whole.mkdir(parents=True)
    (whole / "plan.json").write_bytes(b"{}")
    (whole / "journal.jsonl").write_bytes(b"one\ntwo\nthree\n")
    upload_run(store, whole)
    assert fetch_run(store, tmp_path / "there", "one")
    assert (tmp_path / "there/runs/one/journal.jsonl").read_bytes() == b"one\ntwo\nthree\n"


def test_all_pieces_behind_a_gap_are_found_and_none_is_left_once_they_are_deleted() -> None:
    sizes = {f"journal/{begin:015d}-000001": 4 for begin in (0, 8, 12)}
    pieces = journal_pieces(sizes)
    assert [piece.begin for piece in unjoined_pieces(sizes, pieces)] == [8, 12]
    assert not unjoined_pieces({pieces[0].name: 4}, pieces)


def test_a_copy_with_other_trials_than_the_store_is_not_overwritten(store: ObjectStore, tmp_path: Path) -> None:
    folder = tmp_path / "results/runs/one"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_bytes(b"mine\n")
    store.write("runs/one/plan.json", b"{}")
    store.write("runs/one/journal/000000000000000-000001", b"theirs, and longer\n")
    with pytest.raises(RunFolderError, match="have different journals"):
        fetch_run(store, tmp_path / "results", "one")
    assert (folder / "journal.jsonl").read_bytes() == b"mine\n"


def test_uploading_a_copy_never_replaces_trials_that_another_process_has_added(
    store: ObjectStore, tmp_path: Path
) -> None:
    ours, theirs = (results / "runs/one" for results in (results_folder(Path(store.address)), tmp_path / "there"))
    ours.mkdir(parents=True)
    (ours / "plan.json").write_bytes(b"{}")
    (ours / "journal.jsonl").write_bytes(b"t1\nt2\n")
    upload_run(store, ours)
    fetch_run(store, tmp_path / "there", "one")
    (theirs / "journal.jsonl").write_bytes(b"t1\nt2\nb3\nb4\n")
    upload_run(store, theirs)

    upload_run(store, ours)
    assert (ours / "journal.jsonl").read_bytes() == b"t1\nt2\nb3\nb4\n", "a copy that is behind catches up"
    (ours / "journal.jsonl").write_bytes(b"t1\nt2\na3\n")
    with pytest.raises(RunFolderError, match="have different journals"):
        upload_run(store, ours)
    assert (ours / "journal.jsonl").read_bytes() == b"t1\nt2\na3\n"
    fetch_run(store, tmp_path / "later", "one")
    assert (tmp_path / "later/runs/one/journal.jsonl").read_bytes() == b"t1\nt2\nb3\nb4\n"
    StoreLease.acquire(store, "runs/one").release()  # nobody holds it


async def test_a_copy_that_is_behind_when_it_gets_the_lease_repeats_no_trial(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIALS", "6")
    assert len((await finished(results_folder(Path(store.address))))[0]) == 6
    (copy,) = results_folder(Path(store.address)).glob("runs/*")
    whole = (copy / "journal.jsonl").read_bytes()
    (copy / "journal.jsonl").write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
    again, control = await finished(Path("not-fetched-before"), copy)
    assert (again, control.upload_problem, control.stopped) == ([], None, False), "no trial was left"
    fetch_run(store, tmp_path / "later", copy.name)
    assert (tmp_path / "later/runs" / copy.name / "journal.jsonl").read_bytes().startswith(whole)


async def test_a_copy_that_cannot_be_fetched_does_not_hide_the_other_runs(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_bakeoff: WarmBakeoff
) -> None:
    monkeypatch.setenv("TRIALS", "1")
    await finished(results_folder(Path(store.address)))
    (whole,) = stored_runs(store)
    store.write("runs/0-other/plan.json", b"{}")
    store.write("runs/0-other/journal/000000000000000-000001", b"theirs\n")
    copy = results_folder(Path(store.address)) / "runs/0-other"
    copy.mkdir(parents=True)
    (copy / "journal.jsonl").write_bytes(b"mine\n")
    words = ("runs", "list", "--json", "--results", store.address)
    done = warm_bakeoff.run(*words, cwd=tmp_path, env=os.environ)
    assert done.returncode == 0
    assert whole in done.stdout
    assert "run 0-other is not fetched" in done.stderr
    with pytest.raises(RunFolderError, match="have different journals"):
        find_run(Path(store.address), "0-other")


def test_files_that_were_changed_here_are_not_overwritten(store: ObjectStore, tmp_path: Path) -> None:
    folder = tmp_path / "results/runs/one"
    stored = {"plan.json": b"{}", "seal.json": b"old", "labels.jsonl": b"1\n2\n", "signature.json": b"old"}
    for name, content in {**stored, "journal/000000000000000-000001": b"line\n"}.items():
        store.write(f"runs/one/{name}", content)
    fetch_run(store, tmp_path / "results", "one")
    here = {"seal.json": b"new", "labels.jsonl": b"1\n2\n3\n", "signature.json": b"new"}
    for name, content in here.items():
        (folder / name).write_bytes(content)
    store.write("runs/one/labels.jsonl", b"1\n2\nof someone else\n")
    fetch_run(store, tmp_path / "results", "one")
    assert {name: (folder / name).read_bytes() for name in here} == here
    store.write("runs/one/journal/000000000000000-000001", b"line\nand another\n")
    fetch_run(store, tmp_path / "results", "one")
    assert (folder / "seal.json").read_bytes() == b"old", "the store's run went on"
    assert (folder / "labels.jsonl").read_bytes() == here["labels.jsonl"]


async def test_a_results_folder_of_someone_else_cannot_name_a_store(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = results_folder(Path(store.address))
    assert store_of(ours) == store
    cloned = tmp_path / "cloned/results"
    cloned.mkdir(parents=True)
    (cloned / "store.json").write_bytes((ours / "store.json").read_bytes())
    monkeypatch.setenv("TRIALS", "1")
    assert (await finished(cloned))[0] == ["case-0"]
    assert len(list(cloned.glob("runs/*/journal.jsonl"))) == 1, "it is a plain folder"
    assert not stored_runs(store)
    (ours / "store.json").write_text('{"address": "s3://bucket/elsewhere"}')
    with pytest.raises(RunFolderError, match="belongs to another folder"):
        store_of(ours)


def test_names_of_objects_lead_nowhere_else(store: ObjectStore, tmp_path: Path) -> None:
    store.write("runs/one/plan.json", b"{}")
    for name in ("blobs/../../../escaped", "pictures/..", "pictures/../x.png", "report.html", "blobs/aa/short"):
        store.write(f"runs/one/{name}", b"hostile")
    fetch_run(store, tmp_path / "results", "one")
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [".fetching", "plan.json"]
    assert not fetch_run(store, tmp_path / "results", "../one")


def test_a_repaired_journal_replaces_the_one_in_the_store(store: ObjectStore, tmp_path: Path) -> None:
    folder = tmp_path / "results/runs/one"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_bytes(b"{}")
    for text, whole in ((b"a long first line\nsecond\n", False), (b"short\n", True)):
        (folder / "journal.jsonl").write_bytes(text)
        upload_run(store, folder, whole=whole)
    fetch_run(store, tmp_path / "elsewhere", "one")
    assert (tmp_path / "elsewhere/runs/one/journal.jsonl").read_bytes() == b"short\n"


async def test_a_store_that_cannot_be_used_is_refused_before_the_first_trial(
    store: ObjectStore, server: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    for address, endpoint in (("s3://absent/results", server["AWS_ENDPOINT_URL"]), (store.address, nobody)):
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        with pytest.raises(StoreError, match=rf"^{address} cannot be used: .*network$") as raised:
            await finished(results_folder(Path(address)))
        assert server["AWS_SECRET_ACCESS_KEY"] not in str(raised.value)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("s3://key:secret@bucket/results", "must not hold keys"),
        ("s3://", "does not name a bucket"),
        ("s3://bucket/../other", "does not name a bucket"),
        ("ftp://host/results", "is no address of a store"),
    ],
)
def test_addresses_that_are_not_usable_are_refused(address: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_address(address)


@pytest.mark.parametrize("text", ["s3://", "S3://bucket/x", "s3:bucket/x", "file:x"])
def test_what_was_meant_as_an_address_does_not_become_a_folder(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="is no folder and no address of a store: write s3://bucket/folder"):
        results_folder(Path(text))


def test_a_bucket_that_does_not_exist_is_not_taken_for_an_empty_one(store: ObjectStore) -> None:
    assert ObjectStore("s3://bucket/empty").folders("runs") == []
    with pytest.raises(StoreError, match="there is no bucket 'nowhere'"):
        ObjectStore("s3://nowhere/results").folders("runs")


def test_a_run_that_is_not_there_is_named_with_the_address(store: ObjectStore) -> None:
    for name in ("nowhere", "latest"):
        with pytest.raises(RunFolderError, match=f" under {store.address}/runs"):
            find_run(Path(store.address), name)


def test_an_endpoint_that_is_no_address_is_said_so(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "nonsense")
    with pytest.raises(StoreError, match="Invalid endpoint: nonsense"):
        store.folders("runs")


def test_the_last_number_of_a_lease_is_not_passed(store: ObjectStore) -> None:
    store.write("runs/one/lease/999999", b"not ours")
    with pytest.raises(StoreError, match="lease/999999 is not of Bakeoff: delete it"):
        StoreLease.acquire(store, "runs/one")


def test_a_missing_library_is_named_with_the_extra_that_brings_it() -> None:
    for address, extra in (("gs://bucket/results", "gs"), ("az://bucket/results", "az")):
        with pytest.raises(UsageError, match=rf"pip install 'bakeoff\[{extra}\]'"):
            ObjectStore(address).folders("runs")


async def test_a_run_waits_for_the_store_without_blocking_the_event_loop(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:  # answers while the loop is free
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(StoreError, match="cannot be used"):
            async for _ in run(plan(), RunOptions(results=Path(store.address))):
                pass
        assert asked


async def test_the_python_interface_takes_addresses_too(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRIALS", "1")
    async for _ in run(plan(), RunOptions(results=Path(store.address))):
        pass
    (name,) = stored_runs(store)
    assert find_run(Path(store.address), "latest").name == name
    assert [path.name for path in tmp_path.iterdir()] == ["here"], "no folder is called s3:"


def test_file_addresses_are_plain_folders(tmp_path: Path) -> None:
    assert results_folder(Path(f"file://{tmp_path}/results")) == tmp_path / "results"


def _sizes(store: ObjectStore, name: str) -> dict[str, int]:
    run = f"runs/{name}"
    return {key.removeprefix(f"{run}/"): size for key, size in store.sizes(run).items()}

"""Files of others are read in bounded memory, and never waited for."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bakeoff._kernel.files import read_file
from bakeoff.errors import RunFolderError
from bakeoff.record import Record, Transcript
from bakeoff.storage.blobs import Blobs
from bakeoff.storage.journal import JournalWriter, read_journal, read_journal_backwards
from bakeoff.storage.journal_lines import MAX_LINE_LENGTH, Damage
from bakeoff.storage.labels import read_labels

from .conftest import NO_SECRETS, write
from .damage import make_run

_MEMORY = 700 << 20
_IN_LITTLE_MEMORY = f"""
import resource, sys
from pathlib import Path
from bakeoff.storage.run_folder import RunFolder
from bakeoff.storage.repair import repair_run
resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY}))
folder = RunFolder(Path(sys.argv[1]))
plan, damaged = folder.read_plan(), []
records = list(folder.latest_records(plan, damaged))
assert [one.reason for one in damaged][:1] == ["it is longer than 64 MB, the most that is read"], damaged
assert len(records) == 16 and sum(1 for _ in folder.entries()) > 16
assert repair_run(folder).aside[0].line == damaged[0].line
assert len(list(folder.latest_records(plan, damaged := []))) == 16 and not damaged
"""


def test_a_line_that_is_longer_than_allowed_is_read_over_and_put_aside_in_little_memory(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with run.journal_file.open("r+b") as file:
        file.seek(1 << 27, os.SEEK_END)  # a hole takes no room
        file.write(b"\n")
    done = subprocess.run(
        [sys.executable, "-c", _IN_LITTLE_MEMORY, str(run.path)], capture_output=True, text=True, check=False
    )
    (run.path / "journal.damaged.jsonl").unlink()
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_larger_than_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    for file, read in ((run.plan_file, run.read_plan), (run.labels_file, lambda: read_labels(run.labels_file))):
        with file.open("wb") as opened:
            opened.truncate(4 << 30)
        with pytest.raises(RunFolderError, match=r"it is larger than \d+ MB, the most that is read"):
            read()
        file.unlink()


def test_one_blob_named_again_and_again_does_not_add_up(path: Path, make_record: Callable[..., Record]) -> None:
    blobs = Blobs(path.parent / "blobs")
    digest = blobs.write(b"x" * (1 << 20))
    record: dict[str, object] = {"texts": [""] * 100}
    with pytest.raises(RunFolderError, match="it is larger than"):
        blobs.put_back(record, [(["texts", place], digest) for place in range(100)])


def test_a_record_that_could_not_be_read_back_is_stored_without_its_texts(
    path: Path, make_record: Callable[..., Record]
) -> None:
    write(path, make_record(transcript=Transcript(output="x" * (MAX_LINE_LENGTH + 1))))
    [entry] = read_journal(path)
    assert isinstance(entry, Record)
    assert "larger than 63 MB" in str((entry.transcript or Transcript()).metadata["not stored"])


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path.relative_to(Path.cwd())))


def _folder(path: Path) -> None:
    path.mkdir()


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("put", [_pipe, _socket, _folder, _device])
@pytest.mark.parametrize("name", ["plan.json", "journal.jsonl", "seal.json", "labels.jsonl", "blob"])
def test_what_is_no_file_is_refused_at_once(
    name: str, put: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = make_run(tmp_path / "run")
    file = run.path / name if name != "blob" else next(path for path in run.path.rglob("*") if len(path.name) == 64)
    file.unlink(missing_ok=True)
    put(file)

    def read() -> int:
        try:
            damaged = [entry for entry in run.entries() if isinstance(entry, Damage)]
            run.read_plan()
            read_labels(run.labels_file)
            run.is_being_written()
        except RunFolderError:
            return 1
        return len(damaged)

    assert read() > 0
    if name == "journal.jsonl":
        with pytest.raises(RunFolderError):
            JournalWriter(file, NO_SECRETS)


def test_a_pipe_is_read_where_the_user_may_name_one_and_a_device_only_up_to_the_limit(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"name: one")
    os.close(writing)
    assert read_file(Path(f"/dev/fd/{reading}"), pipes=True) == b"name: one"
    os.close(reading)
    with pytest.raises(OSError, match="it is larger than 1 MB"):
        read_file(Path("/dev/zero"), 1 << 20, pipes=True)
    os.mkfifo(tmp_path / "pipe")
    assert read_file(tmp_path / "pipe", pipes=True) == b"", "nobody writes to it"


def test_a_very_long_line_between_others_is_one_damage_in_both_directions(
    path: Path, make_record: Callable[..., Record]
) -> None:
    write(path, make_record())
    with path.open("ab") as file:
        file.truncate(path.stat().st_size + MAX_LINE_LENGTH)
    with path.open("ab") as file:
        file.write(b"\n")
    write(path, make_record(round=1))
    one, damage, other = read_journal(path)
    assert list(read_journal_backwards(path)) == [other, damage, one]
    assert isinstance(damage, Damage)
    assert damage.line == 2


_WITHOUT_LOCKS = """
import errno, os, sys, types
import fcntl
no_locks = types.ModuleType("fcntl")
no_locks.__dict__.update(fcntl.__dict__)
def flock(*_):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
no_locks.flock = flock
sys.modules["fcntl"] = no_locks
from pathlib import Path
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.run_folder import RunFolder
folder = RunFolder(Path(sys.argv[1]))
assert not folder.is_being_written()
assert len(list(folder.latest_records(folder.read_plan()))) == 16
try:
    JournalWriter(folder.journal_file, Redactor({}))
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_file_system_without_locks_is_not_taken_for_another_process(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_LOCKS, str(run.path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("NoLocks ")
    assert "the file system has no locks" in done.stdout
    assert "Choose a folder on a local disk" in done.stdout
    assert "another process is writing" not in done.stdout

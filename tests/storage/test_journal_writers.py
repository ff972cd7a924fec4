"""A journal has one writer at a time, and loses nothing when the disk is full."""

import fcntl
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bakeoff.errors import RunFolderError
from bakeoff.record import Record
from bakeoff.storage.journal import (
    JournalWriter,
    read_journal,
)

from .conftest import NO_SECRETS, write

HOLDER = """
import sys
from pathlib import Path
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.redaction import Redactor
with JournalWriter(Path(sys.argv[1]), Redactor({})):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_writer_is_refused_with_a_sentence(path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        sentence = f"another process is writing run {path.parent.name}: wait for it, or stop it first"
        with pytest.raises(RunFolderError) as caught:
            JournalWriter(path, NO_SECRETS)
        assert str(caught.value) == sentence
        holder.communicate()
    JournalWriter(path, NO_SECRETS).close()


def test_a_killed_writer_leaves_no_lock(path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.kill()
    JournalWriter(path, NO_SECRETS).close()


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="cannot be opened: No such file or directory"):
        JournalWriter(tmp_path / "no" / "journal.jsonl", NO_SECRETS)


FILLER = """
import asyncio, sys
from pathlib import Path
from bakeoff.errors import RunFolderError
from bakeoff.storage.journal import JournalWriter
from bakeoff.record import Phase, Record, Transcript
from bakeoff.storage.redaction import Redactor

async def main(path, size):
    done = 0
    try:
        with JournalWriter(path, Redactor({})) as journal:
            while True:
                for _ in range(3):
                    journal.append_record(Record(case="c", subject="s", round=done, attempt_key="a", score_key="b",
                        started=0, threshold=1, attempt=Phase(seconds=0),
                        transcript=Transcript(output=str(done) * size)))
                    done += 1
                await journal.commit()
                print(done, flush=True)
    except RunFolderError as error:
        print(error)

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


def fill(path: Path, size: int, **how: object) -> tuple[int, str]:
    """Return how many records were safe before room ran out, and what was said."""
    done = subprocess.run([sys.executable, "-c", FILLER, path, str(size)], capture_output=True, text=True, **how)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    *counts, sentence = done.stdout.splitlines()
    return int(counts[-1]), sentence


OUT_OF_ROOM = "All trials reported as finished are safe: free disk space, then run `bakeoff resume`"


def limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def test_a_write_that_fails_leaves_whole_lines_and_all_that_was_reported(path: Path) -> None:
    safe, sentence = fill(path, 300, preexec_fn=limit_files)
    assert sentence == f"the journal cannot be written: File too large. {OUT_OF_ROOM}"
    assert path.read_bytes().endswith(b"\n")
    assert [entry.round for entry in read_journal(path) if isinstance(entry, Record)] == list(range(safe))


@pytest.mark.parametrize("size", [50, 30_000])
def test_a_full_disk_loses_nothing_that_was_reported_and_the_journal_can_be_gone_on_with(
    size: int, tiny_disk: Path, make_record: Callable[..., Record]
) -> None:
    path = tiny_disk / "journal.jsonl"
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(b"x" * 50_000)
    safe, sentence = fill(path, size)
    assert sentence == f"the journal cannot be written: No space left on device. {OUT_OF_ROOM}"
    entries = list(read_journal(path))
    assert (
        [entry.round for entry in entries if isinstance(entry, Record)]
        == list(range(safe))
        == list(range(len(entries)))
    )
    ballast.unlink()
    write(path, make_record())
    assert list(read_journal(path)) == [*entries, make_record()]


def test_a_lock_that_is_held_for_a_moment_keeps_no_writer_out(path: Path) -> None:
    path.touch()
    with path.open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                fcntl.flock(looking, fcntl.LOCK_UN)

        JournalWriter(path, NO_SECRETS, pause=pause).close()
    assert len(pauses) == 3

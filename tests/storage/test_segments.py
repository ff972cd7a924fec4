"""A journal that older versions divided into segments reads as one file, whatever a killed writer has left."""

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from bakeoff.engine.resume import pending_jobs, read_progress
from bakeoff.options import RunOptions
from bakeoff.record import Record
from bakeoff.report.summary import summarise
from bakeoff.storage.journal import (
    JournalWriter,
    read_journal,
    read_journal_backwards,
    read_journal_with_places,
    record_at,
    records_of,
)
from bakeoff.storage.journal_lines import Damage
from bakeoff.storage.repair import repair_run
from bakeoff.storage.segments import DAMAGED_SEGMENTS, JOURNAL, MAX_FRAME_SIZE, SEGMENTS, list_segments, open_journal

from .conftest import NO_SECRETS, write
from .damage import make_run
from .segmented import SMALL, make_segments

RECORDS = 40


@pytest.fixture
def records(make_record: Callable[..., Record]) -> list[Record]:
    return [make_record(case=f"case-{n}", attempt_key=f"{n:032x}") for n in range(RECORDS)]


def write_in_segments(path: Path, records: list[Record]) -> None:
    write(path, *records)
    make_segments(path.parent)


def one_segment(path: Path, records: list[Record]) -> Path:
    """Write a journal with one compressed segment of many small frames, and one more record."""
    write(path, *records[:-1])
    [segment] = make_segments(path.parent, path.stat().st_size, frame_bytes=1000)
    write(path, records[-1])
    return segment


def frames_of(segment: Path) -> list[tuple[int, int]]:
    """Return where each frame begins, and how many records it holds."""
    data, found, place = segment.read_bytes(), [], 0
    while place < len(data):
        frame = zstandard.ZstdDecompressor().decompressobj()
        found.append((place, frame.decompress(data[place:]).count(b"\n")))
        place = len(data) - len(frame.unused_data)
    return found


def test_segments_and_the_journal_after_them_read_as_one(path: Path, records: list[Record]) -> None:
    write_in_segments(path, records[:-1])
    write(path, records[-1])
    assert len(list_segments(path.parent)) > 3
    assert list(read_journal(path)) == records
    assert list(read_journal_backwards(path)) == records[::-1]
    assert [entry for place, _ in read_journal_with_places(path) for entry in [record_at(path, place)]] == records
    with open_journal(path) as journal:
        assert journal.count()[0].lines == journal.count()[1] == RECORDS


def test_a_new_journal_is_one_file(path: Path, records: list[Record]) -> None:
    write(path, *records)
    assert [file.name for file in path.parent.iterdir()] == ["journal.jsonl"]


def test_a_writer_appends_to_the_journal_after_the_segments(path: Path, records: list[Record]) -> None:
    write_in_segments(path, records[:20])
    segments = list_segments(path.parent)
    write(path, *records[20:])
    assert list(read_journal(path)) == records
    assert list_segments(path.parent) == segments


def test_a_torn_last_line_after_segments_is_dropped(path: Path, records: list[Record]) -> None:
    write_in_segments(path, records)
    with path.open("ab") as file:
        file.write(b'{"type":"record","v":2,"rec')
    assert list(read_journal(path)) == records
    write(path, records[0])
    assert list(read_journal(path)) == [*records, records[0]]


# --- killed writers of older versions -------------------------------------------------------------------------------


def _linked_and_not_renamed(folder: Path) -> None:
    """Leave the lines of `journal.jsonl` in a segment, too: the writer was about to begin a new file."""
    os.link(folder / JOURNAL, folder / SEGMENTS / f"{len(list_segments(folder)) + 1:06d}.jsonl")


def _not_compressed(folder: Path) -> None:
    last = list_segments(folder)[-1]
    last.with_suffix("").write_bytes(zstandard.ZstdDecompressor().decompress(last.read_bytes()))
    last.unlink()


def _not_removed(folder: Path) -> None:
    """Leave a segment in both forms."""
    last = list_segments(folder)[-1]
    last.with_suffix("").write_bytes(zstandard.ZstdDecompressor().decompress(last.read_bytes()))


def _half_written(folder: Path) -> None:
    (folder / SEGMENTS / ".new-000009.jsonl.zst").write_bytes(b"half")
    (folder / ".new-journal").touch()


@pytest.mark.parametrize("killed", [_linked_and_not_renamed, _not_compressed, _not_removed, _half_written])
def test_a_writer_killed_at_any_step_has_lost_nothing(
    killed: Callable[[Path], None], path: Path, records: list[Record]
) -> None:
    write_in_segments(path, records[:-1])
    killed(path.parent)
    assert list(read_journal(path)) == records[:-1], "nothing is lost, doubled or damaged"
    assert list(read_journal_backwards(path)) == records[-2::-1]
    copied = path.parent / "copied"
    shutil.copytree(path.parent, copied, ignore=shutil.ignore_patterns("copied"))  # links become files
    for each in (path, copied / path.name):
        write(each, records[-1])
        assert list(read_journal(each)) == records


# --- one trial ------------------------------------------------------------------------------------------------------


def test_the_newest_record_of_a_trial_is_found_first(path: Path, records: list[Record]) -> None:
    newer = [record.model_copy(update={"tries": 2}) for record in records]
    write_in_segments(path, [*records, *newer])
    for old, new in zip(records, newer, strict=True):
        assert list(records_of(path, old.attempt_key)) == [new, old]
    assert list(records_of(path, "f" * 32)) == []


def test_a_run_folder_finds_the_record_that_counts(tmp_path: Path) -> None:
    whole, parts = make_run(tmp_path / "whole"), make_run(tmp_path / "parts", SMALL)
    plan = whole.read_plan()
    counting = {record.attempt_key: record for record in whole.latest_records(plan)}
    assert counting
    for trial in plan.trials():
        assert whole.latest_record(trial) == parts.latest_record(trial) == counting.get(trial.attempt_key)


# --- the same with and without segments -----------------------------------------------------------------------------


def test_reports_and_resume_are_the_same_with_and_without_segments(tmp_path: Path) -> None:
    whole, parts = make_run(tmp_path / "whole"), make_run(tmp_path / "parts", SMALL)
    assert len(list_segments(parts.path)) > 3
    plan = whole.read_plan()
    assert list(parts.entries()) == list(whole.entries())
    assert summarise(plan, parts.latest_records(plan)) == summarise(plan, whole.latest_records(plan))
    assert parts.spent() == whole.spent()
    assert parts.beginning() == whole.beginning()
    assert parts.count_checksums() == whole.count_checksums()
    assert parts.seal_file.read_bytes() == whole.seal_file.read_bytes()
    again = RunOptions(rescore_all=True)
    jobs = [[*pending_jobs(plan, read_progress(run, plan, again), run, again)] for run in (whole, parts)]
    assert jobs[0] == jobs[1]
    assert any(job.prior for job in jobs[0]), "attempts are read from their places in segments"


# --- damage and hostile files ---------------------------------------------------------------------------------------


def damage_of(path: Path) -> list[Damage]:
    return [entry for entry in read_journal(path) if isinstance(entry, Damage)]


def changed(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 0x55
    path.write_bytes(data)


def test_a_damaged_frame_is_named_and_the_others_are_read(path: Path, records: list[Record]) -> None:
    file = one_segment(path, records)
    frames = frames_of(file)
    place, lost = frames[3]
    changed(file, place + 40)
    entries = list(read_journal(path))
    assert sum(isinstance(entry, Record) for entry in entries) == RECORDS - lost
    first = next(entry for entry in entries if isinstance(entry, Damage))
    assert f"segments/000001.jsonl.zst: frame 4, at byte {place:,}, cannot be unpacked" in first.reason
    assert first.line == 1 + sum(held for _, held in frames[:3])
    backwards = [entry for entry in read_journal_backwards(path) if isinstance(entry, Record)]
    assert backwards == [entry for entry in entries if isinstance(entry, Record)][::-1]
    found = [key for n in range(RECORDS) for key in records_of(path, f"{n:032x}")]
    assert len(found) == RECORDS - lost


OLD_INDEX = struct.pack("<II", 0x184D2A5B, 48) + bytes(40) + b"bakeoff1"
"""Segments of older versions end with an index, in a frame that zstd skips."""


@pytest.mark.parametrize("end", [OLD_INDEX, OLD_INDEX[:-30]], ids=["whole", "cut"])
def test_a_segment_of_an_older_version_is_read(end: bytes, path: Path, records: list[Record]) -> None:
    file = one_segment(path, records)
    file.write_bytes(file.read_bytes() + end)
    assert [entry for entry in read_journal(path) if isinstance(entry, Record)] == records
    assert bool(damage_of(path)) == (end != OLD_INDEX)
    for record in records:
        assert list(records_of(path, record.attempt_key)) == [record]
    write(path, records[0])
    assert [entry for entry in read_journal(path) if isinstance(entry, Record)] == [*records, records[0]]


def test_a_damaged_header_loses_one_frame(path: Path, records: list[Record]) -> None:
    file = one_segment(path, records)
    place, lost = frames_of(file)[2]
    changed(file, place)
    entries = list(read_journal(path))
    assert sum(isinstance(entry, Record) for entry in entries) == RECORDS - lost
    assert damage_of(path)


def _bomb(file: Path) -> None:
    """Write 10 GB of zeros in frames of 1 MB."""
    file.write_bytes(zstandard.ZstdCompressor().compress(bytes(1 << 20)) * 10_000)
    assert file.stat().st_size < 1 << 20


def _one_large_frame(file: Path) -> None:
    file.write_bytes(zstandard.ZstdCompressor().compress(bytes(100 << 20)))


def _large_window(file: Path) -> None:
    """Claim a content of 1 kB and a window of 1 GB."""
    header = b"\x28\xb5\x2f\xfd" + bytes([0b01000000, 20 << 3]) + (1024 - 256).to_bytes(2, "little")
    block = ((1024 << 3) | 1).to_bytes(3, "little") + bytes(1024)
    file.write_bytes(header + block)


def _no_zstd(file: Path) -> None:
    file.write_bytes(os.urandom(5000))


def _empty(file: Path) -> None:
    file.write_bytes(b"")


LIMITED = """
import resource, sys
from pathlib import Path
from bakeoff.storage.journal import read_journal, read_journal_backwards
from bakeoff.storage.journal_lines import Damage
import zstandard
resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
for path in map(Path, sys.argv[1:]):
    for read in (read_journal, read_journal_backwards):
        entries = list(read(path))
        print(path.parent.name, sum(isinstance(entry, Damage) for entry in entries), len(entries))
"""
HOSTILE = (_bomb, _one_large_frame, _large_window, _no_zstd, _empty)


def test_a_hostile_segment_is_damage_and_takes_little_memory(tmp_path: Path, records: list[Record]) -> None:
    journals = []
    for make in HOSTILE:
        journals.append(tmp_path / make.__name__ / "journal.jsonl")
        journals[-1].parent.mkdir()
        make(one_segment(journals[-1], records))
    done = subprocess.run([sys.executable, "-c", LIMITED, *journals], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = [line.split() for line in done.stdout.splitlines()]
    assert [name for name, *_ in told] == [make.__name__ for make in HOSTILE for _ in range(2)]
    for name, damaged, entries in told:
        assert 0 < int(damaged) < 10, f"{name} is reported, and not once for each byte"
        assert int(entries) - int(damaged) == 1, f"the record after {name} is read"


def test_a_line_longer_than_a_frame_is_read_from_several(
    path: Path, make_record: Callable[..., Record], records: list[Record]
) -> None:
    numbers = [n * 7919 for n in range(300_000)]  # many short values: no blob takes them
    long = make_record(attempt_key="a" * 32, case="long", artefacts={}, transcript={"output": numbers})
    write(path, records[0], long, records[1])
    assert path.stat().st_size > 2 * MAX_FRAME_SIZE
    make_segments(path.parent, path.stat().st_size)
    assert list(read_journal(path)) == [records[0], long, records[1]]
    assert list(records_of(path, "a" * 32)) == [long]


def test_a_repair_keeps_what_is_whole_and_the_damaged_segment(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", SMALL)
    before = [entry for entry in run.entries() if isinstance(entry, Record)]
    file = list_segments(run.path)[1]
    data = file.read_bytes()
    changed(file, 40)
    damaged = file.read_bytes()
    repaired = repair_run(run)
    assert repaired.aside
    assert [entry for entry in run.entries() if isinstance(entry, Damage)] == []
    kept = [entry for entry in run.entries() if isinstance(entry, Record)]
    assert 0 < len(kept) < len(before)
    assert [entry for entry in before if entry in kept] == kept
    assert list_segments(run.path) == []
    assert [path.read_bytes() for path in run.path.glob(DAMAGED_SEGMENTS)] == [damaged] != [data]


def test_a_repair_that_was_killed_before_it_removed_the_segments_doubles_nothing(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", SMALL)
    shutil.copytree(run.segments, tmp_path / "kept")
    changed(list_segments(run.path)[1], 40)
    repair_run(run)
    after = list(run.entries())
    shutil.copytree(tmp_path / "kept", run.segments, dirs_exist_ok=True)
    assert list(run.entries()) == after
    JournalWriter(run.journal_file, NO_SECRETS).close()
    assert list(run.entries()) == after

"""A long journal becomes segments, loses nothing whenever its writer is killed, and reads as one file."""

import os
import re
import shutil
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from bakeoff.engine.resume import pending_jobs, read_progress
from bakeoff.errors import RunFolderError
from bakeoff.options import RunOptions
from bakeoff.record import Record
from bakeoff.report.summary import summarise
from bakeoff.storage import segment_file
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
from bakeoff.storage.run_folder import RunFolder
from bakeoff.storage.segment_file import Segment, compress_segment, read_segment
from bakeoff.storage.segments import (
    DAMAGED_SEGMENTS,
    SEGMENTS,
    begin_segment,
    finish_segments,
    list_segments,
    open_journal,
)

from .conftest import NO_SECRETS, write
from .damage import make_run

SMALL = 2000  # bytes of a segment: a few records
RECORDS = 40


@pytest.fixture
def records(make_record: Callable[..., Record]) -> list[Record]:
    return [make_record(case=f"case-{n}", attempt_key=f"{n:032x}") for n in range(RECORDS)]


def write_in_segments(path: Path, records: list[Record], segment_bytes: int = SMALL) -> None:
    """Write one record after the other, so that there are many segments."""
    with JournalWriter(path, NO_SECRETS, segment_bytes=segment_bytes) as journal:
        for record in records:
            journal.append_record(record)
            journal.flush()


def one_segment(path: Path, records: list[Record]) -> Path:
    """Write a journal with one compressed segment of many small frames, and one more record."""
    write(path, *records[:-1])
    os.close(begin_segment(path))
    [name] = list_segments(path.parent)
    packed = name.path.with_suffix(".jsonl.zst")
    assert compress_segment(name.path, packed, frame_bytes=1000)
    name.path.unlink()
    write(path, records[-1])
    return packed


def test_a_long_journal_becomes_compressed_segments_and_reads_as_one(path: Path, records: list[Record]) -> None:
    write_in_segments(path, records)
    files = sorted(file.name for file in (path.parent / SEGMENTS).iterdir())
    assert len(files) > 3
    assert all(re.fullmatch(r"\d{6}\.jsonl\.zst", name) for name in files)
    assert list(read_journal(path)) == records
    assert list(read_journal_backwards(path)) == records[::-1]
    assert [entry for place, _ in read_journal_with_places(path) for entry in [record_at(path, place)]] == records
    with open_journal(path) as journal:
        assert journal.count()[0].lines == journal.count()[1] == RECORDS


def test_a_short_journal_stays_one_file(path: Path, records: list[Record]) -> None:
    write(path, *records)
    assert [file.name for file in path.parent.iterdir()] == ["journal.jsonl"]


def test_a_segment_is_an_ordinary_zstd_file(path: Path, records: list[Record]) -> None:
    write(path, *records)
    plain = path.read_bytes()
    os.close(begin_segment(path))
    finish_segments(list_segments(path.parent))
    [name] = list_segments(path.parent)
    with name.path.open("rb") as file:
        assert zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read() == plain


def test_another_writer_goes_on_with_the_numbers(path: Path, records: list[Record]) -> None:
    write_in_segments(path, records[:20])
    write_in_segments(path, records[20:])
    assert list(read_journal(path)) == records


# --- killed writers -------------------------------------------------------------------------------------------------

# The process kills itself when it is about to do the step: what Python announces to audit hooks has not happened yet.
WRITER = """
import os, signal, sys
from pathlib import Path
from bakeoff.record import Record
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.redaction import Redactor
path, event, name, which = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
seen = 0
def kill_at(found, arguments):
    global seen
    if found == event and any(isinstance(one, (str, Path)) and Path(one).name == name for one in arguments):
        seen += 1
        if seen == which:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(kill_at)
with JournalWriter(path, Redactor({}), segment_bytes=2000) as journal:
    for line in sys.stdin:
        journal.append_record(Record.model_validate_json(line))
        journal.flush()
        print("written", flush=True)
"""
STEPS = {
    "before the segment": ("os.link", "journal.jsonl", 1),
    "between segment and new journal": ("os.rename", "journal.jsonl", 1),
    "before the second segment": ("os.link", "journal.jsonl", 2),
    "while compressing": ("open", ".new-000001.jsonl.zst", 1),
    "before the compressed file has its name": ("os.rename", "000001.jsonl.zst", 1),
    "before the plain file is removed": ("os.remove", "000001.jsonl", 1),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_writer_killed_at_any_step_loses_nothing(step: str, path: Path, records: list[Record]) -> None:
    event, name, which = STEPS[step]
    lines = "".join(f"{record.model_dump_json()}\n" for record in records)
    words = [sys.executable, "-c", WRITER, str(path), event, name, str(which)]
    done = subprocess.run(words, input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    told = done.stdout.count("written")
    found = list(read_journal(path))
    assert found == records[: len(found)], "nothing is lost, doubled or damaged"
    assert len(found) in (told, told + 1), "every record that was reported is there"
    assert list(read_journal_backwards(path)) == found[::-1]
    copied = path.parent / "copied"
    shutil.copytree(path.parent, copied, ignore=shutil.ignore_patterns("copied"))  # links become files
    assert list(read_journal(copied / path.name)) == found
    shutil.rmtree(copied)
    write_in_segments(path, records[len(found) :])
    assert list(read_journal(path)) == records
    left = [file.name for file in (path.parent / SEGMENTS).iterdir() if not file.name.endswith(".jsonl.zst")]
    assert left == [], "the next writer has finished the work"
    assert not list(path.parent.rglob(".new-*"))


# The same process goes on after the interruption.
INTERRUPTED_WRITER = """
import sys
from pathlib import Path
from bakeoff.record import Record
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.redaction import Redactor
path, event, name, which = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
seen = 0
def interrupt_at(found, arguments):
    global seen
    if found == event and any(isinstance(one, (str, Path)) and Path(one).name == name for one in arguments):
        seen += 1
        if seen == which:
            raise KeyboardInterrupt
with JournalWriter(path, Redactor({}), segment_bytes=2000) as journal:
    sys.addaudithook(interrupt_at)
    for line in sys.stdin:
        journal.append_record(Record.model_validate_json(line))
        try:
            journal.flush()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
"""
INTERRUPTIONS = {
    "before the new journal has its name": ("os.rename", "journal.jsonl", 1),
    "after the new journal has its name": ("open", "interrupted-run", 2),  # synced before and after
}


@pytest.mark.parametrize("step", INTERRUPTIONS)
def test_a_writer_that_goes_on_after_an_interruption_doubles_nothing(
    step: str, tmp_path: Path, records: list[Record]
) -> None:
    event, name, which = INTERRUPTIONS[step]
    path = tmp_path / "interrupted-run" / "journal.jsonl"
    path.parent.mkdir()
    lines = "".join(f"{record.model_dump_json()}\n" for record in records)
    words = [sys.executable, "-c", INTERRUPTED_WRITER, str(path), event, name, str(which)]
    done = subprocess.run(words, input=lines, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
    assert list(read_journal(path)) == records
    assert list_segments(path.parent)
    assert not list(path.parent.rglob(".new-*"))


def test_a_torn_last_line_after_segments_is_dropped(path: Path, records: list[Record]) -> None:
    write_in_segments(path, records)
    with path.open("ab") as file:
        file.write(b'{"type":"record","v":2,"rec')
    assert list(read_journal(path)) == records
    write_in_segments(path, records[:1])
    assert list(read_journal(path)) == [*records, records[0]]


def test_a_reader_never_sees_damage_while_segments_are_made(path: Path, records: list[Record]) -> None:
    many = records * 10
    write(path)
    writer = threading.Thread(target=write_in_segments, args=(path, many))
    writer.start()
    while writer.is_alive():
        found = list(read_journal(path))
        assert found == many[: len(found)]
    writer.join()
    assert list(read_journal(path)) == many


def test_a_run_is_seen_as_being_written_while_segments_are_made(tmp_path: Path, records: list[Record]) -> None:
    folder = RunFolder(tmp_path)
    with JournalWriter(folder.journal_file, NO_SECRETS, segment_bytes=SMALL) as journal:
        for record in records:
            journal.append_record(record)
            journal.flush()
            assert folder.is_being_written()
            with pytest.raises(RunFolderError, match="another process is writing run"):
                JournalWriter(folder.journal_file, NO_SECRETS, pause=lambda _: None)
    assert not folder.is_being_written()


def test_without_hard_links_the_journal_stays_one_file(path: Path, records: list[Record]) -> None:
    with JournalWriter(path, NO_SECRETS, segment_bytes=SMALL) as journal:
        (path.parent / SEGMENTS).write_text("a file is in the way, so that nothing can be linked there")
        for record in records:
            journal.append_record(record)
            journal.flush()
    (path.parent / SEGMENTS).unlink()
    assert list(read_journal(path)) == records
    assert [file.name for file in path.parent.iterdir()] == ["journal.jsonl"]


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


def test_a_journal_of_an_older_version_goes_on_in_segments(path: Path, records: list[Record]) -> None:
    old = Path(__file__).with_name("data") / "journal-v1.jsonl"
    shutil.copy(old, path)
    before = list(read_journal(path))
    write_in_segments(path, records)
    assert list_segments(path.parent)
    assert list(read_journal(path)) == [*before, *records]


# --- damage and hostile files ---------------------------------------------------------------------------------------


def damage_of(path: Path) -> list[Damage]:
    return [entry for entry in read_journal(path) if isinstance(entry, Damage)]


def changed(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 0x55
    path.write_bytes(data)


def records_in(segment: Segment) -> list[int]:
    """Return how many records each frame holds."""
    with segment.path.open("rb") as file:
        return [segment.read_frame(file, number).count(b"\n") for number in range(len(segment.places) - 1)]


def test_a_damaged_frame_is_named_and_the_others_are_read(path: Path, records: list[Record]) -> None:
    file = one_segment(path, records)
    segment = read_segment(file)
    held = records_in(segment)
    changed(file, segment.places[3] + 40)
    entries = list(read_journal(path))
    lost = held[3]
    assert sum(isinstance(entry, Record) for entry in entries) == RECORDS - lost
    first = next(entry for entry in entries if isinstance(entry, Damage))
    assert f"segments/000001.jsonl.zst: frame 4 of {len(held)} cannot be unpacked" in first.reason
    assert first.line == 1 + sum(held[:3])
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
    segment = read_segment(file)
    held = records_in(segment)
    changed(file, segment.places[2])
    entries = list(read_journal(path))
    assert sum(isinstance(entry, Record) for entry in entries) == RECORDS - held[2]
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


def test_lines_that_compress_too_well_stay_plain(path: Path, make_record: Callable[..., Record]) -> None:
    plain = path.parent / "zeros"
    plain.write_bytes(bytes(4 << 20))
    assert not compress_segment(plain, path.parent / "zeros.zst")
    assert sorted(file.name for file in path.parent.iterdir()) == ["zeros"]


def test_a_line_longer_than_a_frame_is_read_from_several(
    path: Path, make_record: Callable[..., Record], records: list[Record]
) -> None:
    numbers = [n * 7919 for n in range(300_000)]  # many short values: no blob takes them
    long = make_record(attempt_key="a" * 32, case="long", artefacts={}, transcript={"output": numbers})
    write(path, records[0], long, records[1])
    assert path.stat().st_size > 2 * segment_file.MAX_FRAME_SIZE
    os.close(begin_segment(path))
    finish_segments(list_segments(path.parent))
    assert list_segments(path.parent)[0].compressed
    assert list(read_journal(path)) == [records[0], long, records[1]]
    assert list(records_of(path, "a" * 32)) == [long]


def test_a_repair_keeps_what_is_whole_and_the_damaged_segment(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", SMALL)
    before = [entry for entry in run.entries() if isinstance(entry, Record)]
    file = list_segments(run.path)[1].path
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
    changed(list_segments(run.path)[1].path, 40)
    repair_run(run)
    after = list(run.entries())
    shutil.copytree(tmp_path / "kept", run.segments, dirs_exist_ok=True)
    assert list(run.entries()) == after
    JournalWriter(run.journal_file, NO_SECRETS).close()
    assert list_segments(run.path) == []
    assert list(run.entries()) == after

"""Segments that cannot be read, or lead elsewhere, cost no data: neither theirs nor that of other runs."""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest
import zstandard

from bakeoff._kernel.files import open_file
from bakeoff.errors import RunFolderError
from bakeoff.record import Record
from bakeoff.storage import segments
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.journal_lines import Damage
from bakeoff.storage.repair import ASIDE, repair_run
from bakeoff.storage.run_folder import RunFolder
from bakeoff.storage.segments import DAMAGED_SEGMENTS, list_segments

from .conftest import NO_SECRETS
from .damage import make_run
from .segmented import SMALL, make_segments


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "run", SMALL)


def records_of(run: RunFolder) -> list[Record]:
    return [entry for entry in run.entries() if isinstance(entry, Record)]


def damage_of(run: RunFolder) -> list[str]:
    return [entry.reason for entry in run.entries() if isinstance(entry, Damage)]


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextmanager
def descriptors(free: int) -> Iterator[None]:
    """Let this process open only so many more files at a time."""
    fillers = [os.open(os.devnull, os.O_RDONLY) for _ in range(100)]  # fill the gaps between those that are open
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(fillers) + 1, limits[1]))
    try:
        for _ in range(free):
            os.close(fillers.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for filler in fillers:
            os.close(filler)


# --- repair ---------------------------------------------------------------------------------------------------------


def _failing_disk(path: Path) -> BinaryIO:
    if path.name == "000002.jsonl":
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return open_file(path)


def test_nothing_is_repaired_while_a_segment_cannot_be_opened(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    records = records_of(run)
    make_segments(run.path, compressed=False)
    run.seal_file.unlink()  # a reason to repair
    before = files_in(run.path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "open_file", _failing_disk)
        with pytest.raises(RunFolderError, match=r"segments/000002\.jsonl cannot be read: Input/output error"):
            repair_run(run)
    assert files_in(run.path) == before
    repair_run(run)
    assert records_of(run) == records
    assert damage_of(run) == []


def _bomb(file: Path) -> None:
    file.write_bytes(zstandard.ZstdCompressor().compress(bytes(1 << 20)) * 1000)


def _noise(file: Path) -> None:
    file.write_bytes(os.urandom(5000))


@pytest.mark.parametrize("change", [_bomb, _noise])
def test_a_repair_keeps_a_segment_that_is_not_read(run: RunFolder, change: Callable[[Path], None]) -> None:
    file = list_segments(run.path)[1]
    change(file)
    data = file.read_bytes()
    kept = records_of(run)
    repair_run(run)
    assert [path.read_bytes() for path in run.path.glob(DAMAGED_SEGMENTS)] == [data]
    assert records_of(run) == kept
    assert damage_of(run) == []


def test_a_segment_that_is_not_read_survives_a_repair_that_was_killed(run: RunFolder) -> None:
    file = list_segments(run.path)[1]
    _bomb(file)
    data = file.read_bytes()
    repair_run(run)
    [aside] = run.path.glob(DAMAGED_SEGMENTS)
    aside.rename(file)  # as if the process had ended before it
    JournalWriter(run.journal_file, NO_SECRETS).close()
    assert file.read_bytes() == data
    assert damage_of(run) == []


# --- links ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def victim(tmp_path: Path) -> RunFolder:
    run = make_run(tmp_path / "victim", SMALL)
    (run.segments / ".new-000009.jsonl.zst").write_bytes(b"being written")
    return run


@pytest.fixture
def linked(tmp_path: Path, victim: RunFolder) -> RunFolder:
    """Return a run whose folder of segments is that of another one."""
    run = make_run(tmp_path / "linked")
    run.segments.symlink_to("../victim/segments")
    return run


def _resume(run: RunFolder) -> None:
    with JournalWriter(run.journal_file, NO_SECRETS) as journal:
        for record in records_of(run):
            journal.append_record(record)


@pytest.mark.parametrize("work", [repair_run, _resume])
def test_a_link_to_the_segments_of_another_run_is_damage_and_not_followed(
    linked: RunFolder, victim: RunFolder, work: Callable[[RunFolder], object]
) -> None:
    before = files_in(victim.path)
    assert "segments is a link or a file, not a folder" in damage_of(linked)
    records = records_of(linked)
    work(linked)
    assert files_in(victim.path) == before
    assert records_of(linked)[: len(records)] == records


def test_after_a_repair_a_link_to_the_segments_of_another_run_is_out_of_the_way(linked: RunFolder) -> None:
    repair_run(linked)
    assert damage_of(linked) == []
    assert [path.readlink() for path in linked.path.glob(DAMAGED_SEGMENTS)] == [Path("../victim/segments")]
    _resume(linked)
    assert damage_of(linked) == []


@pytest.mark.parametrize("name", ["000009.jsonl", "000009.jsonl.zst"])
@pytest.mark.parametrize("work", [repair_run, _resume])
def test_a_link_in_place_of_a_segment_is_damage_and_not_followed(
    run: RunFolder, victim: RunFolder, name: str, work: Callable[[RunFolder], object]
) -> None:
    before, records = files_in(victim.path), records_of(run)
    target = victim.journal_file if name.endswith("jsonl") else victim.segment_files[0]
    (run.segments / name).symlink_to(target)
    assert f"segments/{name} is a link, a folder or a device: it is not read" in damage_of(run)
    assert records_of(run) == records
    work(run)
    assert files_in(victim.path) == before
    repair_run(run)
    assert damage_of(run) == []
    assert [path.readlink() for path in run.path.glob(DAMAGED_SEGMENTS)] == [target]


@pytest.mark.parametrize("name", ["000009.jsonl", "000009.jsonl.zst"])
def test_a_link_that_leads_nowhere_is_named_as_damage(run: RunFolder, name: str) -> None:
    records = records_of(run)
    (run.segments / name).symlink_to("nowhere")
    assert f"segments/{name} is a link, a folder or a device: it is not read" in damage_of(run)
    assert records_of(run) == records


def test_a_repair_appends_nothing_to_a_file_that_a_link_leads_to(run: RunFolder, tmp_path: Path) -> None:
    other = tmp_path / "profile"
    other.write_text("mine\n")
    (run.path / ASIDE).symlink_to(other)
    with run.journal_file.open("ab") as file:
        file.write(b"rm -rf ~\n")
    with pytest.raises(RunFolderError, match=r"journal\.damaged\.jsonl is a link, which is not followed"):
        repair_run(run)
    assert other.read_text() == "mine\n"


def test_nothing_is_appended_to_a_file_that_a_link_in_place_of_the_journal_leads_to(
    run: RunFolder, tmp_path: Path
) -> None:
    other = tmp_path / "profile"
    other.write_text("mine, without a newline at its end")
    run.journal_file.unlink()
    run.journal_file.symlink_to(other)
    with pytest.raises(RunFolderError, match=r"journal\.jsonl cannot be opened: it is a link, which is not followed"):
        _resume(run)
    assert other.read_text() == "mine, without a newline at its end"


# --- writers --------------------------------------------------------------------------------------------------------


def test_a_writer_that_cannot_read_the_journal_releases_its_lock(run: RunFolder) -> None:
    with (
        descriptors(2),  # the journal twice: its segments cannot be listed
        pytest.raises(RunFolderError, match=r"journal\.jsonl cannot be opened: Too many open files"),
    ):
        JournalWriter(run.journal_file, NO_SECRETS)
    assert not run.is_being_written()
    JournalWriter(run.journal_file, NO_SECRETS).close()

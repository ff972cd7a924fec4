"""Links in a run folder are not followed, and a journal that an older version divided is refused with the way out."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bakeoff.errors import RunFolderError
from bakeoff.storage.journal import JournalWriter, records_of
from bakeoff.storage.repair import ASIDE, repair_run
from bakeoff.storage.run_folder import RunFolder

from .conftest import NO_SECRETS
from .damage import make_run


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "run")


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


def test_a_divided_journal_is_refused_until_the_documented_commands_have_joined_it(run: RunFolder) -> None:
    entries = list(run.entries())
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    (run.path / "segments").mkdir()
    (run.path / "segments/000001.jsonl").write_bytes(b"".join(lines[:5]))
    run.journal_file.write_bytes(b"".join(lines[5:]))
    for use in (run.read_plan, lambda: repair_run(run)):
        with pytest.raises(RunFolderError, match=r"an older version divided its journal .*run-folder\.md"):
            use()
    [join] = [line for line in Path("docs/reference/run-folder.md").read_text().splitlines() if "mv joined" in line]
    subprocess.run(["sh", "-ec", join.replace("zstd -dc segments/*.zst", "cat segments/*")], cwd=run.path, check=True)
    assert list(run.entries()) == entries


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
        JournalWriter(run.journal_file, NO_SECRETS)
    assert other.read_text() == "mine, without a newline at its end"


def test_a_writer_that_cannot_read_the_journal_releases_its_lock(run: RunFolder) -> None:
    with (
        descriptors(1),  # for the journal, but not to read it
        pytest.raises(RunFolderError, match=r"journal\.jsonl cannot be opened: Too many open files"),
    ):
        JournalWriter(run.journal_file, NO_SECRETS)
    assert not run.is_being_written()
    JournalWriter(run.journal_file, NO_SECRETS).close()


def test_a_run_folder_finds_the_record_that_counts(run: RunFolder) -> None:
    plan = run.read_plan()
    counting = {record.attempt_key: record for record in run.latest_records(plan)}
    assert counting
    for trial in plan.trials():
        assert run.latest_record(trial) == counting.get(trial.attempt_key)
        assert [record.attempt_key for record in records_of(run.journal_file, trial.attempt_key)]
    assert list(records_of(run.journal_file, "f" * 32)) == []

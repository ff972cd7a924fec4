"""A run that lost its end, its journal or its plan is noticed; one that was only killed is not damaged."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bakeoff.errors import RunFolderError
from bakeoff.plan import Plan
from bakeoff.record import Record
from bakeoff.storage.journal import JournalWriter, read_journal
from bakeoff.storage.journal_lines import Damage
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.repair import repair_run
from bakeoff.storage.run_folder import RunFolder

from .conftest import NO_SECRETS, write
from .damage import make_run


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "run")


def damage_of(run: RunFolder) -> list[str]:
    forwards = [entry.reason for entry in run.entries() if isinstance(entry, Damage)]
    damaged: list[Damage] = []
    list(run.latest_records(run.read_plan(), damaged))
    assert [one.reason for one in damaged] == forwards, "both directions report the same"
    return forwards


def test_a_sealed_run_that_lost_its_last_lines_is_damaged(run: RunFolder) -> None:
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    for kept in (0, 1, len(lines) - 1, lines.index(next(line for line in lines if b'"end"' in line[:20])) + 1):
        run.journal_file.write_bytes(b"".join(lines[:kept]))
        [reason] = damage_of(run)
        assert f"had {len(lines)} lines when it was sealed" in reason


def test_a_journal_that_is_gone_is_damage(run: RunFolder) -> None:
    run.journal_file.unlink()
    [reason] = damage_of(run)
    assert "the journal is gone" in reason


def test_a_plan_that_was_changed_is_refused_with_the_way_out(run: RunFolder) -> None:
    data = run.plan_file.read_bytes()
    run.plan_file.write_bytes(data.replace(b"say 1", b"say 7"))
    with pytest.raises(RunFolderError, match=r"was changed after the run wrote it.*runs check --repair run"):
        run.read_plan()
    run.plan_file.write_bytes(data)
    assert run.read_plan().name == "damaged"


@pytest.mark.parametrize("step", range(3))
def test_a_process_that_is_killed_while_it_replaces_the_plan_leaves_a_run_that_can_be_read(
    run: RunFolder, step: int, tmp_path: Path
) -> None:
    """The seal knows both plans before the plan is replaced, and only the new one after."""
    new = run.read_plan().model_copy(update={"rounds": 3})
    other = RunFolder(Path(shutil.copytree(run.path, tmp_path / "other")))
    other.write_plan(new, Redactor({}))
    states = [(run.seal_file, run.plan_file), (None, run.plan_file), (None, other.plan_file)]
    seal, plan = states[step]
    if seal is None:
        from bakeoff.storage.journal import plan_digest, seal_plans

        digests = [plan_digest(path.read_bytes()) for path in (run.plan_file, other.plan_file)]
        seal_plans(run.path, *digests)
        shutil.copy(plan, run.path / "new")
        (run.path / "new").rename(run.plan_file)
    assert run.read_plan().rounds in (2, 3)
    assert damage_of(run) == []


def test_a_run_that_was_resumed_and_killed_is_not_damaged(run: RunFolder, make_record: Callable[..., Record]) -> None:
    write(run.journal_file, make_record())  # no end
    with run.journal_file.open("ab") as file:
        file.write(b'{"type":"record","v":2,"rec')
    assert damage_of(run) == []
    assert run.has_torn_line()


def test_a_last_line_whose_newline_was_changed_is_damage_and_not_a_torn_line(
    path: Path, make_record: Callable[..., Record]
) -> None:
    write(path, make_record(), make_record(round=1))  # never sealed
    path.write_bytes(path.read_bytes()[:-1] + b"\x0b")
    assert [type(entry) for entry in read_journal(path)] == [Record, Damage]
    with pytest.raises(RunFolderError, match="runs check --repair"):
        JournalWriter(path, NO_SECRETS)


def test_a_damaged_seal_is_reported_and_the_results_are_still_read(run: RunFolder) -> None:
    run.seal_file.write_bytes(run.seal_file.read_bytes().replace(b'"lines":', b'"linez":'))
    [reason] = damage_of(run)
    assert "seal.json is damaged" in reason
    assert len(list(run.latest_records(run.read_plan()))) == 16


def test_a_seal_that_is_gone_is_damage_until_it_is_repaired(run: RunFolder) -> None:
    run.seal_file.unlink()
    [reason] = damage_of(run)
    assert "the seal is gone" in reason
    repair_run(run)
    assert damage_of(run) == []
    assert run.seal_file.exists()


def test_an_old_journal_has_no_checksums_and_is_no_damage_and_new_lines_after_it_have_some(
    tmp_path: Path, make_record: Callable[..., Record]
) -> None:
    old = Path(__file__).with_name("data")
    shutil.copytree(old / "blobs", tmp_path / "blobs")
    path = Path(shutil.copy(old / "journal-v1.jsonl", tmp_path / "journal.jsonl"))
    folder = RunFolder(tmp_path)
    lines = len(path.read_bytes().splitlines())
    assert folder.count_checksums() == (lines, lines)
    with JournalWriter(path, NO_SECRETS) as journal:
        journal.append_record(make_record())
        journal.append("end", reason="finished")
    assert folder.count_checksums() == (lines + 2, lines)
    assert not any(isinstance(entry, Damage) for entry in folder.entries())
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"scripted"', b'"scribted"', 1))  # in a line without a checksum
    assert [entry.line for entry in folder.entries() if isinstance(entry, Damage)] == [lines + 2]


def test_lines_are_numbered_on_after_a_damaged_end(path: Path, make_record: Callable[..., Record]) -> None:
    write(path, make_record(), make_record(round=1))
    data = bytearray(path.read_bytes())
    data[-30] ^= 1
    path.write_bytes(data)
    write(path, make_record(round=2))
    assert [entry.line for entry in read_journal(path) if isinstance(entry, Damage)] == [2]


def test_a_seal_is_written_only_at_an_end(tmp_path: Path, make_record: Callable[..., Record]) -> None:
    folder = RunFolder(tmp_path)
    write(folder.journal_file, make_record())
    assert not folder.seal_file.exists()
    with JournalWriter(folder.journal_file, NO_SECRETS) as journal:
        journal.append("end", reason="finished")
    assert folder.sealed_lines() == 2
    assert folder.seal_file.stat().st_mode & 0o777 == 0o600


def test_writing_the_same_plan_again_writes_nothing(run: RunFolder) -> None:
    before = run.plan_file.stat().st_ino, run.seal_file.stat().st_ino
    plan: Plan = run.read_plan()
    run.write_plan(plan, Redactor({}))
    assert (run.plan_file.stat().st_ino, run.seal_file.stat().st_ino) == before

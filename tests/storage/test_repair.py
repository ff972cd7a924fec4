"""A repair keeps what is whole, deletes nothing, and leaves a run that can be read and resumed."""

import shutil
from pathlib import Path
from random import Random

import pytest

from bakeoff.errors import RunFolderError
from bakeoff.record import Record
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.journal_lines import Damage
from bakeoff.storage.repair import ASIDE, repair_run
from bakeoff.storage.run_folder import RunFolder

from .conftest import NO_SECRETS
from .damage import CHANGES, make_run


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "run")


def records_of(run: RunFolder) -> list[Record]:
    return [entry for entry in run.entries() if isinstance(entry, Record)]


def damage_of(run: RunFolder) -> list[Damage]:
    return [entry for entry in run.entries() if isinstance(entry, Damage)]


def test_a_damaged_line_is_put_aside_with_its_trial_and_the_rest_is_kept(run: RunFolder) -> None:
    before = records_of(run)
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'"seconds":0.125', b'"seconds":0.625')
    run.journal_file.write_bytes(b"".join(lines))
    repaired = repair_run(run)
    assert (repaired.kept, repaired.missing) == (len(lines) - 1, 0)
    [aside] = repaired.aside
    assert (aside.line, aside.trial) == (4, "round 1 of case 'case-0' with subject 'two'")
    assert "checksum does not match" in aside.reason
    assert (run.path / ASIDE).read_bytes() == lines[3]
    assert damage_of(run) == []
    assert records_of(run) == [before[0], *before[2:]]


def test_lines_that_were_moved_or_doubled_go_back_to_their_places(run: RunFolder) -> None:
    before = list(run.entries())
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    lines[4], lines[9] = lines[9], lines[4]
    lines.insert(20, lines[2])
    run.journal_file.write_bytes(b"".join(lines))
    repaired = repair_run(run)
    assert [aside.line for aside in repaired.aside] == [21]
    assert repaired.missing == 0
    assert list(run.entries())[:-1] == before
    assert damage_of(run) == []


def test_an_emptied_journal_and_a_changed_plan_are_said_so_and_accepted(run: RunFolder) -> None:
    lines = len(run.journal_file.read_bytes().splitlines())
    run.journal_file.write_bytes(b"")
    run.plan_file.write_bytes(run.plan_file.read_bytes() + b" ")
    repaired = repair_run(run)
    assert (repaired.kept, repaired.missing, repaired.plan_accepted) == (0, lines, True)
    assert run.read_plan().name == "damaged"
    assert damage_of(run) == []


def test_a_line_without_its_newline_is_kept(run: RunFolder) -> None:
    before = list(run.entries())
    run.journal_file.write_bytes(run.journal_file.read_bytes()[:-1] + b"x")
    repair_run(run)
    assert list(run.entries())[:-1] == before


@pytest.mark.parametrize("moved", [4, -2])
def test_a_line_that_was_moved_to_the_end_is_not_lost_with_the_last_newline(run: RunFolder, moved: int) -> None:
    records = sorted(record.attempt_key for record in records_of(run))
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    lines.insert(-1 if moved == 4 else len(lines), lines.pop(moved))
    run.journal_file.write_bytes(b"".join(lines)[:-1] + b"\x0b")
    repaired = repair_run(run)
    assert (repaired.kept, repaired.missing, len(repaired.aside)) == (len(lines), 0, 0)
    assert sorted(record.attempt_key for record in records_of(run)) == records


def test_a_torn_line_after_a_damaged_one_is_put_aside_too(run: RunFolder) -> None:
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    damaged = lines[5].replace(b'"n":', b'"m":')
    run.journal_file.write_bytes(b"".join([*lines[:5], damaged, *lines[6:]]) + b'{"type":"rec')
    repair_run(run)
    assert (run.path / ASIDE).read_bytes() == damaged + b'{"type":"rec'


def test_what_is_whole_is_left_alone(run: RunFolder) -> None:
    before = run.journal_file.read_bytes()
    assert not repair_run(run).changed
    assert run.journal_file.read_bytes() == before
    assert not (run.path / ASIDE).exists()


def test_a_run_that_is_being_written_is_not_repaired(run: RunFolder) -> None:
    with (
        JournalWriter(run.journal_file, NO_SECRETS),
        pytest.raises(RunFolderError, match="another process is writing"),
    ):
        repair_run(run)


def test_a_plan_that_is_no_plan_cannot_be_repaired(run: RunFolder) -> None:
    run.plan_file.write_text("{")
    with pytest.raises(RunFolderError, match="cannot be read"):
        repair_run(run)


@pytest.mark.parametrize("change", ["flip a bit", "insert bytes", "delete bytes", "zero a block", "remove lines"])
def test_after_a_repair_nothing_is_damaged_and_it_can_be_repeated(run: RunFolder, change: str) -> None:
    whole = run.journal_file.read_bytes()
    for seed in range(12):
        random = Random(seed)
        damaged = RunFolder(Path(shutil.copytree(run.path, run.path.parent / "damaged")))
        CHANGES[change](damaged, random)
        shutil.copy(run.plan_file, damaged.plan_file)  # a plan that is not a plan any more cannot be repaired
        repair_run(damaged)
        assert damage_of(damaged) == []
        assert not repair_run(damaged).changed
        kept = [record for record in records_of(damaged) if record in records_of(run)]
        assert kept == records_of(damaged), "no record is invented"
        shutil.rmtree(damaged.path)
    assert run.journal_file.read_bytes() == whole

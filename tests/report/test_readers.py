"""Where records come from."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bakeoff.errors import BakeoffError, RunFolderError, UsageError
from bakeoff.record import Record
from bakeoff.report.readers import (
    Circumstances,
    Description,
    JournalReader,
    RunFolderReader,
    find_source,
    known_readers,
    open_source,
)

from .runs import plan_of, record_of, run_of, write_run


def test_a_run_folder_is_read_with_its_plan_and_circumstances(tmp_path: Path) -> None:
    plan = plan_of(2, ["s"])
    run = run_of(tmp_path / "run", plan, {"s": lambda case, round_: 1.0}, sandbox="bwrap")
    source = open_source(run.path)
    assert source.plan == plan
    assert source.name == "run"
    assert source.circumstances() == Circumstances(sandboxes=("bwrap",), versions=("0.1",), damaged=0)
    assert sorted(record.case for record in source.records()) == ["case-0", "case-1"]


def test_a_journal_in_its_run_folder_is_as_good_as_the_folder(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", plan_of(2, ["s"]), {"s": lambda case, round_: 1.0})
    source = open_source(run.journal_file)
    assert source.description.content_known
    assert source.plan == run.read_plan()


def test_a_journal_without_a_plan_is_known_by_ids_alone_and_its_last_records_count(tmp_path: Path) -> None:
    plan = plan_of(2, ["s"], rounds=2)
    first, *others = [record_of(trial, 0.0) for trial in plan.trials()]
    again = record_of(plan.trial(0), 1.0)
    run = write_run(tmp_path / "run", plan, [first, *others, again])
    alone = tmp_path / "kept.jsonl"
    alone.write_bytes(run.journal_file.read_bytes())
    source = open_source(alone)
    assert not source.description.content_known
    assert [case.id for case in source.plan.cases] == ["case-0", "case-1"]
    assert source.plan.rounds == 2
    assert {(r.case, r.round): r.value for r in source.records()}[("case-0", 0)] == 1.0
    assert len(list(source.records())) == 4


def test_damaged_lines_are_counted_and_left_out(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", plan_of(2, ["s"]), {"s": lambda case, round_: 1.0})
    with run.journal_file.open("ab") as file:
        file.write(b'{"type":"record","v":1,"record":{"case":3}}\nnot json\n{"type":"rec')
    source = open_source(run.path)
    assert source.circumstances().damaged == 2
    assert len(list(source.records())) == 2


def test_an_unknown_file_is_an_error_that_lists_what_is_known(tmp_path: Path) -> None:
    strange = tmp_path / "table.xlsx"
    strange.write_bytes(b"PK")
    with pytest.raises(UsageError, match=r"table\.xlsx is none of what can be read: a run folder .*a journal"):
        open_source(strange)
    with pytest.raises(UsageError, match="does not exist"):
        find_source(tmp_path, str(tmp_path / "nosuch.jsonl"))
    with pytest.raises(RunFolderError, match='no run "nosuch"'):
        find_source(tmp_path, "nosuch")


def test_a_journal_without_one_readable_record_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"")
    with pytest.raises(RunFolderError, match="holds no record"):
        _ = open_source(empty).plan


def test_a_file_that_may_not_be_read_is_a_sentence(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", plan_of(1, ["s"]), {"s": lambda case, round_: 1.0})
    run.journal_file.unlink()
    run.journal_file.mkdir()
    with pytest.raises(BakeoffError, match="cannot be read: Is a directory"):
        list(open_source(run.path).records())


class LineReader:
    """A door's reader: one answer a line."""

    what = "answers (.answers)"

    def recognises(self, path: Path) -> bool:
        return path.suffix == ".answers"

    def describe(self, path: Path) -> Description:
        return Description(name=path.name, plan=plan_of(len(path.read_text().splitlines()), ["them"]))

    def circumstances(self, path: Path) -> Circumstances:
        return Circumstances()

    def read(self, path: Path) -> Iterator[Record]:
        for place, line in enumerate(path.read_text().splitlines()):
            yield record_of(self.describe(path).plan.trial(place), float(line))


def test_a_door_adds_a_reader_and_its_files_are_sources_like_any_other(tmp_path: Path) -> None:
    file = tmp_path / "old.answers"
    file.write_text("1\n0\n")
    source = open_source(file, (*known_readers(), LineReader()))
    assert [record.value for record in source.records()] == [1.0, 0.0]


def test_readers_tell_their_files_apart(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", plan_of(1, ["s"]), {"s": lambda case, round_: 1.0})
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"question": 1}) + "\n")
    assert RunFolderReader().recognises(run.path)
    assert not RunFolderReader().recognises(other)
    assert JournalReader().recognises(run.journal_file)
    assert not JournalReader().recognises(other)

"""Test where records come from."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bakeoff.errors import BakeoffError, RunFolderError, UsageError
from bakeoff.record import Record, Usage
from bakeoff.report.readers import (
    Circumstances,
    Description,
    JournalReader,
    RunFolderReader,
    find_source,
    known_readers,
    open_source,
)
from bakeoff.report.summary import summarise

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
        file.write(b'{"type":"record","v":2,"record":{"case":3}}\nnot json\n{"type":"rec')
    source = open_source(run.path)
    assert source.circumstances().damaged == 2
    assert len(list(source.records())) == 2


def test_an_unknown_file_is_an_error_that_lists_what_is_known(tmp_path: Path) -> None:
    strange = tmp_path / "table.xlsx"
    strange.write_bytes(b"PK")
    with pytest.raises(
        UsageError, match=r"table\.xlsx is not a kind of file that can be read: a run folder .*a journal"
    ):
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
    with pytest.raises(BakeoffError, match="cannot be read: it is not a file"):
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


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"1\nmany\n", "old.answers cannot be read: ValueError: could not convert string to float: 'many'"),
        (b"\xff\xfe1\n", "old.answers cannot be read: UnicodeDecodeError"),
        (b"7\n", "old.answers cannot be read: value: has to be at most 1"),
        (b"", "plan 'suite' has no cases"),
    ],
)
def test_what_a_reader_of_a_door_stumbles_over_is_a_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "old.answers"
    file.write_bytes(content)
    with pytest.raises(RunFolderError) as refused:
        list(open_source(file, (LineReader(),)).records())
    assert words in str(refused.value)
    assert "pydantic" not in str(refused.value)


class Repeating(LineReader):
    """Tells every trial as often as it is told to."""

    def __init__(self, changes: list[dict[str, object]]) -> None:
        self.changes = changes

    def read(self, path: Path) -> Iterator[Record]:
        for record in super().read(path):
            for change in self.changes:
                yield record.model_copy(update=change)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([{}, {}], "round 1 of case 'case-0' with subject 'them' occurs more than once"),
        ([{"case": "case-9"}], "round 1 of case 'case-9' with subject 'them' is not in the plan"),
        ([{"round": 1}], "round 2 of case 'case-0' with subject 'them' is not in the plan"),
        ([{"spent": Usage(cost=1e308)}], "cost of more than 1e+15 is too large to be a measurement"),
    ],
)
def test_a_reader_that_tells_of_other_trials_than_its_plan_has_is_refused(
    tmp_path: Path, changes: list[dict[str, object]], words: str
) -> None:
    file = tmp_path / "old.answers"
    file.write_text("1\n0\n")
    with pytest.raises(RunFolderError, match=re.escape(words)):
        list(open_source(file, (Repeating(changes),)).records())


@pytest.fixture
def broken_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two installed packages: one breaks when it is imported, one when it looks at a file."""
    site = tmp_path / "site"
    info = site / "plugins-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugins\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[bakeoff.readers]\nbad = breaks_here:Reader\nworse = looks_away:Reader\n")
    (site / "breaks_here.py").write_text('raise RuntimeError("boom")\n')
    (site / "looks_away.py").write_text(
        "class Reader:\n    what = 'nothing'\n    def recognises(self, path):\n        return {}['nosuch']\n"
    )
    monkeypatch.syspath_prepend(str(site))


@pytest.mark.usefixtures("broken_plugins")
def test_a_broken_plugin_is_named_and_keeps_nobody_from_reading_other_files(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", plan_of(1, ["s"]), {"s": lambda case, round_: 1.0})
    assert len(list(find_source(tmp_path, str(run.path), known_readers()).records())) == 1
    assert "breaks_here" not in sys.modules, "it was not asked"
    answers = tmp_path / "old.answers"
    answers.write_text("1\n")
    assert len(list(open_source(answers, (*known_readers(), LineReader())).records())) == 1
    with pytest.raises(UsageError) as refused:
        open_source(answers)
    assert "reader 'bad' (breaks_here:Reader) cannot be imported: RuntimeError: boom" in str(refused.value)
    assert "reader 'worse' (looks_away:Reader) broke on" in str(refused.value)
    assert "a run folder (plan.json and journal.jsonl)" in str(refused.value)


def test_a_journal_that_is_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", plan_of(1, ["s"]), {"s": lambda case, round_: 1.0})
    run.journal_file.unlink()
    os.mkfifo(run.journal_file)
    source = open_source(run.path)
    for read in (source.circumstances, lambda: list(source.records())):
        with pytest.raises(RunFolderError, match=r"journal\.jsonl cannot be read: it is not a file"):
            read()
    with pytest.raises(UsageError, match="is not a kind of file that can be read"):
        open_source(run.journal_file)


def test_numbers_that_nobody_measured_are_damage_and_not_the_end_of_all_sums(tmp_path: Path) -> None:
    plan = plan_of(4, ["s"])
    costs = [1e308, 1e308, 0.5, 0.25]
    records = [record_of(trial, spent=Usage(cost=cost)) for trial, cost in zip(plan.trials(), costs, strict=True)]
    source = open_source(write_run(tmp_path / "run", plan, records).path)
    assert source.circumstances().damaged == 2
    [subject] = summarise(plan, source.records()).subjects
    assert (subject.spent.cost, subject.missing) == (0.75, 2)


def test_readers_tell_their_files_apart(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", plan_of(1, ["s"]), {"s": lambda case, round_: 1.0})
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"question": 1}) + "\n")
    assert RunFolderReader().recognises(run.path)
    assert not RunFolderReader().recognises(other)
    assert JournalReader().recognises(run.journal_file)
    assert not JournalReader().recognises(other)

"""Labels survive crashes, and several people can write them at the same time."""

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import ValidationError

from bakeoff.errors import RunFolderError
from bakeoff.storage.labels import Choice, Label, answer_digest, append_label, read_labels


def label(case: int = 1, choice: Choice | None = "pass", labeller: str = "ann", **more: object) -> Label:
    fields = {
        "time": float(case),
        "labeller": labeller,
        "scorer": "judge",
        "case": f"case {case}",
        "subject": "s",
        "round": 0,
        "attempt_key": f"key {case}",
        "answer": answer_digest("yes", {}),
        "judged": 1.0,
        "stratum": 0,
        "size": 10,
        "label": choice,
    }
    return Label.model_validate({**fields, **more})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "labels.jsonl"


def test_the_last_label_of_a_person_counts_and_can_be_taken_back(file: Path) -> None:
    for one in (label(1), label(2), label(1, "fail"), label(2, None), label(1, "skip", "bob"), label(3, "skip")):
        append_label(file, one)
    found = read_labels(file)
    assert {name: [one.label for one in given.values()] for name, given in found.by_labeller.items()} == {
        "ann": ["fail", "skip"],
        "bob": ["skip"],
    }
    [(place, given)] = found.of_scorer("judge").items()
    assert (place, list(given)) == (("key 1", answer_digest("yes", {})), ["ann"])
    assert found.scorers == {"judge"}
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(file.read_text().splitlines()) == 6


def test_there_need_not_be_any(file: Path) -> None:
    assert read_labels(file).by_labeller == {}


def test_a_line_that_was_cut_off_is_left_out_and_removed_by_the_next_label(file: Path) -> None:
    append_label(file, label(1))
    with file.open("ab") as raw:
        raw.write(label(2).model_dump_json().encode()[:-20])
    assert (len(read_labels(file).by_labeller["ann"]), read_labels(file).damaged) == (1, 0)
    append_label(file, label(3))
    found = read_labels(file)
    assert [one.case for one in found.by_labeller["ann"].values()] == ["case 1", "case 3"]
    assert found.damaged == 0


def test_damaged_lines_are_counted(file: Path) -> None:
    append_label(file, label(1))
    with file.open("ab") as raw:
        raw.write(b'{"v":2}\nnot json\n\xff\n')
    append_label(file, label(2))
    assert (len(read_labels(file).by_labeller["ann"]), read_labels(file).damaged) == (2, 3)


def test_several_people_can_write_at_the_same_time(file: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: append_label(file, label(number, labeller=f"p{number % 4}")), range(80)))
    found = read_labels(file)
    assert {name: len(given) for name, given in found.by_labeller.items()} == dict.fromkeys(
        ("p0", "p1", "p2", "p3"), 20
    )


def test_what_was_written_before_a_kill_is_there(file: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from bakeoff.storage.labels import Label, append_label\n"
        f"one = Label.model_validate_json({label().model_dump_json()!r})\n"
        "for number in range(10**6):\n"
        f"    append_label(Path({str(file)!r}), one.model_copy(update={{'attempt_key': str(number)}}))\n"
        "    print(number, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(20)]
        time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    kept = read_labels(file)
    assert kept.damaged == 0
    assert len(kept.by_labeller["ann"]) >= int(told[-1]) + 1


def test_a_folder_or_pipe_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "labels.jsonl").mkdir()
    with pytest.raises(RunFolderError, match="it is a folder"):
        read_labels(tmp_path / "labels.jsonl")
    with pytest.raises(RunFolderError, match="the label was not kept"):
        append_label(tmp_path / "labels.jsonl", label())


@pytest.mark.parametrize("wrong", [{"labeller": ""}, {"labeller": "x" * 101}, {"judged": 1.5}, {"size": 0}, {"v": 3}])
def test_a_label_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        label(**wrong)  # type: ignore[arg-type]

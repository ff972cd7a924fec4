"""`bakeoff eval --watch`: only what changed is run, and all other answers are reused."""

import json
import os
from pathlib import Path

import pytest

from bakeoff.cli.eval_watch import KEPT_RUNS, past_runs, reused_records
from bakeoff.cli.run_plan import REUSED
from bakeoff.doors.eval.find import read_suite
from bakeoff.doors.eval.plan import build_plan
from bakeoff.engine.run_journal import RunJournal
from bakeoff.plan import Plan
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.run_folder import RunFolder, new_run_folder, run_folders

from ...cli.wizard_terminal import CTRL_C, Terminal
from ...warm_bakeoff import PROGRAM, Bakeoff

pytestmark = pytest.mark.full

CONFIG = """\
subjects: [{name: s, function: own_subject:answer}]
cases:
  - {input: a, expected: A}
  - {input: b, expected: B}
scorers: [exact]
"""
SUBJECT = """\
from pathlib import Path

def answer(prompt):
    with Path("asked.txt").open("a") as file:
        file.write(prompt + "\\n")
    return prompt.upper()
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bakeoff.yaml").write_text(CONFIG)
    (tmp_path / "own_subject.py").write_text(SUBJECT)
    return tmp_path


def planned() -> Plan:
    return build_plan(read_suite(None))


def asked(here: Path) -> list[str]:
    return (here / "asked.txt").read_text().splitlines()


def test_only_what_changed_is_asked_and_the_number_of_reused_answers_is_told(here: Path):
    config = here / "bakeoff.yaml"
    with Terminal([str(PROGRAM), "eval", "--watch", "--no-open"], here, {**os.environ, "NO_COLOR": "1"}) as terminal:
        terminal.sees("Waiting for changes")
        assert sorted(asked(here)) == ["a", "b"]
        config.write_text(CONFIG.replace("input: b, expected: B", "input: c, expected: C"))
        terminal.sees("1 answer to get; 1 of 2 reused from")
        terminal.sees("Waiting for changes")
        assert sorted(asked(here)) == ["a", "b", "c"]
        config.write_text(CONFIG.replace("input: b, expected: B", "input: c, expected: D"))
        terminal.sees("0 answers to get; 2 of 2 reused from")
        terminal.sees("1 of them scored again")
        terminal.sees("Waiting for changes")
        config.write_text(CONFIG.replace("exact", "exakt"))
        terminal.sees("bakeoff.yaml:5: scorers[0]: there is no scorer 'exakt'")
        terminal.sees("Waiting for changes")
        (here / "own_subject.py").write_text(SUBJECT.replace("upper", "lower"))
        config.write_text(CONFIG)
        terminal.sees("2 answers to get; 0 of 2 reused from")
        terminal.answer("Waiting for changes", CTRL_C)
        assert terminal.ends() == 1
    assert sorted(asked(here)) == ["a", "a", "b", "b", "c"]


def test_a_case_that_was_taken_out_and_put_back_is_not_asked_again(here: Path):
    config = here / "bakeoff.yaml"
    with Terminal([str(PROGRAM), "eval", "--watch", "--no-open"], here, {**os.environ, "NO_COLOR": "1"}) as terminal:
        terminal.sees("Waiting for changes")
        config.write_text(CONFIG.replace("  - {input: b", "  # - {input: b"))
        terminal.sees("0 answers to get; 1 of 1 reused from")
        terminal.sees("Waiting for changes")
        config.write_text(CONFIG)
        terminal.sees("0 answers to get; 2 of 2 reused from")
        terminal.sees("Waiting for changes")
        config.write_text(CONFIG.replace("input: b, expected: B", "input: c, expected: C"))
        terminal.sees("1 answer to get; 1 of 2 reused from")
        terminal.sees("Waiting for changes")
        config.write_text(CONFIG)
        terminal.sees("0 answers to get; 2 of 2 reused from")
        terminal.answer("Waiting for changes", CTRL_C)
        assert terminal.ends() == 0
    assert sorted(asked(here)) == ["a", "b", "c"]


def old_runs(here: Path, number: int, **facts: bool) -> list[RunFolder]:
    made = []
    for _ in range(number):
        made.append(new_run_folder(here / "results", "old"))
        with RunJournal(made[-1], Redactor({})) as journal:
            journal.start(planned(), **facts)
    return made


def test_only_the_oldest_runs_of_watches_are_deleted(here: Path):
    unwatched, oldest = old_runs(here, 1), old_runs(here, 3, watch=True)
    oldest[1].labels_file.touch()
    kept = old_runs(here, KEPT_RUNS - 1, watch=True)
    with Terminal([str(PROGRAM), "eval", "--watch", "--no-open"], here, {**os.environ, "NO_COLOR": "1"}) as terminal:
        terminal.answer("Waiting for changes", CTRL_C)
        assert terminal.ends() == 0
    left = {run.name for run in run_folders(here / "results")}
    assert {run.name for run in (*unwatched, oldest[1], *kept)} < left
    assert len(left) == 1 + 1 + KEPT_RUNS


def test_nothing_is_deleted_after_a_cycle_that_was_interrupted(here: Path):
    before = old_runs(here, KEPT_RUNS + 2, watch=True)
    (here / "own_subject.py").write_text(
        "import os, signal\n\ndef answer(prompt):\n    os.kill(os.getpid(), signal.SIGINT)\n    return prompt.upper()\n"
    )
    with Terminal([str(PROGRAM), "eval", "--watch", "--jobs", "1"], here, os.environ) as terminal:
        terminal.sees("finishing the trials in flight")
        terminal.ends()
    assert {run.name for run in before} < {run.name for run in run_folders(here / "results")}


def test_answers_are_reused_from_all_the_last_runs_of_the_same_file(here: Path, bakeoff: Bakeoff):
    for case in ("a", "b"):
        assert bakeoff("eval", "--no-open", "--case", case).returncode == 0
    plan = planned()
    earlier = past_runs(here / "results", plan)
    assert len(earlier) == 2
    records = reused_records(earlier, plan)
    assert {(record.case, record.answers) for record in records} == {("a", "replayed"), ("b", "replayed")}
    told = {record.transcript.metadata[REUSED] for record in records if record.transcript}
    assert told == {folder.label for folder in earlier}
    (here / "bakeoff.yaml").write_text(CONFIG.replace("input: b", "threshold: 0.5, input: b") + "threshold: 0.75\n")
    assert {record.case: record.threshold for record in reused_records(earlier, planned())} == {"a": 0.75, "b": 0.5}
    (here / "bakeoff.yaml").write_text(CONFIG.replace("input: b", "input: c"))
    assert [record.case for record in reused_records(earlier, planned())] == ["a"]
    (here / "bakeoff.yaml").write_text(CONFIG.replace("name: s", "name: other"))
    assert reused_records(earlier, planned()) == []


def test_the_cost_of_a_reused_answer_is_compared_and_not_paid_again(here: Path, bakeoff: Bakeoff):
    (here / "own_subject.py").write_text(
        "from bakeoff.record import Transcript, Usage\n\ndef answer(prompt):\n"
        "    return Transcript(output=prompt.upper(), usage=Usage(requests=1, input=10, output=5, cost=1.0))\n"
    )
    assert bakeoff("eval", "--no-open", "--case", "a").returncode == 0
    command = [str(PROGRAM), "eval", "--watch", "--no-open", "--max-cost", "1.5"]
    with Terminal(command, here, {**os.environ, "NO_COLOR": "1"}) as terminal:
        terminal.sees("1 answer to get; 1 of 2 reused from")
        terminal.answer("Waiting for changes", CTRL_C)
        assert terminal.ends() == 0
    shown = json.loads(bakeoff("runs", "show", "latest", "--json").stdout)
    (subject,) = shown["summary"]["subjects"]
    assert (subject["spent"]["cost"], subject["replayed"], subject["judged"]) == (2.0, 1, 2)
    assert shown["spent"]["cost"] == 1.0


def test_answers_of_a_run_that_was_not_made_here_are_not_reused(here: Path):
    (made,) = old_runs(here, 1)
    assert past_runs(here / "results", planned()) == [made]
    made.path.rename(made.path.with_name(f"{made.name}-of-a-stranger"))  # as a cloned repository brings one
    assert past_runs(here / "results", planned()) == []


def test_watching_and_output_for_one_run_exclude_each_other(bakeoff: Bakeoff):
    done = bakeoff("eval", "--watch", "--json")
    assert done.returncode == 2
    assert "--json is for one run, and --watch makes many" in done.stderr

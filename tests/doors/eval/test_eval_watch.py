"""`bakeoff eval --watch`: only what changed is run, and all other answers are reused."""

import os
from pathlib import Path

import pytest

from bakeoff.cli.watch import KEPT_RUNS
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
        config.write_text(CONFIG)  # a case that was put back is not asked again
        terminal.sees("0 answers to get; 2 of 2 reused from")
        terminal.sees("Waiting for changes")
        (here / "own_subject.py").write_text(SUBJECT.replace("upper", "lower"))
        terminal.sees("2 answers to get; 0 of 2 reused from")
        terminal.answer("Waiting for changes", CTRL_C)
        assert terminal.ends() == 1
    assert sorted(asked(here)) == ["a", "a", "b", "b", "c"]


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


def test_watching_and_output_for_one_run_exclude_each_other(bakeoff: Bakeoff):
    done = bakeoff("eval", "--watch", "--json")
    assert done.returncode == 2
    assert "--json is for one run, and --watch makes many" in done.stderr

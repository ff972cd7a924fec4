"""`bakeoff eval`: prompts × subjects × scorers from one file, through the engine of all doors."""

import json
from pathlib import Path

import pytest

from ...warm_bakeoff import Bakeoff

CAPITALS = """\
subjects:
  - {name: right, scripted: {answers: {France: Paris, Italy: Rome}}}
  - {name: paris, scripted: Paris}
  - oracle
prompts: "What is the capital of {{ input }}?"
cases:
  - {input: France, expected: Paris}
  - {input: Italy, expected: Rome}
scorers:
  - exact
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bakeoff.yaml").write_text(CAPITALS)
    return tmp_path


def test_a_file_is_run_without_python_and_its_exit_code_tells_that_something_failed(suite: Path, bakeoff: Bakeoff):
    done = bakeoff("eval", "--json", "--no-open")
    assert done.returncode == 1, done.stderr
    scores = {one["subject"]: one["score"] for one in json.loads(done.stdout)["summary"]["subjects"]}
    assert scores == {"right": 1.0, "paris": 0.5, "oracle": 1.0}


def test_only_commands_that_ran_in_a_sandbox_are_said_to_have_done_so(suite: Path, bakeoff: Bakeoff):
    (suite / "bakeoff.yaml").write_text(
        "subjects:\n  - {name: mine, command: [cat], sandbox: none}\n  - {name: theirs, command: [cat]}\n"
        "cases: [{input: a, expected: a}]\nscorers: [exact]\n"
    )
    alone = bakeoff("eval", "--no-open", "--subject", "mine")
    assert alone.returncode == 0, alone.stderr
    assert "without a sandbox, as you: mine" in alone.stderr
    assert "commands ran in" not in alone.stderr
    both = bakeoff("eval", "--no-open")
    assert "commands ran in the" in both.stderr
    assert "without a sandbox, as you: mine\n" in both.stderr
    again = bakeoff("resume", "--no-open")
    assert again.returncode == 0, again.stderr
    assert not any(words in again.stderr for words in ("commands ran in", "without a sandbox"))


def test_the_run_is_one_like_all_others(suite: Path, bakeoff: Bakeoff):
    assert bakeoff("eval", "--no-open", "--exit-zero").returncode == 0
    shown = bakeoff("runs", "show")
    assert "Italy" in shown.stdout
    assert bakeoff("resume", "--exit-zero", "--no-open").returncode == 0
    exported = bakeoff("export", "--format", "csv")
    assert "score.exact" in exported.stdout
    assert bakeoff("compare", "latest", "--subject-a", "right", "--subject-b", "paris").returncode in (0, 1)

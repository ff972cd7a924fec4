"""`bakeoff eval`: prompts × subjects × scorers from one file, through the engine of all doors."""

import json
import shutil
import time
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


@pytest.mark.parametrize("rung", ["process", "bwrap"])
def test_a_command_cannot_read_the_files_that_hold_expected_answers(rung: str, suite: Path, bakeoff: Bakeoff):
    if rung == "bwrap" and not shutil.which("bwrap"):
        pytest.skip("needs bubblewrap: apt-get install bubblewrap")
    suite.chmod(0o755)  # as root, commands run as another user
    (suite / "answers.csv").write_text("input,expected\nb,notes\n")
    (suite / "peek.sh").write_text("cat bakeoff.yaml answers.csv 2>/dev/null; cat notes.txt\n")
    (suite / "notes.txt").write_text("notes")
    (suite / "bakeoff.yaml").write_text(
        "subjects: [{name: s, command: [sh, peek.sh]}]\nscorers: [exact]\n"
        "cases: [{input: a, expected: notes}, {file: answers.csv}]\n"
    )
    done = bakeoff("eval", "--json", "--no-open", "--sandbox", rung)
    (subject,) = json.loads(done.stdout)["summary"]["subjects"]
    assert (subject["verdicts"], done.returncode) == ({"pass": 2}, 0), done.stderr


def test_what_functions_print_leaves_stdout_to_the_results(suite: Path, bakeoff: Bakeoff):
    (suite / "loud.py").write_text(
        "import subprocess, sys\ndef answer(prompt):\n    print('noise \\x1b[2J')\n"
        "    sys.stdout.buffer.write(b'bytes')\n    sys.stdout.flush()\n"
        "    subprocess.run(['echo', 'more'], stdout=sys.stdout)\n    return 'Paris'\n"
    )
    (suite / "bakeoff.yaml").write_text(
        "subjects: [{name: s, function: 'loud:answer'}]\nscorers: [exact]\ncases: [{input: a, expected: Paris}]\n"
    )
    done = bakeoff("eval", "--json", "--no-open")
    assert json.loads(done.stdout)["summary"]["subjects"][0]["score"] == 1.0
    assert "noise \\x1b[2J\n" in done.stderr
    assert "bytes" in done.stderr
    assert "more" in done.stderr


def test_a_subject_that_always_raises_is_not_taken_for_a_bad_one(suite: Path, bakeoff: Bakeoff):
    (suite / "raising_app.py").write_text("def answer(prompt):\n    raise KeyError('API_TOKEN_NAME')\n")
    (suite / "raising_program.py").write_text("import raising_app\nraising_app.answer('')\n")
    config = CAPITALS.partition("prompts:")[2]
    (suite / "bakeoff.yaml").write_text(
        "subjects:\n  - {name: mine, function: 'raising_app:answer'}\n"
        "  - {name: theirs, command: [python3, raising_program.py], sandbox: none}\n"
        "  - {name: paris, scripted: Paris}\n"
        f"prompts:{config}"
    )
    done = bakeoff("eval", "--no-open")
    assert done.returncode == 1, done.stderr
    told = " ".join(done.stdout.split())
    assert told.startswith("mine failed with the same error in all 2 trials: KeyError: 'API_TOKEN_NAME'. theirs failed")
    assert (
        "theirs failed with the same error in all 2 trials: python3: exit code 1: KeyError: 'API_TOKEN_NAME'." in told
    )
    (page,) = suite.glob("results/runs/*/*.html")
    assert "mine failed with the same error in all 2 trials" in page.read_text()


def test_the_run_is_one_like_all_others(suite: Path, bakeoff: Bakeoff):
    assert bakeoff("eval", "--no-open", "--exit-zero").returncode == 0
    shown = bakeoff("runs", "show")
    assert "Italy" in shown.stdout
    assert bakeoff("resume", "--exit-zero", "--no-open").returncode == 0
    exported = bakeoff("export", "--format", "csv")
    assert "score.exact" in exported.stdout
    assert bakeoff("compare", "latest", "--subject-a", "right", "--subject-b", "paris").returncode in (0, 1)


JUDGED = """\
subjects:
  - {name: s, scripted: '{"category": "billing"}'}
  - oracle
  - nop
cases:
  - {input: a, expected: billing}
  - {input: b, expected: billing}
"""


def test_no_judge_is_asked_about_controls(suite: Path, bakeoff: Bakeoff):
    says = json.dumps({"rationale": "fine", "choice": "A"})
    usage = {"input": 10, "output": 1}
    (suite / "judge.json").write_text(json.dumps({"replies": [{"say": says, "usage": usage}]}))
    judge = "{judge: {criteria: Is it polite?, model: 'scripted:judge.json'}}"
    (suite / "bakeoff.yaml").write_text(f"{JUDGED}scorers: [{judge}, contains]\n")
    done = bakeoff("eval", "--json", "--no-open")
    assert done.returncode == 0, done.stderr
    s, oracle, nop = json.loads(done.stdout)["summary"]["subjects"]
    assert [one["judging"]["requests"] for one in (s, oracle, nop)] == [2, 0, 0]
    assert (oracle["score"], nop["score"]) == (1.0, 0.0)  # by `contains` alone
    (suite / "bakeoff.yaml").write_text(f"{JUDGED}scorers: [{judge}]\n")
    alone = bakeoff("eval", "--no-open")
    assert alone.returncode == 0, alone.stderr
    assert "s scored 100.0 %" in alone.stdout
    assert not any(words in alone.stdout for words in ("check `expected`", "nothing is measured", "grader"))


def test_an_expected_answer_that_is_a_part_of_the_whole_is_not_called_wrong(suite: Path, bakeoff: Bakeoff):
    (suite / "field.py").write_text(
        "import json\ndef category(given):\n    return json.loads(given.output)['category'] == given.expected\n"
    )
    for scorer in (
        "function: 'field:category'",
        "regex: category",
        "checks: [is-json]",
        "contains: category, name: own",
    ):
        (suite / "bakeoff.yaml").write_text(f"{JUDGED}scorers: [contains, {{{scorer}}}]\n")
        done = bakeoff("eval", "--no-open")
        assert done.returncode == 0, done.stderr
        assert "s scored 100.0 %" in done.stdout
        assert "check `expected`" not in done.stdout, scorer


def test_an_expected_answer_that_fails_is_told_with_what_to_check(suite: Path, bakeoff: Bakeoff):
    (suite / "same.py").write_text("def same(expected, actual):\n    return expected is actual\n")
    (suite / "bakeoff.yaml").write_text(
        "subjects: [{name: s, scripted: '[1]'}, oracle]\nscorers: [{json: {match: 'same:same'}}]\n"
        "cases: [{input: x, expected: [1]}, {input: y, expected: [2]}]\n"
    )
    done = bakeoff("eval", "--no-open")
    assert "The reference answers fail 2 cases (x, y): check `expected` and the scorers." in " ".join(
        done.stdout.split()
    )


def test_a_judge_that_was_never_reached_is_given_up_in_seconds_and_blamed_itself(suite: Path, bakeoff: Bakeoff):
    more = "".join(f"  - {{input: place {number}, expected: Paris}}\n" for number in range(20))
    (suite / "bakeoff.yaml").write_text(f"subjects: [{{name: s, scripted: Paris}}]\nscorers: [exact]\ncases:\n{more}")
    assert bakeoff("eval", "--no-open").returncode == 0
    judge = {"kind": "judge", "options": {"criteria": "Is it polite?", "model": "openai-compatible:m"}}
    started = time.monotonic()
    done = bakeoff(
        "rescore", "latest", "--scorer", json.dumps(judge), OPENAI_COMPATIBLE_BASE_URL="http://127.0.0.1:9/v1"
    )
    assert time.monotonic() - started < 60  # a few seconds on an idle machine; it was 8 minutes
    assert done.returncode == 3, done.stderr
    assert "scorer 'judge': openai-compatible:m: cannot connect: " in done.stderr
    assert "trying again, for at most 5 min" not in done.stderr
    assert "s: the judge openai-compatible:m: cannot connect: " in done.stderr
    assert "(gave up after 3 tries without a connection)" in done.stderr


@pytest.mark.parametrize("role", ["subject", "judge"])
def test_a_provider_without_a_connection_is_told_before_anything_runs(suite: Path, bakeoff: Bakeoff, role: str):
    judged = role == "judge"
    subject, scorer = "{name: s, scripted: Paris}", "{judge: {criteria: Is it polite?, model: 'openai-compatible:m'}}"
    (suite / "bakeoff.yaml").write_text(
        f"subjects: [{subject if judged else 'openai-compatible:m'}]\nscorers: [{scorer if judged else 'exact'}]\n"
        "cases: [{input: France, expected: Paris}]\n"
    )
    done = bakeoff("eval", "--no-open", OPENAI_COMPATIBLE_BASE_URL="http://127.0.0.1:9/v1")
    assert done.returncode == 3, done.stdout
    who = "judge of scorer 'judge'" if judged else "subject 'openai-compatible:m'"
    assert f"error: {who}: openai-compatible at " in done.stderr
    assert "cannot connect: " in done.stderr
    assert "check OPENAI_COMPATIBLE_BASE_URL" in done.stderr
    assert not (suite / "results").exists()


def test_money_of_judges_and_subjects_is_told_apart_and_never_too_low(suite: Path, bakeoff: Bakeoff):
    def model(name: str, say: str, **usage: float) -> str:
        (suite / name).write_text(json.dumps({"replies": [{"say": say, "usage": usage}]}))
        return f"scripted:{name}"

    priced = model("priced.json", "Paris", input=7, output=1, cost=0.1)
    free = model("free.json", "Paris", input=38_000, output=290)
    judge = model("judge.json", json.dumps({"rationale": "fine", "choice": "A"}), input=1000, output=5)
    (suite / "bakeoff.yaml").write_text(
        f"subjects: [{{name: priced, model: '{priced}'}}, {{name: free, model: '{free}'}}, nop]\n"
        f"cases: [{{input: France, expected: Paris}}]\njudge: '{judge}'\n"
        "scorers: [contains, cost: 0.5, judge: Is it polite?]\n"
    )
    done = bakeoff("eval", "--no-open")
    told = " ".join(done.stdout.split())
    assert "free cost an unknown amount (38,290 tokens without a price)." in told
    assert "Judges used 2,010 tokens for an unknown amount (2,010 tokens without a price)" in told
    assert "1 of 2 trials have no score: 1 lost to grader (the cost of the answer is unknown" in told
    assert "(38,290 tokens without a price): give its model a `price`" in told
    assert done.returncode == 3, done.stderr  # undecided
    page = next((suite / "results").glob("runs/*/report.html")).read_text()
    assert "38,298 tokens, 38,290 without a price" in page
    assert "2,010 tokens, 2,010 without a price" in page
    assert "≥ $0.1000" in page

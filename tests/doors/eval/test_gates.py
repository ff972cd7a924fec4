"""The gate of a run: what is missing is undecided, and the decision is in every output."""

import json
from pathlib import Path

import pytest

from ...warm_bakeoff import Bakeoff

CASES = (
    "cases: [{input: a, expected: yes}, {input: b, expected: yes}, {input: c, expected: no}, {input: d, expected: x}]\n"
)
"""Two of four are answered rightly."""


def configured(folder: Path, more: str = "") -> None:
    (folder / "bakeoff.yaml").write_text(f"subjects: [{{name: s, scripted: yes}}]\nscorers: [exact]\n{more}{CASES}")


def page_of(folder: Path) -> str:
    [page] = (folder / "results").glob("runs/*/report.html")
    return page.read_text()


def test_a_score_below_the_wanted_one_is_red_also_without_a_threshold(tmp_path: Path, bakeoff: Bakeoff) -> None:
    configured(tmp_path, "threshold: null\n")
    done = bakeoff("eval", "--no-open", "--fail-under", "0.9", "--junit", "junit.xml")
    assert done.returncode == 1
    sentence = "Gate failed: s scored 0.500, wanted 0.9."
    assert done.stderr.splitlines()[-1] == sentence
    first = page_of(tmp_path)
    assert bakeoff("report", "latest", "--no-open").returncode == 0
    for page in (first, page_of(tmp_path)):
        assert '<span class="badge state-failed">failed</span>' in page
        assert '<p class="headline">The gate did not pass: score FAILED: s scored 0.500, wanted 0.9. ' in page
        assert "Nothing failed" not in page
    shown = bakeoff("runs", "show", "latest").stdout.splitlines()
    assert (shown[0].endswith(": failed"), shown[1].startswith("The gate did not pass")) == (True, True)
    assert f'<property name="gate" value="{sentence}"/>' in (tmp_path / "junit.xml").read_text()
    assert bakeoff("eval", "--no-open", "--fail-under", "0.5").returncode == 0


def test_a_scorer_that_never_gives_a_number_leaves_gate_and_comparison_undecided(
    tmp_path: Path, bakeoff: Bakeoff
) -> None:
    (tmp_path / "tone.py").write_text(
        "from bakeoff import Score\n\ndef tone(given):\n    return Score(name='tone', reason='no tone heard')\n"
    )
    text = "subjects: [{name: s, scripted: yes}]\nscorers: [exact, {function: {target: 'tone:tone'}}]\n"
    (tmp_path / "bakeoff.yaml").write_text(f"{text}cases: [{{input: a, expected: yes}}, {{input: b, expected: yes}}]\n")
    done = bakeoff("eval", "--no-open", "--fail-under", "0.9")
    assert done.returncode == 3, done.stderr
    assert "Gate undecided: 2 of 2 undecided (2 unscored by tone, which scored nothing)" in done.stderr
    assert ": s: no tone heard" in done.stderr
    assert bakeoff("eval", "--no-open", "--allow-undecided", "2").returncode == 0
    two = sorted(map(str, (tmp_path / "results/runs").iterdir()))
    assert bakeoff("compare", *two, "--gate", "regression").returncode == 3


@pytest.mark.parametrize("more", [(), ("--fail-under", "0")])
def test_trials_that_did_not_run_leave_every_gate_undecided_unless_allowed(
    tmp_path: Path, bakeoff: Bakeoff, more: tuple[str, ...]
) -> None:
    configured(tmp_path, "threshold: 0\n")
    stopped = ("eval", "--no-open", "--max-seconds", "0.000001", *more)
    done = bakeoff(*stopped, "--junit", "junit.xml")
    assert done.returncode == 3, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("Gate undecided: 4 of 4 undecided (4 "), last
    assert "0 allowed (--allow-undecided)" in last
    assert "badge state-undecided" in page_of(tmp_path)
    suite = (tmp_path / "junit.xml").read_text()
    assert '<property name="planned" value="4"/>' in suite
    assert bakeoff(*stopped, "--allow-undecided", "3").returncode == 3
    if not more:
        allowed = bakeoff(*stopped, "--allow-undecided", "100%")
        assert allowed.returncode == 0
        assert "100.0 % allowed (--allow-undecided)" in allowed.stderr.splitlines()[-1]
    wrong = bakeoff(*stopped, "--allow-undecided", "many")
    assert (wrong.returncode, "give a number such as 3" in wrong.stderr) == (2, True)


def test_a_merge_without_all_shards_is_undecided_and_its_run_says_so_ever_after(
    tmp_path: Path, bakeoff: Bakeoff
) -> None:
    configured(tmp_path, "threshold: 0\n")
    for number in (1, 2):
        assert bakeoff("eval", "--no-open", "--shard", f"{number}/2").returncode == 0, "a shard is judged for itself"
    assert bakeoff("runs", "show", "latest").stdout.splitlines()[1] == "Incomplete: shard 1 of 2 missing."
    assert bakeoff("eval", "--no-open", "--shard", "2/2", "--fail-under", "0", "--results", "gated").returncode == 0
    gated = bakeoff("runs", "show", "latest", "--results", "gated").stdout.splitlines()[1]
    assert gated == "The gate passed for shard 2 of 2 alone (`bakeoff merge` decides the whole)."
    first, second = sorted(str(path) for path in (tmp_path / "results" / "runs").iterdir())
    told = json.loads(bakeoff("runs", "show", first, "--json").stdout)
    assert told["summary"]["ledger"]["shards"] == {"of": 2, "numbers": [1]}
    part = bakeoff("merge", first, "-o", "part", "--fail-under", "0.1")
    assert part.returncode == 3
    assert bakeoff("merge", first, second, "-o", "whole", "--fail-under", "0.1").returncode == 0
    assert bakeoff("merge", first, second, "-o", "more", "--fail-under", "0.9").returncode == 1
    [merged], [whole] = ((tmp_path / name / "runs").iterdir() for name in ("part", "whole"))
    compared = bakeoff("compare", str(whole), str(merged))
    assert compared.returncode == 3
    assert compared.stdout.startswith("Gate undecided: the candidate: shard 2 of 2 missing")
    again = bakeoff("merge", str(merged), second)
    assert (again.returncode, "was merged already" in again.stderr) == (2, True)


def test_runs_until_decided_draw_an_order_of_their_own_and_record_it(tmp_path: Path, bakeoff: Bakeoff) -> None:
    two = "subjects: [{name: s, scripted: yes}, {name: t, scripted: no}]\nscorers: [exact]\n"
    (tmp_path / "bakeoff.yaml").write_text(two + CASES)
    orders = set()
    for results in ("first", "second"):
        assert bakeoff("eval", "--no-open", "--until-decided", "--results", results).returncode == 1
        [plan] = (tmp_path / results).glob("runs/*/plan.json")
        orders.add(json.loads(plan.read_text())["until_decided"]["order"])
    assert len(orders) == 2
    assert None not in orders


def test_github_gets_the_decision_and_the_lowest_score(tmp_path: Path, bakeoff: Bakeoff) -> None:
    configured(tmp_path)
    files = {"GITHUB_OUTPUT": str(tmp_path / "outputs"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    done = bakeoff("eval", "--no-open", "--github", **files)
    assert done.returncode == 1
    assert (tmp_path / "outputs").read_text() == "gate=Gate failed: 2 of 4 passed.\nlowest-score=0.5000\n"
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("Gate failed: 2 of 4 passed.")
    assert "4 trials planned: 2 passed, 2 failed." in summary


def test_the_rest_of_a_run_is_never_of_another_version(tmp_path: Path, bakeoff: Bakeoff) -> None:
    script = tmp_path / "answer.py"
    script.write_text("print('yes')\n")
    command = "subjects: [{name: s, command: [python3, answer.py]}]\n"
    (tmp_path / "bakeoff.yaml").write_text(f"{command}scorers: [exact]\n{CASES}")
    assert bakeoff("eval", "--no-open", "--max-seconds", "0.000001").returncode == 3
    script.write_text("print('no')\n")
    changed = bakeoff("resume", "latest", "--no-open")
    assert changed.returncode == 2
    assert "subject 's' (command): changed since the run began" in changed.stderr
    script.write_text("print('yes')\n")
    assert bakeoff("resume", "latest", "--no-open").returncode == 1

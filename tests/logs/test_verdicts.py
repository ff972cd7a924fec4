"""`bakeoff compare` and `leaderboard` take the logs of other tools to a verdict, with the numbers of these tools."""

import json
from pathlib import Path
from typing import Any

import pytest

from bakeoff.logs.reader import detect

from ..warm_bakeoff import Bakeoff
from .fixtures import LOGS
from .test_hostile_logs import archive

pytestmark = pytest.mark.journey


def rated(path: Path, *values: object, scorer: str = "rating", **more: object) -> Path:
    """Write a log of Inspect with a case for each value; `more` are values of other scorers, the same for all cases."""
    others = {name: {"value": value} for name, value in more.items()}
    return archive(path, *({"scores": {scorer: {"value": value}, **others}} for value in values))


def compared(bakeoff: Bakeoff, *words: str) -> Any:
    done = bakeoff("compare", *words, "--json")
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_a_scorer_with_a_value_outside_0_to_1_is_refused_whole_and_a_scale_is_the_way_out(
    bakeoff: Bakeoff, tmp_path: Path
) -> None:
    first, second = rated(tmp_path / "a.eval", 1, 5.5, 10), rated(tmp_path / "b.eval", 1, 1, 1)
    for words in (("compare", str(first), str(second)), ("leaderboard", str(first)), ("import", str(first))):
        refused = bakeoff(*words)
        assert refused.returncode == 2
        assert "a.eval: scorer 'rating' has the value 5.5, which is not from 0 to 1: give its worst" in refused.stderr
        assert "--scale LOW:HIGH" in refused.stderr
    [pair] = compared(bakeoff, str(first), str(second), "--scale", "1:10")["pairs"]
    assert (pair["comparison"]["baseline"], pair["comparison"]["candidate"]) == (0.5, 0.0)
    board = bakeoff("leaderboard", str(first), "--scale", "rating=10:1")
    assert "50.0 %" in board.stdout, "where less is better, the scale is given backwards"


@pytest.mark.parametrize(
    ("scale", "problem"),
    [
        ("1:5", "has the value 5.5, which is not from 1 to 5: widen the scale, or give it to one scorer"),
        ("1", "--scale '1' is not LOW:HIGH or NAME=LOW:HIGH, such as 1:10 or rating=1:10"),
        ("2:2", "--scale '2:2' is not LOW:HIGH"),
        ("0:inf", "--scale '0:inf' is not LOW:HIGH"),
        ("other=1:10", "has the value 5.5, which is not from 0 to 1"),
    ],
)
def test_a_scale_that_does_not_fit_is_refused(bakeoff: Bakeoff, tmp_path: Path, scale: str, problem: str) -> None:
    refused = bakeoff("import", str(rated(tmp_path / "a.eval", 1, 5.5, 10)), "--scale", scale)
    assert refused.returncode == 2
    assert problem in refused.stderr


def test_scores_on_two_scales_are_not_compared(bakeoff: Bakeoff, tmp_path: Path) -> None:
    log = rated(tmp_path / "a.eval", 2, 3, 4)
    runs = [Path(bakeoff("import", str(log), "--scale", scale).stdout.strip()).name for scale in ("1:10", "1:5")]
    done = bakeoff("compare", *runs)
    assert done.returncode == 3
    assert "not comparable: scorers" in done.stdout


def test_options_for_logs_are_refused_for_a_run(bakeoff: Bakeoff, tmp_path: Path) -> None:
    assert bakeoff("import", str(rated(tmp_path / "a.eval", 0, 1))).returncode == 0
    refused = bakeoff("compare", "latest", str(tmp_path / "a.eval"), "--scorer", "rating")
    assert refused.returncode == 2
    assert "latest is no log of another tool: --scorer, --scale" in refused.stderr


def test_each_scorer_of_a_log_is_compared_apart_and_all_are_judged_together(bakeoff: Bakeoff, tmp_path: Path) -> None:
    first = rated(tmp_path / "a.eval", *"CI" * 10, tone=0.3, polite="C")
    second = rated(tmp_path / "b.eval", *"CC" * 10, tone=0.3, polite="I")
    report = compared(bakeoff, str(first), str(second))
    scores = {
        pair["part"]: (pair["comparison"]["baseline"], pair["comparison"]["candidate"]) for pair in report["pairs"]
    }
    assert scores == {"rating": (0.5, 1.0), "tone": (0.3, 0.3), "polite": (1.0, 0.0)}
    assert (report["exit_code"], report["together"]) == (1, None), "one got worse; a mean of all is of no use"
    alone = compared(bakeoff, str(first), str(second), "--scorer", "rating")["pairs"][0]
    [among] = [pair for pair in report["pairs"] if pair["part"] == "rating"]
    assert among["ruling"]["p_value"] > alone["ruling"]["p_value"], "Holm's method adjusts for the others"
    shown = bakeoff("compare", str(first), str(second)).stdout
    assert "3 scores are in both" in " ".join(shown.split())
    assert "m · polite" in shown


def test_each_scorer_of_a_log_has_a_run_and_a_board_of_its_own(bakeoff: Bakeoff, tmp_path: Path) -> None:
    log = str(rated(tmp_path / "a.eval", *"CI" * 10, tone=0.3))
    done = bakeoff("import", log, "--json")
    assert len(json.loads(done.stdout)["runs"]) == 2, done.stderr
    for words in ([log], []):
        board = bakeoff("leaderboard", *words).stdout
        assert "t · rating, 20 cases" in board
        assert "t · tone, 20 cases" in board
        assert "30.0 %" in board
        assert "50.0 %" in board
    refused = bakeoff("report", log, "--no-open")
    assert refused.returncode == 2
    assert "a.eval has 2 scorers (rating, tone): `bakeoff import` makes a run of each" in refused.stderr


def test_a_scorer_that_only_the_baseline_has_leaves_the_gate_undecided(bakeoff: Bakeoff, tmp_path: Path) -> None:
    first = rated(tmp_path / "a.eval", *"CI" * 10, tone=0.3)
    done = bakeoff("compare", str(first), str(rated(tmp_path / "b.eval", *"CI" * 10, polite="C")))
    assert done.returncode == 3
    assert "subject m · tone: it is gone" in done.stdout
    none = bakeoff("compare", str(first), str(rated(tmp_path / "c.eval", "C", scorer="x", y="C")))
    assert none.returncode == 2
    assert "nothing is in both: the baseline has rating, tone; the candidate x, y" in none.stderr
    named = bakeoff("compare", str(first), str(first), "--scorer", "ton")
    assert f"--scorer 'ton': {first} has only rating, tone" in named.stderr


def test_cases_that_a_scorer_does_not_judge_are_not_lost(bakeoff: Bakeoff, tmp_path: Path) -> None:
    samples: list[Any] = [{"scores": {"right": {"value": "C"}}}] * 4 + [{"scores": {"long": {"value": "I"}}}] * 4
    done = bakeoff("import", str(archive(tmp_path / "a.eval", *samples)), "--scorer", "long")
    assert "4 cases × 1 subject × 1 round from Inspect: 4 fail" in done.stderr


def test_thresholds_that_are_guessed_from_scores_do_not_keep_logs_apart(bakeoff: Bakeoff, tmp_path: Path) -> None:
    first, second = rated(tmp_path / "a.eval", *[0, 1] * 10), rated(tmp_path / "b.eval", *[0.2, 1] * 10)
    assert compared(bakeoff, str(first), str(second))["exit_code"] == 0


def with_errors(path: Path, values: str, lost: int) -> Path:
    """Write a log with a case for each letter, the first of which ended with an error."""
    error = {"error": {"message": "ConnectionError('reset')", "traceback": "", "traceback_ansi": ""}}
    scored = [{"scores": {"right": {"value": value}}} for value in values]
    return archive(path, *(error if place < lost else one for place, one in enumerate(scored)))


def test_with_many_errors_a_verdict_stands_if_it_is_the_same_whichever_way_they_count(
    bakeoff: Bakeoff, tmp_path: Path
) -> None:
    first = with_errors(tmp_path / "a.eval", "I" * 20 + "C" * 20, lost=4)
    second = with_errors(tmp_path / "b.eval", "C" * 40, lost=6)
    done = bakeoff("compare", str(first), str(second))
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("Gate passed: an improvement is shown")
    # Against the candidate: 24 of 40 before, 34 after. For it: 20 before, 40 after.
    assert "counted against the candidate +25.0 points, for it +50.0" in " ".join(done.stdout.split())
    worse = bakeoff("compare", str(second), str(first))
    assert worse.returncode == 1
    assert "a regression is shown" in worse.stdout


def test_errors_that_could_decide_leave_the_gate_undecided_with_advice_that_fits_a_log(
    bakeoff: Bakeoff, tmp_path: Path
) -> None:
    first = with_errors(tmp_path / "a.eval", "I" * 12 + "C" * 28, lost=4)
    second = with_errors(tmp_path / "b.eval", "C" * 40, lost=16)
    made = bakeoff("import", str(first), str(second), "--json")
    for sides in ([str(first), str(second)], [Path(run).name for run in json.loads(made.stdout)["runs"]]):
        done = bakeoff("compare", *sides)
        assert done.returncode == 3
        said = " ".join(done.stdout.split())
        assert "what is missing could decide: with all lost trials counted against the candidate -20.0 points" in said
        assert "retry them with the tool that wrote the log, and compare its new log" in said
        assert "resume" not in said


def test_a_loss_within_the_margin_is_ruled_out_only_if_the_errors_cannot_change_that(
    bakeoff: Bakeoff, tmp_path: Path
) -> None:
    first, second = (
        with_errors(tmp_path / name, "C" * 200, lost=lost) for name, lost in (("a.eval", 0), ("b.eval", 12))
    )
    rule = ("--gate", "regression", "--undecidable", "fail", "--margin")
    assert bakeoff("compare", str(first), str(second), *rule, "0.2").returncode == 0
    undecided = bakeoff("compare", str(first), str(second), *rule, "0.05")
    assert undecided.returncode == 3
    assert "what is missing could decide" in undecided.stdout


def promptfoo_log(path: Path, prompt: str, **changes: Any) -> Path:
    """Write the results of promptfoo for one provider, as if it had been given another prompt."""
    rows = [json.loads(line) for line in (LOGS / "promptfoo.jsonl").read_text().splitlines()]
    mine = [{**row, "prompt": {"raw": prompt, "label": prompt}} for row in rows if row["provider"]["label"] == "atlas"]
    path.write_text("\n".join(json.dumps({**row, **changes}) for row in mine))
    return path


def test_two_prompts_of_promptfoo_are_compared_case_by_case(bakeoff: Bakeoff, tmp_path: Path) -> None:
    first = promptfoo_log(tmp_path / "a.jsonl", "Name it.")
    second = promptfoo_log(tmp_path / "b.jsonl", "Please name it.", success=False, failureReason=1)
    [pair] = compared(bakeoff, str(first), str(second))["pairs"]
    assert (pair["comparison"]["paired"], pair["comparison"]["losses"]) == (True, 3)
    assert ["prompt", "Name it.", "Please name it."] in pair["mismatches"]


def test_tests_of_promptfoo_with_equal_variables_and_other_assertions_are_different_cases(
    bakeoff: Bakeoff, tmp_path: Path
) -> None:
    row = json.loads((LOGS / "promptfoo.jsonl").read_text().splitlines()[0])
    tests = [{"vars": {"x": 1}, "assert": [{"type": "javascript", "value": f"output.length > {n}"}]} for n in (1, 1, 2)]
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(json.dumps({**row, "testIdx": n, "testCase": test}) for n, test in enumerate(tests)))
    imported = bakeoff("import", str(log))
    assert "2 cases × 1 subject × 2 rounds" in imported.stderr, "the first one was repeated"


def test_two_logs_of_one_subject_stay_two_on_the_leaderboard(bakeoff: Bakeoff, tmp_path: Path) -> None:
    logs = [str(LOGS / "pair" / name) for name in ("a.eval", "b.eval")]
    board = json.loads(bakeoff("leaderboard", *logs, "--json").stdout)
    scores = {entry["summary"]["subject"]: entry["summary"]["score"] for entry in board["entries"]}
    assert scores == {"mockllm/adder in a.eval": 0.3125, "mockllm/adder in b.eval": 0.875}
    assert bakeoff("import", *logs).returncode == 0
    assert bakeoff("leaderboard").stdout.count("mockllm/adder in ") >= 2
    (tmp_path / "other").mkdir()
    same = tmp_path / "other" / "a.eval"
    same.write_bytes(Path(logs[1]).read_bytes())
    assert f"mockllm/adder in {same}" in bakeoff("leaderboard", logs[0], str(same), "--json").stdout


def test_a_folder_of_logs_is_all_of_its_logs(bakeoff: Bakeoff, tmp_path: Path) -> None:
    small, large = (str(LOGS / "lm-eval" / name) for name in ("fake-small", "fake-large"))
    pairs = compared(bakeoff, small, large)["pairs"]
    found = {pair["part"]: (pair["comparison"]["baseline"], pair["comparison"]["candidate"]) for pair in pairs}
    assert found == {
        "exact_match,strict-match": (pytest.approx(6 / 12), pytest.approx(10 / 12)),
        "exact_match,flexible-extract": (pytest.approx(7 / 12), pytest.approx(11 / 12)),
    }
    assert json.loads(bakeoff("import", str(LOGS / "pair"), "--json").stdout)["runs"][1:], "one of each log"
    refused = bakeoff("report", str(LOGS / "pair"), "--no-open")
    assert f"{LOGS / 'pair'} holds 2 logs: name one, such as a.eval" in refused.stderr


def test_logs_whose_first_case_is_long_are_recognised(tmp_path: Path) -> None:
    long = "long " * 40_000
    for name in ("promptfoo.jsonl", "deepeval.json", "pydantic-evals.json", "lm-eval/fake-small"):
        file = next(LOGS.glob(f"{name}/samples*")) if (LOGS / name).is_dir() else LOGS / name
        expected = detect(file)
        text = file.read_text()
        for word in ("Paris", "Answer: ", "What is 1 + 1?"):
            text = text.replace(word, f"{word} {long}", 1)
        (log := tmp_path / "log").write_text(text)
        assert len(text) > 1 << 17
        assert detect(log) == expected is not None

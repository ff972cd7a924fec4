"""A gate over what was planned: large losses fail it, and whatever is missing leaves it undecided."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import copyfile, copytree
from typing import Any

import pytest
from tests.report.runs import plan_of, record_of, run_of, write_run
from tests.report.suites.evals import file_bytes, outcome, suite
from tests.warm_bakeoff import Bakeoff

import bakeoff as package
from bakeoff.report.suites.outcomes import EvalOutcome
from bakeoff.storage.ledger import ShardsHere

REGRESSION = ("--gate", "regression", "--details", "0")


def compared(
    bakeoff: Bakeoff, tmp_path: Path, old: Callable[[int, int], float], new: Callable[[int, int], float], **more: Any
) -> tuple[int, str]:
    cases, rounds = more.pop("cases"), more.pop("rounds", 1)
    plan = plan_of(cases, ["s"], rounds=rounds)
    before, after = run_of(tmp_path / "before", plan, {"s": old}), run_of(tmp_path / "after", plan, {"s": new})
    found = bakeoff("compare", str(before.path), str(after.path), *more.pop("options", REGRESSION))
    return found.returncode, " ".join(found.stdout.split())


def saved(path: Path, outcomes: Sequence[EvalOutcome], **more: Any) -> str:
    path.write_bytes(file_bytes(outcomes, **more))
    return str(path)


def passed(case: int, round_: int) -> float:
    return 1.0


def test_five_cases_that_fall_in_nearly_all_of_20_rounds_fail_the_gate(bakeoff: Bakeoff, tmp_path: Path) -> None:
    code, said = compared(bakeoff, tmp_path, passed, lambda case, round_: float(round_ == 0), cases=5, rounds=20)
    assert code == 1, said
    assert "orse on these cases: 5 of 5 got worse, none better, which chance does with p < 1e-15" in said
    assert "certainly worse by itself: case-0, case-1, case-2, case-3, case-4" in said


def test_three_of_30_cases_that_break_for_good_fail_the_gate(bakeoff: Bakeoff, tmp_path: Path) -> None:
    code, said = compared(bakeoff, tmp_path, passed, lambda case, round_: float(case > 2), cases=30, rounds=20)
    assert code == 1, said
    assert "3 of 30 got worse, none better" in said
    assert "certainly worse by itself: case-0, case-1, case-2" in said


def test_three_of_12_are_too_few_and_the_rule_of_test_suites_is_named(bakeoff: Bakeoff, tmp_path: Path) -> None:
    code, said = compared(bakeoff, tmp_path, passed, lambda case, round_: float(case > 2), cases=12)
    assert code == 0, said
    assert "n these cases: 3 of 12 got worse, none better: too few cases to call it" in said
    assert "BUT EVERY CASE THAT CHANGED GOT WORSE" in said
    assert "--gate no-new-failures" in said
    again = bakeoff("compare", str(tmp_path / "before"), str(tmp_path / "after"), "--gate", "no-new-failures")
    assert again.returncode == 1
    assert "3 new failures: case-0, case-1, case-2" in " ".join(again.stdout.split())


def test_a_case_that_failed_in_one_round_before_is_no_new_failure(bakeoff: Bakeoff, tmp_path: Path) -> None:
    code, said = compared(
        bakeoff,
        tmp_path,
        lambda case, round_: float((case, round_) != (0, 1)),
        lambda case, round_: float(case > 0 and (case, round_) != (1, 0)),
        cases=12,
        rounds=2,
        options=("--gate", "no-new-failures"),
    )
    assert code == 0, said
    assert "o case that passed in every round fails in every round now" in said


def test_an_only_subject_with_another_name_is_not_compared_without_a_word(bakeoff: Bakeoff, tmp_path: Path) -> None:
    for folder, name in (("before", "small"), ("after", "large")):
        run_of(tmp_path / folder, plan_of(12, [name]), {name: passed})
    both, named = (str(tmp_path / "before"), str(tmp_path / "after")), ("--subject-a", "small", "--subject-b", "large")
    done = bakeoff("compare", *both, *REGRESSION)
    assert done.returncode == 0, done.stdout
    assert "although small is called large now: no regression is shown" in " ".join(done.stdout.split())
    assert "although" not in bakeoff("compare", *both, *named, *REGRESSION).stdout


@pytest.mark.parametrize("text", ["1.0", "1.", "2.0", "-1", "101%"])
def test_a_number_that_could_be_one_or_all_is_refused(bakeoff: Bakeoff, tmp_path: Path, text: str) -> None:
    for folder in ("before", "after"):
        run_of(tmp_path / folder, plan_of(2, ["s"]), {"s": passed})
    both = (str(tmp_path / "before"), str(tmp_path / "after"))
    done = bakeoff("compare", *both, f"--allow-undecided={text}")
    assert done.returncode == 2
    assert f"--allow-undecided '{text}': give a number such as 3, or a share such as 0.05 or 5%" in done.stderr
    assert bakeoff("compare", *both, "--allow-undecided=100%").returncode == 0


def test_a_candidate_of_which_half_never_ran_is_undecided(bakeoff: Bakeoff, tmp_path: Path) -> None:
    plan = plan_of(60, ["s"], rounds=3)
    before = run_of(tmp_path / "before", plan, {"s": passed})
    after = write_run(tmp_path / "after", plan, map(record_of, list(plan.trials())[:89]))
    for allowed in ("0", "90"):
        found = bakeoff("compare", str(before.path), str(after.path), *REGRESSION, "--allow-undecided", allowed)
        assert found.returncode == 3, found.stdout
        assert f"91 of 180 undecided (91 not run); {allowed} allowed (--allow-undecided)" in " ".join(
            found.stdout.split()
        )
    forgiven = bakeoff("compare", str(before.path), str(after.path), *REGRESSION, "--allow-undecided", "91")
    assert forgiven.returncode == 3, "what is missing could decide"
    assert "with all missing trials counted as failed" in " ".join(forgiven.stdout.split())


def test_seven_of_60_cases_in_common_are_undecided(bakeoff: Bakeoff, tmp_path: Path) -> None:
    before = run_of(tmp_path / "before", plan_of(60, ["s"]), {"s": passed})
    after = run_of(tmp_path / "after", plan_of(7, ["s"]), {"s": passed})
    found = bakeoff("compare", str(before.path), str(after.path), *REGRESSION)
    assert found.returncode == 3, found.stdout
    said = " ".join(found.stdout.split())
    assert "53 cases of the baseline cannot be compared; 0 allowed" in said
    assert "no regression is shown" not in said.partition("Exit code")[0]
    assert (
        bakeoff("compare", str(before.path), str(after.path), *REGRESSION, "--allow-undecided", "90%").returncode == 0
    )


@pytest.mark.parametrize("scores", [(1.0, 0.0), (0.0, 1.0)])
def test_lost_trials_that_could_decide_leave_the_gate_undecided(
    bakeoff: Bakeoff, tmp_path: Path, scores: tuple[float, float]
) -> None:
    """Six cases fell; if the two lost ones had risen, that would be chance."""
    plan = plan_of(60, ["s"])
    before = run_of(tmp_path / "before", plan, {"s": lambda case, round_: scores[case > 30]})
    kept = [
        record_of(trial, 1 - scores[0] if 3 < place < 10 else scores[place > 30])
        for place, trial in enumerate(plan.trials())
        if place not in (40, 50)
    ]
    after = write_run(tmp_path / "after", plan, kept)
    found = bakeoff("compare", str(before.path), str(after.path), *REGRESSION, "--allow-undecided", "2")
    said = " ".join(found.stdout.split())
    assert found.returncode == 3, said
    assert "what is missing could decide" in said


def test_a_gate_that_failed_names_the_loss_before_what_is_missing(bakeoff: Bakeoff, tmp_path: Path) -> None:
    plan = plan_of(30, ["s"])
    before = run_of(tmp_path / "before", plan, {"s": passed})
    after = write_run(tmp_path / "after", plan, [record_of(trial, 0.0) for trial in list(plan.trials())[:28]])
    found = bakeoff("compare", str(before.path), str(after.path), *REGRESSION)
    assert found.returncode == 1
    said = " ".join(found.stdout.split())
    assert said.startswith("Gate failed: a regression is shown; the candidate: 2 of 30 undecided (2 not run)"), said


def test_a_gate_that_must_rule_a_loss_out_names_the_cases_that_this_takes(bakeoff: Bakeoff, tmp_path: Path) -> None:
    proof = ("--gate", "regression", "--margin", "0.05", "--undecidable", "fail")
    code, said = compared(bakeoff, tmp_path, passed, lambda case, round_: float(case > 0), cases=40, options=proof)
    assert code == 1, said
    assert re.search(r"unchanged code passes this rule in 95 % of runs only with \d+ cases or more", said), said


def test_a_copy_of_the_baseline_is_no_candidate(bakeoff: Bakeoff, tmp_path: Path) -> None:
    """Such as an old artifact, because the step that should make the new one did not run."""
    run_of(tmp_path / "before", plan_of(5, ["s"]), {"s": passed})
    copytree(tmp_path / "before", tmp_path / "copied")
    saved(tmp_path / "before.json", suite([1.0] * 5))
    copyfile(tmp_path / "before.json", tmp_path / "copied.json")
    for words in (
        ("compare", "before", "copied"),
        ("compare", "before.json", "copied.json"),
        ("merge", "copied.json", "-o", "all.json", "--baseline", "before.json"),
    ):
        found = bakeoff(*words)
        assert (found.returncode, "is the same run as the baseline" in found.stderr) == (2, True), words


def test_20_suites_that_fall_from_5_of_5_to_1_of_5_fail_the_gate(bakeoff: Bakeoff, tmp_path: Path) -> None:
    names = [f"test_{place}" for place in range(20)]
    before = saved(tmp_path / "before.json", [case for name in names for case in suite([1.0] * 5, name)])
    after = saved(tmp_path / "now.json", [case for name in names for case in suite([1.0, *[0.0] * 4], name)])
    found = bakeoff("merge", after, "-o", "all.json", "--baseline", before)
    assert found.returncode == 1, found.stderr
    said = " ".join(found.stderr.split())
    assert "all together: worse on these cases: 80 of 100 got worse, none better" in said


@pytest.mark.parametrize(
    ("given", "missing"), [(("a",), "shard 2 of 2"), (("a", "a"), "shard 2 of 2"), (("b",), "shard 1 of 2")]
)
def test_a_lost_shard_leaves_every_gate_undecided(
    bakeoff: Bakeoff, tmp_path: Path, given: tuple[str, ...], missing: str
) -> None:
    cases = suite([1.0] * 4)
    saved(tmp_path / "a.json", cases[:2], shards=ShardsHere(of=2, numbers=(1,)))
    saved(tmp_path / "b.json", cases[2:], shards=ShardsHere(of=2, numbers=(2,)))
    for options in ((), ("--min-pass-rate", "1"), ("--shards", "2", "--fail-under", "0.5")):
        files = [f"{name}.json" for name in given]
        found = bakeoff("merge", *files, "-o", "all.json", *options)
        assert found.returncode == 3, found.stderr
        assert f"{missing} missing" in " ".join(found.stderr.split())
    both = bakeoff("merge", "a.json", "b.json", "-o", "all.json", "--shards", "2")
    assert both.returncode == 0, both.stderr
    again = bakeoff("merge", "all.json", "-o", "more.json", "--min-pass-rate", "1")
    assert again.returncode == 0, "a merged file is whole"


def test_a_baseline_that_was_stopped_leaves_the_gate_undecided(bakeoff: Bakeoff, tmp_path: Path) -> None:
    before = saved(tmp_path / "before.json", suite([1.0] * 5), complete=False)
    now = saved(tmp_path / "now.json", suite([1.0] * 5))
    found = bakeoff("merge", now, "-o", "all.json", "--baseline", before)
    assert found.returncode == 3, found.stderr
    assert "the baseline: the run was stopped before its end" in " ".join(found.stderr.split())


def test_a_baseline_whose_cases_were_cut_out_leaves_the_gate_undecided(bakeoff: Bakeoff, tmp_path: Path) -> None:
    before = saved(tmp_path / "before.json", suite([1.0] * 5))
    kept = [line for line in Path(before).read_text().splitlines(keepends=True) if "[case-1]" not in line]
    Path(before).write_text("".join(kept))
    now = saved(tmp_path / "now.json", suite([1.0] * 5))
    found = bakeoff("merge", now, "-o", "all.json", "--baseline", before)
    assert found.returncode == 3, found.stderr


def _numbers(file: Any) -> None:
    file["numbers"]["passed"] = 3


def _of_a_suite(file: Any) -> None:
    file["suites"][0]["numbers"]["cases"] = 9


def _ledger(file: Any) -> None:
    file["ledger"]["missing"] = {"not run": 2}


def _result(file: Any) -> None:
    file["suites"][0]["cases"][0]["passed"] = False


def _round(file: Any) -> None:
    file["suites"][0]["cases"][0]["rounds"][0]["score"] = 0.1


def _case_twice(file: Any) -> None:
    file["suites"][0]["cases"].append(file["suites"][0]["cases"][0])


def _rows(file: Any) -> None:
    del file["suites"][0]["cases"][4:]


def _rows_and_totals(file: Any) -> None:
    _rows(file)
    file["numbers"]["cases"] = file["ledger"]["planned"] = 4


@pytest.mark.parametrize(
    "edit", [_numbers, _of_a_suite, _ledger, _result, _round, _case_twice, _rows, _rows_and_totals]
)
def test_a_file_that_contradicts_itself_leaves_every_gate_undecided(
    bakeoff: Bakeoff, tmp_path: Path, edit: Callable[[Any], None]
) -> None:
    good = saved(tmp_path / "good.json", suite([1.0] * 6))
    file = json.loads(Path(good).read_text())
    edit(file)
    (tmp_path / "edited.json").write_text(json.dumps(file))
    for words in (
        ("merge", "good.json", "-o", "all.json", "--baseline", "edited.json"),
        ("merge", "edited.json", "-o", "all.json", "--min-pass-rate", "0.9"),
        ("compare", "good.json", "edited.json"),
    ):
        found = bakeoff(*words)
        assert found.returncode == 3, words
        assert "the file contradicts itself: " in " ".join((found.stdout + found.stderr).split())


def nights(tmp_path: Path) -> list[Path]:
    """Three whole runs of one plan, with answers that are kept as blobs."""
    found = []
    for number in range(3):
        plan = plan_of(6, ["s"])
        records = [record_of(trial, started=1e9 + 1e5 * number, output="x" * 100_000) for trial in plan.trials()]
        found.append(write_run(tmp_path / f"night-{number}", plan, records).path)
    return found


def _broken_line(run: Path) -> None:
    """Break a second record of a trial: the first one would count instead."""
    journal = run / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:4], lines[2][:200] + b"\n", *lines[4:]]))


def _no_blobs(run: Path) -> None:
    for blob in [path for path in (run / "blobs").rglob("*") if path.is_file()]:
        blob.unlink()


def _no_journal(run: Path) -> None:
    (run / "journal.jsonl").unlink()


def _no_plan(run: Path) -> None:
    (run / "plan.json").unlink()


@pytest.mark.parametrize("damage", [_broken_line, _no_blobs, _no_journal, _no_plan])
def test_a_damaged_run_opens_no_gate(bakeoff: Bakeoff, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    first, bad, last = nights(tmp_path)
    assert bakeoff("history", str(first), str(bad), str(last), "--gate").returncode == 0
    damage(bad)
    for words in (
        ("compare", str(bad), str(last)),
        ("compare", str(first), str(bad), "--gate", "no-new-failures"),
        ("history", str(first), str(bad), str(last), "--gate"),
        ("history", str(first), str(last), "--baseline", str(bad), "--gate"),
        ("merge", str(bad), "-o", "merged"),
    ):
        assert bakeoff(*words).returncode in (2, 3), words


def test_a_line_that_cannot_be_read_is_named_by_the_gate(bakeoff: Bakeoff, tmp_path: Path) -> None:
    first, bad, _ = nights(tmp_path)
    _broken_line(bad)
    said = " ".join(bakeoff("compare", str(first), str(bad)).stdout.split())
    assert said.startswith("Gate undecided: the candidate: 2 lines of its journal cannot be read: `bakeoff runs check`")


def test_a_journal_without_its_run_folder_opens_no_gate(bakeoff: Bakeoff, tmp_path: Path) -> None:
    first, other, last = nights(tmp_path)
    bare = other.rename(tmp_path / "moved") / "journal.jsonl"
    (bare.parent / "plan.json").unlink()
    for words in (
        ("compare", str(bare), str(last)),
        ("compare", str(first), str(bare)),
        ("history", str(first), str(bare), "--gate"),
    ):
        found = bakeoff(*words)
        assert found.returncode == 3, words
        assert "a journal alone does not say what was planned" in " ".join(found.stdout.split())


def test_evals_of_a_merge_that_were_skipped_or_never_ended_are_undecided(bakeoff: Bakeoff, tmp_path: Path) -> None:
    now = saved(tmp_path / "now.json", [*suite([1.0]), outcome(None, "t.py::test[b]", records=(), problem="skipped")])
    found = bakeoff("merge", now, "-o", "all.json", "--min-pass-rate", "1")
    assert found.returncode == 3, found.stderr
    assert "1 of 2 undecided" in " ".join(found.stderr.split())


def test_one_function_decides() -> None:
    """`report.gates.decide_gate` makes every decision; other modules give it evidence and read its result."""
    source = Path(package.__file__).parent
    texts = {path.relative_to(source).as_posix(): path.read_text() for path in source.rglob("*.py")}
    assert [path for path, text in texts.items() if "GateDecision(" in text] == ["report/gates.py"]
    # These add what is missing beside the gates, and name the worst of all. Keys of tables of colours decide nothing.
    adding = {"report/gates.py", "cli/merge.py", "doors/mcp/results/files.py"}
    stated = re.compile(r"(?<!is )(?<!is not )GateState\.(PASSED|FAILED|UNDECIDED)(?!:)")
    assert {path for path, text in texts.items() if stated.search(text)} <= adding

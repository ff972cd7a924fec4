"""Test that unseen parts leave the gate of a comparison undecided: subjects, thresholds, cases, and killed sessions."""

from pathlib import Path

import pytest

from bakeoff.plan import Case, ScorerSpec, UntilDecided
from bakeoff.record import Score
from bakeoff.report.compare.arms import RunPair, read_arm, uncompared
from bakeoff.report.compare.comparison import CompareRequest, compare_sources
from bakeoff.report.compare.tool_versions import compare_versions
from bakeoff.report.gates import Allowance, GateRule
from bakeoff.report.readers import Source
from bakeoff.report.suites.eval_file import EvalFileReader
from bakeoff.stats.cells import CaseKey
from bakeoff.stats.sequential import random_order
from bakeoff.storage.run_folder import RunFolder

from ..runs import plan_of, record_of, run_of, source, write_run
from ..suites.evals import file_bytes, suite


def passed(case: int, round_: int) -> float:
    return 1.0


def failed(case: int, round_: int) -> float:
    return 0.0


def test_a_subject_that_the_candidate_lacks_is_undecided_and_a_control_is_not(tmp_path: Path) -> None:
    scores = {"s": passed, "t": passed, "nop": failed}
    before = source(run_of(tmp_path / "before", plan_of(12, scores), scores))
    after = source(run_of(tmp_path / "after", plan_of(12, ["s"]), scores))
    report = compare_sources(before, after, CompareRequest(rule=GateRule("regression")))
    assert report.exit_code == 3
    assert "subject t: it is gone" in report.pairs[0].gate
    assert "nop" not in report.pairs[0].gate
    assert (
        compare_sources(before, after, CompareRequest(rule=GateRule("regression"), allowed=Allowance(12))).exit_code
        == 0
    )
    assert (
        compare_sources(before, after, CompareRequest(subjects=("s", None), rule=GateRule("regression"))).exit_code == 0
    )


def test_a_model_that_the_new_version_of_a_server_lacks_is_undecided(tmp_path: Path) -> None:
    cases = tuple(Case(id=f"case-{i}", prompt=f"{i}?", expected={"calls": []}) for i in range(12))
    scores = {"s": passed, "t": passed}
    before = source(run_of(tmp_path / "before", plan_of(12, scores, case_list=cases), scores))
    after = source(run_of(tmp_path / "after", plan_of(12, ["s"], case_list=cases), scores))
    report = compare_versions(before, after, ())
    assert report.exit_code == 3
    assert "subject t: it is gone" in report.gate
    same = source(run_of(tmp_path / "same", plan_of(12, scores, case_list=cases), scores))
    assert compare_versions(before, same, ()).exit_code == 0


def test_new_failures_need_a_threshold(tmp_path: Path) -> None:
    plan = plan_of(12, ["s"], threshold=None)
    runs = [
        write_run(tmp_path / name, plan, [record_of(trial, value, threshold=None) for trial in plan.trials()])
        for name, value in (("before", 1.0), ("after", 0.0))
    ]
    report = compare_sources(
        source(runs[0]), source(runs[1]), CompareRequest(rule=GateRule("no-new-failures"), allowed=Allowance(12))
    )
    assert report.exit_code == 3
    assert "no case has a threshold" in report.pairs[0].gate


def test_a_share_of_cases_is_one_of_the_baseline() -> None:
    keys = [CaseKey(f"case-{place}") for place in range(60)]
    found = uncompared(keys, keys[30:], {"case-59"}, {"t": 40})
    assert (found.cases, found.of) == (71, 100)
    assert found.named[:2] == ["subject t: it is gone", "case-0: it is gone"]
    assert found.named[-1] == "case-59: not both runs have a threshold for it"


@pytest.mark.parametrize(("cases", "lost", "not_needed"), [(40, 0, 20), (3, 57, 0)])
def test_only_trials_of_a_run_that_has_decided_are_not_needed(
    tmp_path: Path, cases: int, lost: int, not_needed: int
) -> None:
    plan = plan_of(60, ["s", "t"], until_decided=UntilDecided())
    first = [case.id for unit in random_order(plan) for case in unit][:cases]
    trials = [trial for trial in plan.trials() if trial.case.id in first]
    run = write_run(tmp_path / "run", plan, [record_of(trial, float(trial.subject.name == "s")) for trial in trials])
    with read_arm(source(run), "s") as arm:
        assert (len(arm.lost_rounds), arm.summary.not_needed, arm.ledger.undecided) == (lost, not_needed, lost)


def test_the_order_of_scorers_is_no_difference(tmp_path: Path) -> None:
    scorers = (ScorerSpec(kind="exact"), ScorerSpec(kind="contains"))
    plan = plan_of(12, ["s"])
    runs = [
        run_of(tmp_path / name, plan.with_changes(scorers=given), {"s": passed})
        for name, given in (("before", scorers), ("after", scorers[::-1]))
    ]
    assert compare_sources(source(runs[0]), source(runs[1])).exit_code == 0


def test_a_new_suite_with_a_scorer_of_its_own_does_not_change_how_the_others_are_judged(tmp_path: Path) -> None:
    old, more = suite([1.0] * 6), suite([1.0] * 6, "test_new", scores=(Score(name="Other", value=1.0),))
    sources = []
    for name, outcomes in (("before", old), ("after", [*old, *more])):
        (tmp_path / f"{name}.json").write_bytes(file_bytes(outcomes))
        sources.append(Source(tmp_path / f"{name}.json", EvalFileReader()))
    subject = sources[0].plan.subjects[0].name
    with read_arm(sources[0], subject) as before, read_arm(sources[1], subject) as after:
        assert RunPair(before, after).judged_differently == ()


@pytest.mark.parametrize("killed", [False, True])
def test_a_pytest_session_that_was_killed_is_not_whole(tmp_path: Path, killed: bool) -> None:
    plan = plan_of(12, ["s"], sparse=True)
    before, after = (run_of(tmp_path / name, plan, {"s": passed}) for name in ("before", "after"))
    if killed:
        _cut_end(after)
    report = compare_sources(source(before), source(after), CompareRequest(rule=GateRule("regression")))
    assert report.exit_code == (3 if killed else 0)
    assert ("the run was stopped before its end" in report.pairs[0].gate) is killed


def _cut_end(run: RunFolder) -> None:
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    run.journal_file.write_bytes(b"".join(lines[:-1]))

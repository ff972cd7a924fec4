"""A series of runs against its baseline: the finding, the gate, and the page."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff.errors import UsageError
from bakeoff.plan import Case, Plan, ScorerSpec
from bakeoff.report.gates import Allowance, GateEvidence, GateState
from bakeoff.report.history import HistoryReport, describe_history, in_order, judge_history
from bakeoff.report.readers import Source
from bakeoff.report.render.markdown import to_markdown

from .runs import plan_of, record_of, source, write_run

DAY = 86_400.0
START = 1_700_000_000.0


def night(folder: Path, number: int, chance: Callable[[str], float], plan: Plan | None = None, lost: int = 0) -> Source:
    """A run of one night; the last `lost` trials have no record."""
    plan, dice = plan or plan_of(40, ["s"], rounds=3), random.Random(number)
    records = [
        record_of(trial, float(dice.random() < chance(trial.subject.name)), started=START + number * DAY + trial.index)
        for trial in plan.trials()
    ]
    return source(write_run(folder / f"night-{number:02d}", plan, records[: len(records) - lost]))


def nights(folder: Path, *chances: float, **more: Any) -> list[Source]:
    return [night(folder, number, lambda _, chance=chance: chance, **more) for number, chance in enumerate(chances)]  # type: ignore[misc]


def states(report: HistoryReport) -> list[str]:
    return [run.state for run in report.subjects[0].runs]


def test_an_unchanged_series_is_not_worse_and_says_what_it_would_find(tmp_path: Path) -> None:
    report = judge_history(nights(tmp_path, *[0.9] * 8))
    assert (report.state, report.exit_code) == (GateState.PASSED, 0)
    assert report.gate.startswith(
        "not worse than night-00 over 7 runs and 40 cases (one error rate of 5 % for all looks); a drop of 10 points "
        "would be found within "
    )
    assert states(report) == ["baseline", *["not worse"] * 7]


def test_a_drop_says_since_when_and_where_it_was_found(tmp_path: Path) -> None:
    report = judge_history(nights(tmp_path, *[0.95] * 4, *[0.6] * 2))
    assert (report.state, report.exit_code) == (GateState.FAILED, 1)
    assert report.gate.startswith("worse since night-04, 2023-11-18 22:13: -3")
    assert "points (found at night-04), p = " in report.gate
    assert states(report) == ["baseline", *["not worse"] * 3, "worse", "worse"]


def test_a_slow_decay_is_found_although_no_step_is(tmp_path: Path) -> None:
    report = judge_history(nights(tmp_path, *(0.95 - 0.02 * number for number in range(16))))
    assert report.state is GateState.FAILED


def test_a_recovery_passes_and_is_told(tmp_path: Path) -> None:
    report = judge_history(nights(tmp_path, *[0.95] * 4, 0.5, 0.5, 0.95, 0.95))
    assert (report.state, report.exit_code) == (GateState.PASSED, 0)
    assert report.gate.startswith("it was worse since night-04, ")
    assert "and recovered at night-06; " in report.gate
    assert states(report)[4:] == ["worse", "worse", "recovered", "not worse"]


def test_runs_may_be_given_in_any_order(tmp_path: Path) -> None:
    runs = nights(tmp_path, 0.9, 0.9, 0.3)
    assert judge_history(runs[::-1]) == judge_history(runs)


def test_an_incomplete_run_in_the_middle_leaves_the_gate_undecided_unless_allowed(tmp_path: Path) -> None:
    runs = [night(tmp_path, number, lambda _: 0.9, lost=3 * (number == 2)) for number in range(5)]
    report = judge_history(runs)
    assert (report.state, report.exit_code) == (GateState.UNDECIDED, 3)
    assert "s in night-02: 3 of 120 undecided (3 not run); 0 allowed in each run (--allow-undecided)" in report.gate
    assert states(report)[2] == "incomplete"
    for text in ("3", "5%"):
        allowed = judge_history(runs, common=GateEvidence(allowed=Allowance.parse(text)))
        assert allowed.state is GateState.PASSED, text
        assert states(allowed)[2] == "not worse"


def test_many_small_losses_do_not_leave_a_gate_over_a_few_cases(tmp_path: Path) -> None:
    plan = plan_of(20, ["s"])
    runs = []
    for number in range(6):
        records = [
            record_of(trial, 1.0, started=START + number * DAY) for trial in plan.trials() if trial.index != number
        ]
        runs.append(source(write_run(tmp_path / f"night-{number}", plan, records)))
    report = judge_history(runs, common=GateEvidence(allowed=Allowance.parse("2")))
    assert report.state is GateState.UNDECIDED
    assert "6 cases of the baseline cannot be compared" in report.gate


def test_a_loss_that_is_shown_fails_whatever_is_missing(tmp_path: Path) -> None:
    runs = nights(tmp_path, 0.95, 0.95, 0.95, 0.3)
    runs.append(night(tmp_path, 9, lambda _: 0.3, lost=60))
    assert judge_history(runs).exit_code == 1


def test_a_run_with_another_scorer_or_threshold_is_named_and_not_judged(tmp_path: Path) -> None:
    plan = plan_of(40, ["s"], rounds=3)
    other = plan.with_changes(scorers=(ScorerSpec(kind="contains"),))
    runs = [night(tmp_path, number, lambda _: 0.9, other if number == 2 else plan) for number in range(4)]
    report = judge_history(runs)
    assert (report.state, report.exit_code) == (GateState.UNDECIDED, 3)
    assert "not comparable with night-00: night-02: scorers: 'exact" in report.gate
    assert states(report) == ["baseline", "not worse", "not comparable", "not worse"]
    assert judge_history([*runs[:2], runs[3]]).exit_code == 0
    strict = night(tmp_path, 7, lambda _: 0.9, plan.with_changes(threshold=0.5))
    assert "threshold" in judge_history([runs[0], strict]).gate


@pytest.mark.parametrize("allowed", ["0", "100%"])
def test_a_run_without_a_score_never_passes(tmp_path: Path, allowed: str) -> None:
    plan = plan_of(40, ["s"], rounds=3)
    empty = source(
        write_run(tmp_path / "empty", plan, [record_of(t, None, started=START + DAY) for t in plan.trials()])
    )
    runs = [night(tmp_path, 0, lambda _: 0.9), empty, night(tmp_path, 2, lambda _: 0.9)]
    assert judge_history(runs, common=GateEvidence(allowed=Allowance.parse(allowed))).exit_code == 3
    last = judge_history(runs[:2], common=GateEvidence(allowed=Allowance.parse(allowed)))
    assert last.exit_code == 3


def test_changed_cases_are_not_compared(tmp_path: Path) -> None:
    edited = plan_of(40, ["s"], rounds=3, case_list=tuple(Case(id=f"case-{i}", prompt="Other?") for i in range(40)))
    report = judge_history([night(tmp_path, 0, lambda _: 1.0), night(tmp_path, 1, lambda _: 0.0, edited)])
    assert report.exit_code == 3
    assert "40 cases of the baseline cannot be compared" in report.gate


def test_a_series_of_one_run_decides_nothing(tmp_path: Path) -> None:
    report = judge_history(nights(tmp_path, 0.9))
    assert report.exit_code == 3
    assert "no run can be compared with night-00: a history needs two" in report.gate
    assert "night-00" in to_markdown(describe_history(report))


def test_the_same_run_twice_is_refused(tmp_path: Path) -> None:
    [first, second] = nights(tmp_path, 0.9, 0.9)
    with pytest.raises(UsageError, match="started at the same time: they are one run, or have no order"):
        judge_history([first, second, second])
    assert judge_history([first, second], baseline=source_again(first)).exit_code == 0


def source_again(run: Source) -> Source:
    return Source(run.path / "." / "", run.reader)


def test_a_run_without_a_start_is_refused(tmp_path: Path) -> None:
    plan = plan_of(3, ["s"])
    dateless = write_run(tmp_path / "imported", plan, [record_of(trial, started=0.0) for trial in plan.trials()])
    dateless.journal_file.write_bytes(b"".join(dateless.journal_file.read_bytes().splitlines(keepends=True)[1:]))
    with pytest.raises(UsageError, match="has no trial with a start"):
        in_order([source(dateless)])


def test_a_pinned_baseline_leaves_older_runs_out(tmp_path: Path) -> None:
    runs = nights(tmp_path, 0.95, 0.95, 0.5, 0.5, 0.5)
    assert judge_history(runs).exit_code == 1
    report = judge_history(runs, baseline=runs[2])
    assert (report.exit_code, report.baseline, report.left_out) == (0, "night-02", 2)


def test_each_subject_is_judged_and_they_share_the_error_rate(tmp_path: Path) -> None:
    plan = plan_of(40, ["good", "bad", "nop"], rounds=3)
    runs = [night(tmp_path, n, lambda name, n=n: 0.3 if name == "bad" and n > 2 else 0.9, plan) for n in range(5)]  # type: ignore[misc]
    report = judge_history(runs)
    assert [(one.subject, one.change.worse, one.alpha) for one in report.subjects] == [
        ("good", False, 0.025),
        ("bad", True, 0.025),
    ]
    assert report.exit_code == 1
    assert "good: not worse than night-00" in report.gate
    assert "bad: worse since night-03" in report.gate
    assert judge_history(runs, subject="good").exit_code == 0
    page = to_markdown(describe_history(report, last=2))
    assert "night-04" in page
    assert "night-01" not in page, "--last shortens the table"


def test_a_subject_that_a_run_lacks_is_undecided(tmp_path: Path) -> None:
    runs = [
        night(tmp_path, 0, lambda _: 0.9, plan_of(40, ["s", "t"])),
        night(tmp_path, 1, lambda _: 0.9, plan_of(40, ["s"])),
    ]
    report = judge_history(runs)
    assert report.exit_code == 3
    assert "night-01: it has no subject 't'" in report.gate

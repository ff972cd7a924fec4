"""Comparisons that may be looked at after every case."""

import pytest

from bakeoff.stats.sequential import SequentialDecision, SequentialTest

from .simulation_sequential import Apart, any_wrong, simulated

pytestmark = pytest.mark.unwatched


def test_nothing_is_decided_before_the_first_case() -> None:
    test = SequentialTest()
    assert (test.decision, test.units, test.difference, test.interval()) == (
        SequentialDecision.UNDECIDED,
        0,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("difference", "decision"), [(1.0, SequentialDecision.IMPROVED), (-1.0, SequentialDecision.REGRESSED)]
)
def test_eight_cases_that_all_changed_decide(difference: float, decision: SequentialDecision) -> None:
    test = SequentialTest()
    for _ in range(7):
        test.add(difference)
    assert test.decision is SequentialDecision.UNDECIDED
    test.add(difference)
    assert test.decision is decision
    interval = test.interval()
    assert interval is not None
    assert interval.method == "anytime-valid betting"
    assert interval.low * difference > 0
    assert interval.high * difference > 0


def test_cases_without_a_difference_decide_only_with_a_margin() -> None:
    without, within = SequentialTest(), SequentialTest(margin=0.05)
    for _ in range(150):
        without.add(0.0)
        within.add(0.0)
    assert without.decision is SequentialDecision.UNDECIDED
    assert within.decision is SequentialDecision.EQUIVALENT
    interval = within.interval()
    assert interval is not None
    assert -0.05 < interval.low < 0 < interval.high < 0.05


def test_a_decision_stays_and_the_interval_only_narrows() -> None:
    test = SequentialTest()
    for _ in range(8):
        test.add(1.0)
    before = test.interval()
    for _ in range(12):
        test.add(-1.0)
    after = test.interval()
    assert test.decision is SequentialDecision.IMPROVED
    assert before is not None
    assert after is not None
    assert before.low <= after.low <= after.high <= before.high


def test_where_no_difference_fits_all_that_was_seen_the_interval_is_a_point() -> None:
    test = SequentialTest()
    for number in range(80):
        test.add(1.0 if number < 20 else -1.0)
    interval = test.interval()
    assert interval is not None
    assert interval.low == interval.high


def test_the_interval_and_the_decision_agree_at_every_look() -> None:
    test = SequentialTest(margin=0.3)
    for number in range(60):
        test.add((1.0, 0.0, 0.5, -0.5)[number % 4])
        interval = test.interval()
        assert interval is not None
        if test.decision is SequentialDecision.EQUIVALENT:
            assert -0.3 <= interval.low <= interval.high <= 0.3
        else:
            assert (test.decision is SequentialDecision.IMPROVED) == (interval.low >= 0)


def test_a_cluster_counts_as_one_unit_by_its_share_of_the_largest() -> None:
    test = SequentialTest()
    test.add(0.5, 0.5)
    test.add(-0.25, 1.0)
    assert test.units == 2
    assert test.difference == pytest.approx(0.25 / 1.5)


def test_rates_of_90_and_60_percent_are_decided_with_half_of_200_cases() -> None:
    found = simulated(Apart(200, 0.9, 0.6), 200, intervals=False)
    assert found.decided[SequentialDecision.REGRESSED] == 1.0
    assert found.saved >= 0.5


@pytest.mark.parametrize(
    ("apart", "runs"),
    [
        (Apart(200, 0.7, 0.7), 1_000),
        (Apart(200, 0.95, 0.95, margin=0.05), 200),
        (Apart(100, 0.5, 0.5, rounds=3, kind="beta"), 400),
        (Apart(200, 0.5, 0.5, kind="fixed"), 400),
        (Apart(200, 0.1, 0.1, kind="graded"), 400),
        (Apart(200, 0.9, 0.8, margin=0.1), 400),
    ],
    ids=str,
)
def test_at_most_5_percent_of_runs_are_wrong_when_every_case_is_looked_at(apart: Apart, runs: int) -> None:
    assert simulated(apart, runs, intervals=False).wrong <= 0.05


@pytest.mark.parametrize("apart", [Apart(100, 0.8, 0.7), Apart(100, 0.95, 0.9, rounds=3, kind="beta")], ids=str)
def test_the_interval_holds_the_truth_at_every_look(apart: Apart) -> None:
    assert simulated(apart, 200).covered >= 0.95


def test_with_several_pairs_at_most_5_percent_of_runs_have_any_that_is_wrong() -> None:
    assert any_wrong(4, 60, 200) <= 0.05


def test_cases_of_a_cluster_are_not_counted_as_independent() -> None:
    assert any_wrong(2, 100, 300, clusters=10) <= 0.05

"""Paired differences are covered, and a margin is not granted to those who lie as far apart, where few cases change."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import binom

from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.comparison import compare
from bakeoff.stats.differences import change_of, difference_interval, effective_pairs, score_variance, tango
from bakeoff.stats.gates import GateVerdict, judge
from bakeoff.stats.intervals import TOO_SMALL, Interval, normal_quantile, wilson

from .simulation import cells_from_passes
from .simulation_differences import EDGE, INNER, SPREAD, Apart, changes_of_rows, measured

pytestmark = [pytest.mark.full, pytest.mark.unwatched]

LOW = 0.92
MAX_WRONG = 0.057  # of sums that are exact
DRAWS = 600

few = settings(max_examples=40, deadline=None)
counts = st.integers(0, 30)


def once(passed: int, cases: int) -> Cells:
    return {CaseKey(str(place)): Cell.of([place < passed]) for place in range(cases)}


@pytest.mark.parametrize("apart", EDGE, ids=str)
def test_a_loss_as_large_as_the_margin_is_rarely_called_equivalent(apart: Apart) -> None:
    # The baseline always passes, so that what is lost is binomial and the error a sum.
    granted, covered = 0.0, 0.0
    for lost in range(apart.cases + 1):
        found = compare(once(apart.cases, apart.cases), once(apart.cases - lost, apart.cases))
        assert found.interval is not None
        chance = float(binom.pmf(lost, apart.cases, apart.loss))
        granted += chance * (judge(found, margin=apart.loss).verdict is GateVerdict.EQUIVALENT)
        covered += chance * (found.interval.low <= -apart.loss <= found.interval.high)
    assert granted <= MAX_WRONG
    assert covered >= LOW


@pytest.mark.parametrize("apart", SPREAD, ids=str)
def test_nor_is_it_with_several_rounds_whatever_their_spread(apart: Apart) -> None:
    found = measured(apart, DRAWS)
    assert found.equivalent <= found.not_worse <= 0.05 + 3 * sqrt(0.05 * 0.95 / DRAWS)
    assert found.covered >= LOW


@pytest.mark.parametrize("apart", INNER, ids=str)
def test_differences_of_all_kinds_are_covered(apart: Apart) -> None:
    found = measured(apart, 500)
    assert LOW <= found.covered <= 0.99
    assert found.not_worse <= 0.05 + 3 * sqrt(0.05 * 0.95 / 500)


def test_plain_t_would_grant_the_margin_three_times_too_often() -> None:
    lost = binom.rvs(100, 0.03, size=4_000, random_state=1) / 100
    error = np.sqrt(lost * (1 - lost) / 99)
    assert np.mean(-lost - 1.66 * error > -0.03) > 0.15


def test_each_interval_of_a_difference_is_used_where_it_covers() -> None:
    assert set(measured(Apart(200, 1, 0.05, "own"), 50).methods) == {"Tango"}
    assert set(measured(Apart(200, 5, 0.05, "own"), 50).methods) == {"paired t"}
    near_the_edge = measured(Apart(100, 5, 0.05, "edge"), 50).methods
    assert {method.split(",")[0] for method in near_the_edge} == {"Tango with effective n", "Bayesian bootstrap"}


@few
@given(counts, counts, st.integers(1, 40), st.floats(-0.9, 0.9))
def test_the_score_variance_is_the_one_most_likely_under_the_difference(
    gained: int, lost: int, same: int, difference: float
) -> None:
    n = gained + lost + same

    def unlikely(share_lost: float) -> float:
        chances = (share_lost + difference, share_lost, 1 - 2 * share_lost - difference)
        pairs = zip((gained, lost, same), chances, strict=True)
        return -sum(count * log(max(chance, 1e-300)) for count, chance in pairs if count)

    bounds = (max(0.0, -difference), (1 - difference) / 2)
    best = float(minimize_scalar(unlikely, bounds=bounds, method="bounded", options={"xatol": 1e-12}).x)
    found = score_variance(gained / n, lost / n, difference)
    assert found == pytest.approx(2 * best + difference - difference**2, abs=2e-5)


def test_tango_is_the_range_that_the_score_test_does_not_reject() -> None:
    gained, lost, n, quantile = 0.12, 0.04, 50, normal_quantile(0.975)

    def score(difference: float) -> float:
        return (gained - lost - difference) / sqrt(score_variance(gained, lost, difference) / n)

    expected = [brentq(lambda guess, z=z: score(guess) - z, -0.99, 0.99) for z in (quantile, -quantile)]
    found = tango(gained, lost, n, quantile, continuity=0.0)
    assert [found.low, found.high] == pytest.approx(expected, abs=1e-9)
    corrected = tango(gained, lost, n, quantile)
    assert corrected.low < found.low
    assert corrected.high > found.high


def test_without_a_loss_tango_is_wilson_at_its_upper_end() -> None:
    # Everybody who changed gained: what can be gained at most is a plain proportion's bound.
    found = tango(0.05, 0.0, 100, normal_quantile(0.975), continuity=0.0)
    assert found.high == pytest.approx(wilson(0.05, 100).high, abs=1e-9)


def test_smaller_changes_count_as_more_pairs_and_whole_ones_as_they_are() -> None:
    whole = change_of([1.0, -1.0, 0.0, 0.0] * 20, None, single=True)
    halves = change_of([0.5, -0.5, 0.0, 0.0] * 20, None, single=False)
    assert effective_pairs(whole) == pytest.approx(80)
    assert 150 < effective_pairs(halves) < 160  # twice as many, less what is believed besides


def test_clusters_that_change_whole_count_as_fewer_pairs() -> None:
    differences = [1.0] * 5 + [-1.0] * 5 + [0.0] * 90
    names = [str(place // 5) for place in range(100)]
    alone, together = (change_of(differences, clusters, single=False) for clusters in (None, names))
    assert effective_pairs(together) < 0.3 * effective_pairs(alone)
    found = compare(
        {CaseKey(str(n)): Cell.of([d < 0], names[n]) for n, d in enumerate(differences)},
        {CaseKey(str(n)): Cell.of([d > 0], names[n]) for n, d in enumerate(differences)},
    )
    assert found.interval is not None
    assert found.interval.method == f"clustered Tango with effective n, {TOO_SMALL}"  # only two clusters changed


@few
@given(counts, counts, st.floats(2, 500), st.floats(1, 4))
def test_a_bound_holds_the_difference_and_stays_within_what_scores_can_do(
    gained: int, lost: int, n: float, quantile: float
) -> None:
    found = tango(gained / 61, lost / 61, n, quantile)
    mirrored = tango(lost / 61, gained / 61, n, quantile)
    assert -1 <= found.low <= (gained - lost) / 61 <= found.high <= 1
    assert (found.low, found.high) == pytest.approx((-mirrored.high, -mirrored.low))
    assert tango(gained / 61, lost / 61, 2 * n, quantile).width < found.width


def test_the_simulation_computes_the_changes_of_the_code_it_tests() -> None:
    random = np.random.default_rng(3)
    differences = (random.binomial(5, 0.9, (50, 20)) - random.binomial(5, 0.95, (50, 20))) / 5
    for row, quick in zip(differences, changes_of_rows(differences, single=False), strict=True):
        slow = change_of(row.tolist(), None, single=False)
        assert (slow.gained, slow.lost, slow.changed) == pytest.approx((quick.gained, quick.lost, quick.changed))
        assert slow.moments.variance == pytest.approx(quick.moments.variance)


def test_a_subject_that_lost_nothing_in_few_cases_may_have_lost_some() -> None:
    same = cells_from_passes(np.full(40, 3), 3)
    assert judge(compare(same, same), margin=0.07).verdict is GateVerdict.UNDECIDABLE
    assert judge(compare(same, same), margin=0.075).verdict is GateVerdict.EQUIVALENT  # 1 − 0.05^(1/40) is 0.072


@pytest.mark.parametrize(("clusters", "size", "loss"), [(30, 5, 0.1), (60, 3, 0.05)])
def test_clusters_lost_whole_are_covered_and_no_margin_is_granted_to_them(
    clusters: int, size: int, loss: float
) -> None:
    random = np.random.default_rng([clusters, size])
    names = [str(place // size) for place in range(clusters * size)]
    draws, covered, not_worse = 1_000, 0, 0
    for _ in range(draws):
        lost = np.repeat(random.random(clusters) < loss, size)
        change = change_of((-1.0 * lost).tolist(), names, single=False)
        outer, inner = (difference_interval(change, confidence=level) for level in (0.95, 0.9))
        covered += outer.low <= -loss <= outer.high
        not_worse += inner.low > -loss
    assert covered / draws >= LOW
    assert not_worse / draws <= MAX_WRONG


def test_an_effective_n_that_rests_on_few_changes_promises_nothing() -> None:
    def interval(changed: int) -> Interval:
        differences = [0.2, -0.2] * (changed // 2) + [0.0] * (100 - changed)
        return difference_interval(change_of(differences, None, single=False), confidence=0.95)

    assert interval(12).method == f"Tango with effective n, {TOO_SMALL}"
    assert interval(20).promised

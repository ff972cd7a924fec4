"""Identical runs are called different no more often than was promised, and real differences are found."""

import numpy as np
import pytest
from scipy.stats import norm

from bakeoff.stats.cells import Cells
from bakeoff.stats.comparison import compare
from bakeoff.stats.gates import GateVerdict, judge

from .simulation import cells_from_passes
from .simulation_pairs import false_alarms, found_at_the_detectable, identical_pairs
from .simulation_small import SKEWED, skewed_apart

pytestmark = [pytest.mark.full, pytest.mark.unwatched]

PAIRS = 2_000
MAX_COUNT = 0.05 + 3 * (0.05 * 0.95 / PAIRS) ** 0.5


@pytest.mark.parametrize(("cases", "rounds"), [(40, 1), (40, 10)])
def test_identical_pairs_are_rarely_called_different(cases: int, rounds: int) -> None:
    assert false_alarms(cases, rounds, PAIRS) <= MAX_COUNT


def test_identical_pairs_in_clusters_are_rarely_called_different() -> None:
    assert false_alarms(60, 3, 1_000, clusters=15) <= MAX_COUNT


def test_pooling_the_rounds_would_cry_wolf() -> None:
    pairs = list(identical_pairs(40, 10, 1_000))
    assert np.mean([pooled_p(before, after) < 0.05 for before, after in pairs]) > 0.25


def pooled_p(before: Cells, after: Cells) -> float:
    """The usual z test of two proportions, as if all n·K rounds were independent."""
    was, now = (sum(cell.mean for cell in arm.values()) / len(arm) for arm in (before, after))
    n, middle = 10 * len(before), (was + now) / 2
    return float(2 * norm.sf(abs(now - was) / (2 * middle * (1 - middle) / n) ** 0.5))


@pytest.mark.parametrize(("cases", "rounds"), [(100, 1), (100, 5)])
def test_twice_the_minimum_detectable_difference_is_found(cases: int, rounds: int) -> None:
    assert found_at_the_detectable(cases, rounds, 300, times=2) >= 0.9


@pytest.mark.parametrize(("cases", "rounds"), [(30, 1), (30, 3), (100, 1)])
def test_the_minimum_detectable_difference_itself_is_found_about_as_often_as_it_says(cases: int, rounds: int) -> None:
    # 0.8, give or take the noise of 400 draws; McNemar's test is coarse
    assert 0.74 <= found_at_the_detectable(cases, rounds, 400) <= 0.92


@pytest.mark.parametrize("kind", SKEWED)
@pytest.mark.parametrize("cases", [20, 50])
def test_equal_means_with_skewed_differences_are_rarely_called_different(kind: str, cases: int) -> None:
    draws = 400
    assert 1 - skewed_apart(kind, cases, draws).covered <= 0.05 + 3 * (0.05 * 0.95 / draws) ** 0.5


def test_equivalence_is_rarely_granted_to_arms_that_lie_a_margin_apart() -> None:
    random = np.random.default_rng(6)
    granted, pairs = 0, 400
    for _ in range(pairs):
        before = cells_from_passes(random.binomial(4, np.full(300, 0.5)), 4)
        after = cells_from_passes(random.binomial(4, np.full(300, 0.55)), 4)
        granted += judge(compare(before, after), margin=0.05).verdict is GateVerdict.EQUIVALENT
    assert granted / pairs <= 0.05 + 3 * (0.05 * 0.95 / pairs) ** 0.5

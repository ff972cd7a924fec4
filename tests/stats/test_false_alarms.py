"""Identical runs are called different no more often than was promised, and real differences are found."""

import numpy as np
import pytest
from scipy.stats import norm

from bakeoff.stats.cells import Cells
from bakeoff.stats.comparison import compare
from bakeoff.stats.gates import GateVerdict, judge

from .simulation import cells_from_passes
from .simulation_pairs import detectable, false_alarms, found_at_twice_the_detectable, identical_pairs

pytestmark = pytest.mark.unwatched

PAIRS = 3_000
MOST = 0.05 + 3 * (0.05 * 0.95 / PAIRS) ** 0.5


@pytest.mark.parametrize(("cases", "rounds"), [(40, 1), (40, 10)])
def test_identical_pairs_are_rarely_called_different(cases: int, rounds: int) -> None:
    assert false_alarms(cases, rounds, PAIRS) <= MOST


def test_identical_pairs_in_clusters_are_rarely_called_different() -> None:
    assert false_alarms(60, 3, 2_000, clusters=15) <= MOST


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
    assert found_at_twice_the_detectable(cases, rounds, 500) >= 0.9


def test_the_minimum_detectable_difference_itself_is_found_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(5)
    difference, found, pairs = detectable(200, 5, random), 0, 500
    for _ in range(pairs):
        before = cells_from_passes(random.binomial(5, np.full(200, 0.3)), 5)
        after = cells_from_passes(random.binomial(5, np.full(200, 0.3 + difference)), 5)
        found += judge(compare(before, after)).verdict is GateVerdict.IMPROVED
    assert 0.7 <= found / pairs <= 0.9  # 0.8 less the noise of the pilot and of 500 draws


def test_equivalence_is_rarely_granted_to_arms_that_lie_a_margin_apart() -> None:
    random = np.random.default_rng(6)
    granted, pairs = 0, 1_000
    for _ in range(pairs):
        before = cells_from_passes(random.binomial(4, np.full(300, 0.5)), 4)
        after = cells_from_passes(random.binomial(4, np.full(300, 0.55)), 4)
        granted += judge(compare(before, after), margin=0.05).verdict is GateVerdict.EQUIVALENT
    assert granted / pairs <= 0.05 + 3 * (0.05 * 0.95 / pairs) ** 0.5

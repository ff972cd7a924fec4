"""95 % intervals hold the truth in 92 to 98 % of simulated runs. bench/bench_coverage.py draws more."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from bakeoff.stats.cells import Cell, moments_of, moments_of_means
from bakeoff.stats.intervals import Interval, interval_of, score_interval, student_t

from .simulation import REQUIRED, Array, Coverage, Setting, chances, coverage, moments_of_rows
from .simulation_small import CLUSTERS, clustered, clustered_apart, pass_k

pytestmark = [pytest.mark.full, pytest.mark.unwatched]

LOW, HIGH = 0.92, 0.98
DRAWS = 1_200  # the standard error of a coverage near 95 % is then 0.6 points
ONE_ROUND = [setting for setting in REQUIRED if setting.rounds == 1]
MORE_ROUNDS = [setting for setting in REQUIRED if setting.rounds > 1]


@cache
def simulated(setting: Setting) -> Coverage:
    return coverage(setting, DRAWS)


@pytest.mark.parametrize("setting", MORE_ROUNDS, ids=str)
def test_the_interval_of_several_rounds_covers_what_it_says(setting: Setting) -> None:
    assert LOW <= simulated(setting).share <= HIGH


@pytest.mark.parametrize("setting", ONE_ROUND, ids=str)
def test_the_interval_of_one_round_covers_what_it_says(setting: Setting) -> None:
    # Passes in one round are binomial whatever the spread, so the coverage is a sum, without simulation's error.
    covered = 0.0
    for passed in range(setting.cases + 1):
        interval = one_round(setting.cases, passed)
        if interval.low <= setting.p <= interval.high:
            covered += float(binom.pmf(passed, setting.cases, setting.p))
    assert LOW <= covered <= HIGH


@cache
def one_round(cases: int, passed: int) -> Interval:
    interval = score_interval([Cell.of([place < passed]) for place in range(cases)])
    assert interval is not None
    return interval


def test_plain_t_would_not_cover_near_the_edge() -> None:
    setting = Setting(20, 0.05, 5, "strong")
    random = np.random.default_rng(1)
    means = random.binomial(5, chances(setting, DRAWS, random)) / 5
    held = 0
    for moments in moments_of_rows(means, single=False):
        interval = student_t(moments)
        held += interval.low <= setting.p <= interval.high
    assert held / DRAWS < LOW


def test_each_interval_is_used_where_it_covers() -> None:
    assert set(simulated(Setting(500, 0.5, 5, "strong")).methods) == {"t"}
    assert set(simulated(Setting(20, 0.05, 5, "none")).methods) == {"Bayesian bootstrap", "rule of three"}


GRADED: dict[str, tuple[float, Callable[[np.random.Generator, tuple[int, int]], Array]]] = {
    "uniform": (0.5, lambda random, shape: random.random(shape)),
    "beta": (0.8, lambda random, shape: random.beta(8, 2, shape)),
    "skewed": (0.05, lambda random, shape: random.beta(0.1, 1.9, shape)),
    "mostly 1": (0.95, lambda random, shape: np.where(random.random(shape) < 0.9, 1.0, random.random(shape))),
}


@pytest.mark.parametrize("kind", GRADED)
@pytest.mark.parametrize("cases", [10, 20, 100])
def test_graded_scores_are_covered_too(kind: str, cases: int) -> None:
    truth, draw = GRADED[kind]
    means = draw(np.random.default_rng(cases), (DRAWS, cases))
    held = sum(covers(interval_of(moments), truth) for moments in moments_of_rows(means, single=False))
    assert LOW <= held / DRAWS <= HIGH


@pytest.mark.parametrize(("clusters", "size"), [(20, 5), (60, 3)])
@pytest.mark.parametrize("p", [0.2, 0.5])
def test_cases_that_hang_together_are_covered_too_and_pooling_them_would_not_be(
    clusters: int, size: int, p: float
) -> None:
    random = np.random.default_rng([clusters, size, round(10 * p)])
    names = [str(place // size) for place in range(clusters * size)]
    held, pooled = 0, 0
    draws = 1_000
    for _ in range(draws):
        chance = np.repeat(random.beta(p, 1 - p, clusters), size)
        means = (random.binomial(3, chance) / 3).tolist()
        held += covers(interval_of(moments_of_means(means, names)), p)
        pooled += covers(interval_of(moments_of_means(means)), p)
    assert LOW <= held / draws <= HIGH
    assert pooled / draws < 0.85


@pytest.mark.parametrize("sizes", CLUSTERS)
def test_unequal_clusters_are_covered_or_too_small_to_promise(sizes: str) -> None:
    for simulate in (clustered, clustered_apart):
        found = simulate(sizes, 0.5, True, 500)
        assert found.covered >= LOW
        assert found.covered <= 0.99 or found.marked == 1


@pytest.mark.parametrize("sizes", ["30, and 20 of 1", "40, 20, 10, 6 of 5"])
def test_clusters_that_outweigh_the_others_are_marked(sizes: str) -> None:
    assert clustered(sizes, 0.5, True, 20).marked == 1
    assert clustered_apart(sizes, 0.5, True, 20).marked == 1


@pytest.mark.parametrize("name", ["pass@", "pass^"])
@pytest.mark.parametrize(("cases", "p"), [(10, 0.5), (50, 0.05), (50, 0.95)])
def test_pass_k_is_covered(name: str, cases: int, p: float) -> None:
    for k, spread in ((2, "none"), (5, "strong")):
        assert 0.91 <= pass_k(name, cases, p, k, spread, 600).covered <= 0.992


def covers(interval: Interval | None, truth: float) -> bool:
    assert interval is not None
    return interval.low <= truth <= interval.high


def test_the_simulation_computes_the_moments_of_the_code_it_tests() -> None:
    passes = np.random.default_rng(3).binomial(5, 0.1, (50, 20))
    for row, quick in zip(passes, moments_of_rows(passes / 5, single=False), strict=True):
        slow = moments_of([Cell(5, count, count) for count in row.tolist()])
        assert (slow.mean, slow.variance) == pytest.approx((quick.mean, quick.variance), rel=1e-12)
        assert (slow.cases, slow.units, slow.informative, slow.single) == (20, 20, quick.informative, False)
        assert (slow.freedom, sorted(slow.values)) == (quick.freedom, list(quick.values))
        assert slow.skewness == pytest.approx(quick.skewness)

"""Simulated runs in which intervals are hard to make: unequal clusters, pass@k, skewed scores, skewed differences."""

from collections.abc import Callable, Iterable
from functools import cache
from math import prod
from typing import NamedTuple

import numpy as np

from bakeoff.stats.cells import Cells, moments_of_means
from bakeoff.stats.differences import change_of, difference_interval
from bakeoff.stats.intervals import Interval, amount_interval, interval_of, ratio_interval
from bakeoff.stats.ranking import leaderboard
from bakeoff.stats.rounds import pass_at_k, pass_hat_k

from .simulation import Array, cells_from_passes, moments_of_rows
from .simulation_differences import changes_of_rows

ROUNDS = 5  # of pass@k
CLUSTERS = {
    "30, and 20 of 1": [30] + [1] * 20,
    "40, 20, 10, 6 of 5": [40, 20, 10] + [5] * 6,
    "5 of 10": [10] * 5,
    "20, and 20 of 5": [20] + [5] * 20,
    "20 of 5": [5] * 20,
    "60 of 3": [3] * 60,
    "60 by Zipf's law": [max(1, round(60 / place**0.7)) for place in range(1, 61)],
    "200 by Zipf's law": [max(1, round(170 / place)) for place in range(1, 201)],
}


class Held(NamedTuple):
    """How often intervals held the truth, and how often they were marked (`TOO_SMALL`)."""

    covered: float
    marked: float
    promised: float | None = None  # how often those held it that were not marked


def held(intervals: Iterable[Interval | None], truth: float) -> Held:
    """Count the intervals; one that is not given is marked, and tells of no coverage."""
    every = list(intervals)
    found = [interval for interval in every if interval is not None]
    covered = [interval.low - 1e-12 <= truth <= interval.high + 1e-12 for interval in found]
    promised = [hit for hit, interval in zip(covered, found, strict=True) if interval.promised]
    share = float(np.mean(promised)) if promised else None
    return Held(float(np.mean(covered)), 1 - len(promised) / len(every), share)


def graded(cases: int, a: float, b: float, draws: int) -> Held:
    """The mean of scores from Beta(a, b)."""
    scores = np.random.default_rng([cases, 1]).beta(a, b, (draws, cases))
    return held(map(interval_of, moments_of_rows(scores, single=False)), a / (a + b))


def clustered(sizes: str, p: float, together: bool, draws: int) -> Held:
    """The score of clusters with these sizes, three rounds; `together`: the cases of a cluster share their chance."""
    names, arms = _arms(sizes, p, together, draws, 1)
    return held((interval_of(moments_of_means(row, names)) for row in arms[0].tolist()), p)


def clustered_apart(sizes: str, p: float, together: bool, draws: int) -> Held:
    """The difference between two arms of such clusters, which is 0."""
    names, (before, after) = _arms(sizes, p, together, draws, 2)
    changes = (change_of(row, names, single=False) for row in (after - before).tolist())
    return held((difference_interval(change, confidence=0.95) for change in changes), 0.0)


def _arms(sizes: str, p: float, together: bool, draws: int, arms: int) -> tuple[list[str], list[Array]]:
    counts = CLUSTERS[sizes]
    owner = np.repeat(np.arange(len(counts)), counts)
    random = np.random.default_rng([sum(counts), round(100 * p), together, arms])

    def arm() -> Array:
        drawn = random.beta(p, 1 - p, (draws, len(counts) if together else len(owner)))
        return random.binomial(3, drawn[:, owner] if together else drawn) / 3

    return [str(name) for name in owner], [arm() for _ in range(arms)]


def costs(units: int, size: int, skew: float, ratio: bool, draws: int) -> Held:
    """The mean lognormal cost of a trial, alike in clusters of this size, or the ratio to another subject's."""
    random = np.random.default_rng([units, size, round(10 * skew)])
    sizes, found = [size] * units, []
    for _ in range(draws):
        cheap = size * np.exp(skew * random.normal(size=units))
        dear = 15 * cheap * np.exp(0.3 * random.normal(size=units) - 0.045)
        known = cheap.tolist()
        found.append(ratio_interval(sizes, dear.tolist(), known) if ratio else amount_interval(sizes, known))
    return held(found, 15.0 if ratio else float(np.exp(skew**2 / 2)))


def rarely_dear(units: int, one_in: int, draws: int) -> Held:
    """The mean cost where one case in so many is as many times as dear as the others."""
    random = np.random.default_rng([units, one_in])
    often = np.exp(0.2 * random.normal(size=(draws, units)))
    amounts = often * np.where(random.random((draws, units)) < 1 / one_in, one_in, 1)
    return held((amount_interval([1] * units, row) for row in amounts.tolist()), (2 - 1 / one_in) * float(np.exp(0.02)))


def pass_k(name: str, cases: int, p: float, k: int, spread: str, draws: int) -> Held:
    """pass@k or pass^k of five rounds; the chance of a case is p, or drawn from Beta(p, 1−p) where spread is strong."""
    random = np.random.default_rng([cases, round(100 * p), k, spread == "strong"])
    shape = (draws, cases)
    chances = random.beta(p, 1 - p, shape) if spread == "strong" else np.full(shape, p)
    estimate = pass_at_k if name == "pass@" else pass_hat_k
    quick = cache(lambda row: estimate(_cells(row), k).interval)  # many draws are alike
    rows = (tuple(sorted(row)) for row in random.binomial(ROUNDS, chances).tolist())
    passes = p if name == "pass^" else 1 - p
    chance = passes**k if spread == "none" else prod((passes + i) / (1 + i) for i in range(k))
    return held(map(quick, rows), chance if name == "pass^" else 1 - chance)


def _cells(passes: tuple[int, ...]) -> Cells:
    return cells_from_passes(np.array(passes), ROUNDS)


SKEWED: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "1 in 10 gains 0.9, the others lose 0.1": lambda random, shape: np.where(random.random(shape) < 0.1, 0.9, -0.1),
    "Beta(0.1, 1.9) against 0.05": lambda random, shape: random.beta(0.1, 1.9, shape) - 0.05,
    "exponential gains against 0.1": lambda random, shape: np.minimum(random.exponential(0.1, shape), 1) - 0.1,
}


def skewed_apart(kind: str, cases: int, draws: int) -> Held:
    """Differences that are skewed around 0: an interval that excludes 0 is a false alarm."""
    differences = SKEWED[kind](np.random.default_rng([cases, len(kind)]), (draws, cases))
    changes = changes_of_rows(differences, single=False)
    return held((difference_interval(change, confidence=0.95) for change in changes), 0.0)


def split_boards(boards: int) -> float:
    """Return how many leaderboards of eight equal subjects, 60 cases and three rounds tell any two apart."""
    random = np.random.default_rng(11)
    split = 0
    for _ in range(boards):
        chance = random.beta(0.5, 0.5, 60)
        board = leaderboard({str(n): cells_from_passes(random.binomial(3, chance), 3) for n in range(8)})
        split += any(row.groups != (1,) for row in board)
    return split / boards

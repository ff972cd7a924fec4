"""Simulated pairs of runs: alike, or apart by a known difference."""

from collections.abc import Iterator

import numpy as np

from bakeoff.stats.cells import Cells
from bakeoff.stats.comparison import Comparison, compare
from bakeoff.stats.gates import GateVerdict, judge
from bakeoff.stats.power import Noise, cases_to_pass, detectable_between, difference_split, minimum_detectable

from .simulation import cells_from_passes

DECIDED = (GateVerdict.IMPROVED, GateVerdict.REGRESSED)


def identical_pairs(cases: int, rounds: int, pairs: int, clusters: int | None = None) -> Iterator[tuple[Cells, Cells]]:
    """Two arms of one distribution. Each draws its own chance to pass for every case (or cluster of cases).

    So the rounds of a case hang together, and the cases of a cluster; pooled, they show differences that are none.
    """
    random = np.random.default_rng([cases, rounds, clusters or 0])
    owner = np.arange(cases) % (clusters or cases)
    names = [str(name) for name in owner] if clusters else None
    for _ in range(pairs):
        arms = [random.binomial(rounds, random.beta(0.5, 0.5, clusters or cases)[owner]) for _ in range(2)]
        before, after = (cells_from_passes(passes, rounds, names) for passes in arms)
        yield before, after


def false_alarms(cases: int, rounds: int, pairs: int, *, clusters: int | None = None) -> float:
    """Return how many of this many identical pairs are called different."""
    drawn = identical_pairs(cases, rounds, pairs, clusters)
    return sum(judge(compare(before, after)).verdict in DECIDED for before, after in drawn) / pairs


def found_at_the_detectable(cases: int, rounds: int, pairs: int, *, times: float = 1) -> float:
    """Return how often a true difference of this many times the detectable one of a pilot is found.

    The pilot has as many cases and no difference.

    The arms pass each case with a chance around one half.
    """
    random = np.random.default_rng([107, cases, rounds])

    def arms(apart: float) -> tuple[Cells, Cells]:
        before, after = (np.full(cases, 0.5 + part) for part in (-apart / 2, apart / 2))
        return _arm(before), _arm(after)

    def _arm(chances: np.ndarray) -> Cells:
        return cells_from_passes(random.binomial(rounds, chances), rounds)

    found = 0
    for _ in range(pairs):
        pilot = arms(0.0)
        split = difference_split(*pilot)
        known = Noise(split.between, split.within) if split else None
        smallest = minimum_detectable(cases, rounds, known) if known else detectable_between(*pilot)
        assert smallest is not None
        found += judge(compare(*arms(min(1.0, times * smallest)))).verdict is GateVerdict.IMPROVED
    return found / pairs


def passes_a_margin(cases: int, rounds: int, margin: float, pairs: int, *, enough: bool) -> float:
    """Return how often unchanged code passes a margin with this many cases, or with as many as a comparison needs."""
    random = np.random.default_rng([8, cases, rounds])

    def unchanged(number: int) -> Comparison:
        chance = random.beta(0.7, 0.3, number)
        return compare(*(cells_from_passes(random.binomial(rounds, chance), rounds) for _ in range(2)))

    needed = [cases_to_pass(unchanged(cases), margin) or 0 for _ in range(50)] if enough else [cases]
    inner = [unchanged(int(np.median(needed))).inner for _ in range(pairs)]
    return sum(one is not None and one.low > -margin for one in inner) / pairs

"""Simulated pairs of runs: alike, or apart by a known difference."""

import numpy as np

from bakeoff.stats import GateVerdict, Noise, compare, difference_split, judge, minimum_detectable

from .simulation import cells_from_passes

DECIDED = (GateVerdict.IMPROVED, GateVerdict.REGRESSED)


def false_alarms(cases: int, rounds: int, pairs: int, *, clusters: int | None = None) -> float:
    """How many of so many identical pairs are called different. Rounds of one case share its chance to pass.

    With clusters, so do the cases of one, but each arm draws its own: a cluster likes one arm or the other by chance.
    """
    random = np.random.default_rng([cases, rounds, clusters or 0])
    names = [str(place % clusters) for place in range(cases)] if clusters else None
    alarms = 0
    for _ in range(pairs):
        arms = [random.binomial(rounds, chance) for chance in _alike(cases, clusters, random)]
        before, after = (cells_from_passes(passes, rounds, names) for passes in arms)
        alarms += judge(compare(before, after)).verdict in DECIDED
    return alarms / pairs


def _alike(cases: int, clusters: int | None, random: np.random.Generator) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    if clusters is None:
        return [random.beta(0.5, 0.5, cases)] * 2
    return [random.beta(0.5, 0.5, clusters)[np.arange(cases) % clusters] for _ in range(2)]


def found_at_twice_the_detectable(cases: int, rounds: int, pairs: int) -> float:
    """How often a true difference is found that is twice what a pilot of the same size says can be found.

    The baseline passes each case with chance 0.3; the pilot compares it with itself.
    """
    random = np.random.default_rng([7, cases, rounds])
    difference = 2 * detectable(cases, rounds, random)
    found = 0
    for _ in range(pairs):
        before = cells_from_passes(random.binomial(rounds, np.full(cases, 0.3)), rounds)
        after = cells_from_passes(random.binomial(rounds, np.full(cases, 0.3 + difference)), rounds)
        found += judge(compare(before, after)).verdict is GateVerdict.IMPROVED
    return found / pairs


def detectable(cases: int, rounds: int, random: np.random.Generator) -> float:
    """The minimum detectable difference, from a pilot where there are rounds enough and a guess where not."""
    if rounds == 1:
        noise = Noise.guessed(score=0.3, spread=0.0)
    else:
        pilots = [cells_from_passes(random.binomial(rounds, np.full(cases, 0.3)), rounds) for _ in range(2)]
        split = difference_split(*pilots)
        assert split is not None
        noise = Noise.seen(split)
    smallest = minimum_detectable(cases, rounds, noise)
    assert smallest is not None
    return smallest

"""Simulated pairs of runs that truly lie a known difference apart, many of them where few cases change."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from bakeoff.stats.differences import Change, difference_interval

from .simulation import AT_ONCE, Array, moments_of_rows


@dataclass(frozen=True)
class Apart:
    """The candidate loses `loss` on average. How the arms' chances to pass a case are drawn is its `kind`:

    edge       the baseline always passes; the candidate with chance 1 − loss in every case
    edge all   the same, but a case is lost in all its rounds or in none
    edge beta  the same, but a case's chance is drawn from Beta(1−loss, loss): strong spread
    shared     both share a chance from Beta(½, ½), which the candidate brings to less
    rare       the same from Beta(0.1, 0.9), so that few cases are passed at all
    own        each arm draws its own, from Betas with a+b = 1: gains and losses are many
    """

    cases: int
    rounds: int
    loss: float
    kind: str

    def __str__(self) -> str:
        return f"{self.cases}-{self.rounds}-{self.loss}-{self.kind}"

    @property
    def seed(self) -> list[int]:
        return [self.cases, self.rounds, round(1000 * self.loss), *self.kind.encode()]


EDGE = [Apart(n, 1, loss, "edge") for n, loss in ((100, 0.03), (30, 0.1), (60, 0.05), (100, 0.05), (200, 0.05))]
SPREAD = [
    Apart(n, 5, loss, kind)
    for (n, loss), kind in product(((30, 0.1), (100, 0.05), (200, 0.05)), ("edge", "edge all", "edge beta"))
]
INNER = [
    Apart(n, rounds, loss, kind)
    for (n, loss), rounds, kind in product(((50, 0.05), (200, 0.05)), (1, 5), ("shared", "rare", "own"))
]


@dataclass(frozen=True)
class Found:
    covered: float  # how often the 95 % interval holds the truth
    equivalent: float  # how often a margin as wide as the loss is granted, which is wrong
    not_worse: float  # how often a loss of as much is ruled out, which is wrong
    marked: float  # how often the 95 % interval was marked
    methods: dict[str, float]


def measured(apart: Apart, draws: int) -> Found:
    changes = list(_changes(apart, draws))
    interval_of = cache(difference_interval)  # where few cases change, many draws are alike
    outer = [interval_of(change, confidence=0.95) for change in changes]
    inner = [interval_of(change, confidence=0.9) for change in changes]
    names = [interval.method for interval in outer]
    above = [interval.low > -apart.loss for interval in inner]
    return Found(
        covered=float(np.mean([interval.low <= -apart.loss <= interval.high for interval in outer])),
        equivalent=float(np.mean([a and i.high < apart.loss for a, i in zip(above, inner, strict=True)])),
        not_worse=float(np.mean(above)),
        marked=float(np.mean([not interval.promised for interval in outer])),
        methods={name: names.count(name) / draws for name in sorted(set(names))},
    )


def _changes(apart: Apart, draws: int) -> Iterator[Change]:
    random = np.random.default_rng(apart.seed)
    at_once = max(1, AT_ONCE // apart.cases)
    for first in range(0, draws, at_once):
        chances = _chances(apart, (min(at_once, draws - first), apart.cases), random)
        before, after = (random.binomial(apart.rounds, chance) / apart.rounds for chance in chances)
        yield from changes_of_rows(after - before, single=apart.rounds == 1)


def changes_of_rows(differences: Array, *, single: bool) -> Iterator[Change]:
    """Yield what `change_of` returns for each row; a test compares the two."""
    columns = (
        np.maximum(differences, 0).mean(axis=1),
        np.maximum(-differences, 0).mean(axis=1),
        (differences != 0).sum(axis=1),
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for moments, (gained, lost, changed) in zip(moments_of_rows(differences, single=single), rows, strict=True):
        yield Change(moments, gained, lost, changed)


def _chances(apart: Apart, shape: tuple[int, int], random: np.random.Generator) -> tuple[Array, Array]:
    """The chance of each case to pass, in the baseline and in the candidate."""
    loss, always = apart.loss, np.ones(shape)
    match apart.kind:
        case "edge":
            return always, always * (1 - loss)
        case "edge all":
            return always, (random.random(shape) >= loss).astype(float)
        case "edge beta":
            return always, random.beta(1 - loss, loss, shape)
        case "own":
            return random.beta(0.5, 0.5, shape), random.beta(0.5 - loss, 0.5 + loss, shape)
        case kind:
            p = {"shared": 0.5, "rare": 0.1}[kind]
            shared = random.beta(p, 1 - p, shape)
            return shared, shared * (1 - loss / p)

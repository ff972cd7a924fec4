"""Simulated runs whose true score is known. Sums are made by numpy, the verdicts by the code under test."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from bakeoff.stats.cells import ROUNDING, CaseKey, Cell, Cells, Moments
from bakeoff.stats.intervals import Interval, interval_of

Array = np.ndarray[Any, np.dtype[Any]]
AT_ONCE = 2_000_000  # case means in memory


@dataclass(frozen=True)
class Setting:
    """`spread`: none, every case passes with chance p; strong, its chance is drawn from Beta(p, 1−p), so a+b = 1."""

    cases: int
    p: float
    rounds: int
    spread: str

    def __str__(self) -> str:
        return f"{self.cases}-{self.p}-{self.rounds}-{self.spread}"

    @property
    def seed(self) -> list[int]:
        return [self.cases, round(1000 * self.p), self.rounds, self.spread == "strong"]


REQUIRED = [Setting(*values) for values in product((20, 100, 500), (0.05, 0.5, 0.95), (1, 5), ("none", "strong"))]


@dataclass(frozen=True)
class Coverage:
    share: float
    width: float
    marked: float  # how often they were marked
    methods: dict[str, float]  # how often each was chosen


def chances(setting: Setting, draws: int, random: np.random.Generator) -> Array:
    """Each case's chance to pass."""
    shape = (draws, setting.cases)
    return random.beta(setting.p, 1 - setting.p, shape) if setting.spread == "strong" else np.full(shape, setting.p)


def coverage(setting: Setting, draws: int) -> Coverage:
    """Return how often the interval that would be printed holds the truth."""
    intervals = list(_intervals(setting, draws))
    names = [interval.method for interval in intervals]
    return Coverage(
        share=float(np.mean([interval.low <= setting.p <= interval.high for interval in intervals])),
        width=float(np.mean([interval.width for interval in intervals])),
        marked=float(np.mean([not interval.promised for interval in intervals])),
        methods={name: names.count(name) / draws for name in sorted(set(names))},
    )


def _intervals(setting: Setting, draws: int) -> Iterator[Interval]:
    random, found = np.random.default_rng(setting.seed), cache(interval_of)  # many draws are alike
    at_once = max(1, AT_ONCE // setting.cases)
    for first in range(0, draws, at_once):
        rows = min(at_once, draws - first)
        means = random.binomial(setting.rounds, chances(setting, rows, random)) / setting.rounds
        for moments in moments_of_rows(means, single=setting.rounds == 1):
            interval = found(moments)
            assert interval is not None
            yield interval


def moments_of_rows(means: Array, *, single: bool) -> Iterator[Moments]:
    """Yield what `moments_of` returns for each row, many rows at a time; a test compares the two."""
    cases = means.shape[1]
    apart = means - means.mean(axis=1, keepdims=True)
    second, third = ((apart**power).mean(axis=1) for power in (2, 3))
    columns = (
        means.mean(axis=1),
        means.var(axis=1, ddof=1) / cases,
        np.minimum((means > 0).sum(axis=1), (means < 1).sum(axis=1)),
        np.where(second > ROUNDING, third / np.maximum(second, ROUNDING) ** 1.5, 0.0),
        np.sort(means, axis=1),
    )
    for mean, variance, informative, skewness, values in zip(*(column.tolist() for column in columns), strict=True):
        yield Moments(cases, cases, mean, variance, informative, cases - 1.0, skewness, tuple(values), single)


def cells_from_passes(passes: Array, rounds: int, clusters: list[str] | None = None) -> Cells:
    """One simulated run: how often each case passed."""
    return {
        CaseKey(str(place)): Cell(rounds, count, count, clusters[place] if clusters else None)
        for place, count in enumerate(passes.tolist())
    }

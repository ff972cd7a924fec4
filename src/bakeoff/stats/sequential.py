"""Compare two subjects after every case: an interval of the mean difference that holds however often one looks.

A capital of 1 is bet, case by case, on a mean difference above some value m. If the true mean is m or less, no bet has
an expected gain, so the capital ever reaches 1/α with a chance of at most α (Ville's inequality). The interval holds
the values of m for which it never did. This is the betting interval of Waudby-Smith and Ramdas, J. Royal Statistical
Society B 86 (2024), arXiv:2010.09686. The bets are a portfolio: the capital is divided into equal parts, each of which
always bets the same share of what it has become.

docs/explanation/statistics.md has the simulated coverage under peeking, and the trials saved.
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING, Any

from bakeoff.stats.intervals import ALPHA, Interval

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]

METHOD = "anytime-valid betting"
_PARTS = 24
"""Parts of the capital; the shares that they bet are spread evenly between 0 and 1. Twice as many decide no earlier."""

_LOWEST = -1 + 1e-9  # a mean above −1 itself is no bet
_PRECISION = 1e-6


class SequentialDecision(StrEnum):
    """Hold what is known of the second of two subjects, compared with the first."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"


class SequentialTest:
    """Watch the differences of one pair. A decision may be read after every unit, and stays once it is made.

    Args:
        alpha: the chance of a wrong decision, at most, over all looks.
        margin: the pair is equivalent once the interval lies within ±margin; None decides only by a difference.
    """

    def __init__(self, alpha: float = ALPHA, margin: float | None = None) -> None:
        import numpy as np

        self._enough = log(2 / alpha)  # half of alpha for each side
        # Each test is a direction and a bound: the mean, in that direction, is at most the bound.
        self._tests = [(1.0, 0.0), (-1.0, 0.0), *([] if margin is None else [(1.0, -margin), (-1.0, -margin)])]
        self._capital = np.zeros((len(self._tests), _PARTS))  # logs
        self._rejected = [False] * len(self._tests)
        self._differences: list[float] = []
        self._weights: list[float] = []
        self.decision = SequentialDecision.UNDECIDED

    def add(self, difference: float, weight: float = 1.0) -> None:
        """Take the next unit.

        Args:
            difference: second minus first, at most `weight` away from 0. For a cluster, the sum of the differences of
                its cases, divided by the size of the largest cluster.
            weight: 1 for a single case. For a cluster, its size divided by that of the largest.
        """
        import numpy as np

        self._differences.append(difference)
        self._weights.append(weight)
        if difference == 0 and len(self._tests) == 2:
            return  # no bet gains or loses
        gains = np.array([_gain(direction * difference, weight, bound) for direction, bound in self._tests])
        self._capital += np.log1p(gains[:, np.newaxis] * _shares())
        for test, total in enumerate(_total(self._capital).tolist()):
            self._rejected[test] = self._rejected[test] or total >= self._enough
        if self.decision is SequentialDecision.UNDECIDED:
            self.decision = self._decide()

    def _decide(self) -> SequentialDecision:
        above, below, *within = self._rejected
        if within and all(within):
            return SequentialDecision.EQUIVALENT  # first: a difference within the margin does not matter
        return (
            SequentialDecision.IMPROVED
            if above
            else SequentialDecision.REGRESSED
            if below
            else SequentialDecision.UNDECIDED
        )

    @property
    def units(self) -> int:
        """Return the number of units that were taken."""
        return len(self._differences)

    @property
    def difference(self) -> float | None:
        """Return the mean difference over all cases so far."""
        return sum(self._differences) / sum(self._weights) if self._differences else None

    def interval(self) -> Interval | None:
        """Return the interval that held at every look so far; None before the first unit."""
        if not self._differences:
            return None
        low = _bound(self._differences, self._weights, self._enough)
        high = -_bound([-one for one in self._differences], self._weights, self._enough)
        if low > high:  # as rare as a wrong decision: no value fits
            low = high = (low + high) / 2
        return Interval(low=low, high=high, method=METHOD)


def _gain(difference: float, weight: float, bound: float) -> float:
    """Return the gain of a bet of 1 on a mean above the bound; at worst it is −1."""
    return (difference - bound * weight) / (1 + bound)


@lru_cache(maxsize=1)
def _shares() -> "Floats":
    import numpy as np

    return (np.arange(_PARTS) + 0.5) / _PARTS


def _total(capital: "Floats") -> "Floats":
    """Return the log of the whole capital, from the logs of what its parts have grown by."""
    import numpy as np

    total: Floats = np.logaddexp.reduce(capital, axis=-1) - log(_PARTS)
    return total


def _bound(differences: Sequence[float], weights: Sequence[float], enough: float) -> float:
    """Return the largest bound against which the capital ever reached what is enough, or −1."""
    import numpy as np
    from scipy.optimize import brentq

    values, sizes = np.array(differences), np.array(weights)

    def excess(bound: float) -> float:
        gains = (values - bound * sizes) / (1 + bound)
        capital = np.log1p(gains[:, np.newaxis] * _shares()).cumsum(axis=0)
        return float(_total(capital).max()) - enough

    return float(brentq(excess, _LOWEST, 1.0, xtol=_PRECISION)) if excess(_LOWEST) > 0 else -1.0

"""Confidence intervals of one score. Which is used when was decided by simulated coverage: docs/statistics.md."""

from collections.abc import Sequence
from math import sqrt

from bakeoff._kernel.model import FrozenModel
from bakeoff.stats.cells import Cell
from bakeoff.stats.moments import Moments, moments_of
from bakeoff.stats.quantiles import CONFIDENCE, normal_quantile, t_quantile

ENOUGH_FOR_T = 10
"""Units' worth of passes and of failures from which t covers what it says; below it the edges bend the distribution."""

_PRIOR_UNITS = 0.25
"""How much of one more unit, as varied as scores between 0 and 1 can be, is believed besides those that were seen.

Where two or three cases carry all that is known of the variance, they understate it; without this share the coverage
falls to 85 % (20 cases, 20 rounds, mean 0.05, strong spread). Half a unit would push other cells above 98 %.
"""


class Interval(FrozenModel):
    """A confidence interval and the name of the method that gave it."""

    low: float
    high: float
    method: str

    @property
    def width(self) -> float:
        return self.high - self.low

    def overlaps(self, other: "Interval") -> bool:
        return self.low <= other.high and other.low <= self.high


def score_interval(cells: Sequence[Cell], *, confidence: float = CONFIDENCE) -> Interval | None:
    """The interval of a mean score over cases; None ("undefined") where the data cannot give one."""
    return interval_of(moments_of(cells), confidence=confidence) if cells else None


def interval_of(moments: Moments, *, confidence: float = CONFIDENCE) -> Interval | None:
    """The best interval that these moments allow.

    Fewer than two units → None; no case differs from another → rule of three; passed or failed in one round →
    Wilson; far from the edges → t; otherwise Wilson with the effective sample size.
    """
    if moments.units < 2:
        return None
    if moments.constant:
        return rule_of_three(moments.mean, moments.units, confidence=confidence)
    if moments.single and not moments.clustered:
        return wilson(moments.mean, moments.units, confidence=confidence)
    if moments.units * min(moments.mean, 1 - moments.mean) >= ENOUGH_FOR_T:
        return student_t(moments, confidence=confidence)
    return effective_wilson(moments, confidence=confidence)


def wilson(share: float, n: float, *, confidence: float = CONFIDENCE) -> Interval:
    """The score interval of a proportion (E. B. Wilson, JASA 22, 1927)."""
    return _wilson(share, n, normal_quantile((1 + confidence) / 2), "Wilson")


def effective_wilson(moments: Moments, *, confidence: float = CONFIDENCE) -> Interval:
    """Wilson with the effective sample size p(1−p)/Var(mean), and t for the variance being estimated.

    Korn and Graubard, Survey Methodology 24 (1998); found best of seven for clustered proportions by Dean and Pagano,
    J. Survey Statistics and Methodology 3 (2015).
    """
    quantile = t_quantile((1 + confidence) / 2, moments.units - 1)
    method = "clustered Wilson with effective n" if moments.clustered else "Wilson with effective n"
    return _wilson(moments.mean, effective_size(moments), quantile, method)


def effective_size(moments: Moments) -> float:
    """How many independent passes and failures would tell as much as these units did.

    At least the number of cases where they are independent: rounds can only add. See `_PRIOR_UNITS`.
    """
    widest = moments.mean * (1 - moments.mean) / moments.units  # the variance if every unit were all pass or all fail
    seen = moments.variance if moments.clustered else min(moments.variance, widest)
    believed = (moments.informative * seen + _PRIOR_UNITS * widest) / (moments.informative + _PRIOR_UNITS)
    return moments.units * widest / believed


def student_t(moments: Moments, *, confidence: float = CONFIDENCE) -> Interval:
    """The t interval of a mean (Student, Biometrika 6, 1908) with units − 1 degrees of freedom, cut to 0…1."""
    half = t_quantile((1 + confidence) / 2, moments.units - 1) * moments.error
    method = "clustered t" if moments.clustered else "t"
    return Interval(low=max(0.0, moments.mean - half), high=min(1.0, moments.mean + half), method=method)


def rule_of_three(
    value: float, n: int, *, lowest: float = 0.0, highest: float = 1.0, confidence: float = CONFIDENCE
) -> Interval:
    """The interval where all n units gave one value: as many as 3/n of all there are might give any other.

    The exact bound 1 − (1−confidence)^(1/n) behind "three divided by n" (Hanley and Lippman-Hand, JAMA 249, 1983).
    """
    others = 1 - (1 - confidence) ** (1 / n)
    return Interval(
        low=value - others * (value - lowest), high=value + others * (highest - value), method="rule of three"
    )


def _wilson(share: float, n: float, quantile: float, method: str) -> Interval:
    square = quantile * quantile
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = quantile / (1 + square / n) * sqrt(share * (1 - share) / n + square / (4 * n * n))
    # Rounding must not push the share itself outside, nor either end beyond what a share can be.
    low, high = max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))
    return Interval(low=0.0 if share <= 0 else low, high=1.0 if share >= 1 else high, method=method)

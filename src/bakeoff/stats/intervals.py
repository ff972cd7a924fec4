"""Confidence intervals of one score, chosen by their simulated coverage. See docs/explanation/statistics.md."""

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt
from statistics import NormalDist

from bakeoff._kernel.model import FrozenModel
from bakeoff.stats.cells import Cell, Moments, moments_of

CONFIDENCE = 0.95
ALPHA = 0.05
"""The share of identical pairs that may be called different; 1 − CONFIDENCE."""

ENOUGH_FOR_T = 10
"""Units' worth of passes and of failures from which t has its nominal coverage; below, the edges skew the scores."""

_PRIOR_UNITS = 0.25
"""The weight of one more unit, as varied as scores between 0 and 1 can be, in the estimate of the variance.

Where two or three cases carry all of the variance, they understate it: without this prior the coverage falls to 85 %
(20 cases, 20 rounds, mean 0.05, strong spread). Half a unit would push other settings above 98 %.
"""


class Interval(FrozenModel):
    """A confidence interval and the name of its method."""

    low: float
    high: float
    method: str

    @property
    def width(self) -> float:
        """Return the distance between the bounds."""
        return self.high - self.low


@lru_cache(maxsize=1024)
def normal_quantile(share: float) -> float:
    """Return the value below which `share` of the normal distribution lies."""
    return NormalDist().inv_cdf(share)


@lru_cache(maxsize=1024)
def t_quantile(share: float, freedom: float) -> float:
    """Return the value below which `share` of Student's t distribution lies."""
    from scipy.special import stdtrit  # slow to import, and most commands need no quantile

    return float(stdtrit(freedom, share))


def score_interval(cells: Sequence[Cell], *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the interval of a mean score over cases; None ("undefined") where the data cannot give one."""
    return interval_of(moments_of(cells), confidence=confidence) if cells else None


def interval_of(moments: Moments, *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the best interval that these moments allow.

    Fewer than two units → None; no case differs from another → rule of three; one round each, passed or failed →
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
    """Return the score interval of a proportion (E. B. Wilson, JASA 22, 1927)."""
    return _wilson(share, n, normal_quantile((1 + confidence) / 2), "Wilson")


def effective_wilson(moments: Moments, *, confidence: float = CONFIDENCE) -> Interval:
    """Return Wilson's interval with the effective sample size p(1−p)/Var(mean), and t since the variance is estimated.

    Korn and Graubard, Survey Methodology 24 (1998); found best of seven for clustered proportions by Dean and Pagano,
    J. Survey Statistics and Methodology 3 (2015).
    """
    quantile = t_quantile((1 + confidence) / 2, moments.units - 1)
    method = "clustered Wilson with effective n" if moments.clustered else "Wilson with effective n"
    return _wilson(moments.mean, effective_size(moments), quantile, method)


def effective_size(moments: Moments) -> float:
    """Return how many independent passes and failures would hold as much information as these units.

    It is at least the number of cases where they are independent, since rounds can only add. See `_PRIOR_UNITS`.
    """
    widest = moments.mean * (1 - moments.mean) / moments.units  # the variance if every unit were all pass or all fail
    seen = moments.variance if moments.clustered else min(moments.variance, widest)
    believed = (moments.informative * seen + _PRIOR_UNITS * widest) / (moments.informative + _PRIOR_UNITS)
    return moments.units * widest / believed


def student_t(moments: Moments, *, lowest: float = 0.0, name: str = "t", confidence: float = CONFIDENCE) -> Interval:
    """Return the t interval of a mean (Student, Biometrika 6, 1908) with units − 1 degrees of freedom, cut to range."""
    half = t_quantile((1 + confidence) / 2, moments.units - 1) * moments.error
    method = f"clustered {name}" if moments.clustered else name
    return Interval(low=max(lowest, moments.mean - half), high=min(1.0, moments.mean + half), method=method)


def rule_of_three(value: float, n: int, *, lowest: float = 0.0, confidence: float = CONFIDENCE) -> Interval:
    """Return the interval where all n units gave one value: up to 3/n of all units might give any other.

    The exact bound 1 − (1−confidence)^(1/n) behind "three divided by n" (Hanley and Lippman-Hand, JAMA 249, 1983).
    """
    others = 1 - (1 - confidence) ** (1 / n)
    low, high = value - others * (value - lowest), value + others * (1 - value)
    return Interval(low=low, high=high, method="rule of three")


def _wilson(share: float, n: float, quantile: float, method: str) -> Interval:
    square = quantile * quantile
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = quantile / (1 + square / n) * sqrt(share * (1 - share) / n + square / (4 * n * n))
    # Rounding must not push the share itself outside, nor either bound beyond 0 and 1.
    low, high = max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))
    return Interval(low=0.0 if share <= 0 else low, high=1.0 if share >= 1 else high, method=method)

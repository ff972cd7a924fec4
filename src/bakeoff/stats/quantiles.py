"""Quantiles, remembered: a report asks for the same few again and again."""

from functools import lru_cache
from statistics import NormalDist

CONFIDENCE = 0.95
ALPHA = 0.05
"""The share of identical pairs that may be called different; 1 − CONFIDENCE."""


@lru_cache(maxsize=1024)
def normal_quantile(share: float) -> float:
    return NormalDist().inv_cdf(share)


@lru_cache(maxsize=1024)
def t_quantile(share: float, freedom: float) -> float:
    """Student's t: the value below which `share` of the distribution lies."""
    from scipy.special import stdtrit  # slow to import, and most commands need no quantile

    return float(stdtrit(freedom, share))


def t_two_sided(statistic: float, freedom: float) -> float:
    """The probability of a t at least this far from 0."""
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(statistic)))

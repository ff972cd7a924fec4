"""How sure we are. The unit is the case: its rounds are averaged first, never counted as if they were independent."""

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev

from bakeoff.frozen import Frozen

CONFIDENCE = 0.95


class Interval(Frozen):
    """A confidence interval and the name of the method that gave it."""

    low: float
    high: float
    method: str


def score_interval(case_means: Sequence[float], *, one_round: bool, confidence: float = CONFIDENCE) -> Interval | None:
    """The interval of a mean score over cases; None ("undefined") where the data cannot give one.

    All 0 or all 1 → rule of three; passed or failed in one round → Wilson; otherwise Student's t on the case means.
    """
    n = len(case_means)
    if n < 2:
        return None
    if all(mean == 0 for mean in case_means) or all(mean == 1 for mean in case_means):
        return rule_of_three(n, all_passed=case_means[0] == 1, confidence=confidence)
    if one_round and all(mean in (0, 1) for mean in case_means):
        return wilson(sum(case_means), n, confidence)
    return student_t(case_means, confidence)


def wilson(passed: float, n: int, confidence: float = CONFIDENCE) -> Interval:
    """The score interval of a proportion (E. B. Wilson, JASA 22, 1927)."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = passed / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(low=max(0.0, middle - half), high=min(1.0, middle + half), method="Wilson")


def rule_of_three(n: int, *, all_passed: bool, confidence: float = CONFIDENCE) -> Interval:
    """The exact one-sided bound behind "three divided by n" (Hanley and Lippman-Hand, JAMA 249, 1983)."""
    bound = 1 - (1 - confidence) ** (1 / n)
    return Interval(low=1 - bound, high=1.0, method="rule of three") if all_passed else _from_zero(bound)


def _from_zero(bound: float) -> Interval:
    return Interval(low=0.0, high=bound, method="rule of three")


def student_t(means: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The t interval of a mean (Student, Biometrika 6, 1908), cut to where scores can lie."""
    from scipy.special import stdtrit  # slow to import, and most commands need no quantile

    n = len(means)
    middle = fmean(means)
    half = float(stdtrit(n - 1, (1 + confidence) / 2)) * stdev(means) / math.sqrt(n)
    return Interval(low=max(0.0, middle - half), high=min(1.0, middle + half), method="t")

"""The interval of a mean paired difference, safe where few cases changed. How it was chosen: docs/statistics.md."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

from bakeoff.stats.intervals import ENOUGH_FOR_T, Interval, rule_of_three
from bakeoff.stats.moments import Moments, grouped, moments_of_means
from bakeoff.stats.quantiles import normal_quantile, t_quantile

UNCHANGED = 1e-12
"""Means closer than this are a tie."""

_CONTINUITY = 1 / 6
"""Of one case: without it the one-sided 5 % error is up to 6.7 % where no case or a few changed; half a case, the
usual correction, would halve it."""

_PRIOR_UNITS = 1.0
"""How many more units, changed as far as scores can, are believed besides those that changed.

With a quarter, as for one score, the one-sided 5 % error comes to 8 % where a handful of cases carry the variance (100
cases, 20 rounds, a loss of 0.02 with strong spread).
"""


@dataclass(frozen=True, slots=True)
class Change:
    """All that an interval of a mean paired difference is computed from."""

    moments: Moments
    gained: float  # over all cases, the mean of what was gained; 0 where nothing was
    lost: float
    changed: int  # units in which anything changed


def change_of(differences: Sequence[float], clusters: Sequence[str | None] | None, *, single: bool) -> Change:
    """From each case's difference of means; `single`: one round each in both arms, passed or failed."""
    units = grouped(differences, clusters)
    return Change(
        moments=moments_of_means(differences, clusters, single=single),
        gained=fmean(max(0.0, difference) for difference in differences),
        lost=fmean(max(0.0, -difference) for difference in differences),
        changed=sum(any(abs(difference) > UNCHANGED for difference in unit) for unit in units),
    )


def difference_interval(change: Change, *, confidence: float) -> Interval:
    """The best interval that these differences allow; there must be two units.

    No case's difference differs from another's → rule of three, each side for itself; passed or failed in one round →
    Tango; ten units' worth of gains and of losses → t; otherwise Tango with the effective sample size.
    """
    moments = change.moments
    if moments.constant:
        return rule_of_three(moments.mean, moments.units, lowest=-1.0, confidence=(1 + confidence) / 2)
    if moments.single and not moments.clustered:
        return tango(change.gained, change.lost, moments.cases, normal_quantile((1 + confidence) / 2))
    if moments.units * min(change.gained, change.lost) >= ENOUGH_FOR_T:
        return _paired_t(moments, confidence)
    method = "clustered Tango with effective n" if moments.clustered else "Tango with effective n"
    quantile = t_quantile((1 + confidence) / 2, moments.units - 1)
    return tango(change.gained, change.lost, effective_pairs(change), quantile, method=method)


def tango(
    gained: float, lost: float, n: float, quantile: float, *, continuity: float = _CONTINUITY, method: str = "Tango"
) -> Interval:
    """The score interval of a difference between paired proportions, of n pairs of which these shares changed.

    T. Tango, Statistics in Medicine 17 (1998) 891: the differences that a score test, its variance the one most likely
    under that difference, does not reject. With a continuity correction, see `_CONTINUITY`.
    """
    low = _lower_bound(gained, lost, n, quantile, continuity)
    high = -_lower_bound(lost, gained, n, quantile, continuity)
    return Interval(low=min(low, gained - lost), high=max(high, gained - lost), method=method)


def effective_pairs(change: Change) -> float:
    """How many pairs of one round, passed or failed, with these shares gained and lost would tell as much.

    As Korn and Graubard, Survey Methodology 24 (1998), have it for one proportion. At least the number of cases where
    they are independent: a change by less than the whole scatters less.
    """
    return _whole(change) / _believed(change)


def believed_error(change: Change) -> float:
    """The standard error of the mean difference, with what is believed besides the units that changed."""
    return sqrt(_believed(change))


def _whole(change: Change) -> float:
    """A pair's variance if each change were from 0 to 1 or back."""
    return change.gained + change.lost - change.moments.mean**2


def _believed(change: Change) -> float:
    """The variance of the mean difference, see `_PRIOR_UNITS`."""
    moments = change.moments
    widest = _whole(change) / moments.units
    seen = moments.variance if moments.clustered else min(moments.variance, widest)
    return (change.changed * seen + _PRIOR_UNITS * widest) / (change.changed + _PRIOR_UNITS)


def score_variance(gained: float, lost: float, difference: float) -> float:
    """Of one pair, if the true difference were this one: Tango's restricted maximum likelihood, in shares of pairs."""
    linear = (2 - gained + lost) * difference - gained - lost
    constant = -lost * difference * (1 - difference)
    share_lost = (sqrt(max(0.0, linear * linear - 8 * constant)) - linear) / 4
    return max(0.0, 2 * share_lost + difference * (1 - difference))


def _lower_bound(gained: float, lost: float, n: float, quantile: float, continuity: float) -> float:
    from scipy.optimize import brentq

    def excess(difference: float) -> float:
        error = sqrt(score_variance(gained, lost, difference) / n)
        return gained - lost - difference - continuity / n - quantile * error

    if excess(-1.0) <= 0:
        return -1.0
    return float(brentq(excess, -1.0, gained - lost, xtol=1e-13))


def _paired_t(moments: Moments, confidence: float) -> Interval:
    """Student, Biometrika 6 (1908), clustered where cases are, cut to −1…1."""
    half = t_quantile((1 + confidence) / 2, moments.units - 1) * moments.error
    method = "clustered paired t" if moments.clustered else "paired t"
    return Interval(low=max(-1.0, moments.mean - half), high=min(1.0, moments.mean + half), method=method)

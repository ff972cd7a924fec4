"""The interval of a mean paired difference, safe where few cases changed. See docs/explanation/statistics.md."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist, fmean

from bakeoff.stats.bootstrap import BayesianBootstrap
from bakeoff.stats.cells import Moments, grouped, moments_of_means
from bakeoff.stats.intervals import (
    ENOUGH_FOR_T,
    FEWEST,
    Interval,
    normal_quantile,
    rule_of_three,
    student_t,
    t_quantile,
)

UNCHANGED = 1e-12
"""Means closer than this are a tie."""

_CONTINUITY = 1 / 6
"""The continuity correction, in cases. Without it the one-sided 5 % error is up to 6.7 % where no case or a few
changed; half a case, the usual correction, would halve the error."""

_PRIOR_UNITS = 1.0
"""The weight of one more unit, changed as far as scores can, in the estimate of the variance.

With a quarter, as for one score, the one-sided 5 % error rises to 8 % where a handful of cases carry the variance (100
cases, 20 rounds, a loss of 0.02 with strong spread).
"""

_EXTRA = 0.25
"""The part of a case that the Bayesian bootstrap of skewed differences adds at −1 and at 1."""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Change:
    """Everything that an interval of a mean paired difference is computed from."""

    moments: Moments
    gained: float  # the mean gain over all cases; 0 where nothing was gained
    lost: float
    changed: int  # units in which anything changed


def change_of(differences: Sequence[float], clusters: Sequence[str | None] | None, *, single: bool) -> Change:
    """Return the change from each case's difference of means; `single`: one round each in both arms, pass or fail."""
    units = grouped(differences, clusters)
    return Change(
        moments=moments_of_means(differences, clusters, single=single),
        gained=fmean(max(0.0, difference) for difference in differences),
        lost=fmean(max(0.0, -difference) for difference in differences),
        changed=sum(any(abs(difference) > UNCHANGED for difference in unit) for unit in units),
    )


def difference_interval(change: Change, *, confidence: float) -> Interval:
    """Return the best interval that these differences allow; at least two units are needed.

    No case's difference differs from another's → rule of three, each side for itself; one round each, passed or failed
    → Tango; enough gains and losses, not skewed → t; otherwise Tango with the effective sample size. Where skewed cases
    are not clustered, the Bayesian bootstrap may widen it. `zero_p_value` is the inverse.
    """
    robust = _bootstrap(change)
    found = _interval(change, confidence)
    if robust is not None:
        low, high = robust.bounds(confidence)
        method = "Bayesian bootstrap" if high - low > found.width else found.method
        found = Interval(low=min(low, found.low), high=max(high, found.high), method=method)
    return found.unpromised() if _too_small(change) else found


def _too_small(change: Change) -> bool:
    """Tell whether coverage is not promised: few units, skewed ones, or an effective n that rests on few changes."""
    moments = change.moments
    if moments.skewed or moments.weight < FEWEST - _ROUNDING:
        return True
    by_counts = moments.constant or (moments.single and not moments.clustered)
    return change.changed < FEWEST and not by_counts and not _enough_for_t(change)


def zero_p_value(change: Change) -> float:
    """Return the level 1 − confidence at which `difference_interval` begins to exclude 0."""
    moments, robust = change.moments, _bootstrap(change)
    if moments.constant:
        return float(min(1.0, 2 * (1 + abs(moments.mean)) ** -moments.weight))
    if moments.single and not moments.clustered:
        return 2 * _normal_tail(_score(change, moments.cases))
    if _enough_for_t(change):
        return 2 * _t_tail(abs(moments.mean) / moments.error, moments.freedom)
    chance = 2 * _t_tail(_score(change, effective_pairs(change)), moments.freedom)
    return chance if robust is None else max(chance, robust.two_sided(0.0))


def _interval(change: Change, confidence: float) -> Interval:
    moments = change.moments
    if moments.constant:
        return rule_of_three(moments.mean, moments.weight, lowest=-1.0, confidence=(1 + confidence) / 2)
    if moments.single and not moments.clustered:
        return tango(change.gained, change.lost, moments.cases, normal_quantile((1 + confidence) / 2))
    if _enough_for_t(change):
        return student_t(moments, lowest=-1.0, name="paired t", confidence=confidence)
    method = "clustered Tango with effective n" if moments.clustered else "Tango with effective n"
    quantile = t_quantile((1 + confidence) / 2, moments.freedom)
    return tango(change.gained, change.lost, effective_pairs(change), quantile, method=method)


def _enough_for_t(change: Change) -> bool:
    """Tell whether t holds: symmetric enough, and no handful of changes among many ties carries the mean."""
    moments = change.moments
    both_ways = moments.weight * min(change.gained, change.lost) >= ENOUGH_FOR_T
    few_ties = moments.weight >= FEWEST - _ROUNDING and 2 * change.changed >= moments.units
    return (both_ways or few_ties) and not moments.skewed


def _bootstrap(change: Change) -> BayesianBootstrap | None:
    """Return the bootstrap of skewed differences, of which a few cases may carry the mean; None where it is not needed.

    It does not know of clusters, and Tango's interval is made for passes and failures of one round.
    """
    moments = change.moments
    if moments.constant or moments.clustered or moments.single or not moments.skewed:
        return None
    return BayesianBootstrap.of(moments.values, lowest=-1.0, extra=_EXTRA)


def _score(change: Change, n: float) -> float:
    """Return Tango's statistic for no difference; the most likely variance of a pair is then `gained + lost`."""
    apart = abs(change.moments.mean) - _CONTINUITY / n
    return max(0.0, apart) / sqrt((change.gained + change.lost) / n)


def _normal_tail(quantile: float) -> float:
    return NormalDist().cdf(-quantile)


def _t_tail(quantile: float, freedom: float) -> float:
    from scipy.special import stdtr

    return float(stdtr(freedom, -quantile))


def tango(
    gained: float, lost: float, n: float, quantile: float, *, continuity: float = _CONTINUITY, method: str = "Tango"
) -> Interval:
    """Return the score interval of a difference between paired proportions; `gained` and `lost` are shares of n pairs.

    T. Tango, Statistics in Medicine 17 (1998) 891: the differences that a score test does not reject, with the variance
    that is most likely under each. With a continuity correction, see `_CONTINUITY`.
    """
    low = _lower_bound(gained, lost, n, quantile, continuity)
    high = -_lower_bound(lost, gained, n, quantile, continuity)
    return Interval(low=min(low, gained - lost), high=max(high, gained - lost), method=method)


def effective_pairs(change: Change) -> float:
    """Return how many pairs of one round, passed or failed, with these shares gained and lost hold as much information.

    As Korn and Graubard, Survey Methodology 24 (1998), for one proportion. It is at least the number of cases where
    they are independent: a change by less than the whole scatters less.
    """
    return _pair_variance(change) / _mean_variance(change)


def standard_error(change: Change) -> float:
    """Return the standard error of the mean difference, with the prior of `_PRIOR_UNITS`."""
    return sqrt(_mean_variance(change))


def _pair_variance(change: Change) -> float:
    """Return the variance of a pair if each change were from 0 to 1 or back."""
    return change.gained + change.lost - change.moments.mean**2


def _mean_variance(change: Change) -> float:
    moments = change.moments
    widest = _pair_variance(change) / moments.weight
    seen = moments.variance if moments.clustered else min(moments.variance, widest)
    return (change.changed * seen + _PRIOR_UNITS * widest) / (change.changed + _PRIOR_UNITS)


def score_variance(gained: float, lost: float, difference: float) -> float:
    """Return the variance of one pair under a true difference: Tango's restricted maximum likelihood, in shares."""
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

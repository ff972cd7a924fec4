"""Intervals and tests for a mean paired difference. See docs/explanation/statistics.md.

They hold even if few cases changed. The sign-flip test (Fisher, The Design of Experiments, 1935,
§21) assumes that if two arms are alike, each case's difference may have either sign. It is exact
for every distribution; with clusters, whole clusters flip. Scores on a grid, such as passes and
failures, use the exact distribution by convolution, few cases every combination of signs, and
others seeded draws, counted so that p is never too small (Phipson and Smyth, Stat. Appl. Genet.
Mol. Biol. 9, 2010). Since N draws cannot show a p below 1/N, smaller values are upper bounds
(Chernoff, Annals of Mathematical Statistics 23, 1952).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, Any

from bakeoff.stats.cells import Moments, grouped, moments_of_means
from bakeoff.stats.intervals import (
    ENOUGH_FOR_T,
    MIN_UNITS,
    BayesianBootstrap,
    Interval,
    normal_quantile,
    rule_of_three,
    student_t,
    t_quantile,
)

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Integers = np.ndarray[Any, np.dtype[np.int64]]


DRAWS = 20_000
_EXACT = "exact sign-flip permutation"
_FEW = 16  # so many differences are tested in all 2^16 combinations
_FINEST_GRID = 120  # steps between 0 and 1, for halves to sixths, eighths, tenths, …
_MAX_GRID_LENGTH = 20_000  # steps in total, beyond which draws are faster
_CHUNK = 4_000_000  # signs held in memory at a time
_SLACK = 1e-9  # differences by rounding
_MIN_P_VALUE = 1e-300  # the smallest p that is reported
_NEWTON_STEPS = 25  # to the tightest bound; every step gives a valid bound


@dataclass(frozen=True, slots=True)
class FlipTest:
    """The probability of a difference at least this large by chance alone, and the method."""

    p_value: float
    method: str


def sign_flip_test(differences: Sequence[float], *, draws: int = DRAWS, seed: int = 0) -> FlipTest:
    """Test, two-sided, whether differences are as likely negative as positive.

    For clustered cases, give the sum of each cluster.
    """
    import numpy as np

    moved = [difference for difference in differences if abs(difference) > _SLACK]
    chances, methods = _tails(np.array([moved], dtype=float), draws, seed)
    return FlipTest(float(chances[0]), methods[0])


def sign_flip_p_values(rows: "Floats", *, draws: int = DRAWS, seed: int = 0) -> "Floats":
    """Return p-values of `sign_flip_test` for many rows, which share their random draws."""
    return _tails(rows, draws, seed)[0]


def _tails(rows: "Floats", draws: int, seed: int) -> "tuple[Floats, list[str]]":
    """Return P(|sum| ≥ observed) and the method for each row."""
    import numpy as np

    chances, methods = np.ones(len(rows)), [_EXACT] * len(rows)
    steps = _grids(rows)
    hard = []
    for place, row in enumerate(rows):
        moved = row[np.abs(row) > _SLACK]
        if abs(float(moved.sum())) <= _SLACK:
            continue
        if steps[place] and float(np.abs(moved).sum()) * steps[place] <= _MAX_GRID_LENGTH:
            chances[place] = _grid_tail(np.rint(moved * steps[place]).astype(np.int64))
        elif len(moved) <= _FEW:
            chances[place] = _enumerated_tail(moved)
        else:
            hard.append(place)
    if hard:
        chances[hard] = tail_bounds(rows[hard])
        drawn = [place for place in hard if chances[place] >= 1 / (draws + 1)]
        chances[drawn] = _drawn_tails(rows[drawn], draws, seed)
        for place in hard:
            how = f"{draws:,} draws, seed {seed}" if place in drawn else "upper bound"
            methods[place] = f"sign-flip permutation ({how})"
    return chances, methods


def tail_bounds(rows: "Floats") -> "Floats":
    """Return an upper bound of P(|sum| ≥ observed) for each row.

    It is 2·exp(Σ log cosh(t·d) − t·|Σd|) for the best t, which Newton's steps approach from below,
    since the derivative of the exponent is concave.
    """
    import numpy as np

    sizes = np.abs(rows) / np.maximum(np.abs(rows).max(axis=1, keepdims=True), _SLACK)
    reach = np.abs((np.sign(rows) * sizes).sum(axis=1)) * (1 - _SLACK)
    tilt = reach / np.maximum((sizes**2).sum(axis=1), _SLACK)
    for _ in range(_NEWTON_STEPS):
        bent = np.tanh(tilt[:, np.newaxis] * sizes)
        slope = (sizes**2 * (1 - bent**2)).sum(axis=1)
        tilt = tilt + np.where(slope > _SLACK, (reach - (sizes * bent).sum(axis=1)) / np.maximum(slope, _SLACK), 0.0)
    tilted = tilt[:, np.newaxis] * sizes
    exponent = (tilted + np.log1p(np.exp(-2 * tilted)) - np.log(2.0)).sum(axis=1) - tilt * reach
    bounds: Floats = np.clip(2 * np.exp(np.minimum(exponent, 0.0)), _MIN_P_VALUE, 1.0)
    return bounds


def mcnemar_exact(gained: int, lost: int) -> float:
    """Return p of McNemar's exact test (Psychometrika 12, 1947) for equal gains and losses."""
    from scipy.special import bdtr

    changed = gained + lost
    return min(1.0, float(2 * bdtr(min(gained, lost), changed, 0.5))) if changed else 1.0


def _grids(rows: "Floats") -> "Integers":
    """Return, for each row, the number of steps in its coarsest grid from 0 to 1, or 0."""
    import numpy as np

    found = np.zeros(len(rows), dtype=np.int64)
    for steps in range(1, _FINEST_GRID + 1):
        # Most rows that do not fit can be told by their first columns.
        open_rows = np.flatnonzero((found == 0) & _fit(rows[:, :4], steps))
        found[open_rows[_fit(rows[open_rows], steps)]] = steps
        if found.all():
            break
    return found


def _fit(rows: "Floats", steps: int) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    import numpy as np

    apart = np.abs(rows * steps - np.rint(rows * steps))
    fits: np.ndarray[Any, np.dtype[np.bool_]] = np.all(apart < _SLACK * steps, axis=1)
    return fits


def _grid_tail(steps: "Integers") -> float:
    """Convolve the binomial distributions of positive signs over all sizes of differences."""
    import numpy as np

    chances = np.ones(1)  # chance of each sum from −reach to reach, in steps of 2
    for size, count in zip(*np.unique(np.abs(steps), return_counts=True), strict=True):
        kernel = np.zeros(int(size) * int(count) + 1)
        kernel[:: int(size)] = _fair_coins(int(count))
        chances = np.convolve(chances, kernel)
    sums = 2 * np.arange(len(chances)) - int(np.abs(steps).sum())
    return max(_MIN_P_VALUE, min(1.0, float(chances[np.abs(sums) >= abs(int(steps.sum()))].sum())))


@lru_cache(maxsize=256)
def _fair_coins(count: int) -> "Floats":
    """Return the chances of 0 to `count` heads, by logarithms to avoid overflow."""
    import numpy as np
    from scipy.special import gammaln

    heads = np.arange(count + 1)
    logs = gammaln(count + 1) - gammaln(heads + 1) - gammaln(count - heads + 1) - count * np.log(2.0)
    chances: Floats = np.exp(logs)
    return chances


def _enumerated_tail(moved: "Floats") -> float:
    import numpy as np

    sums = np.zeros(1)
    for size in np.abs(moved):
        sums = np.concatenate((sums - size, sums + size))
    return float(np.mean(np.abs(sums) >= abs(moved.sum()) - _SLACK))


def _drawn_tails(rows: "Floats", draws: int, seed: int) -> "Floats":
    import numpy as np

    random = np.random.default_rng(seed)
    columns = np.ascontiguousarray(rows.T)
    least = np.abs(rows.sum(axis=1)) - _SLACK
    extreme = np.zeros(len(rows), dtype=np.int64)
    at_once = max(1, _CHUNK // max(rows.shape))
    for first in range(0, draws, at_once):
        size = (min(at_once, draws - first), rows.shape[1])
        signs = 2.0 * random.integers(0, 2, size=size, dtype=np.int8) - 1.0
        extreme += np.count_nonzero(np.abs(signs @ columns) >= least, axis=0)
    chances: Floats = (extreme + 1) / (draws + 1)
    return chances


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
    """Everything needed to compute the interval of a mean paired difference."""

    moments: Moments
    gained: float  # the mean gain over all cases
    lost: float
    changed: int  # number of units with a change


def change_of(differences: Sequence[float], clusters: Sequence[str | None] | None, *, single: bool) -> Change:
    """Return the change, given each case's difference of means.

    `single` means that both arms have one round per case, which passed or failed.
    """
    units = grouped(differences, clusters)
    return Change(
        moments=moments_of_means(differences, clusters, single=single),
        gained=fmean(max(0.0, difference) for difference in differences),
        lost=fmean(max(0.0, -difference) for difference in differences),
        changed=sum(any(abs(difference) > UNCHANGED for difference in unit) for unit in units),
    )


def difference_interval(change: Change, *, confidence: float) -> Interval:
    """Return the best interval for these differences. At least two units are needed.

    All differences equal → rule of three for each side; one round each, passed or failed → Tango;
    enough gains and losses, not skewed → t; otherwise Tango with the effective sample size. For
    skewed cases without clusters, the Bayesian bootstrap may widen it.
    """
    robust = _bootstrap(change)
    found = _interval(change, confidence)
    if robust is not None:
        low, high = robust.bounds(confidence)
        method = "Bayesian bootstrap" if high - low > found.width else found.method
        found = Interval(low=min(low, found.low), high=max(high, found.high), method=method)
    return found.unpromised() if _too_small(change) else found


def _too_small(change: Change) -> bool:
    """Return True if coverage is not promised: few or skewed units, or few changes."""
    moments = change.moments
    if moments.skewed or moments.weight < MIN_UNITS - _ROUNDING:
        return True
    by_counts = moments.constant or (moments.single and not moments.clustered)
    return change.changed < MIN_UNITS and not by_counts and not _enough_for_t(change)


def zero_p_value(change: Change) -> float:
    """Return the level 1 − confidence at which `difference_interval` begins to exclude 0."""
    moments, robust = change.moments, _bootstrap(change)
    if moments.constant:
        return float(min(1.0, 2 * (1 + abs(moments.mean)) ** -moments.weight))
    if moments.single and not moments.clustered:
        return 2 * NormalDist().cdf(-_score(change, moments.cases))
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
    """Return True if a t interval holds: symmetric enough, and not carried by few changes."""
    moments = change.moments
    both_ways = moments.weight * min(change.gained, change.lost) >= ENOUGH_FOR_T
    few_ties = moments.weight >= MIN_UNITS - _ROUNDING and 2 * change.changed >= moments.units
    return (both_ways or few_ties) and not moments.skewed


def _bootstrap(change: Change) -> BayesianBootstrap | None:
    """Return the bootstrap of skewed differences, whose mean may rest on few cases, or None.

    It is not used for clusters, or for single passes and failures, which Tango's interval suits.
    """
    moments = change.moments
    if moments.constant or moments.clustered or moments.single or not moments.skewed:
        return None
    return BayesianBootstrap.of(moments.values, lowest=-1.0, extra=_EXTRA)


def _score(change: Change, n: float) -> float:
    """Return Tango's test statistic for a difference of 0."""
    apart = abs(change.moments.mean) - _CONTINUITY / n
    return max(0.0, apart) / sqrt((change.gained + change.lost) / n)


def _t_tail(quantile: float, freedom: float) -> float:
    from scipy.special import stdtr

    return float(stdtr(freedom, -quantile))


def tango(
    gained: float, lost: float, n: float, quantile: float, *, continuity: float = _CONTINUITY, method: str = "Tango"
) -> Interval:
    """Return the score interval of a difference between paired proportions.

    `gained` and `lost` are shares of n pairs. The interval holds all differences that a score test
    does not reject, using the most likely variance for each (T. Tango, Statistics in Medicine 17,
    1998, 891). For the continuity correction, see `_CONTINUITY`.
    """
    low = _lower_bound(gained, lost, n, quantile, continuity)
    high = -_lower_bound(lost, gained, n, quantile, continuity)
    return Interval(low=min(low, gained - lost), high=max(high, gained - lost), method=method)


def effective_pairs(change: Change) -> float:
    """Return how many single-round pairs of passes and failures hold as much information.

    This extends Korn and Graubard, Survey Methodology 24 (1998), from one proportion. For
    independent cases, it is at least their number, since partial changes vary less.
    """
    return _pair_variance(change) / _mean_variance(change)


def standard_error(change: Change) -> float:
    """Return the standard error of the mean difference, with the prior of `_PRIOR_UNITS`."""
    return sqrt(_mean_variance(change))


def _pair_variance(change: Change) -> float:
    """Return the variance of a pair if every change were between 0 and 1."""
    return change.gained + change.lost - change.moments.mean**2


def _mean_variance(change: Change) -> float:
    moments = change.moments
    widest = _pair_variance(change) / moments.weight
    seen = moments.variance if moments.clustered else min(moments.variance, widest)
    return (change.changed * seen + _PRIOR_UNITS * widest) / (change.changed + _PRIOR_UNITS)


def score_variance(gained: float, lost: float, difference: float) -> float:
    """Return a pair's variance under a true difference: Tango's restricted maximum likelihood."""
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

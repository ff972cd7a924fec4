"""Confidence intervals for one score, chosen by simulation. See docs/explanation/statistics.md.

Few or skewed scores use the Bayesian bootstrap (Rubin, Annals of Statistics 9, 1981): cases get
random weights from a flat Dirichlet distribution, and the interval covers the middle of the
resulting means. A fraction of a case is added at both ends of the range, because few cases rarely
show the extremes. With half a case, passes and failures get the Jeffreys interval. Nothing is
really drawn: a mean is above a point exactly if a weighted sum of exponential variables is
positive, and a saddlepoint approximation gives the chance of that (Barndorff-Nielsen, Scandinavian
Journal of Statistics 17, 1990).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import copysign, exp, fsum, isfinite, log, sqrt
from statistics import NormalDist, median
from typing import TYPE_CHECKING, Any

from bakeoff._kernel.model import FrozenModel
from bakeoff.stats.cells import Cell, Moments, moments_of, spread_of

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]


_CLOSE = 1e-3  # standard deviations from the middle, where the divisor is nearly 0
_MAX_STEPS = 100
_STEEP_ENOUGH = 1e-12  # the squared slope, in units of the curve, at which the saddlepoint is found


@dataclass(frozen=True, slots=True)
class BayesianBootstrap:
    """The distribution of a mean: observed values, ends of the range, and the weight of each."""

    places: "Floats"
    weights: "Floats"

    @classmethod
    def of(cls, values: "Sequence[float] | Floats", *, lowest: float, extra: float) -> "BayesianBootstrap":
        """Add a fraction `extra` of a case at each end of the range, `lowest` and 1."""
        import numpy as np

        places, counts = np.unique(np.asarray(values, dtype=float), return_counts=True)
        return cls(np.append(places, (lowest, 1.0)), np.append(counts.astype(float), (extra, extra)))

    def two_sided(self, point: float) -> float:
        """Return the p-value of a true mean: twice the chance of its less likely side."""
        from scipy.special import ndtr

        return 2 * float(ndtr(-abs(self._quantile(point)[0])))

    def bounds(self, confidence: float) -> tuple[float, float]:
        """Return the ends of the interval, with equal tail probabilities."""
        beyond = NormalDist().inv_cdf((1 + confidence) / 2)
        return self._point(-beyond, float(self.places.min())), self._point(beyond, float(self.places.max()))

    def _point(self, quantile: float, end: float) -> float:
        """Return the point with this normal quantile, between the middle and an end."""
        from scipy.optimize import brentq

        tilt = 0.0

        def beyond(point: float) -> float:
            nonlocal tilt
            found, tilt = self._quantile(point, tilt)  # start from the last saddlepoint, which is close
            return found - quantile

        near = float(self.places @ self.weights / self.weights.sum())
        side = copysign(1.0, quantile)
        if side * beyond(near) >= 0:
            return near
        far = (near + end) / 2
        while side * beyond(far) < 0:
            near, far = far, (far + end) / 2
        return float(brentq(beyond, near, far, xtol=1e-9))

    def _quantile(self, point: float, start: float = 0.0) -> tuple[float, float]:
        """Return the chance of a mean below a point as a normal quantile, and the saddlepoint."""
        import numpy as np

        apart = self.places - point
        # It minimises the sum's cumulant function. If Newton's steps leave the range, bisect.
        low, high = 1 / float(apart.min()), 1 / float(apart.max())
        tilt = start if low < start < high else 0.0
        for _ in range(_MAX_STEPS):
            shrunk = apart / (1 - tilt * apart)
            slope, curve = float(self.weights @ shrunk), float(self.weights @ shrunk**2)
            if slope * slope <= _STEEP_ENOUGH * curve:
                break
            low, high = (tilt, high) if slope < 0 else (low, tilt)
            step = tilt - slope / curve
            tilt = step if low < step < high else (low + high) / 2
        root = copysign(sqrt(max(0.0, 2 * float(self.weights @ np.log1p(-tilt * apart)))), tilt)
        if abs(root) < _CLOSE:
            second, third = (float(self.weights @ apart**power) for power in (2, 3))
            return root + third / (3 * second * sqrt(second)), tilt
        scaled = tilt * sqrt(float(self.weights @ (apart / (1 - tilt * apart)) ** 2))
        return root + log(scaled / root) / root, tilt


CONFIDENCE = 0.95
ALPHA = 0.05
"""The share of identical pairs that may be called different; 1 − CONFIDENCE."""

TOO_SMALL = "too few cases to promise 95 %"
"""Follows the method of an interval that may not cover the truth as often as it should: between 92 and 98 % of runs."""

ENOUGH_FOR_T = 8
"""The number of passes and of failures, in units, from which t has its nominal coverage; below, the edges skew them."""

MIN_UNITS = 20
"""The number of units from which intervals held in simulations. With few passes, no choice is near 95 %, because they
are whole numbers, and five clusters of ten cases are covered in up to 99.8 % of runs.
"""

_PRIOR_UNITS = 0.25
"""The weight of one more unit, as varied as scores between 0 and 1 can be, in the estimate of a clustered variance.

Where two or three clusters carry all of the variance, they understate it.
"""

_ROUNDING = 1e-9

_EXTRA = 0.5
"""The part of a case that the Bayesian bootstrap adds at 0 and at 1. A whole case would make most intervals of 10 to 50
scores too wide (98 to 100 %)."""


SKIPPED = "more than 10 % of the answers skipped"
"""Follows the method of a score that is corrected by labels, if people may have skipped the hard answers."""


class Interval(FrozenModel):
    """A confidence interval with its method. `TOO_SMALL` or `SKIPPED` marks unsure coverage."""

    low: float
    high: float
    method: str

    @property
    def promised(self) -> bool:
        """Return True if the interval covers the truth about as often as stated."""
        return TOO_SMALL not in self.method and SKIPPED not in self.method

    def unpromised(self) -> "Interval":
        """Return the interval, marked with `TOO_SMALL`."""
        return self.model_copy(update={"method": f"{self.method}, {TOO_SMALL}"}) if self.promised else self

    @property
    def ends(self) -> tuple[float, float]:
        """Return both bounds."""
        return self.low, self.high

    @property
    def width(self) -> float:
        """Return the distance between the bounds."""
        return self.high - self.low


@lru_cache(maxsize=1024)
def normal_quantile(share: float) -> float:
    """Return the normal quantile of a share."""
    return NormalDist().inv_cdf(share)


@lru_cache(maxsize=1024)
def t_quantile(share: float, freedom: float) -> float:
    """Return the quantile of Student's t distribution for a share."""
    from scipy.special import stdtrit  # slow to import, and most commands need no quantile

    return float(stdtrit(freedom, share))


def score_interval(cells: Sequence[Cell], *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the interval of a mean score over cases; None for fewer than two units.

    Cases are assumed to be a sample of all possible cases, independent except within clusters. In
    simulations, it covers the true mean in 92 to 98 % of runs unless marked with `TOO_SMALL`.
    """
    return interval_of(moments_of(cells), confidence=confidence) if cells else None


def interval_of(moments: Moments, *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the best interval for these moments, marked if its coverage is not promised.

    Fewer than two units → None; all cases equal → rule of three; one round each, passed or failed →
    Wilson; far from the edges and not skewed → t; clusters → Wilson with the effective sample size;
    otherwise the Bayesian bootstrap.
    """
    if moments.units < 2:
        return None
    found = _best(moments, confidence)
    return found if moments.weight >= MIN_UNITS - _ROUNDING else found.unpromised()


def interval_of_passes(passed: int, cases: int) -> Interval | None:
    """Return the same as `score_interval` for single-round cases, given only counts."""
    share = passed / cases if cases else 0.0
    spread = share * (1 - share) / max(1, cases - 1)
    moments = Moments(cases, cases, share, spread, min(passed, cases - passed), cases - 1.0, 0.0, single=True)
    return interval_of(moments, confidence=CONFIDENCE)


def _best(moments: Moments, confidence: float) -> Interval:
    if moments.constant:
        return rule_of_three(moments.mean, moments.weight, confidence=confidence)
    if moments.single and not moments.clustered:
        return wilson(moments.mean, moments.units, confidence=confidence)
    if moments.weight * min(moments.mean, 1 - moments.mean) >= ENOUGH_FOR_T and not moments.skewed:
        return student_t(moments, confidence=confidence)
    if moments.clustered:
        return effective_wilson(moments, confidence=confidence)
    low, high = BayesianBootstrap.of(moments.values, lowest=0.0, extra=_EXTRA).bounds(confidence)
    return Interval(low=min(low, moments.mean), high=max(high, moments.mean), method="Bayesian bootstrap")


def wilson(share: float, n: float, *, confidence: float = CONFIDENCE) -> Interval:
    """Return the score interval of a proportion (E. B. Wilson, JASA 22, 1927).

    Args:
        share: the share of n independent cases that passed.
        n: the number of cases.
        confidence: the share of runs whose interval covers the truth.
    """
    return _wilson(share, n, normal_quantile((1 + confidence) / 2), "Wilson")


def effective_wilson(moments: Moments, *, confidence: float = CONFIDENCE) -> Interval:
    """Return Wilson's interval for clusters, with effective sample size p(1−p)/Var(mean) and t.

    See Korn and Graubard, Survey Methodology 24 (1998), and `_PRIOR_UNITS`. Dean and Pagano, J.
    Survey Statistics and Methodology 3 (2015), found it best of seven for clustered proportions.
    """
    widest = moments.mean * (1 - moments.mean) / moments.weight  # as if all cases of a unit were alike
    believed = moments.informative * moments.variance + _PRIOR_UNITS * widest
    size = moments.mean * (1 - moments.mean) * (moments.informative + _PRIOR_UNITS) / believed
    quantile = t_quantile((1 + confidence) / 2, moments.freedom)
    return _wilson(moments.mean, size, quantile, "clustered Wilson with effective n")


def student_t(moments: Moments, *, lowest: float = 0.0, name: str = "t", confidence: float = CONFIDENCE) -> Interval:
    """Return the t interval of a mean (Student, Biometrika 6, 1908) within the range of scores."""
    half = t_quantile((1 + confidence) / 2, moments.freedom) * moments.error
    method = f"clustered {name}" if moments.clustered else name
    return Interval(low=max(lowest, moments.mean - half), high=min(1.0, moments.mean + half), method=method)


def rule_of_three(value: float, n: float, *, lowest: float = 0.0, confidence: float = CONFIDENCE) -> Interval:
    """Return the interval if all n units have one value: about 3/n of all might have another.

    The exact bound is 1 − (1−confidence)^(1/n) (Hanley and Lippman-Hand, JAMA 249, 1983).
    """
    others = 1 - (1 - confidence) ** (1 / n)
    low, high = value - others * (value - lowest), value + others * (1 - value)
    return Interval(low=low, high=high, method="rule of three")


def _wilson(share: float, n: float, quantile: float, method: str) -> Interval:
    square = quantile * quantile
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = quantile / (1 + square / n) * sqrt(share * (1 - share) / n + square / (4 * n * n))
    # Rounding must not exclude the share, or move a bound beyond 0 and 1.
    low, high = max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))
    return Interval(low=0.0 if share <= 0 else low, high=1.0 if share >= 1 else high, method=method)


MIN_AMOUNTS = 100
"""The number of units from which the interval of a cost is promised: fewer may lack the expensive cases, one in 20."""

_MAX_EXPONENT = 50.0  # a wider interval of a cost says nothing


def amount_interval(trials: Sequence[int], sums: Sequence[float]) -> Interval | None:
    """Return the interval of a trial's mean cost or time, from counts and sums per case or cluster.

    None for fewer than two units, if nothing varies, or if the interval would be useless. Costs are
    positive and skewed, so this is a t interval of the logarithm, whose upper end allows for unseen
    expensive cases. In simulations, it covers 94 to 99 % for lognormal and gamma costs.
    """
    return ratio_interval(trials, sums, trials)


def ratio_interval(trials: Sequence[int], sums: Sequence[float], others: Sequence[float]) -> Interval | None:
    """Return the interval of the ratio of two subjects' costs on the same cases or clusters.

    `sums` and `others` have the costs per unit, `trials` the sizes. Hall's correction for skewness
    (J. Royal Statistical Society B 54, 1992) uses the skewness implied by the upper half of the
    costs, because the observed skewness is too small if expensive cases are missing.
    """
    below = sum(others)
    if len(trials) < 2 or below <= 0 or not isfinite(ratio := sum(sums) / below) or ratio <= 0:
        return None
    spread = spread_of(trials, [one - ratio * other for one, other in zip(sums, others, strict=True)])
    quantile, units = t_quantile((1 + CONFIDENCE) / 2, spread.freedom), spread.freedom + 1
    error = sqrt(spread.variance) * sum(trials) / below / ratio
    half = quantile * error
    skewness = max(_implied_skewness(trials, amounts) for amounts in (sums, others))
    longer = half + max(0.0, error * skewness * (2 * quantile**2 + 1) / 6 / sqrt(units) - half**2 / 2)
    if not 1e-12 < half <= longer < _MAX_EXPONENT:
        return None
    low = ratio * exp(-half if others is trials else -longer)
    found = Interval(low=low, high=ratio * exp(longer), method="t of the logarithm")
    return found if units >= MIN_AMOUNTS - _ROUNDING else found.unpromised()


def _implied_skewness(trials: Sequence[int], sums: Sequence[float]) -> float:
    """Return the skewness of a lognormal distribution with the same spread above the median."""
    amounts = [amount / count for count, amount in zip(trials, sums, strict=True) if amount > 0]
    middle = median(amounts)
    above = [log(amount / middle) for amount in amounts if amount > middle]
    power = exp(min(_MAX_EXPONENT, 2 * fsum(one * one for one in above) / max(1, len(amounts) - 1)))
    return (power + 2) * sqrt(power - 1)

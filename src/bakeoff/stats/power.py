"""Find sources of noise, and the smallest true difference that a comparison can detect.

Before a run, `design_of` estimates what a number of cases and rounds can show.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil, log2, sqrt
from statistics import NormalDist, fmean
from typing import Literal

from bakeoff._kernel.model import FrozenModel
from bakeoff.stats.cells import Cell, Cells, Moments
from bakeoff.stats.comparison import Comparison, paired_change, pairs_of
from bakeoff.stats.differences import Change, standard_error, zero_p_value
from bakeoff.stats.intervals import ALPHA, t_quantile

POWER = 0.8
MAX_CASES = 10_000
UNDETECTABLE = 2.0
"""The minimum detectable difference of a design that can show none: more than scores can differ."""

_WORTH_HALF = 0.5  # from this share, more rounds help nearly as much as more cases
_MAX_DIFFERENCE = 0.999  # of a mean difference, since nothing varies at 1

_GRID_STEPS = 1.0
"""The loss of sign flips, in steps of the grid of scores (one round of one case): a flip moves the sum by two steps,
and the exact p-value counts the whole chance of the observed sum, half of which, one step, is too much.
"""


class VarianceSplit(FrozenModel):
    """The noise of a paired difference.

    `between` is the variance of the true difference between cases, or clusters if tagged; `within`
    is the variance of one round in both arms.
    """

    between: float
    within: float
    cases: int
    rounds: float  # harmonic mean over cases, the divisor of `within`
    clusters: int | None = None  # None: all cases are independent

    @property
    def of_mean(self) -> float:
        """Return the variance of the mean. Rounds are independent, even if cases are not."""
        return self.between / (self.clusters or self.cases) + self._of_rounds

    @property
    def _of_rounds(self) -> float:
        return self.within / self.rounds / self.cases

    @property
    def share_within(self) -> float:
        """Return the share of the mean's variance that infinitely many rounds would remove."""
        return self._of_rounds / self.of_mean if self.of_mean else 0.0

    @property
    def gain_of_doubling_rounds(self) -> float:
        """Return the share by which the interval would shrink. Doubling the cases gives 29 %."""
        return 1 - sqrt(1 - self.share_within / 2)

    @property
    def advice(self) -> Literal["more cases", "more clusters", "more rounds"]:
        """Return the change that helps most. At equal cost, more cases are never worse."""
        if self.share_within >= _WORTH_HALF and not too_few(self.clusters or self.cases):
            return "more rounds"
        return "more clusters" if self.clusters else "more cases"

    @property
    def sentence(self) -> str:
        """Explain the split and the advice in one sentence."""
        share = 100 * self.share_within
        units = "clusters of cases" if self.clusters else "cases"
        if few := too_few(self.clusters or self.cases, units):
            return few
        return (
            f"{100 - share:.0f} % of the uncertainty is between {units}, {share:.0f} % between rounds of one case: "
            f"{self.advice} would help; twice the {units} narrow the interval by 29 %, "
            f"twice the rounds by {100 * self.gain_of_doubling_rounds:.0f} %"
        )


def difference_split(baseline: Cells, candidate: Cells) -> VarianceSplit | None:
    """Split the variance of a paired difference; None for single rounds, or one case or cluster.

    This is the moment estimator of the one-way random effects model (Searle, Casella and McCulloch,
    Variance Components, 1992, ch. 3): the variance of case means minus the share of the rounds.
    """
    before, after = pairs_of(baseline, candidate)
    old, new = _within(before), _within(after)
    if old is None or new is None:
        return None
    noise = old * fmean(1 / cell.rounds for cell in before) + new * fmean(1 / cell.rounds for cell in after)
    moments = paired_change(before, after).moments
    if moments.units < 2:
        return None
    return VarianceSplit(
        between=moments.units * max(0.0, moments.variance - noise / moments.cases),
        within=old + new,
        cases=moments.cases,
        rounds=(old + new) / noise if noise else fmean(cell.rounds for cell in (*before, *after)),
        clusters=moments.units if moments.clustered else None,
    )


def _within(cells: Iterable[Cell]) -> float | None:
    """Return a round's variance, pooled over cases with several rounds by degrees of freedom."""
    known = [(cell.rounds - 1, cell.variance) for cell in cells if cell.variance is not None]
    freedom = sum(rounds for rounds, _ in known)
    return sum(rounds * spread for rounds, spread in known) / freedom if freedom else None


@dataclass(frozen=True, slots=True)
class Noise:
    """The values `between` and `within` of a `VarianceSplit`, from earlier runs or guessed."""

    between: float
    within: float

    @classmethod
    def guessed(cls, *, score: float = 0.5, spread: float = 0.5, agreement: float = 0.5) -> "Noise":
        """Guess the noise without data.

        `spread` is the share of a round's variance between cases (0 to 1), `agreement` the
        correlation between the case scores of both arms.
        """
        whole = score * (1 - score)
        return cls(2 * (1 - agreement) * spread * whole, 2 * (1 - spread) * whole)


def too_few(units: int, name: str = "cases", *, alpha: float = ALPHA) -> str | None:
    """Return a sentence if there are too few cases or clusters to show a difference, or None.

    If all change in the same direction, the p-value is 2/2^units: 0.125 for four. A complete
    reversal is an exception.
    """
    fewest = ceil(log2(2 / alpha))
    if units >= fewest:
        return None
    if units == 1:
        single = f"a single {name.removesuffix('s')} cannot tell two subjects apart, however many rounds"
        return f"{single}: use more {name}, at least {fewest}"
    least = min(1.0, 2 * 0.5**units)
    return (
        f"{units} {name} cannot show a difference on {name} like these, except a complete reversal, however many "
        f"rounds: their p-value is never below {least:.3g}; use more {name}, at least {fewest}"
    )


def minimum_detectable(
    cases: int, rounds: float, noise: Noise, *, clusters: int | None = None, power: float = POWER
) -> float | None:
    """Return the true difference detected with probability `power`; above 1, there is none.

    None ("cannot be estimated") for one case or cluster, or if nothing varies. The decision is by
    `comparison.ComparisonRule`. Single rounds are assumed to pass or fail, and differences of
    several to be normal.
    """
    units = clusters or cases
    variance = units * (noise.between / units + noise.within / rounds / cases)
    if units < 2 or not variance:
        return None
    if rounds == 1 and clusters is None:
        return _least_by_mcnemar(cases, variance, ALPHA, power)

    def distance(mean: float) -> float:  # mean absolute value of a normal variable
        normal = NormalDist(mean, sqrt(variance))
        return 2 * variance * normal.pdf(0.0) + mean * (1 - 2 * normal.cdf(0.0))

    found = _least_by_interval(units - 1.0, variance, distance, ALPHA, power)
    return min(UNDETECTABLE, found + _GRID_STEPS / rounds / cases)


def detectable_between(
    baseline: Cells, candidate: Cells, *, alpha: float = ALPHA, power: float = POWER
) -> float | None:
    """Return the true difference that pairs like those of two runs detect with this `power`.

    None ("cannot be estimated") without two pairs or clusters, or if all pairs differ equally. The
    result is at least what the sign-flip test can detect: log2(2/alpha) units (six at 5 %) that
    change in the same direction, as much as the observed ones. The number of changing units is
    assumed to be Poisson distributed.
    """
    change, step = _varying_change(baseline, candidate)
    return None if change is None else _detectable(change, step, 1.0, alpha, power)


def cases_needed(baseline: Cells, candidate: Cells, *, alpha: float = ALPHA, power: float = POWER) -> int | None:
    """Return how many pairs like those of two runs would detect their difference with this `power`.

    None if that cannot be estimated, if the runs do not differ, or if it exceeds `MAX_CASES`.
    """
    change, step = _varying_change(baseline, candidate)
    if change is None or not change.moments.mean:
        return None
    cases, difference = change.moments.cases, abs(change.moments.mean)

    def enough(number: int) -> bool:
        return _detectable(change, step, number / cases, alpha, power) <= difference

    high = cases
    while not enough(high):
        high *= 2
        if high > MAX_CASES:
            return None
    return 1 + bisect_left(range(1, high), True, key=enough)


def cases_to_pass(comparison: Comparison, margin: float) -> int | None:
    """Return how many cases let unchanged code pass `--margin --undecidable fail` in 95 % of runs.

    None if there is no interval or margin. The noise is taken from the comparison. The gate passes
    if the lower end of the 90 % interval is above −margin. Unchanged code misses that in 5 % of
    runs once the interval is as wide as the margin.
    """
    inner = comparison.inner
    return None if inner is None or not margin else max(2, ceil(comparison.cases * (inner.width / margin) ** 2))


def _varying_change(baseline: Cells, candidate: Cells) -> tuple[Change | None, float]:
    """Return the change (None if nothing varies), and the correction for scores of 0 and 1."""
    before, after = pairs_of(baseline, candidate)
    change = paired_change(before, after) if before else None
    if change is None or change.moments.units < 2 or change.moments.constant:
        return None, 0.0
    on_grid = all(cell.binary for cell in (*before, *after))
    return change, _GRID_STEPS * 2 / sum(cell.rounds for cell in (*before, *after)) if on_grid else 0.0


def _detectable(change: Change, step: float, times: float, alpha: float, power: float) -> float:
    """Return the true difference that `times` as many units can detect."""
    moments = change.moments
    variance = moments.weight * standard_error(change) ** 2
    if moments.single and not moments.clustered:
        return _least_by_mcnemar(round(times * moments.cases), variance, alpha, power)
    size = (change.gained + change.lost) / change.changed / times  # the change of a unit, as a share of all
    share = (change.gained + change.lost) / (variance + moments.mean**2)  # the same for squared changes
    freedom = moments.freedom + (times - 1) * moments.weight
    spread = _least_by_interval(freedom, variance, lambda mean: share * (variance + mean * mean), alpha, power)
    # On average, so many units must change that enough do with this probability.
    from scipy.special import gammaincinv

    return max(min(UNDETECTABLE, spread + step / times), float(gammaincinv(ceil(log2(2 / alpha)), power)) * size)


def _least_by_interval(
    freedom: float, variance: float, distance: Callable[[float], float], alpha: float, power: float
) -> float:
    """Return the smallest true difference whose interval excludes 0 with this probability.

    `variance` is that of one unit. `distance` returns the mean absolute difference of units for a
    mean difference. The rule gives the smallest mean that excludes 0; the noncentral t distribution
    gives how much larger the true difference must be (J. Cohen, Statistical Power Analysis, 1988,
    ch. 2).
    """
    from scipy.optimize import brentq
    from scipy.special import nctdtrinc

    units = freedom + 1
    error = sqrt(variance / units)

    def change(mean: float) -> Change:
        apart = max(mean, min(1.0, distance(mean)))
        moments = Moments(round(units), round(units), mean, error * error, 0, freedom, 0.0)
        return Change(moments, (apart + mean) / 2, (apart - mean) / 2, round(units))

    if too_few(round(units), alpha=alpha) or zero_p_value(change(_MAX_DIFFERENCE)) > alpha:
        return UNDETECTABLE
    least = float(brentq(lambda mean: zero_p_value(change(mean)) - alpha, 1e-9, _MAX_DIFFERENCE, xtol=1e-12))
    critical = t_quantile(1 - alpha / 2, freedom)
    return least + error * (float(nctdtrinc(freedom, 1 - power, critical)) - critical)


def _least_by_mcnemar(cases: int, variance: float, alpha: float, power: float) -> float:
    """Return the smallest true difference that McNemar's exact test detects with this probability.

    `variance` is that of one pair, so that cases change with probability variance + difference².
    """
    import numpy as np
    from scipy.optimize import brentq
    from scipy.stats import binom

    if too_few(cases, alpha=alpha):
        return UNDETECTABLE
    changed = np.arange(cases + 1)
    needed = binom.isf(alpha / 2, changed, 0.5) + 1  # least gains with a p-value of at most alpha

    def found(difference: float) -> float:
        share = min(1.0, max(difference, variance + difference * difference))
        gains = binom.sf(needed - 1, changed, (1 + difference / share) / 2)
        return float(binom.pmf(changed, cases, share) @ gains)

    return float(brentq(lambda difference: found(difference) - power, 0.0, 1.0, xtol=1e-9))


class Design(FrozenModel):
    """The precision of a paired comparison of two subjects, with guessed noise."""

    cases: int
    rounds: int
    score: float  # the expected score of both subjects
    detectable: float | None  # difference found 4 times in 5; None: unknown, > 1: none
    difference_width: float | None  # half the width of the 95 % interval of the difference
    score_width: float | None  # half the width for one score
    least_margin: float | None = None  # lets unchanged code pass with `--undecidable fail`

    @property
    def too_small(self) -> bool:
        """Return True if no difference can be shown, except a complete reversal."""
        return too_few(self.cases) is not None or self.detectable is None or self.detectable > 1


def design_of(cases: int, rounds: int, *, score: float = 0.5) -> Design:
    """Estimate before a run how well two subjects with about this score can be told apart.

    The noise is guessed (`Noise.guessed`): half of a round's variance is between cases, and the
    subjects' case scores have a correlation of one half.
    """
    noise = Noise.guessed(score=score)
    whole = score * (1 - score)
    variance = noise.between / cases + noise.within / rounds / cases
    return Design(
        cases=cases,
        rounds=rounds,
        score=score,
        detectable=minimum_detectable(cases, rounds, noise),
        difference_width=_half_width(variance, cases),
        score_width=_half_width(whole / 2 / cases + whole / 2 / rounds / cases, cases),
        least_margin=None if cases < 2 else min(1.0, 2 * t_quantile(1 - ALPHA, cases - 1) * sqrt(variance)),
    )


def _half_width(variance: float, cases: int) -> float | None:
    return min(1.0, t_quantile(1 - ALPHA / 2, cases - 1) * sqrt(variance)) if cases > 1 else None

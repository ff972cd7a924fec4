"""Sources of noise, and the smallest true difference that a comparison would find, before and after a run.

`design_of` says what so many cases and rounds can show before any money is spent.
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

_WORTH_HALF = 0.5  # share of the variance of the mean from which more rounds help nearly as much as more cases
_MAX_DIFFERENCE = 0.999  # a mean difference; at 1 nothing varies

_GRID_STEPS = 1.0
"""The loss of sign flips, in steps of the grid of scores (one round of one case): a flip moves the sum by two steps,
and the exact p-value counts the whole chance of the observed sum, half of which, one step, is too much.
"""


class VarianceSplit(FrozenModel):
    """The noise of a paired difference.

    `between` is the variance of its true value between cases, or between clusters where cases are tagged; `within` that
    of one round in each arm together.
    """

    between: float
    within: float
    cases: int
    rounds: float  # harmonic mean over cases: what the within part is divided by
    clusters: int | None = None  # None: all cases are independent

    @property
    def of_mean(self) -> float:
        """Return the variance of the mean. Rounds are independent of each other even where cases are not."""
        return self.between / (self.clusters or self.cases) + self._of_rounds

    @property
    def _of_rounds(self) -> float:
        return self.within / self.rounds / self.cases

    @property
    def share_within(self) -> float:
        """Return the share of the variance of the mean that would vanish with infinitely many rounds."""
        return self._of_rounds / self.of_mean if self.of_mean else 0.0

    @property
    def gain_of_doubling_rounds(self) -> float:
        """Return the share by which the interval would shrink; doubling the cases shrinks it by 29 % in any case."""
        return 1 - sqrt(1 - self.share_within / 2)

    @property
    def advice(self) -> Literal["more cases", "more clusters", "more rounds"]:
        """Return the change that helps most; more cases are never worse at the same price per trial."""
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
    """Split the variance of the paired difference; None where one round each, or one case or cluster, cannot tell.

    The moment estimator of the one-way random effects model (Searle, Casella and McCulloch, Variance Components,
    1992, ch. 3): the variance of case means, less what the rounds contribute to it.
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
    """Return the variance of a round, pooled over the cases with two or more, by their degrees of freedom."""
    known = [(cell.rounds - 1, cell.variance) for cell in cells if cell.variance is not None]
    freedom = sum(rounds for rounds, _ in known)
    return sum(rounds * spread for rounds, spread in known) / freedom if freedom else None


@dataclass(frozen=True, slots=True)
class Noise:
    """The `between` and `within` of a `VarianceSplit`, known from earlier runs or guessed."""

    between: float
    within: float

    @classmethod
    def guessed(cls, *, score: float = 0.5, spread: float = 0.5, agreement: float = 0.5) -> "Noise":
        """Guess the noise without data.

        `spread` is the share of a round's variance that lies between cases (0 none, 1 all); `agreement` the correlation
        of the case scores of the two arms.
        """
        whole = score * (1 - score)
        return cls(2 * (1 - agreement) * spread * whole, 2 * (1 - spread) * whole)


def too_few(units: int, name: str = "cases", *, alpha: float = ALPHA) -> str | None:
    """Return a sentence that so few cases or clusters cannot show a difference; None if they can.

    If all change in the same way, the p-value is 2/2^units: 0.125 for four. A complete reversal is the exception.
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
    """Return the true difference that is found with probability `power`; above 1, no difference is.

    None ("cannot be estimated") for one case or cluster, and where nothing varied. The rule that decides is assumed
    (see `comparison.ComparisonRule`). One round is taken to pass or fail; the differences of several rounds as normal.
    """
    units = clusters or cases
    variance = units * (noise.between / units + noise.within / rounds / cases)
    if units < 2 or not variance:
        return None
    if rounds == 1 and clusters is None:
        return _least_by_mcnemar(cases, variance, ALPHA, power)

    def distance(mean: float) -> float:  # from 0, on average, of a normal variable
        normal = NormalDist(mean, sqrt(variance))
        return 2 * variance * normal.pdf(0.0) + mean * (1 - 2 * normal.cdf(0.0))

    found = _least_by_interval(units - 1.0, variance, distance, ALPHA, power)
    return min(UNDETECTABLE, found + _GRID_STEPS / rounds / cases)


def detectable_between(
    baseline: Cells, candidate: Cells, *, alpha: float = ALPHA, power: float = POWER
) -> float | None:
    """Return the true difference that as many pairs like those of two runs find with probability `power`.

    None ("cannot be estimated") without two pairs or clusters, and where all pairs differ alike. The result is at least
    what the sign-flip test can find: log2(2/alpha) units, six at 5 %, must change the same way, each as far as those
    that did. The number of units that change is taken to be Poisson distributed.
    """
    change, step = _varying_change(baseline, candidate)
    return None if change is None else _detectable(change, step, 1.0, alpha, power)


def cases_needed(baseline: Cells, candidate: Cells, *, alpha: float = ALPHA, power: float = POWER) -> int | None:
    """Return how many pairs like those of two runs find a difference as large as theirs with probability `power`.

    None where that cannot be estimated, where the runs do not differ, and where `MAX_CASES` are not enough.
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
    """Return the number of cases with which unchanged code passes `--margin` with `--undecidable fail` in 95 % of runs.

    None without an interval or a margin. The noise is that of the comparison. The gate passes if the lower end of the
    90 % interval lies above −margin, which unchanged code misses in 5 % of runs once it is as wide as the margin.
    """
    inner = comparison.inner
    return None if inner is None or not margin else max(2, ceil(comparison.cases * (inner.width / margin) ** 2))


def _varying_change(baseline: Cells, candidate: Cells) -> tuple[Change | None, float]:
    """Return the change, or None if nothing varies, and the correction for scores that are only 0 or 1."""
    before, after = pairs_of(baseline, candidate)
    change = paired_change(before, after) if before else None
    if change is None or change.moments.units < 2 or change.moments.constant:
        return None, 0.0
    on_grid = all(cell.binary for cell in (*before, *after))
    return change, _GRID_STEPS * 2 / sum(cell.rounds for cell in (*before, *after)) if on_grid else 0.0


def _detectable(change: Change, step: float, times: float, alpha: float, power: float) -> float:
    """Return the true difference that can be detected with `times` as many units."""
    moments = change.moments
    variance = moments.weight * standard_error(change) ** 2
    if moments.single and not moments.clustered:
        return _least_by_mcnemar(round(times * moments.cases), variance, alpha, power)
    size = (change.gained + change.lost) / change.changed / times  # of a unit's change, as a share of all together
    share = (change.gained + change.lost) / (variance + moments.mean**2)  # of a squared change
    freedom = moments.freedom + (times - 1) * moments.weight
    spread = _least_by_interval(freedom, variance, lambda mean: share * (variance + mean * mean), alpha, power)
    # So many units must change on average that enough for the smallest p do so with that probability.
    from scipy.special import gammaincinv

    return max(min(UNDETECTABLE, spread + step / times), float(gammaincinv(ceil(log2(2 / alpha)), power)) * size)


def _least_by_interval(
    freedom: float, variance: float, distance: Callable[[float], float], alpha: float, power: float
) -> float:
    """Return the least true difference whose interval excludes 0 with that probability.

    `variance` is that of one unit, and `distance` gives the mean absolute difference of the units for their mean
    difference. The least mean that excludes 0 follows from the rule, and the truth must lie as far above it as the
    noncentral t distribution says (J. Cohen, Statistical Power Analysis, 1988, ch. 2).
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
    """Return the least true difference that McNemar's exact test finds with that probability, by summing over results.

    `variance` is that of one pair, whatever the difference: cases change with the probability variance + difference².
    """
    import numpy as np
    from scipy.optimize import brentq
    from scipy.stats import binom

    if too_few(cases, alpha=alpha):
        return UNDETECTABLE
    changed = np.arange(cases + 1)
    needed = binom.isf(alpha / 2, changed, 0.5) + 1  # gains from which the p-value is at most alpha

    def found(difference: float) -> float:
        share = min(1.0, max(difference, variance + difference * difference))
        gains = binom.sf(needed - 1, changed, (1 + difference / share) / 2)
        return float(binom.pmf(changed, cases, share) @ gains)

    return float(brentq(lambda difference: found(difference) - power, 0.0, 1.0, xtol=1e-9))


class Design(FrozenModel):
    """The precision of a paired comparison of two subjects, at the noise that was guessed."""

    cases: int
    rounds: int
    score: float  # that both subjects are expected to have, about
    detectable: float | None  # the difference that is found 4 times in 5; None for a single case, above 1 nothing is
    difference_width: float | None  # half the width of the 95 % interval of the difference
    score_width: float | None  # the same of one score
    least_margin: float | None = None  # with which unchanged code passes `--undecidable fail` in 95 % of runs

    @property
    def too_small(self) -> bool:
        """Return True if no difference can be shown, except a complete reversal."""
        return too_few(self.cases) is not None or self.detectable is None or self.detectable > 1


def design_of(cases: int, rounds: int, *, score: float = 0.5) -> Design:
    """Return the difference by which two subjects with about this score can be told apart, before a run.

    The noise is guessed (`Noise.guessed`): half of the variance of a round lies between cases, and the subjects agree
    on which cases are hard with a correlation of one half.
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

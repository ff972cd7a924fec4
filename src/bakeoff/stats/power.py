"""Sources of noise, and the smallest true difference that a comparison would find, before and after a run."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, isnan, log2, sqrt
from statistics import fmean
from typing import Literal

from bakeoff._kernel.model import FrozenModel
from bakeoff.stats.cells import Cell, Cells
from bakeoff.stats.comparison import paired_change, pairs_of
from bakeoff.stats.differences import standard_error
from bakeoff.stats.intervals import ALPHA, t_quantile

POWER = 0.8
_WORTH_HALF = 0.5  # share of the variance of the mean from which more rounds help nearly as much as more cases


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
        """Return the share of the variance of the mean that would vanish with endless rounds."""
        return self._of_rounds / self.of_mean if self.of_mean else 0.0

    @property
    def gain_of_doubling_rounds(self) -> float:
        """Return the share by which the interval would shrink; doubling the cases shrinks it by 29 % in any case."""
        return 1 - sqrt(1 - self.share_within / 2)

    @property
    def advice(self) -> Literal["more cases", "more clusters", "more rounds"]:
        """Name what narrows the interval; more cases are never worse at the same price per trial."""
        if self.share_within >= _WORTH_HALF:
            return "more rounds"
        return "more clusters" if self.clusters else "more cases"

    @property
    def sentence(self) -> str:
        """Explain the split and the advice in one sentence."""
        share = 100 * self.share_within
        units = "clusters of cases" if self.clusters else "cases"
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


def minimum_detectable(
    cases: int,
    rounds: float,
    noise: Noise,
    *,
    clusters: int | None = None,
    alpha: float = ALPHA,
    power: float = POWER,
) -> float | None:
    """Return the true difference that is found with probability `power`; above 1, nothing is.

    None ("cannot be estimated") for one case or cluster, and where nothing varied. The two-sided paired t test under
    the noncentral t distribution (J. Cohen, Statistical Power Analysis, 1988, ch. 2), with clusters as the units where
    cases are tagged.
    """
    units = clusters or cases
    error = sqrt(noise.between / units + noise.within / rounds / cases)
    return error * _noncentrality(units - 1, alpha, power) if units > 1 and error > 0 else None


def detectable_between(
    baseline: Cells, candidate: Cells, *, alpha: float = ALPHA, power: float = POWER
) -> float | None:
    """Return the true difference that as many pairs like those of two runs find with probability `power`.

    None ("cannot be estimated") without two pairs or clusters, and where all pairs differ alike. Not below what the
    sign-flip test can find at all: log2(2/alpha) units, six at 5 %, must change the same way, each as far as those
    that did; how many do is taken as Poisson's.
    """
    before, after = pairs_of(baseline, candidate)
    if not before:
        return None
    change = paired_change(before, after)
    units = change.moments.units
    if units < 2 or change.moments.constant:
        return None
    size = (change.gained + change.lost) / change.changed  # of a unit's change, as a share of all units' together
    spread = standard_error(change) * _noncentrality(units - 1, alpha, power)
    return max(spread, _changes_needed(alpha, power) * size)


def _changes_needed(alpha: float, power: float) -> float:
    """Return how many units must change on average, so that enough for the smallest p do so with that probability."""
    from scipy.special import gammaincinv

    return float(gammaincinv(ceil(log2(2 / alpha)), power))


def _power(noncentrality: float, freedom: int, alpha: float) -> float:
    critical = t_quantile(1 - alpha / 2, freedom)
    return 1 - _below(critical, freedom, noncentrality) + _below(-critical, freedom, noncentrality)


def _below(value: float, freedom: int, noncentrality: float) -> float:
    """Return the noncentral t distribution function; scipy gives NaN for results below about 1e-15."""
    from scipy.special import nctdtr

    chance = float(nctdtr(freedom, noncentrality, value))
    return 0.0 if isnan(chance) else chance


def _noncentrality(freedom: int, alpha: float, power: float) -> float:
    """Return how many standard errors away the truth must lie."""
    from scipy.optimize import brentq

    high = 1.0
    while _power(high, freedom, alpha) < power:
        high *= 2
    return float(brentq(lambda guess: _power(guess, freedom, alpha) - power, 0.0, high, xtol=1e-12))

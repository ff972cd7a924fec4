"""The smallest true difference that a comparison would find: before spending, from its size; afterwards, from it."""

from dataclasses import dataclass
from math import ceil, isnan, log2, sqrt

from bakeoff.stats.cells import Cells
from bakeoff.stats.comparison import paired_change, pairs_of
from bakeoff.stats.differences import believed_error
from bakeoff.stats.quantiles import ALPHA, t_quantile
from bakeoff.stats.variance import VarianceSplit

POWER = 0.8


@dataclass(frozen=True, slots=True)
class Noise:
    """Of a paired difference: variance of its true value between cases, and of one round in each arm together.

    Where cases are tagged, the former is between clusters.
    """

    between: float
    within: float

    @classmethod
    def seen(cls, split: VarianceSplit) -> "Noise":
        """From two earlier runs: the `difference_split` of their cells."""
        return cls(split.between, split.within)

    @classmethod
    def from_one_run(cls, split: VarianceSplit, *, agreement: float = 0.5) -> "Noise":
        """From one earlier run, supposing that the arms' case scores correlate by `agreement`."""
        return cls(2 * (1 - agreement) * split.between, 2 * split.within)

    @classmethod
    def guessed(cls, *, score: float = 0.5, spread: float = 0.5, agreement: float = 0.5) -> "Noise":
        """From nothing: `spread` is the share of a round's variance that lies between cases (0 none, 1 all)."""
        whole = score * (1 - score)
        return cls(2 * (1 - agreement) * spread * whole, 2 * (1 - spread) * whole)

    def of_difference(self, cases: int, rounds: float, clusters: int | None = None) -> float:
        """The standard error of the mean difference; `between` is that of clusters where there are some."""
        return sqrt(self.between / (clusters or cases) + self.within / rounds / cases)


def minimum_detectable(
    cases: int,
    rounds: float,
    noise: Noise,
    *,
    clusters: int | None = None,
    alpha: float = ALPHA,
    power: float = POWER,
) -> float | None:
    """The true difference found with probability `power`. Above 1 nothing is.

    None ("cannot be estimated") for one case or cluster, and where nothing varied. The two-sided paired t test under
    the noncentral t distribution (J. Cohen, Statistical Power Analysis, 1988, ch. 2), with clusters as the units where
    cases are tagged.
    """
    units = clusters or cases
    error = noise.of_difference(cases, rounds, clusters)
    return error * _noncentrality(units - 1, alpha, power) if units > 1 and error > 0 else None


def detectable_between(
    baseline: Cells, candidate: Cells, *, alpha: float = ALPHA, power: float = POWER
) -> float | None:
    """After two runs: the true difference that pairs like these, as many as were scored, find with that probability.

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
    spread = believed_error(change) * _noncentrality(units - 1, alpha, power)
    return max(spread, _changes_needed(alpha, power) * size)


def power_of(
    difference: float,
    cases: int,
    rounds: float,
    noise: Noise,
    *,
    clusters: int | None = None,
    alpha: float = ALPHA,
) -> float | None:
    """The probability of finding a true difference; None for one case or cluster, and where nothing varied."""
    units = clusters or cases
    error = noise.of_difference(cases, rounds, clusters)
    return _power(abs(difference) / error, units - 1, alpha) if units > 1 and error > 0 else None


def _changes_needed(alpha: float, power: float) -> float:
    """How many units must change on average, so that enough for the smallest p do so with that probability."""
    from scipy.special import gammaincinv

    return float(gammaincinv(ceil(log2(2 / alpha)), power))


def _power(noncentrality: float, freedom: int, alpha: float) -> float:
    critical = t_quantile(1 - alpha / 2, freedom)
    return 1 - _below(critical, freedom, noncentrality) + _below(-critical, freedom, noncentrality)


def _below(value: float, freedom: int, noncentrality: float) -> float:
    """The noncentral t distribution function; scipy gives NaN where it is too small for it, below 1e-15 or so."""
    from scipy.special import nctdtr

    chance = float(nctdtr(freedom, noncentrality, value))
    return 0.0 if isnan(chance) else chance


def _noncentrality(freedom: int, alpha: float, power: float) -> float:
    """How many standard errors away the truth must lie."""
    from scipy.optimize import brentq

    high = 1.0
    while _power(high, freedom, alpha) < power:
        high *= 2
    return float(brentq(lambda guess: _power(guess, freedom, alpha) - power, 0.0, high, xtol=1e-12))

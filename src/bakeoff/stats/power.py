"""Before spending: the smallest true difference that a comparison of this size would find."""

from dataclasses import dataclass
from math import isnan, sqrt

from bakeoff.stats.quantiles import ALPHA, t_quantile
from bakeoff.stats.variance import VarianceSplit

POWER = 0.8


@dataclass(frozen=True, slots=True)
class Noise:
    """Of a paired difference: variance of its true value between cases, and of one round in each arm together."""

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

    def of_difference(self, cases: int, rounds: int) -> float:
        """The standard error of the mean difference."""
        return sqrt((self.between + self.within / rounds) / cases)


def minimum_detectable(
    cases: int, rounds: int, noise: Noise, *, alpha: float = ALPHA, power: float = POWER
) -> float | None:
    """The true difference found with probability `power`; None ("undefined") for one case. Above 1 nothing is.

    The two-sided paired t test under the noncentral t distribution (J. Cohen, Statistical Power Analysis, 1988, ch. 2).
    """
    if cases < 2:
        return None
    return noise.of_difference(cases, rounds) * _noncentrality(cases - 1, alpha, power)


def power_of(difference: float, cases: int, rounds: int, noise: Noise, *, alpha: float = ALPHA) -> float | None:
    """The probability of finding a true difference; None for one case."""
    if cases < 2:
        return None
    error = noise.of_difference(cases, rounds)
    if error == 0:
        return 1.0 if difference else alpha
    return _power(abs(difference) / error, cases - 1, alpha)


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

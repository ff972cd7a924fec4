"""Where the noise comes from: cases that differ from each other, or rounds of one case that do."""

from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import fmean
from typing import Literal

from bakeoff._kernel.model import FrozenModel
from bakeoff.stats.cells import Cell, Cells
from bakeoff.stats.comparison import paired_change, pairs_of
from bakeoff.stats.moments import Moments, moments_of

_WORTH_HALF = 0.5  # of the variance of the mean: the share from which more rounds help nearly as much as more cases


class VarianceSplit(FrozenModel):
    """`between`: variance of the true scores of cases, or of clusters where there are some. `within`: of one round."""

    between: float
    within: float
    cases: int
    rounds: float  # harmonic mean over cases: what the within part is divided by
    clusters: int | None = None  # None: every case stands for itself

    @property
    def units(self) -> int:
        """What stands for itself: clusters, or cases."""
        return self.clusters or self.cases

    @property
    def of_mean(self) -> float:
        """The variance of the mean score. Rounds are independent of each other even where cases are not."""
        return self.between / self.units + self._of_rounds

    @property
    def _of_rounds(self) -> float:
        return self.within / self.rounds / self.cases

    @property
    def share_within(self) -> float:
        """How much of the mean's variance would vanish with endless rounds."""
        return self._of_rounds / self.of_mean if self.of_mean else 0.0

    @property
    def gain_of_doubling_rounds(self) -> float:
        """By what share the interval would shrink; doubling the units shrinks it by 29 % whatever the split."""
        return 1 - sqrt(1 - self.share_within / 2)

    @property
    def advice(self) -> Literal["more cases", "more clusters", "more rounds"]:
        """At one price per trial more units are never worse; rounds are worth it where they do nearly as much."""
        if self.share_within >= _WORTH_HALF:
            return "more rounds"
        return "more clusters" if self.clusters else "more cases"

    @property
    def sentence(self) -> str:
        share = 100 * self.share_within
        units = "clusters of cases" if self.clusters else "cases"
        return (
            f"{100 - share:.0f} % of the uncertainty is between {units}, {share:.0f} % between rounds of one case: "
            f"{self.advice} would help; twice the {units} narrow the interval by 29 %, "
            f"twice the rounds by {100 * self.gain_of_doubling_rounds:.0f} %"
        )


def variance_split(cells: Sequence[Cell]) -> VarianceSplit | None:
    """Of one score; None where one round each, or one case or cluster, cannot tell.

    The moment estimator of the one-way random effects model (Searle, Casella and McCulloch, Variance Components,
    1992, ch. 3): the variance of case means, less what the rounds contribute to it. Under clusters the variance of the
    mean is the clustered one.
    """
    within = _within(cells)
    if within is None:
        return None
    share = fmean(1 / cell.rounds for cell in cells)
    return _split(moments_of(cells), within, within * share, 1 / share)


def difference_split(baseline: Cells, candidate: Cells) -> VarianceSplit | None:
    """Of the paired difference; `within` is that of one round in each arm."""
    before, after = pairs_of(baseline, candidate)
    old, new = _within(before), _within(after)
    if old is None or new is None:
        return None
    noise = old * fmean(1 / cell.rounds for cell in before) + new * fmean(1 / cell.rounds for cell in after)
    rounds = (old + new) / noise if noise else fmean(cell.rounds for cell in (*before, *after))
    return _split(paired_change(before, after).moments, old + new, noise, rounds)


def _split(moments: Moments, within: float, noise: float, rounds: float) -> VarianceSplit | None:
    """`noise`: the variance that its rounds leave in a case's mean."""
    if moments.units < 2:
        return None
    return VarianceSplit(
        between=moments.units * max(0.0, moments.variance - noise / moments.cases),
        within=within,
        cases=moments.cases,
        rounds=rounds,
        clusters=moments.units if moments.clustered else None,
    )


def _within(cells: Iterable[Cell]) -> float | None:
    """The variance of a round, pooled over the cases that have two or more, by their degrees of freedom."""
    known = [(cell.rounds - 1, cell.variance) for cell in cells if cell.variance is not None]
    freedom = sum(rounds for rounds, _ in known)
    return sum(rounds * spread for rounds, spread in known) / freedom if freedom else None

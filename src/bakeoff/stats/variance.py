"""Where the noise comes from: cases that differ from each other, or rounds of one case that do."""

from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import fmean, variance
from typing import Literal

from bakeoff.frozen import Frozen
from bakeoff.stats.cells import Cell, Cells
from bakeoff.stats.comparison import align

_WORTH_HALF = 0.5  # of the variance of the mean: the share from which more rounds help nearly as much as more cases


class VarianceSplit(Frozen):
    """`between`: variance of the cases' true scores. `within`: of one round around its case's."""

    between: float
    within: float
    cases: int
    rounds: float  # harmonic mean over cases: what the within part is divided by

    @property
    def of_mean(self) -> float:
        """The variance of the mean score."""
        return (self.between + self.within / self.rounds) / self.cases

    @property
    def share_within(self) -> float:
        """How much of the mean's variance would vanish with endless rounds."""
        whole = self.between + self.within / self.rounds
        return self.within / self.rounds / whole if whole else 0.0

    @property
    def gain_of_doubling_rounds(self) -> float:
        """By what share the interval would shrink; doubling the cases shrinks it by 29 % whatever the split."""
        return 1 - sqrt(1 - self.share_within / 2)

    @property
    def advice(self) -> Literal["more cases", "more rounds"]:
        """At one price per trial more cases are never worse; rounds are worth it where they do nearly as much."""
        return "more rounds" if self.share_within >= _WORTH_HALF else "more cases"

    @property
    def sentence(self) -> str:
        share = 100 * self.share_within
        return (
            f"{100 - share:.0f} % of the uncertainty is between cases, {share:.0f} % between rounds of one case: "
            f"{self.advice} would help; twice the cases narrow the interval by 29 %, "
            f"twice the rounds by {100 * self.gain_of_doubling_rounds:.0f} %"
        )


def variance_split(cells: Sequence[Cell]) -> VarianceSplit | None:
    """Of one score; None where one round each, or one case, cannot tell.

    The moment estimator of the one-way random effects model (Searle, Casella and McCulloch, Variance Components,
    1992, ch. 3): the variance of case means, less what the rounds contribute to it.
    """
    within = _within(cells)
    if within is None or len(cells) < 2:
        return None
    share = fmean(1 / cell.rounds for cell in cells)
    between = max(0.0, variance([cell.mean for cell in cells]) - within * share)
    return VarianceSplit(between=between, within=within, cases=len(cells), rounds=1 / share)


def difference_split(baseline: Cells, candidate: Cells) -> VarianceSplit | None:
    """Of the paired difference; `within` is that of one round in each arm."""
    matched = align(baseline, candidate).matched
    before, after = [baseline[key] for key in matched], [candidate[key] for key in matched]
    old, new = _within(before), _within(after)
    if old is None or new is None or len(matched) < 2:
        return None
    noise = old * fmean(1 / cell.rounds for cell in before) + new * fmean(1 / cell.rounds for cell in after)
    differences = [after_.mean - before_.mean for before_, after_ in zip(before, after, strict=True)]
    between = max(0.0, variance(differences) - noise)
    rounds = (old + new) / noise if noise else fmean(cell.rounds for cell in (*before, *after))
    return VarianceSplit(between=between, within=old + new, cases=len(matched), rounds=rounds)


def _within(cells: Iterable[Cell]) -> float | None:
    """The variance of a round, pooled over the cases that have two or more, by their degrees of freedom."""
    known = [(cell.rounds - 1, cell.variance) for cell in cells if cell.variance is not None]
    freedom = sum(rounds for rounds, _ in known)
    return sum(rounds * spread for rounds, spread in known) / freedom if freedom else None

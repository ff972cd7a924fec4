"""One case under one subject as sums of its rounds, and the mean over cases with its variance.

Every statistic is computed from these sums, whatever the number of rounds. The unit is the case, or the cluster where
cases are tagged.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import fmean
from typing import NamedTuple

CLUSTER_TAG = "cluster"
"""The case tag that names the cluster of a case: cases of one cluster are not independent of each other."""

_ROUNDING = 1e-24  # a variance that is nothing but rounding


class CaseKey(NamedTuple):
    """Identify a case: two cases with one id are the same case only if their content is the same."""

    id: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """The scored rounds of one case: their number, sum and sum of squares. Scores lie between 0 and 1."""

    rounds: int
    total: float
    squares: float
    cluster: str | None = None

    @classmethod
    def of(cls, values: Iterable[float], cluster: str | None = None) -> "Cell":
        """Return the sums of the scores of some rounds."""
        scores = [float(value) for value in values]
        outside = [score for score in scores if not 0 <= score <= 1]
        if outside or not scores:
            raise ValueError(f"score {outside[0]!r} is not between 0 and 1" if outside else "a case without rounds")
        return cls(len(scores), sum(scores), sum(score * score for score in scores), cluster)

    @property
    def mean(self) -> float:
        """Return the mean score of the rounds."""
        return self.total / self.rounds

    @property
    def binary(self) -> bool:
        """Tell whether every round scored 0 or 1: only then does squaring change no score."""
        return self.total == self.squares

    @property
    def variance(self) -> float | None:
        """Return the variance of one round around the mean of the case; None for a single round."""
        if self.rounds < 2:
            return None
        return max(0.0, self.squares - self.total * self.total / self.rounds) / (self.rounds - 1)


Cells = Mapping[CaseKey, Cell]
"""One subject in one run."""


def cells_of(rounds: Mapping[CaseKey, Iterable[float]], clusters: Mapping[CaseKey, str] | None = None) -> Cells:
    """Convert lists of scores to cells; `clusters` has the cluster of each case that belongs to one."""
    named = clusters or {}
    return {key: Cell.of(values, named.get(key)) for key, values in rounds.items()}


def single_pass_or_fail(cells: Iterable[Cell]) -> bool:
    """Tell whether each case has one round, which passed or failed."""
    return all(cell.rounds == 1 and cell.binary for cell in cells)


@dataclass(frozen=True, slots=True)
class Moments:
    """Everything that an interval of a mean score is computed from."""

    cases: int
    units: int  # independent ones: clusters, or cases where there are none
    mean: float
    variance: float  # of the mean; 0 for a single unit
    informative: int  # units that are not wholly at 0, or not wholly at 1: the fewer of the two
    single: bool = False  # one round each, passed or failed

    @property
    def clustered(self) -> bool:
        """Tell whether some cases share a cluster."""
        return self.units < self.cases

    @property
    def constant(self) -> bool:
        """Tell whether all units have the same mean, so that the data do not show how far it may be off."""
        return self.variance <= _ROUNDING

    @property
    def error(self) -> float:
        """Return the standard error of the mean."""
        return sqrt(self.variance)


def moments_of(cells: Sequence[Cell]) -> Moments:
    """Return the moments of the score of one subject; at least one cell is needed."""
    return moments_of_means(
        [cell.mean for cell in cells], [cell.cluster for cell in cells], single=single_pass_or_fail(cells)
    )


def moments_of_means(
    means: Sequence[float], clusters: Sequence[str | None] | None = None, *, single: bool = False
) -> Moments:
    """Return the moments of a mean over cases, each already averaged over its rounds."""
    groups = grouped(means, clusters)
    middle = fmean(means)
    above_0 = sum(any(value > 0 for value in group) for group in groups)
    below_1 = sum(any(value < 1 for value in group) for group in groups)
    variance = clustered_variance(groups, middle)
    return Moments(len(means), len(groups), middle, variance, min(above_0, below_1), single)


def grouped(values: Sequence[float], clusters: Sequence[str | None] | None) -> list[list[float]]:
    """Group values by cluster; a value without a tag is a cluster of its own."""
    if clusters is None:
        return [[value] for value in values]
    groups: dict[str | int, list[float]] = {}
    for place, (value, cluster) in enumerate(zip(values, clusters, strict=True)):
        groups.setdefault(place if cluster is None else cluster, []).append(value)
    return list(groups.values())


def clustered_variance(groups: Sequence[Sequence[float]], middle: float) -> float:
    """Return the variance of the mean, robust to correlation of the cases within a cluster.

    Liang and Zeger, Biometrika 73 (1986), with the factor C/(C−1) for few clusters (as in statsmodels); for language
    model evaluations see Miller, arXiv:2411.00640, §2.2. Without clusters it is s²/n.
    """
    units, cases = len(groups), sum(map(len, groups))
    if units < 2:
        return 0.0
    return units / (units - 1) * fsum(fsum(value - middle for value in group) ** 2 for group in groups) / cases**2

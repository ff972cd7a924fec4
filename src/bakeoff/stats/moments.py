"""The mean over cases and how far it may be off. The unit is the case, or the cluster where cases are tagged."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import fmean

from bakeoff.stats.cells import Cell, single_pass_or_fail

_ROUNDING = 1e-24  # a variance that is nothing but rounding


@dataclass(frozen=True, slots=True)
class Moments:
    """All that an interval of a mean score is computed from."""

    cases: int
    units: int  # independent ones: clusters, or cases where there are none
    mean: float
    variance: float  # of the mean; 0 for a single unit
    informative: int  # units that are not wholly at 0, or not wholly at 1: the fewer of the two
    single: bool = False  # one round each, passed or failed

    @property
    def clustered(self) -> bool:
        return self.units < self.cases

    @property
    def constant(self) -> bool:
        """No unit differs from another, so that the data do not show how far the mean may be off."""
        return self.variance <= _ROUNDING

    @property
    def error(self) -> float:
        """The standard error."""
        return sqrt(self.variance)


def moments_of(cells: Sequence[Cell]) -> Moments:
    """The moments of one subject's score; there must be a case."""
    return moments_of_means(
        [cell.mean for cell in cells], [cell.cluster for cell in cells], single=single_pass_or_fail(cells)
    )


def moments_of_means(
    means: Sequence[float], clusters: Sequence[str | None] | None = None, *, single: bool = False
) -> Moments:
    """The moments of a mean over cases, each already averaged over its rounds."""
    groups = grouped(means, clusters)
    middle = fmean(means)
    return Moments(
        cases=len(means),
        units=len(groups),
        mean=middle,
        variance=clustered_variance(groups, middle),
        informative=min(_count_with(groups, above=0.0), _count_with(groups, below=1.0)),
        single=single,
    )


def grouped(values: Sequence[float], clusters: Sequence[str | None] | None) -> list[list[float]]:
    """The values by cluster; one without a tag is a cluster of its own."""
    if clusters is None:
        return [[value] for value in values]
    groups: dict[str | int, list[float]] = {}
    for place, (value, cluster) in enumerate(zip(values, clusters, strict=True)):
        groups.setdefault(place if cluster is None else cluster, []).append(value)
    return list(groups.values())


def clustered_variance(groups: Sequence[Sequence[float]], middle: float) -> float:
    """The variance of the mean, robust to cases of one cluster standing or falling together.

    Liang and Zeger, Biometrika 73 (1986), with the factor C/(C−1) for few clusters (as statsmodels has it); for
    language model evaluations see Miller, arXiv:2411.00640, §2.2. Without clusters it is s²/n.
    """
    units, cases = len(groups), sum(map(len, groups))
    if units < 2:
        return 0.0
    return units / (units - 1) * fsum(fsum(value - middle for value in group) ** 2 for group in groups) / cases**2


def _count_with(groups: Sequence[Sequence[float]], *, above: float = -1.0, below: float = 2.0) -> int:
    return sum(any(above < value < below for value in group) for group in groups)

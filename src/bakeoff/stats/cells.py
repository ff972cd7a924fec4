"""Sum the rounds of each case of a subject ("cell"), and compute mean and variance over cases.

Every statistic is computed from these sums. The unit is the case or, for tagged cases, the cluster.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum, sqrt
from statistics import fmean
from typing import NamedTuple

ROUNDING = 1e-24
"""A variance up to this size is only rounding."""

_COCHRAN = 25


class CaseKey(NamedTuple):
    """Identifies a case. Cases with the same id are equal only if their content is equal."""

    id: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """The scored rounds of one case: number, sum and sum of squares. Scores are from 0 to 1."""

    rounds: int
    total: float
    squares: float
    cluster: str | None = None
    graded: tuple[float, ...] = field(default=(), compare=False)  # the scores, unless all are 0 or 1

    @classmethod
    def of(cls, values: Iterable[float], cluster: str | None = None) -> "Cell":
        """Sum the scores of some rounds."""
        scores = [float(value) for value in values]
        outside = [score for score in scores if not 0 <= score <= 1]
        if outside or not scores:
            raise ValueError(f"score {outside[0]!r} is not between 0 and 1" if outside else "a case without rounds")
        made = cls(len(scores), sum(scores), sum(score * score for score in scores), cluster)
        return made if made.binary else replace(made, graded=tuple(scores))

    @classmethod
    def joined(cls, cells: "Sequence[Cell]") -> "Cell":
        """Return one cell with all rounds of several cells."""
        total, squares = sum([each.total for each in cells]), sum([each.squares for each in cells])
        graded = () if all(each.binary for each in cells) else tuple(score for each in cells for score in each.scores)
        return cls(sum([each.rounds for each in cells]), total, squares, cells[0].cluster, graded)

    @property
    def scores(self) -> tuple[float, ...]:
        """Return the score of each round. If all rounds passed or failed, passes come first."""
        if self.binary:
            return (1.0,) * round(self.total) + (0.0,) * (self.rounds - round(self.total))
        assert self.graded or self.rounds == 1, "graded scores of several rounds are kept one by one"
        return self.graded or (self.total,)

    @property
    def mean(self) -> float:
        """Return the mean score of the rounds."""
        return self.total / self.rounds

    @property
    def binary(self) -> bool:
        """Return True if every round scored 0 or 1, since only then squaring changes nothing."""
        return self.total == self.squares

    @property
    def variance(self) -> float | None:
        """Return the variance of a round around the case's mean; None for a single round."""
        if self.rounds < 2:
            return None
        return max(0.0, self.squares - self.total * self.total / self.rounds) / (self.rounds - 1)


Cells = Mapping[CaseKey, Cell]
"""One subject in one run."""


def cells_of(rounds: Mapping[CaseKey, Iterable[float]], clusters: Mapping[CaseKey, str] | None = None) -> Cells:
    """Convert lists of scores to cells. `clusters` maps cases to their cluster, if any."""
    named = clusters or {}
    return {key: Cell.of(values, named.get(key)) for key, values in rounds.items()}


def single_pass_or_fail(cells: Iterable[Cell]) -> bool:
    """Return True if each case has a single round, which passed or failed."""
    return all(cell.rounds == 1 and cell.binary for cell in cells)


@dataclass(frozen=True, slots=True)
class Moments:
    """Everything needed to compute the interval of a mean score."""

    cases: int
    units: int  # number of independent units: clusters, or else cases
    mean: float
    variance: float  # variance of the mean; 0 for a single unit
    informative: int  # the smaller number of units that are not all 0, or not all 1
    freedom: float  # degrees of freedom: units − 1, or fewer with unequal clusters
    skewness: float  # skewness of the units
    values: tuple[float, ...] = ()  # means of the cases; empty if they are clustered
    single: bool = False  # whether each case has one round, passed or failed

    @property
    def weight(self) -> float:
        """Return how many equal units would hold as much information."""
        return self.freedom + 1

    @property
    def skewed(self) -> bool:
        """Return True if there are too few units for a t interval: fewer than 25 × skewness².

        The rule is Cochran's (Sampling Techniques, 1977, §2.15).
        """
        return self.units < _COCHRAN * self.skewness**2

    @property
    def clustered(self) -> bool:
        """Return True if some cases share a cluster."""
        return self.units < self.cases

    @property
    def constant(self) -> bool:
        """Return True if all units have the same mean, so that no variance can be estimated."""
        return self.variance <= ROUNDING

    @property
    def error(self) -> float:
        """Return the standard error of the mean."""
        return sqrt(self.variance)


def moments_of(cells: Sequence[Cell]) -> Moments:
    """Return the moments of a subject's score. At least one cell is needed."""
    means, clusters = [cell.mean for cell in cells], [cell.cluster for cell in cells]
    return moments_of_means(means, clusters, single=single_pass_or_fail(cells))


def moments_of_means(
    means: Sequence[float], clusters: Sequence[str | None] | None = None, *, single: bool = False
) -> Moments:
    """Return the moments of a mean over cases, given the mean of each case."""
    groups = grouped(means, clusters)
    middle = fmean(means)
    spread = spread_of([len(group) for group in groups], [fsum(v - middle for v in group) for group in groups])
    return Moments(
        cases=len(means),
        units=len(groups),
        mean=middle,
        variance=spread.variance,
        informative=min(sum(max(group) > 0 for group in groups), sum(min(group) < 1 for group in groups)),
        freedom=spread.freedom,
        skewness=spread.skewness,
        values=tuple(means) if len(groups) == len(means) else (),
        single=single,
    )


def grouped(values: Sequence[float], clusters: Sequence[str | None] | None) -> list[list[float]]:
    """Group values by cluster. A value without a cluster forms its own group."""
    if clusters is None:
        return [[value] for value in values]
    groups: dict[str | int, list[float]] = {}
    for place, (value, cluster) in enumerate(zip(values, clusters, strict=True)):
        groups.setdefault(place if cluster is None else cluster, []).append(value)
    return list(groups.values())


class Spread(NamedTuple):
    """The variance of a mean, its degrees of freedom, and the skewness of the units."""

    variance: float
    freedom: float
    skewness: float


def spread_of(sizes: Sequence[int], sums: Sequence[float]) -> Spread:
    """Return the spread of the mean over cases, robust to correlation within units.

    `sizes` has the number of cases per unit, `sums` the sums of their deviations from the mean. The
    variance is CR2 (Bell and McCaffrey, Survey Methodology 28, 2002): unbiased for independent
    cases, even in unequal clusters. Without clusters, it is s²/n.
    """
    cases, units = sum(sizes), len(sizes)
    if units < 2:
        return Spread(0.0, 0.0, 0.0)
    variance = fsum(part * part / (1 - size / cases) for part, size in zip(sums, sizes, strict=True)) / cases**2
    freedom = units - 1.0 if len(set(sizes)) == 1 else satterthwaite([size / cases for size in sizes])
    second, third = (fsum(part**power for part in sums) / units for power in (2, 3))
    return Spread(variance, freedom, third / second**1.5 if second > ROUNDING else 0.0)


def satterthwaite(shares: Sequence[float]) -> float:
    """Return the degrees of freedom of CR2, given each unit's share of all cases.

    F. E. Satterthwaite, Biometrics Bulletin 2 (1946): the smaller value of 2 E(V)²/Var(V) for
    independent cases, and for units whose cases are all alike. With Zipf's law for sizes, the first
    alone covers only 87 to 92 %. Twenty equal clusters have 19 degrees of freedom either way.
    """
    odds = [share / (1 - share) for share in shares]
    first, second = (fsum(s * odd**power for s, odd in zip(shares, odds, strict=True)) for power in (1, 2))
    return min(1 / (first + first * first - second), _freedom_if_alike(shares, odds))


def _freedom_if_alike(shares: Sequence[float], odds: Sequence[float]) -> float:
    """Return tr(A)²/tr(A²), where V = u'Au for the means u of the units, without building the matrix A."""
    weights = [share * odd for share, odd in zip(shares, odds, strict=True)]

    def total(weight: int, share: int) -> float:
        return fsum(w**weight * s**share for w, s in zip(weights, shares, strict=True))

    whole, cross, square = total(1, 0), total(1, 1), total(0, 2)
    trace = whole - 2 * cross + whole * square
    of_square = total(2, 0) - 4 * total(2, 1) + 2 * whole * total(1, 2)
    of_square += 2 * cross**2 + 2 * square * total(2, 0) + (whole * square) ** 2 - 4 * whole * cross * square
    return trace**2 / of_square

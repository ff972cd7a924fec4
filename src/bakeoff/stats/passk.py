"""pass@k (one of k rounds passes) and pass^k (all k pass), estimated without bias from n ≥ k rounds of each case."""

from collections.abc import Sequence
from math import comb
from statistics import fmean
from typing import TYPE_CHECKING, Any

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import UsageError
from bakeoff.stats.cells import Cells, grouped
from bakeoff.stats.intervals import CONFIDENCE, Interval, rule_of_three

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]

DRAWS = 10_000
_SAME = 1e-12  # means closer than this differ by rounding only


class PassK(FrozenModel):
    """An estimate; `name` is `pass@3` or `pass^3`."""

    name: str
    value: float
    cases: int
    interval: Interval | None


def pass_at_k(cells: Cells, k: int, *, seed: int = 0, draws: int = DRAWS, confidence: float = CONFIDENCE) -> PassK:
    """Return the mean over cases of 1 − C(n−c, k)/C(n, k) (Chen et al., arXiv:2107.03374, eq. 1)."""
    name = f"pass@{k}"
    _check(name, cells, k)
    values = [1 - comb(cell.rounds - round(cell.total), k) / comb(cell.rounds, k) for cell in cells.values()]
    return _estimate(name, values, cells, seed, draws, confidence)


def pass_hat_k(cells: Cells, k: int, *, seed: int = 0, draws: int = DRAWS, confidence: float = CONFIDENCE) -> PassK:
    """Return the mean over cases of C(c, k)/C(n, k) (Yao et al., τ-bench, arXiv:2406.12045, §4)."""
    name = f"pass^{k}"
    _check(name, cells, k)
    values = [comb(round(cell.total), k) / comb(cell.rounds, k) for cell in cells.values()]
    return _estimate(name, values, cells, seed, draws, confidence)


def bootstrap_interval(
    values: Sequence[float],
    clusters: Sequence[str | None] | None = None,
    *,
    seed: int = 0,
    draws: int = DRAWS,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """Return the percentile interval of a mean, drawing whole cases or clusters (Efron, Ann. Statist. 7, 1979)."""
    groups = grouped(values, clusters)
    if len(groups) < 2:
        return None
    import numpy as np

    tail = (1 - confidence) / 2
    low, high = np.quantile(_drawn_means(groups, seed, draws), [tail, 1 - tail])
    if high - low < _SAME:  # that no draw differs from another does not show that none could
        return rule_of_three(fmean(values), len(groups), confidence=confidence)
    kind = "clusters" if len(groups) < len(values) else "cases"
    return Interval(low=float(low), high=float(high), method=f"bootstrap over {kind} ({draws:,} draws, seed {seed})")


def _drawn_means(groups: Sequence[Sequence[float]], seed: int, draws: int) -> "Floats":
    """Draw how often each distinct result occurs: cases with the same result are interchangeable."""
    import numpy as np

    sums = np.array([(sum(group), len(group)) for group in groups], dtype=float)
    distinct, counts = np.unique(sums, axis=0, return_counts=True)
    often = np.random.default_rng(seed).multinomial(len(groups), counts / len(groups), size=draws)
    totals = often @ distinct
    means: Floats = totals[:, 0] / totals[:, 1]
    return means


def _estimate(name: str, values: Sequence[float], cells: Cells, seed: int, draws: int, confidence: float) -> PassK:
    clusters = [cell.cluster for cell in cells.values()]
    interval = bootstrap_interval(values, clusters, seed=seed, draws=draws, confidence=confidence)
    return PassK(name=name, value=fmean(values), cases=len(values), interval=interval)


def _check(name: str, cells: Cells, k: int) -> None:
    if k < 1:
        raise UsageError(f"{name}: k is {k}; it must be at least 1")
    if not cells:
        raise UsageError(f"{name}: no case was scored")
    for key, cell in cells.items():
        if cell.rounds < k:
            raise UsageError(f"{name}: case {key.id!r} has {cell.rounds} scored rounds, fewer than {k}: add rounds")
        if not cell.binary:
            raise UsageError(f"{name}: case {key.id!r} has scores between 0 and 1: give passes and failures")

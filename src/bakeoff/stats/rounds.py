"""Summarise repeated rounds of a case: pass@k, pass^k, and how often results contradict."""

from collections.abc import Callable, Sequence
from math import comb

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import UsageError
from bakeoff.stats.cells import Cell, Cells, moments_of_means, single_pass_or_fail
from bakeoff.stats.comparison import pairs_of
from bakeoff.stats.intervals import Interval, interval_of


class PassK(FrozenModel):
    """An estimate of `pass@k` or `pass^k`. `name` is, for example, `pass@3`."""

    name: str
    value: float
    cases: int
    interval: Interval | None


class FlipRate(FrozenModel):
    """The probability that two rounds of a case disagree, averaged over cases."""

    rate: float
    cases: int
    interval: Interval | None


def pass_at_k(cells: Cells, k: int) -> PassK:
    """Estimate the probability that one of k rounds passes, without bias from n ≥ k rounds of each case.

    This is the mean over cases of 1 − C(n−c, k)/C(n, k) (Chen et al., arXiv:2107.03374, eq. 1).
    """

    def one_passes(cell: Cell) -> float:
        return 1 - comb(cell.rounds - round(cell.total), k) / comb(cell.rounds, k)

    return _estimate(f"pass@{k}", cells, k, one_passes)


def pass_hat_k(cells: Cells, k: int) -> PassK:
    """Estimate the probability that all of k rounds pass, without bias from n ≥ k rounds of each case.

    This is the mean over cases of C(c, k)/C(n, k) (Yao et al., τ-bench, arXiv:2406.12045, §4).
    """
    return _estimate(f"pass^{k}", cells, k, lambda cell: comb(round(cell.total), k) / comb(cell.rounds, k))


def _estimate(name: str, cells: Cells, k: int, chance: Callable[[Cell], float]) -> PassK:
    """Average the chances of all cases. Raise `UsageError` for fewer than k decided rounds."""
    if k < 1:
        raise UsageError(f"{name}: k is {k}; it must be at least 1")
    if not cells:
        raise UsageError(f"{name}: no case was scored")
    for key, cell in cells.items():
        if cell.rounds < k:
            raise UsageError(f"{name}: case {key.id!r} has {cell.rounds} scored rounds, fewer than {k}: add rounds")
    _need_passes(name, cells)
    clusters = [cell.cluster for cell in cells.values()]
    moments = moments_of_means(list(map(chance, cells.values())), clusters, single=single_pass_or_fail(cells.values()))
    return PassK(name=name, value=moments.mean, cases=len(cells), interval=interval_of(moments))


def flip_rate(first: Cells, second: Cells) -> FlipRate | None:
    """Compare each round of one run with each of the other; None if they share no case."""
    _need_passes("flip rate", first, second)
    before, after = pairs_of(first, second)
    pairs = list(zip(before, after, strict=True))
    rates = [one.mean * (1 - other.mean) + other.mean * (1 - one.mean) for one, other in pairs]
    clusters = [other.cluster or one.cluster for one, other in pairs]
    return _flip_rate(rates, clusters, single=single_pass_or_fail([*before, *after]))


def flip_rate_within(cells: Cells) -> FlipRate | None:
    """Compare all pairs of rounds in a case, as 2c(n−c)/(n(n−1)); None if no case has two."""
    _need_passes("flip rate", cells)
    tried = [cell for cell in cells.values() if cell.rounds > 1]
    rates = [2 * cell.total * (cell.rounds - cell.total) / (cell.rounds * (cell.rounds - 1)) for cell in tried]
    return _flip_rate(rates, [cell.cluster for cell in tried], single=False)


def _flip_rate(rates: Sequence[float], clusters: Sequence[str | None], *, single: bool) -> FlipRate | None:
    if not rates:
        return None
    moments = moments_of_means(rates, clusters, single=single)
    return FlipRate(rate=moments.mean, cases=len(rates), interval=interval_of(moments))


def _need_passes(name: str, *runs: Cells) -> None:
    graded = next((key.id for cells in runs for key, cell in cells.items() if not cell.binary), None)
    if graded is not None:
        raise UsageError(f"{name}: case {graded!r} has scores between 0 and 1: give passes and failures")

"""How often one configuration contradicts itself, as `bakeoff selfcheck` reports it."""

from collections.abc import Sequence

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import UsageError
from bakeoff.stats.cells import Cells, moments_of_means, single_pass_or_fail
from bakeoff.stats.comparison import align
from bakeoff.stats.intervals import Interval, interval_of


class FlipRate(FrozenModel):
    """The probability that two rounds of one case disagree, averaged over cases."""

    rate: float
    cases: int
    interval: Interval | None


def flip_rate(first: Cells, second: Cells) -> FlipRate | None:
    """Compare every round of one run with every round of the other; None if they share no case."""
    matched = align(first, second).matched
    pairs = [(first[key], second[key]) for key in matched]
    _need_passes(first, second)
    rates = [one.mean * (1 - other.mean) + other.mean * (1 - one.mean) for one, other in pairs]
    single = single_pass_or_fail([cell for pair in pairs for cell in pair])
    return _rate(rates, [other.cluster or one.cluster for one, other in pairs], single=single)


def flip_rate_within(cells: Cells) -> FlipRate | None:
    """Compare every two rounds of a case, 2c(n−c)/(n(n−1)); None if no case has two."""
    _need_passes(cells)
    tried = [cell for cell in cells.values() if cell.rounds > 1]
    rates = [2 * cell.total * (cell.rounds - cell.total) / (cell.rounds * (cell.rounds - 1)) for cell in tried]
    return _rate(rates, [cell.cluster for cell in tried], single=False)


def _rate(rates: Sequence[float], clusters: Sequence[str | None], *, single: bool) -> FlipRate | None:
    if not rates:
        return None
    moments = moments_of_means(rates, clusters, single=single)
    return FlipRate(rate=moments.mean, cases=len(rates), interval=interval_of(moments))


def _need_passes(*runs: Cells) -> None:
    graded = next((key.id for cells in runs for key, cell in cells.items() if not cell.binary), None)
    if graded is not None:
        raise UsageError(f"flip rate: case {graded!r} has scores between 0 and 1: give passes and failures")

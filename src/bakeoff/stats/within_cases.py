"""Test whether a candidate does worse on exactly these cases. Cases are strata, and their rounds are replicates.

If nothing has changed, each round of a case could as well have come from the other arm. The test therefore exchanges
rounds between the arms within every case, and asks how often the candidate would score as low as it did. It says
nothing about other cases: `stats.comparison` does that. For rounds that passed or failed it is the exact conditional
test of Mantel and Haenszel; with one round in each arm it is McNemar's, one-sided.

`series_change` looks at a series of runs. Look t may spend alpha/(t(t+1)), divided by the number of windows that end
there, so that the chance of any false alarm, however many looks there will be, is at most alpha (a union bound, which
holds although all looks share a baseline).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb, log2, sqrt
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, Any, TypeVar

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import visible
from bakeoff.stats.cells import Cell, Cells
from bakeoff.stats.comparison import holm
from bakeoff.stats.differences import UNCHANGED
from bakeoff.stats.intervals import ALPHA

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]

Key = TypeVar("Key")
Pairs = Mapping[Key, tuple[Cell, Cell]]
"""Baseline and candidate of each case."""
_Series = Sequence[Sequence[Cell]]

_DRAWS = 19_999
_MIN_DRAWS = 999
_MAX_VALUES_DRAWN = 20_000_000
_MAX_LENGTH = 4_000  # of a distribution, before its ends are cut
_NEGLIGIBLE = 1e-18
_SLACK = 1e-9
_MIN_P_VALUE = 1e-15
_FOUND = 0.95  # of such drops by the normal distribution, which finds a little more than the exact test
MAX_DELAY = 100
_MAX_NAMED = 5


class WithinChange(FrozenModel):
    """The cases that two runs share: how many got worse or better, and how likely chance does that."""

    cases: int
    worse: int
    better: int
    p_value: float  # one-sided: that of a candidate as low as this
    broken: tuple[str, ...] = ()  # cases that are worse each by itself, after Holm's method over all cases
    shown: bool = False  # a loss, by the level of the gate

    @property
    def one_way(self) -> bool:
        """Tell whether every case that changed got worse."""
        return self.worse > 0 and not self.better

    @property
    def sentence(self) -> str:
        """Say what became of these cases, without a claim about others."""
        if not self.worse and not self.better:
            return f"on these cases: none of {self.cases:,} changed"
        counts = f"{self.worse:,} of {self.cases:,} got worse, {f'{self.better:,}' if self.better else 'none'} better"
        named = ", ".join(visible(name, 80) for name in self.broken[:_MAX_NAMED])
        more = ", …" if len(self.broken) > _MAX_NAMED else ""
        broken = f"; certainly worse by itself: {named}{more}" if named else ""
        if self.shown:
            chance = f"< {_MIN_P_VALUE}" if self.p_value <= _MIN_P_VALUE else f"= {self.p_value:.2g}"
            return f"worse on these cases: {counts}, which chance does with p {chance}{broken}"
        if self.one_way and not broken:
            return f"on these cases: {counts}: too few cases to call it"
        return f"on these cases: {counts}: no loss over all of them shown (p = {self.p_value:.2g}){broken}"


def change_within(pairs: "Pairs[str]", *, alpha: float = ALPHA) -> WithinChange:
    """Return how many cases got worse, how likely chance does that, and which cases are worse each by itself.

    The chance that any case is called broken although nothing has changed is at most `alpha`.
    """
    moved = {name: new.mean - old.mean for name, (old, new) in pairs.items()}
    fallen = [name for name, difference in moved.items() if difference < -UNCHANGED]
    chances = {name: worse_p_value([pairs[name]]) for name in fallen}
    # Cases that did not fall have a p-value of 1/2 or more; they count in Holm's method all the same.
    adjusted = holm([*chances.values(), *[1.0] * (len(pairs) - len(fallen))])
    return WithinChange(
        cases=len(pairs),
        worse=len(fallen),
        better=sum(difference > UNCHANGED for difference in moved.values()),
        p_value=worse_p_value(list(pairs.values())) if fallen else 1.0,
        broken=tuple(name for name, chance in zip(chances, adjusted, strict=False) if chance <= alpha),
    )


def worse_p_value(pairs: Sequence[tuple[Cell, Cell]], *, seed: int = 0) -> float:
    """Return the chance that rounds shared out at random within each case give the candidate a sum as low as it has.

    Exact where every round passed or failed. Otherwise shares are drawn, and counted so that the result is never too
    small (Phipson and Smyth, Stat. Appl. Genet. Mol. Biol. 9, 2010). Where that is too coarse, an upper bound is used.
    """
    if all(old.binary and new.binary for old, new in pairs):
        return max(_MIN_P_VALUE, _exact_tail(pairs))
    size = sum(old.rounds + new.rounds for old, new in pairs)
    draws = min(_DRAWS, max(_MIN_DRAWS, _MAX_VALUES_DRAWN // size))
    bound = _tail_bound(pairs)
    return bound if bound < 1 / (draws + 1) else _drawn_tail(pairs, draws, seed)


def _tail_bound(pairs: Sequence[tuple[Cell, Cell]]) -> float:
    """Return an upper bound of the chance: Chernoff's, with rounds drawn with replacement.

    Drawing without replacement scatters less (Hoeffding, J. American Statistical Association 58, 1963, theorem 4).
    """
    import numpy as np

    tilts = np.geomspace(0.01, 100, 81)
    exponents = tilts * sum(new.total for _, new in pairs)
    for old, new in pairs:
        values = np.array([*old.scores, *new.scores])
        exponents += new.rounds * np.log(np.exp(-tilts[:, np.newaxis] * values).mean(axis=1))
    return float(np.clip(np.exp(min(0.0, exponents.min())), _MIN_P_VALUE, 1.0))


def _exact_tail(pairs: Sequence[tuple[Cell, Cell]]) -> float:
    """Convolve the hypergeometric distributions of the passes that each case gives to the candidate."""
    import numpy as np

    tables = Counter((old.rounds, new.rounds, round(old.total + new.total)) for old, new in pairs)
    low, chances = 0, np.ones(1)  # the chances of `low` passes and more
    for (before, after, passed), count in tables.items():
        least = max(0, passed - before)
        taken, whole = range(least, min(passed, after) + 1), comb(before + after, passed)
        part = np.array([comb(after, take) * comb(before, passed - take) / whole for take in taken])
        low, chances = _convolved((low, chances), _power(least, part, count))
    seen = round(sum(new.total for _, new in pairs))
    return float(chances[: max(0, seen - low + 1)].sum())


def _power(low: int, chances: "Floats", count: int) -> "tuple[int, Floats]":
    """Return the distribution of the sum of so many equal ones."""
    import numpy as np

    found: tuple[int, Floats] = (0, np.ones(1))
    doubled = low, chances
    while count:
        if count & 1:
            found = _convolved(found, doubled)
        count >>= 1
        if count:
            doubled = _convolved(doubled, doubled)
    return found


def _convolved(one: "tuple[int, Floats]", other: "tuple[int, Floats]") -> "tuple[int, Floats]":
    import numpy as np

    low, chances = one[0] + other[0], np.convolve(one[1], other[1])
    if len(chances) > _MAX_LENGTH:
        kept = np.flatnonzero(chances > _NEGLIGIBLE)
        low, chances = low + int(kept[0]), chances[kept[0] : kept[-1] + 1]
    return low, chances


def _drawn_tail(pairs: Sequence[tuple[Cell, Cell]], draws: int, seed: int) -> float:
    import numpy as np

    random = np.random.default_rng(seed)
    drawn = np.zeros(draws)
    for old, new in pairs:
        values = np.array([*old.scores, *new.scores])
        if values.max() - values.min() <= _SLACK:
            drawn += new.total
            continue
        taken = random.random((draws, len(values))).argsort(axis=1)[:, : new.rounds]
        drawn += values[taken].sum(axis=1)
    seen = sum(new.total for _, new in pairs)
    return float((np.count_nonzero(drawn <= seen + _SLACK) + 1) / (draws + 1))


class SeriesChange(FrozenModel):
    """The loss that a series of runs shows against its first one, if any. Run 0 is the baseline."""

    looks: int  # runs after the baseline
    cases: int  # that all runs have
    found_at: int | None = None  # the run at which a loss was shown first
    since: int | None = None  # the first of the runs that are worse
    difference: float | None = None  # of these runs, from those before them
    p_value: float | None = None
    spent: float | None = None  # the p-value that was needed
    recovered_at: int | None = None  # the first later run that has regained at least half of the loss
    recovered: tuple[tuple[int, int], ...] = ()  # `since` and `recovered_at` of all losses that were regained

    @property
    def worse(self) -> bool:
        """Tell whether the series got worse and the last run still is."""
        return self.found_at is not None and self.recovered_at is None


def series_change(runs: Sequence[Cells], *, alpha: float = ALPHA) -> SeriesChange:
    """Look after every run for a loss against the runs before, at one error rate for all looks.

    At each look the last 1, 2, 4, … runs are compared with all runs before them, on the cases that all runs have. A
    loss stands until a run has regained half of it. The runs of the loss are then left out, so that later looks do not
    find it again; this changes nothing before the first alarm, and so not its chance.

    Args:
        runs: the baseline, then all later runs in order.
        alpha: the chance of any false alarm, over all looks.
    """
    import numpy as np

    shared = [key for key in runs[0] if all(key in run for run in runs)]
    series = [[run[key] for key in shared] for run in runs]
    result = SeriesChange(looks=len(runs) - 1, cases=len(shared))
    if not shared:
        return result
    sums = np.array([[(cell.rounds, cell.total, cell.squares) for cell in run] for run in series])
    kept = [0]
    for look in range(1, len(series)):
        kept.append(look)
        if result.worse:
            assert result.since is not None
            assert result.difference is not None
            before = [series[place] for place in kept if place < result.since]
            if mean_of(series[look]) < mean_of(_pooled(before)) + result.difference / 2:
                continue
            kept = [place for place in kept if place < result.since or place == look]
            recovered = (*result.recovered, (result.since, look))
            result = result.model_copy(update={"recovered_at": look, "recovered": recovered})
        if (found := _loss_at(series, sums, kept, alpha)) is not None:
            result = SeriesChange(looks=result.looks, cases=result.cases, recovered=result.recovered, **found)
    return result


def _loss_at(series: _Series, sums: "Floats", kept: Sequence[int], alpha: float) -> dict[str, Any] | None:
    """Return the loss of the shortest window that shows one, unless the last run has regained half of it."""
    level, last = spending(kept[-1], alpha), series[kept[-1]]
    for window in _windows(len(kept) - 1):
        if not _noticeable(sums[kept[:-window]].sum(axis=0), sums[kept].sum(axis=0)):
            continue
        before, after = (_pooled([series[place] for place in part]) for part in (kept[:-window], kept[-window:]))
        chance = worse_p_value(list(zip(before, after, strict=True)))
        difference = mean_of(after) - mean_of(before)
        if chance <= level and mean_of(last) < mean_of(before) + difference / 2:
            where = {"found_at": kept[-1], "since": kept[-window]}
            return {**where, "difference": difference, "p_value": chance, "spent": level}
    return None


def _noticeable(before: "Floats", whole: "Floats") -> bool:
    """Tell whether the later runs score more than a standard error below chance: no test calls less a loss.

    Both have the sums of rounds, scores and squares of each case: of the earlier runs, and of all.
    """
    import numpy as np

    rounds, total, squares = whole.T
    later, mean = rounds - before[:, 0], total / rounds
    variance = later * before[:, 0] / (rounds - 1) * np.maximum(0, squares / rounds - mean**2)
    return bool((total - before[:, 1]).sum() < (later * mean).sum() - sqrt(variance.sum()))


def spending(look: int, alpha: float = ALPHA) -> float:
    """Return the level of each window that ends at a look; all looks and windows together spend at most alpha."""
    return alpha / (look * (look + 1) * len(_windows(look)))


def _windows(look: int) -> list[int]:
    return [2**power for power in range(int(log2(look)) + 1)]


def delay_of(drop: float, runs: Sequence[Cells], *, alpha: float = ALPHA) -> int | None:
    """Return after how many further runs a drop in the mean score is found with probability 0.9; None: not within 100.

    The drop begins with the next run, is spread evenly over the cases, and each run has as many rounds as the last.
    The noise is that of the rounds of a case, over all runs so far, or that of the drop itself if it has more.
    """
    shared = [key for key in runs[0] if all(key in run for run in runs)]
    if not shared:
        return None
    pooled = _pooled([[run[key] for key in shared] for run in runs])
    score, known = mean_of(pooled), [cell.variance for cell in pooled if cell.variance is not None]
    noise = max(fmean(known) if known else score * (1 - score), drop * (1 - drop)) / len(shared)
    past, each = fmean(cell.rounds for cell in pooled), fmean(runs[-1][key].rounds for key in shared)
    for delay in range(1, MAX_DELAY + 1):
        window = _windows(delay)[-1] * each
        before = past + delay * each - window  # with rounds after the drop, if the window does not hold them all
        needed = NormalDist().inv_cdf(1 - spending(len(runs) - 1 + delay, alpha)) + NormalDist().inv_cdf(_FOUND)
        if drop * past / before >= needed * sqrt(noise * (1 / window + 1 / before)):
            return delay
    return None


def _pooled(runs: _Series) -> list[Cell]:
    """Return each case with the rounds of all these runs."""
    return [Cell.joined(cells) for cells in zip(*runs, strict=True)]


def mean_of(cells: Sequence[Cell]) -> float:
    """Return the mean over cases of the mean over rounds."""
    return fmean(cell.mean for cell in cells)

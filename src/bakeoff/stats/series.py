"""Check after every run of a series whether it got worse than its first run, and since when.

Each look compares a run with all earlier runs, by `worse_p_value`. Without a change, these p-values
are independent, because each holds given the sum of the runs (V. Vovk, Statistical Science 36,
2021). Their normal quantiles are then at most standard normal. Every look bets on a quantile above
0, which multiplies the capital by exp(tilt × quantile − tilt²/2), on average by 1. So the capital
of an unchanged series rarely gets large (Ville's inequality, as in `stats.sequential`). Part of the
capital starts betting at each run, so that losses are found whenever they begin.
"""

from collections.abc import Sequence
from math import exp, log, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Any

from bakeoff._kernel.model import FrozenModel
from bakeoff.stats.cells import Cell, Cells
from bakeoff.stats.intervals import ALPHA
from bakeoff.stats.within_cases import worse_p_value

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]

_Series = Sequence[Sequence[Cell]]

_TILTS = (1.0, 2.5)
"""The losses, in standard errors of one look, that the bets suit best; each gets half of the capital. Losses half as
large are found nearly as soon. A single tilt finds either slow or sudden losses late, and further tilts leave less
capital for each.
"""

_ENOUGH = 0.45
"""The capital at which a loss is shown, times alpha. By Ville's inequality 1 would do; but looks come one by one, so
that the capital jumps over the limit, and of 100,000 simulated series of 400 independent normal quantiles only alpha
reach 0.40 (alpha from 0.5 to 5 %)."""

_MAX_SHARED_OUT = 999  # draws for each look at graded scores
MAX_DELAY = 100
_FOUND = 0.95  # of simulated drops; noise is estimated, so 0.9 of real ones
_DRAWS = 1_000


class SeriesChange(FrozenModel):
    """A loss in a series of runs compared with its first run, if any. Run 0 is the baseline."""

    looks: int  # number of runs after the baseline
    cases: int  # number of cases in all runs
    found_at: int | None = None  # the first run at which a loss was detected
    since: int | None = None  # the first of the runs that are worse
    difference: float | None = None  # mean score of these runs minus that of earlier runs
    p_value: float | None = None  # adjusted for all looks
    recovered_at: int | None = None  # the first later run that regained at least half of it
    recovered: tuple[tuple[int, int], ...] = ()  # `since` and `recovered_at` of earlier losses

    @property
    def worse(self) -> bool:
        """Return True if the series got worse and has not recovered."""
        return self.found_at is not None and self.recovered_at is None


def series_change(runs: Sequence[Cells], *, alpha: float = ALPHA) -> SeriesChange:
    """Check after every run for a loss against earlier runs, with one error rate for all looks.

    Only cases in all runs count. A loss lasts until a run has regained half of it. Its runs are
    then left out and betting restarts, so that later looks do not find it again.

    Args:
        runs: the baseline, then all later runs in order.
        alpha: the maximum chance of any false alarm, over all looks.
    """
    return _follow(_shared(runs), alpha)[0]


def _shared(runs: Sequence[Cells]) -> list[list[Cell]]:
    shared = [key for key in runs[0] if all(key in run for run in runs)]
    return [[run[key] for key in shared] for run in runs]


def _follow(series: _Series, alpha: float) -> "tuple[SeriesChange, _Capital]":
    from scipy.special import ndtri

    result = SeriesChange(looks=len(series) - 1, cases=len(series[0]))
    kept, past, bets = [0], list(series[0]), _Capital()  # `past` pools the kept runs
    for look, run in enumerate(series[1:] if past else (), 1):
        if not result.worse:
            bets.add(-ndtri(worse_p_value(list(zip(past, run, strict=True)), draws=_MAX_SHARED_OUT, seed=look)))
        elif mean_of(run) < mean_of(past) + (result.difference or 0.0) / 2:
            continue
        else:
            recovered = (*result.recovered, (result.since or 0, look))
            result = result.model_copy(update={"recovered_at": look, "recovered": recovered})
        kept, past = [*kept, look], pooled([past, run])
        if bets.total >= log(_ENOUGH / alpha):
            length = bets.best_window()
            kept, worse = kept[:-length], pooled([series[place] for place in kept[-length:]])
            past = pooled([series[place] for place in kept])
            update = {"found_at": look, "since": look - length + 1, "difference": mean_of(worse) - mean_of(past)}
            result = result.model_copy(update={**update, "p_value": _ENOUGH * exp(-bets.total), "recovered_at": None})
            bets = _Capital()
    return result, bets


class _Capital:
    """The log capital for each tilt, of one or many series. Run t adds a share of 1/(t(t+1))."""

    def __init__(self) -> None:
        import numpy as np

        self._parts = np.full(len(_TILTS), -np.inf)
        self._gains: list[Floats] = []

    def add(self, quantile: "Floats | float") -> None:
        """Add a look at each series, given the normal quantile of its p-value."""
        import numpy as np

        tilts = np.array(_TILTS)
        self._gains.append(tilts * np.asarray(quantile)[..., np.newaxis] - tilts**2 / 2)
        looks = len(self._gains)
        self._parts = np.logaddexp(self._parts, -log(looks * (looks + 1) * len(_TILTS))) + self._gains[-1]

    @property
    def total(self) -> Any:
        """Return the log of the total capital, including the part not yet bet."""
        import numpy as np

        return np.logaddexp(np.logaddexp.reduce(self._parts, axis=-1), -log(len(self._gains) + 1))

    def best_window(self) -> int:
        """Return how many of the last looks gained most, since the loss probably began there."""
        import numpy as np

        return 1 + int(np.cumsum(self._gains[::-1], axis=0).max(axis=1).argmax())


def delay_of(drop: float, runs: Sequence[Cells], *, alpha: float = ALPHA) -> int | None:
    """Return after how many runs a drop in the mean is found with probability 0.9; None above 100.

    The drop is assumed to begin with the next run and to affect all cases equally, with as many
    rounds as in the last run. The noise is that of rounds in all runs so far, or that of the drop
    if larger. Future runs are drawn from the normal distribution with a fixed seed.
    """
    import numpy as np

    series = _shared(runs)
    if not series[0]:
        return None
    capital = _follow(series, alpha)[1]
    cases = pooled(series)
    score, known = mean_of(cases), [cell.variance for cell in cases if cell.variance is not None]
    noise = max(fmean(known) if known else score * (1 - score), drop * (1 - drop)) / len(cases)
    past, each = fmean(cell.rounds for cell in cases), fmean(cell.rounds for cell in series[-1])
    random, found = np.random.default_rng(0), np.zeros(_DRAWS, dtype=bool)
    for delay in range(1, MAX_DELAY + 1):
        before = past + (delay - 1) * each  # includes runs after the drop
        # The p-value includes the whole chance of the observed score, half a round too much.
        apart = drop * past / before - 0.5 / each / len(cases)
        capital.add(apart / sqrt(noise * (1 / each + 1 / before)) + random.normal(size=_DRAWS))
        found |= capital.total >= log(_ENOUGH / alpha)
        if found.mean() >= _FOUND:
            return delay
    return None


def pooled(runs: _Series) -> list[Cell]:
    """Return each case with its rounds from all runs."""
    return [Cell.joined(cells) for cells in zip(*runs, strict=True)]


def mean_of(cells: Sequence[Cell]) -> float:
    """Return the mean of the case means."""
    return fmean(cell.mean for cell in cells)

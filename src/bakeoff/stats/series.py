"""Look at a series of runs after every one: is it worse than its first run, and since when?

Each look compares a run with all runs before it, by `worse_p_value`. If nothing has changed, these p-values are
independent of each other, however scores are distributed, because each holds whatever the sum of the runs is (V. Vovk,
Statistical Science 36, 2021). Their normal quantiles are then at most standard normal ones, and every look bets on a
quantile above 0: a bet multiplies the capital by exp(tilt × quantile − tilt²/2), by 1 on average. So the capital of an
unchanged series rarely ever gets large (Ville's inequality, as in `stats.sequential`). A part of the capital begins to
bet with each run, so that a loss is found whenever it begins.
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

_MAX_SHARED_OUT = 999  # draws of each look at graded scores
MAX_DELAY = 100
_FOUND = 0.95  # of the simulated drops, so that 0.9 of real ones are, whose noise is estimated
_DRAWS = 1_000


class SeriesChange(FrozenModel):
    """The loss that a series of runs shows against its first one, if any. Run 0 is the baseline."""

    looks: int  # runs after the baseline
    cases: int  # that all runs have
    found_at: int | None = None  # the run at which a loss was shown first
    since: int | None = None  # the first of the runs that are worse
    difference: float | None = None  # of these runs, from those before them
    p_value: float | None = None  # over all looks
    recovered_at: int | None = None  # the first later run that has regained at least half of the loss
    recovered: tuple[tuple[int, int], ...] = ()  # `since` and `recovered_at` of all losses that were regained

    @property
    def worse(self) -> bool:
        """Return True if the series got worse and the last run still is."""
        return self.found_at is not None and self.recovered_at is None


def series_change(runs: Sequence[Cells], *, alpha: float = ALPHA) -> SeriesChange:
    """Look after every run for a loss against the runs before, at one error rate for all looks.

    Only cases that all runs have count. A loss stands until a run has regained half of it. The runs of the loss are
    then left out and the bets begin anew, so that later looks do not find it again.

    Args:
        runs: the baseline, then all later runs in order.
        alpha: the chance of any false alarm, over all looks.
    """
    return _follow(_shared(runs), alpha)[0]


def _shared(runs: Sequence[Cells]) -> list[list[Cell]]:
    shared = [key for key in runs[0] if all(key in run for run in runs)]
    return [[run[key] for key in shared] for run in runs]


def _follow(series: _Series, alpha: float) -> "tuple[SeriesChange, _Capital]":
    from scipy.special import ndtri

    result = SeriesChange(looks=len(series) - 1, cases=len(series[0]))
    kept, past, bets = [0], list(series[0]), _Capital()  # `past` pools the runs that are kept
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
    """The logarithms of the capital of each tilt, for one series or for many simulated series at a time.

    The share 1/(t(t+1)) of the capital starts betting at run t.
    """

    def __init__(self) -> None:
        import numpy as np

        self._parts = np.full(len(_TILTS), -np.inf)
        self._gains: list[Floats] = []

    def add(self, quantile: "Floats | float") -> None:
        """Take the next look, or one of every simulated series: the normal quantile of its p-value."""
        import numpy as np

        tilts = np.array(_TILTS)
        self._gains.append(tilts * np.asarray(quantile)[..., np.newaxis] - tilts**2 / 2)
        looks = len(self._gains)
        self._parts = np.logaddexp(self._parts, -log(looks * (looks + 1) * len(_TILTS))) + self._gains[-1]

    @property
    def total(self) -> Any:
        """Return the logarithm of the whole capital, with what has not been bet yet."""
        import numpy as np

        return np.logaddexp(np.logaddexp.reduce(self._parts, axis=-1), -log(len(self._gains) + 1))

    def best_window(self) -> int:
        """Return how many of the last looks gained most: the loss probably began with the first of them."""
        import numpy as np

        return 1 + int(np.cumsum(self._gains[::-1], axis=0).max(axis=1).argmax())


def delay_of(drop: float, runs: Sequence[Cells], *, alpha: float = ALPHA) -> int | None:
    """Return after how many further runs a drop in the mean score is found with probability 0.9; None: not within 100.

    The drop begins with the next run, is spread evenly over the cases, and each run has as many rounds as the last.
    The noise is that of the rounds of a case, over all runs so far, or that of the drop itself if it has more. Further
    runs are drawn from the normal distribution, with a fixed seed.
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
        before = past + (delay - 1) * each  # of which only the first part is from before the drop
        # A p-value counts the whole chance of the score that was seen: half a round more than is fair.
        apart = drop * past / before - 0.5 / each / len(cases)
        capital.add(apart / sqrt(noise * (1 / each + 1 / before)) + random.normal(size=_DRAWS))
        found |= capital.total >= log(_ENOUGH / alpha)
        if found.mean() >= _FOUND:
            return delay
    return None


def pooled(runs: _Series) -> list[Cell]:
    """Return each case with the rounds of all these runs."""
    return [Cell.joined(cells) for cells in zip(*runs, strict=True)]


def mean_of(cells: Sequence[Cell]) -> float:
    """Return the mean over cases of the mean over rounds."""
    return fmean(cell.mean for cell in cells)

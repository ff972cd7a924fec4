"""Two samples of different cases. Weaker than pairs, and always labelled unpaired."""

from collections.abc import Sequence
from math import comb, hypot
from statistics import fmean

from bakeoff.stats.cells import Cell, single_pass_or_fail
from bakeoff.stats.intervals import Interval, score_interval, wilson
from bakeoff.stats.moments import Moments, moments_of
from bakeoff.stats.quantiles import t_two_sided


def newcombe(before: Sequence[Cell], after: Sequence[Cell], *, confidence: float) -> Interval | None:
    """The interval of a difference from those of its two parts; None where one of them is undefined.

    Newcombe, Statistics in Medicine 17 (1998) 873, method 10, for passes and failures; with other intervals in
    Wilson's place it is MOVER (Zou and Donner, Statistics in Medicine 27, 2008).
    """
    old, new = _part(before, confidence), _part(after, confidence)
    if old is None or new is None:
        return None
    was, is_now = fmean(cell.mean for cell in before), fmean(cell.mean for cell in after)
    return Interval(
        low=is_now - was - hypot(is_now - new.low, old.high - was),
        high=is_now - was + hypot(new.high - is_now, was - old.low),
        method="unpaired Newcombe",
    )


def unpaired_test(before: Sequence[Cell], after: Sequence[Cell]) -> tuple[str, float]:
    """The name of the test that two samples allow, and its two-sided p. Each must have two units or more."""
    old, new = moments_of(before), moments_of(after)
    if old.single and new.single and not old.clustered and not new.clustered:
        return "unpaired Fisher's exact test", _fisher(before, after)
    if old.constant and new.constant:
        return "unpaired exact label permutation", _two_constants(old, new)
    return "unpaired Welch's t", _welch(old, new)


def _part(cells: Sequence[Cell], confidence: float) -> Interval | None:
    moments = moments_of(cells)
    if moments.units < 2:
        return None
    if single_pass_or_fail(cells) and not moments.clustered:  # Wilson even where all passed, as Newcombe has it
        return wilson(moments.mean, moments.cases, confidence=confidence)
    return score_interval(cells, confidence=confidence)


def _fisher(before: Sequence[Cell], after: Sequence[Cell]) -> float:
    """R. A. Fisher, Journal of the Royal Statistical Society 85 (1922)."""
    from scipy.stats import fisher_exact

    table = [[sum(cell.total for cell in cells), sum(1 - cell.total for cell in cells)] for cells in (before, after)]
    return float(fisher_exact(table).pvalue)


def _welch(old: Moments, new: Moments) -> float:
    """B. L. Welch, Biometrika 34 (1947); the variances are clustered where cases are."""
    together = old.variance + new.variance
    freedom = together**2 / (old.variance**2 / (old.units - 1) + new.variance**2 / (new.units - 1))
    return t_two_sided((new.mean - old.mean) / together**0.5, freedom)


def _two_constants(old: Moments, new: Moments) -> float:
    """No spread on either side: how many ways of sharing out the units would part them as cleanly."""
    if old.mean == new.mean:
        return 1.0
    return min(1.0, 2 / comb(old.units + new.units, new.units))

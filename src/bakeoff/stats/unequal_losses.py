"""Find subjects that lost more trials than others: one that loses what it cannot solve has too good a score."""

from collections.abc import Mapping
from itertools import combinations

from bakeoff._kernel.model import FrozenModel
from bakeoff.stats.comparison import holm
from bakeoff.stats.gates import MAX_UNEQUAL, Losses, chance_of_losses
from bakeoff.stats.intervals import ALPHA


class UnequalLosses(FrozenModel):
    """Two subjects whose shares of lost trials differ by more than chance."""

    more: str  # the subject that lost more
    fewer: str
    more_lost: int
    more_trials: int
    fewer_lost: int
    fewer_trials: int
    p_value: float  # of Fisher's exact test, adjusted by Holm's method for all pairs


def unequal_losses(losses: Mapping[str, Losses], *, alpha: float = ALPHA) -> tuple[UnequalLosses, ...]:
    """Return the pairs whose shares differ by more than 1 point and by more than chance, the clearest first.

    Under the null hypothesis that all subjects lose trials alike, any pair is returned with a chance of at most alpha.
    """
    tried = {name: found for name, found in losses.items() if found.trials}
    if not any(found.lost for found in tried.values()):
        return ()
    known: dict[tuple[Losses, Losses], float] = {}  # many subjects lost none of as many trials
    pairs = [sorted(pair, key=lambda name: (-tried[name].share, name)) for pair in combinations(tried, 2)]
    for more, fewer in pairs:
        tables = (tried[more], tried[fewer])
        if tables not in known:
            known[tables] = chance_of_losses(*tables)
    chances = holm([known[tried[more], tried[fewer]] for more, fewer in pairs])
    found = [
        UnequalLosses(
            more=more,
            fewer=fewer,
            more_lost=tried[more].lost,
            more_trials=tried[more].trials,
            fewer_lost=tried[fewer].lost,
            fewer_trials=tried[fewer].trials,
            p_value=chance,
        )
        for (more, fewer), chance in zip(pairs, chances, strict=True)
        if chance < alpha and tried[more].share - tried[fewer].share > MAX_UNEQUAL
    ]
    return tuple(sorted(found, key=lambda pair: pair.p_value))

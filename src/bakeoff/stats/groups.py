"""Leaderboards without false ranks: subjects that cannot be told apart share a group.

Best first. Two subjects are told apart when their comparison, after Holm over all pairs, says so in the direction of
their scores; where only intervals are known, when these do not overlap. A range of neighbours is a group when its two
ends are not told apart, and then nobody inside it is: the rule of multiple range tests (Newman, Biometrika 31, 1939;
Keuls, Euphytica 1, 1952). Groups may overlap: a subject may be like both of its neighbours, though these differ.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

from bakeoff.frozen import Frozen
from bakeoff.stats.cells import Cells
from bakeoff.stats.comparison import Comparison, compare
from bakeoff.stats.gates import holm
from bakeoff.stats.intervals import Interval, score_interval
from bakeoff.stats.moments import moments_of
from bakeoff.stats.quantiles import ALPHA

Pair = tuple[str, str]


class Standing(Frozen):
    """One subject's place: any rank from `best` to `worst` fits the data. `groups` are numbers from 1 at the top."""

    subject: str
    score: float
    interval: Interval | None
    best: int
    worst: int
    groups: tuple[int, ...]


def leaderboard(subjects: Mapping[str, Cells], *, alpha: float = ALPHA, seed: int = 0) -> tuple[Standing, ...]:
    """Standings from every pairwise comparison; each subject needs at least one scored case."""
    scores = {
        name: (moments_of(list(cells.values())).mean, score_interval(list(cells.values())))
        for name, cells in subjects.items()
    }
    order = _best_first(scores)
    comparisons = {
        (upper, lower): compare(subjects[lower], subjects[upper], alpha=alpha, seed=seed)
        for upper, lower in combinations(order, 2)
    }
    return _standings(scores, order, _told_apart(comparisons))


def leaderboard_of_intervals(scores: Mapping[str, tuple[float, Interval | None]]) -> tuple[Standing, ...]:
    """Standings where nothing can be paired and only scores and intervals are known."""
    order = _best_first(scores)
    told_apart = set()
    for upper, lower in combinations(order, 2):
        high, low = scores[upper][1], scores[lower][1]
        if high is not None and low is not None and not high.overlaps(low):
            told_apart.add((upper, lower))
    return _standings(scores, order, told_apart)


def tied_groups(order: Sequence[str], told_apart: set[Pair]) -> tuple[tuple[str, ...], ...]:
    """The longest ranges of neighbours whose ends are not told apart; pairs are (better, worse)."""
    ends = [_last_like(order, first, told_apart) for first in range(len(order))]
    # A range that ends where the one before it does lies inside it.
    starts = [first for first in range(len(order)) if first == 0 or ends[first] > max(ends[:first])]
    return tuple(tuple(order[first : ends[first] + 1]) for first in starts)


def _last_like(order: Sequence[str], first: int, told_apart: set[Pair]) -> int:
    return max(last for last in range(first, len(order)) if (order[first], order[last]) not in told_apart)


def _told_apart(comparisons: Mapping[Pair, Comparison]) -> set[Pair]:
    tested = {pair: compared.p_value for pair, compared in comparisons.items() if compared.p_value is not None}
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
    return {pair for pair, chance in adjusted.items() if _clearly_better(comparisons[pair], chance)}


def _clearly_better(compared: Comparison, chance: float) -> bool:
    return chance <= compared.alpha and compared.interval is not None and compared.interval.low > 0


def _best_first(scores: Mapping[str, tuple[float, Interval | None]]) -> list[str]:
    return sorted(scores, key=lambda name: (-scores[name][0], name))


def _standings(
    scores: Mapping[str, tuple[float, Interval | None]], order: Sequence[str], told_apart: set[Pair]
) -> tuple[Standing, ...]:
    groups = tied_groups(order, told_apart)
    alike = {name: {other for group in groups if name in group for other in group} for name in order}
    return tuple(
        Standing(
            subject=name,
            score=scores[name][0],
            interval=scores[name][1],
            best=1 + min(order.index(other) for other in alike[name]),
            worst=1 + max(order.index(other) for other in alike[name]),
            groups=tuple(number for number, group in enumerate(groups, 1) if name in group),
        )
        for name in order
    )

"""Leaderboards without false ranks: subjects that cannot be told apart share a group.

The best subject comes first. Two subjects are told apart if their difference is significant, after
Holm's correction over all pairs, and agrees with their scores. Otherwise, and only then, they share
a group (like the letters of Piepho, J. Computational and Graphical Statistics 13, 2004). Groups may
overlap: a subject may be like two others that differ from each other. Uncompared subjects have no
group.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from bakeoff._kernel.model import FrozenModel
from bakeoff.stats.cells import CaseKey, Cells, moments_of, single_pass_or_fail
from bakeoff.stats.comparison import compare, holm, reversal_p_value
from bakeoff.stats.differences import Change, change_of, sign_flip_p_values, zero_p_value
from bakeoff.stats.intervals import ALPHA, Interval, score_interval

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Integers = np.ndarray[Any, np.dtype[np.int64]]
    Flags = np.ndarray[Any, np.dtype[np.bool_]]

Pair = tuple[str, str]
"""Two subjects, the better first."""

_Scores = Mapping[str, tuple[float, Interval | None]]
_AT_ONCE = 4_000_000  # differences held in memory at a time


class Standing(FrozenModel):
    """The possible ranks of a subject, from `best` to `worst`, and its `groups`, from 1 (top).

    An `undefined` subject could not be compared with any other. It has no group, every rank is
    possible, and it does not count in the ranks of others.
    """

    subject: str
    score: float
    interval: Interval | None
    best: int
    worst: int
    groups: tuple[int, ...]
    undefined: bool = False


@dataclass(frozen=True, slots=True)
class _Pairs:
    told_apart: frozenset[Pair] = frozenset()
    comparable: frozenset[Pair] = frozenset()


@dataclass(frozen=True, slots=True)
class _Table:
    """Mean scores by subject and case; 0 for untried cases."""

    place: Mapping[str, int]
    scores: "Floats"
    tried: "Flags"
    single: Mapping[str, bool]
    units: "Integers"  # the number of each case's cluster, or an own number


def leaderboard(subjects: Mapping[str, Cells], *, alpha: float = ALPHA, seed: int = 0) -> tuple[Standing, ...]:
    """Rank subjects by all pairwise comparisons. Each needs at least one scored case.

    Subjects with equal scores keep their given order. The assumptions are those of `compare`. The
    chance that any equal subjects are told apart is at most alpha; in simulations, this happened in
    2.0 % of leaderboards of eight equal subjects.
    """
    lists = {name: list(cells.values()) for name, cells in subjects.items()}
    scores = {name: (moments_of(cells).mean, score_interval(cells)) for name, cells in lists.items()}
    order = sorted(scores, key=lambda name: -scores[name][0])
    return _standings(scores, order, _compare_pairs(subjects, order, alpha, seed) if len(order) > 1 else _Pairs())


def corrected_leaderboard(
    scores: _Scores, compared: Callable[[Pair], tuple[float, float] | None]
) -> tuple[Standing, ...]:
    """Rank subjects by given scores, such as scores corrected by labels.

    `compared` returns the difference of a pair, better subject first, and its p-value, or None.
    """
    order = sorted(scores, key=lambda name: -scores[name][0])
    found = {pair: one for pair in combinations(order, 2) if (one := compared(pair)) is not None}
    adjusted = dict(zip(found, holm([chance for _, chance in found.values()]), strict=True))
    told_apart = frozenset(pair for pair, chance in adjusted.items() if chance <= ALPHA and found[pair][0] > 0)
    return _standings(scores, order, _Pairs(told_apart, frozenset(found)))


def _standings(scores: _Scores, order: Sequence[str], pairs: _Pairs) -> tuple[Standing, ...]:
    known = {name for name, (_, interval) in scores.items() if interval is not None}
    comparable = {name for pair in pairs.comparable for name in pair}
    if len(scores) == 1 or len(known) == 1:
        comparable = known or set(scores)
    ranked = [name for name in order if name in comparable]
    groups = tied_groups(ranked, pairs.told_apart)
    better = [upper for upper, _ in pairs.told_apart]
    worse = [lower for _, lower in pairs.told_apart]
    return tuple(
        Standing(
            subject=name,
            score=scores[name][0],
            interval=scores[name][1],
            best=1 + worse.count(name) if name in comparable else 1,
            worst=len(ranked) - better.count(name) if name in comparable else len(scores),
            groups=tuple(number for number, group in enumerate(groups, 1) if name in group),
            undefined=name not in comparable,
        )
        for name in order
    )


def tied_groups(order: Sequence[str], told_apart: Set[Pair]) -> tuple[tuple[str, ...], ...]:
    """Return groups of subjects so that two share a group exactly if they are not told apart.

    From the top, each subject starts a group with the lowest subject that is like it and shares no
    group with it yet. All subjects that are like every member join: no group is inside another.
    """
    # As bits: for each subject, those that it is not told apart from, including itself.
    place = {name: number for number, name in enumerate(order)}
    like = [(1 << len(order)) - 1] * len(order)
    for upper, lower in told_apart:
        like[place[upper]] &= ~(1 << place[lower])
        like[place[lower]] &= ~(1 << place[upper])
    together = [1 << place for place in range(len(order))]  # sets, as bits
    groups: list[list[int]] = []
    for first in range(len(order)):
        for last in range(len(order) - 1, first - 1, -1):
            alone = first == last and together[first] == like[first] == 1 << first
            if alone or (like[first] >> last & 1 and not together[first] >> last & 1):
                group = _grown(first, last, like)
                groups.append(group)
                for member in group:
                    together[member] |= sum(1 << other for other in group)
    return tuple(tuple(order[place] for place in group) for group in sorted(groups))


def _grown(first: int, last: int, like: Sequence[int]) -> list[int]:
    members, welcome = {first, last}, like[first] & like[last]
    for place, theirs in enumerate(like):
        if welcome >> place & 1:
            members.add(place)
            welcome &= theirs
    return sorted(members)


def _compare_pairs(subjects: Mapping[str, Cells], order: Sequence[str], alpha: float, seed: int) -> _Pairs:
    """Compare all pairs, best subject first. They differ if Holm's p ≤ alpha and the sign agrees.

    The p-values are those of `compare`, for many pairs at once. A case's cluster counts for all.
    """
    import numpy as np

    clusters: dict[CaseKey, str | None] = {}
    for name in order:
        for key, cell in subjects[name].items():
            clusters[key] = clusters.get(key) or cell.cluster
    columns = {key: column for column, key in enumerate(clusters)}
    scores, tried = np.zeros((len(order), len(columns))), np.zeros((len(order), len(columns)), dtype=np.bool_)
    for row, name in enumerate(order):
        places = [columns[key] for key in subjects[name]]
        scores[row, places] = [cell.mean for cell in subjects[name].values()]
        tried[row, places] = True
    single = {name: single_pass_or_fail(subjects[name].values()) for name in order}
    table = _Table({name: row for row, name in enumerate(order)}, scores, tried, single, _units(clusters.values()))
    pairs = list(combinations(order, 2))
    chances = _p_values(table, pairs, seed)
    differences = {}
    for pair in [pair for pair, chance in chances.items() if chance <= alpha]:  # the others are alike
        change = _change(table, pair)
        if abs(change.moments.mean) < 1:
            chances[pair] = max(chances[pair], zero_p_value(change))
        differences[pair] = change.moments.mean
    strangers = [pair for pair in pairs if pair not in chances and not (subjects[pair[0]].keys() & subjects[pair[1]])]
    unpaired = {(upper, lower): compare(subjects[lower], subjects[upper], alpha=alpha) for upper, lower in strangers}
    chances.update({pair: found.p_value for pair, found in unpaired.items() if found.p_value is not None})
    differences.update({pair: found.difference or 0.0 for pair, found in unpaired.items()})
    adjusted = dict(zip(chances, holm(list(chances.values())), strict=True))
    told_apart = frozenset(pair for pair, chance in adjusted.items() if chance <= alpha and differences[pair] > 0)
    return _Pairs(told_apart, frozenset(chances))


def _units(clusters: Iterable[str | None]) -> "Integers":
    import numpy as np

    numbers: dict[str | int, int] = {}
    names = (place if cluster is None else cluster for place, cluster in enumerate(clusters))
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)


def _p_values(table: _Table, pairs: Sequence[Pair], seed: int) -> dict[Pair, float]:
    """Return the p-values of pairs with at least two units in common."""
    import numpy as np

    order = np.argsort(table.units, kind="stable")
    starts = np.flatnonzero(np.diff(table.units[order], prepend=-1))
    at_once = max(1, _AT_ONCE // max(1, table.scores.shape[1]))
    found: dict[Pair, float] = {}
    for first in range(0, len(pairs), at_once):
        some = pairs[first : first + at_once]
        upper, lower = ([table.place[pair[side]] for pair in some] for side in (0, 1))
        common = table.tried[upper] & table.tried[lower]
        differences = np.where(common, table.scores[upper] - table.scores[lower], 0.0)
        sums = np.add.reduceat(differences[:, order], starts, axis=1)
        units = np.logical_or.reduceat(common[:, order], starts, axis=1).sum(axis=1)
        enough = units >= 2
        chances = sign_flip_p_values(sums[enough], seed=seed).tolist()
        found.update(zip((some[row] for row in np.flatnonzero(enough).tolist()), chances, strict=True))
        reversals = enough & (np.abs(differences.sum(axis=1)) == common.sum(axis=1))
        found.update({some[row]: reversal_p_value(int(units[row])) for row in np.flatnonzero(reversals).tolist()})
    return found


def _change(table: _Table, pair: Pair) -> Change:
    upper, lower = (table.place[name] for name in pair)
    common = table.tried[upper] & table.tried[lower]
    differences = (table.scores[upper] - table.scores[lower])[common]
    single = table.single[pair[0]] and table.single[pair[1]]
    units = table.units[common].tolist()
    clusters = None if len(set(units)) == len(units) else list(map(str, units))
    return change_of(differences.tolist(), clusters, single=single)

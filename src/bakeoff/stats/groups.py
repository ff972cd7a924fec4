"""Leaderboards without false ranks: subjects that cannot be told apart share a group.

Best first. Two subjects are told apart when their comparison, after Holm over all pairs, says so in the direction of
their scores; where only intervals are known, when these do not overlap. Two share a group if and only if they are not
told apart (the letters of Piepho, J. Computational and Graphical Statistics 13, 2004). Groups may overlap: a subject
may be like both of its neighbours, though these differ. A subject that can be compared with nobody is in no group.
"""

from collections.abc import Mapping, Sequence, Set
from itertools import combinations

from bakeoff._kernel.model import FrozenModel
from bakeoff.stats.boards import Pair, Verdicts, verdicts_on
from bakeoff.stats.cells import Cells
from bakeoff.stats.intervals import Interval, score_interval
from bakeoff.stats.moments import moments_of
from bakeoff.stats.quantiles import ALPHA

Scores = Mapping[str, tuple[float, Interval | None]]


class Standing(FrozenModel):
    """One subject's place: any rank from `best` to `worst` fits the data. `groups` are numbers from 1 at the top.

    `undefined`: nothing could be compared with it, so that it has no group, any rank of all, and no say in the ranks
    of the others, which are counted among those that could be compared.
    """

    subject: str
    score: float
    interval: Interval | None
    best: int
    worst: int
    groups: tuple[int, ...]
    undefined: bool = False


def leaderboard(subjects: Mapping[str, Cells], *, alpha: float = ALPHA, seed: int = 0) -> tuple[Standing, ...]:
    """Standings from every pairwise comparison; each subject needs at least one scored case."""
    scores = {
        name: (moments_of(list(cells.values())).mean, score_interval(list(cells.values())))
        for name, cells in subjects.items()
    }
    if len(scores) < 2:
        return _standings(scores, Verdicts(frozenset(), frozenset()))
    return _standings(scores, verdicts_on(subjects, _best_first(scores), alpha=alpha, seed=seed))


def leaderboard_of_intervals(scores: Scores) -> tuple[Standing, ...]:
    """Standings where nothing can be paired and only scores and intervals are known."""
    told_apart, defined = set(), set()
    for upper, lower in combinations(_best_first(scores), 2):
        high, low = scores[upper][1], scores[lower][1]
        if high is None or low is None:
            continue
        defined.add((upper, lower))
        if not high.overlaps(low):
            told_apart.add((upper, lower))
    return _standings(scores, Verdicts(frozenset(told_apart), frozenset(defined)))


def tied_groups(order: Sequence[str], told_apart: Set[Pair]) -> tuple[tuple[str, ...], ...]:
    """Groups in which no two are told apart, such that any two who are not share one; pairs are (better, worse).

    From the top, each subject with the farthest that is like it and shares no group with it yet; then all who are like
    everybody in the group join, so that none lies inside another.
    """
    like = _like(order, told_apart)
    together = [1 << place for place in range(len(order))]  # sets as bits
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


def _like(order: Sequence[str], told_apart: Set[Pair]) -> list[int]:
    """For each subject, whom it is not told apart from, as bits; itself too."""
    place = {name: number for number, name in enumerate(order)}
    like = [(1 << len(order)) - 1] * len(order)
    for upper, lower in told_apart:
        like[place[upper]] &= ~(1 << place[lower])
        like[place[lower]] &= ~(1 << place[upper])
    return like


def _grown(first: int, last: int, like: Sequence[int]) -> list[int]:
    members, welcome = {first, last}, like[first] & like[last]
    for place, theirs in enumerate(like):
        if welcome >> place & 1:
            members.add(place)
            welcome &= theirs
    return sorted(members)


def _best_first(scores: Scores) -> list[str]:
    return sorted(scores, key=lambda name: (-scores[name][0], name))


def _comparable(scores: Scores, defined: Set[Pair]) -> set[str]:
    """Those with an interval that could be compared with somebody, or are the only one with an interval."""
    known = {name for name, (_, interval) in scores.items() if interval is not None}
    if len(scores) == 1 or len(known) == 1:
        return known or set(scores)
    return {name for pair in defined for name in pair}


def _standings(scores: Scores, verdicts: Verdicts) -> tuple[Standing, ...]:
    comparable = _comparable(scores, verdicts.defined)
    order = [name for name in _best_first(scores) if name in comparable]
    groups = tied_groups(order, verdicts.told_apart)
    better = [upper for upper, _ in verdicts.told_apart]
    worse = [lower for _, lower in verdicts.told_apart]
    return tuple(
        Standing(
            subject=name,
            score=scores[name][0],
            interval=scores[name][1],
            best=1 + worse.count(name) if name in comparable else 1,
            worst=len(order) - better.count(name) if name in comparable else len(scores),
            groups=tuple(number for number, group in enumerate(groups, 1) if name in group),
            undefined=name not in comparable,
        )
        for name in _best_first(scores)
    )

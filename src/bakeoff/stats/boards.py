"""Every two of many subjects, compared at once: the numbers of `compare`, for a leaderboard and nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from bakeoff.stats.cells import CaseKey, Cells, single_pass_or_fail
from bakeoff.stats.comparison import compare
from bakeoff.stats.differences import UNCHANGED, Change, difference_interval
from bakeoff.stats.gates import holm
from bakeoff.stats.intervals import Interval
from bakeoff.stats.moments import Moments
from bakeoff.stats.permutation import sign_flip_p_values

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Integers = np.ndarray[Any, np.dtype[np.int64]]
    Flags = np.ndarray[Any, np.dtype[np.bool_]]

Pair = tuple[str, str]
"""The better first."""

_AT_ONCE = 4_000_000  # differences held at a time


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Which pairs are told apart, and which could be compared at all."""

    told_apart: frozenset[Pair]
    defined: frozenset[Pair]


@dataclass(frozen=True, slots=True)
class _Table:
    """Subjects × cases: the mean score, 0 where a case was not tried."""

    place: Mapping[str, int]
    scores: "Floats"
    tried: "Flags"
    single: Mapping[str, bool]
    units: "Integers"  # the number of each case's cluster, or its own


def verdicts_on(subjects: Mapping[str, Cells], order: Sequence[str], *, alpha: float, seed: int) -> Verdicts:
    """Every pair, best first: told apart where Holm's p is at most alpha and the interval lies above 0.

    A tag of any subject says which cases hang together for all of them.
    """
    table = _table(subjects, order)
    pairs = list(combinations(order, 2))
    chances = _p_values(table, pairs, seed)
    strangers = [pair for pair in pairs if pair not in chances and not (subjects[pair[0]].keys() & subjects[pair[1]])]
    unpaired = {(upper, lower): compare(subjects[lower], subjects[upper], alpha=alpha) for upper, lower in strangers}
    chances.update({pair: found.p_value for pair, found in unpaired.items() if found.p_value is not None})
    adjusted = dict(zip(chances, holm(list(chances.values())), strict=True))
    lows = (
        (pair, unpaired[pair].interval if pair in unpaired else _interval(table, pair, alpha))
        for pair, chance in adjusted.items()
        if chance <= alpha
    )
    told_apart = frozenset(pair for pair, interval in lows if interval is not None and interval.low > 0)
    return Verdicts(told_apart, frozenset(chances))


def _table(subjects: Mapping[str, Cells], order: Sequence[str]) -> _Table:
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
    return _Table({name: row for row, name in enumerate(order)}, scores, tried, single, _units(clusters.values()))


def _p_values(table: _Table, pairs: Sequence[Pair], seed: int) -> dict[Pair, float]:
    """Of the pairs that have two units or more in common."""
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
        enough = np.logical_or.reduceat(common[:, order], starts, axis=1).sum(axis=1) >= 2
        chances = sign_flip_p_values(sums[enough], seed=seed).tolist()
        found.update(zip((some[row] for row in np.flatnonzero(enough).tolist()), chances, strict=True))
    return found


def _units(clusters: Iterable[str | None]) -> "Integers":
    import numpy as np

    numbers: dict[str | int, int] = {}
    names = (place if cluster is None else cluster for place, cluster in enumerate(clusters))
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)


def _interval(table: _Table, pair: Pair, alpha: float) -> Interval:
    upper, lower = (table.place[name] for name in pair)
    common = table.tried[upper] & table.tried[lower]
    differences = (table.scores[upper] - table.scores[lower])[common]
    single = table.single[pair[0]] and table.single[pair[1]]
    return difference_interval(change_of_array(differences, table.units[common], single=single), confidence=1 - alpha)


def change_of_array(differences: "Floats", units: "Integers", *, single: bool) -> Change:
    """What `change_of` says, sooner; each case has its unit's number."""
    import numpy as np

    cases, mean = len(differences), float(differences.mean())
    count = len(np.unique(units))
    scatter = float((np.bincount(units, differences - mean) ** 2).sum())
    moments = Moments(cases, count, mean, count / (count - 1) * scatter / cases**2, 0, single)
    gained, lost = (float(np.maximum(side, 0.0).mean()) for side in (differences, -differences))
    return Change(moments, gained, lost, len(np.unique(units[np.abs(differences) > UNCHANGED])))

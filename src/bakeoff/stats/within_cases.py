"""Test whether a candidate is worse on exactly these cases. Cases are strata, rounds replicates.

If nothing has changed, each round of a case could have come from either arm. So the test exchanges
rounds between the arms within each case, and counts how often the candidate would score as low as
it did. For other cases, see `stats.comparison`; for a series of runs, `stats.series`. For rounds
that passed or failed, this is the exact conditional test of Mantel and Haenszel; with one round per
arm, McNemar's one-sided test.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb
from typing import TYPE_CHECKING, Any, TypeVar

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import visible
from bakeoff.stats.cells import Cell
from bakeoff.stats.comparison import holm
from bakeoff.stats.differences import UNCHANGED
from bakeoff.stats.intervals import ALPHA

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]

Key = TypeVar("Key")
Pairs = Mapping[Key, tuple[Cell, Cell]]
"""Baseline and candidate of each case."""

_DRAWS = 19_999
_MIN_DRAWS = 999
_MAX_VALUES_DRAWN = 20_000_000
_MAX_LENGTH = 4_000  # longest distribution before its ends are cut
_NEGLIGIBLE = 1e-18
_SLACK = 1e-9
_MIN_P_VALUE = 1e-15
_MAX_NAMED = 5


class WithinChange(FrozenModel):
    """How many of the shared cases got worse or better, and how likely that is by chance."""

    cases: int
    worse: int
    better: int
    p_value: float  # one-sided, for a candidate that scores so low
    broken: tuple[str, ...] = ()  # cases that are worse on their own, by Holm's method
    shown: bool = False  # whether there is a loss at the gate's level

    @property
    def sentence(self) -> str:
        """Describe the change in these cases, without a claim about others."""
        if not self.worse and not self.better:
            return f"on these cases: none of {self.cases:,} changed"
        counts = f"{self.worse:,} of {self.cases:,} got worse, {f'{self.better:,}' if self.better else 'none'} better"
        named = ", ".join(visible(name, 80) for name in self.broken[:_MAX_NAMED])
        more = ", …" if len(self.broken) > _MAX_NAMED else ""
        broken = f"; certainly worse by itself: {named}{more}" if named else ""
        if self.shown:
            chance = f"< {_MIN_P_VALUE}" if self.p_value <= _MIN_P_VALUE else f"= {self.p_value:.2g}"
            return f"worse on these cases: {counts}, which chance does with p {chance}{broken}"
        if not self.better and not broken:
            return f"on these cases: {counts}: too few cases to call it"
        return f"on these cases: {counts}: no loss over all of them shown (p = {self.p_value:.2g}){broken}"


def change_within(pairs: "Pairs[str]", *, alpha: float = ALPHA) -> WithinChange:
    """Return how many cases got worse, the chance of that, and which cases are certainly worse.

    The chance that any unchanged case is called broken is at most `alpha`.
    """
    moved = {name: new.mean - old.mean for name, (old, new) in pairs.items()}
    fallen = [name for name, difference in moved.items() if difference < -UNCHANGED]
    chances = {name: worse_p_value([pairs[name]]) for name in fallen}
    # Cases that did not fall (p ≥ 1/2) still count in Holm's method.
    adjusted = holm([*chances.values(), *[1.0] * (len(pairs) - len(fallen))])
    return WithinChange(
        cases=len(pairs),
        worse=len(fallen),
        better=sum(difference > UNCHANGED for difference in moved.values()),
        p_value=worse_p_value(list(pairs.values())) if fallen else 1.0,
        broken=tuple(name for name, chance in zip(chances, adjusted, strict=False) if chance <= alpha),
    )


def worse_p_value(pairs: Sequence[tuple[Cell, Cell]], *, draws: int = _DRAWS, seed: int = 0) -> float:
    """Return the chance that a random division of each case's rounds gives such a low sum.

    This is exact if every round passed or failed. Otherwise divisions are drawn, and counted so
    that the result is never too small (Phipson and Smyth, Stat. Appl. Genet. Mol. Biol. 9, 2010).
    If that is too coarse, an upper bound is returned.
    """
    if all(old.binary and new.binary for old, new in pairs):
        return min(1.0, max(_MIN_P_VALUE, _exact_tail(pairs)))
    size = sum(old.rounds + new.rounds for old, new in pairs)
    draws = min(draws, max(_MIN_DRAWS, _MAX_VALUES_DRAWN // size))
    chance = _drawn_tail(pairs, draws, seed)
    return chance if chance > 1 / (draws + 1) else min(chance, _tail_bound(pairs))


def _tail_bound(pairs: Sequence[tuple[Cell, Cell]]) -> float:
    """Return Chernoff's upper bound of the chance, for rounds drawn with replacement.

    Drawing without replacement varies less (Hoeffding, J. American Statistical Association 58,
    1963, theorem 4).
    """
    import numpy as np

    tilts = np.geomspace(0.01, 100, 81)
    exponents = tilts * sum(new.total for _, new in pairs)
    for old, new in pairs:
        values = np.array([*old.scores, *new.scores])
        exponents += new.rounds * np.log(np.exp(-tilts[:, np.newaxis] * values).mean(axis=1))
    return float(np.clip(np.exp(min(0.0, exponents.min())), _MIN_P_VALUE, 1.0))


def _exact_tail(pairs: Sequence[tuple[Cell, Cell]]) -> float:
    """Convolve, over cases, the hypergeometric distributions of the candidate's passes."""
    import numpy as np

    tables = Counter((old.rounds, new.rounds, round(old.total + new.total)) for old, new in pairs)
    low, chances = 0, np.ones(1)  # the chances of `low` passes, of one more, and so on
    for (before, after, passed), count in tables.items():
        least = max(0, passed - before)
        taken, whole = range(least, min(passed, after) + 1), comb(before + after, passed)
        part = np.array([comb(after, take) * comb(before, passed - take) / whole for take in taken])
        low, chances = _convolved((low, chances), _power(least, part, count))
    seen = round(sum(new.total for _, new in pairs))
    return float(chances[: max(0, seen - low + 1)].sum())


def _power(low: int, chances: "Floats", count: int) -> "tuple[int, Floats]":
    """Return the distribution of the sum of `count` draws from one distribution."""
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


def _choices(random: "np.random.Generator", draws: int, number: int, size: int) -> Any:
    """Return `draws` random choices of `number` distinct positions."""
    import numpy as np

    if size**2 > number:
        return random.random((draws, number), dtype=np.float32).argpartition(size - 1, axis=1)[:, :size]
    found = random.integers(number, size=(draws, size))
    while len(twice := np.flatnonzero((np.diff(np.sort(found, axis=1), axis=1) == 0).any(axis=1))):
        found[twice] = random.integers(number, size=(len(twice), size))
    return found


def _drawn_tail(pairs: Sequence[tuple[Cell, Cell]], draws: int, seed: int) -> float:
    import numpy as np

    random = np.random.default_rng(seed)
    drawn = np.zeros(draws)
    for old, new in pairs:
        values = np.array([*old.scores, *new.scores])
        if values.max() - values.min() <= _SLACK:
            drawn += new.total
            continue
        drawn += values[_choices(random, draws, len(values), new.rounds)].sum(axis=1)
    seen = sum(new.total for _, new in pairs)
    return float((np.count_nonzero(drawn <= seen + _SLACK) + 1) / (draws + 1))

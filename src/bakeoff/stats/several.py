"""Compare several subjects at once: p-values and intervals are adjusted by the same rule, so that they agree."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from bakeoff.stats.cells import Cells
from bakeoff.stats.comparison import Comparison, compare
from bakeoff.stats.intervals import ALPHA

Key = TypeVar("Key")


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return adjusted p-values in the order given (S. Holm, Scandinavian Journal of Statistics 6, 1979)."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for done, place in enumerate(_ascending(p_values)):
        highest = max(highest, min(1.0, (len(p_values) - done) * p_values[place]))
        adjusted[place] = highest
    return tuple(adjusted)


def holm_levels(p_values: Sequence[float], *, alpha: float = ALPHA) -> tuple[float, ...]:
    """Return the level at which Holm's method tests each p-value, in the order given.

    A p-value is at most its level exactly if it is at most alpha after `holm`. The smallest is tested at alpha/m, the
    next at alpha/(m−1), and so on; from the first that is not significant, all share its level.
    """
    levels = [alpha] * len(p_values)
    level, significant = alpha, True
    for done, place in enumerate(_ascending(p_values)):
        if significant:
            level = alpha / (len(p_values) - done)
            significant = p_values[place] <= level
        levels[place] = level
    return tuple(levels)


def compare_all(pairs: Mapping[Key, tuple[Cells, Cells]], *, alpha: float = ALPHA) -> dict[Key, Comparison]:
    """Compare each baseline with its candidate, with every interval at the level of Holm's method.

    The p-values are those before the adjustment; `gates.judge_all` adjusts them. Afterwards, an interval excludes 0
    exactly if its adjusted p-value is at most alpha.
    """
    return at_holm_levels(pairs, lambda key, level: compare(*pairs[key], alpha=alpha, level=level), alpha=alpha)


def at_holm_levels(
    keys: Iterable[Key], compared: Callable[[Key, float], Comparison], *, alpha: float = ALPHA
) -> dict[Key, Comparison]:
    """Make each comparison with its interval at the level of Holm's method; `compared` takes a key and a level."""
    found = {key: compared(key, alpha) for key in keys}
    tested = {key: one.p_value for key, one in found.items() if one.p_value is not None}
    levels = dict(zip(tested, holm_levels(list(tested.values()), alpha=alpha), strict=True))
    return {key: one if levels.get(key, alpha) == alpha else compared(key, levels[key]) for key, one in found.items()}


def _ascending(p_values: Sequence[float]) -> list[int]:
    return sorted(range(len(p_values)), key=p_values.__getitem__)

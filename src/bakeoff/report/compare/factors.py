"""Compare the levels of each factor of a run in pairs: its prompts, its treatments and its subjects.

factors_of         the scores of each level of a factor, ready to be paired
compare_levels     every pair of levels of every factor, adjusted together
strongest_first    what is known about each factor, the clearest result first
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from math import comb

from bakeoff._kernel.text import visible
from bakeoff.plan import PROMPT_TAG, Plan
from bakeoff.report.compare.within_run import CellsOf
from bakeoff.report.formatting import percent
from bakeoff.report.summary import Summary
from bakeoff.stats.cells import CaseKey, Cell
from bakeoff.stats.comparison import Comparison, at_holm_levels, compare, holm
from bakeoff.stats.gates import not_told_apart
from bakeoff.stats.intervals import ALPHA

Levels = dict[str, dict[CaseKey, Cell]]
"""The scores of each level of a factor. Equal keys belong to one case, with all other factors the same."""

MAX_PAIRS = 100
"""More pairs of levels are not compared, because that would hold up a page."""

_NAME = 60
_MAX_NAMED = 4


@dataclass(frozen=True, slots=True)
class LevelPair:
    """Two levels of a factor; `compared` has the difference of the second minus the first."""

    factor: str
    first: str
    second: str
    compared: Comparison
    p_value: float | None  # adjusted for all pairs of all factors

    @property
    def gain(self) -> float:
        """Return by how much the better level is better."""
        return abs(self.compared.difference or 0.0)

    @property
    def better(self) -> str:
        """Return the level with the higher score; the first if both are equal."""
        return self.second if (self.compared.difference or 0.0) > 0 else self.first

    @property
    def worse(self) -> str:
        """Return the other level."""
        return self.first if self.better == self.second else self.second

    @property
    def is_clear(self) -> bool:
        """Tell whether one level is better by more than chance."""
        return self.p_value is not None and self.p_value <= ALPHA and self.gain > 0

    @property
    def strength(self) -> tuple[float, float]:
        """Return a key that sorts the clearest pair first."""
        return (2.0 if self.p_value is None else self.p_value, -self.gain)


def factors_of(plan: Plan, summary: Summary, cells_of: CellsOf) -> dict[str, Levels]:
    """Return the levels of each factor that has several: `prompt`, `treatment` and `subject`, without controls."""
    specs, cases = {spec.name: spec for spec in plan.subjects}, {case.id: case for case in plan.cases}
    found: dict[str, Levels] = {"prompt": {}, "treatment": {}, "subject": {}}
    for name in (one.subject for one in summary.subjects if not one.control):
        spec = specs[name]
        for case_id, cell in cells_of(name).items():
            case = cases[case_id]
            # The same case in other circumstances is not an independent case.
            scored = replace(cell, cluster=cell.cluster or case.name)
            if case.name != case.id:
                found["prompt"].setdefault(case.tags[PROMPT_TAG], {})[CaseKey(case.name, name)] = scored
            found["treatment"].setdefault(spec.treatment, {})[CaseKey(case_id, spec.base or name)] = scored
            found["subject"].setdefault(spec.base or name, {})[CaseKey(case_id, spec.treatment)] = scored
    return {factor: levels for factor, levels in found.items() if len(levels) > 1}


def compare_levels(factors: Mapping[str, Levels]) -> tuple[LevelPair, ...]:
    """Compare all levels of each factor in pairs; nothing if there are too many pairs.

    Holm's method adjusts the p-values and intervals of all pairs together.
    """
    if sum(comb(len(levels), 2) for levels in factors.values()) > MAX_PAIRS:
        return ()
    keys = [(factor, *pair) for factor, levels in factors.items() for pair in combinations(levels, 2)]

    def compared(key: tuple[str, str, str], level: float) -> Comparison:
        factor, first, second = key
        return compare(factors[factor][first], factors[factor][second], level=level)

    found = at_holm_levels(keys, compared)
    tested = {key: one.p_value for key, one in found.items() if one.p_value is not None and one.paired}
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
    return tuple(LevelPair(*key, one, adjusted.get(key)) for key, one in found.items())


def describe_pair(pair: LevelPair) -> str:
    """Say which of two levels is better and by how much, or how large a difference could have been missed."""
    names, found = (level_name(pair.factor, pair.better), level_name(pair.factor, pair.worse)), pair.compared
    if pair.p_value is None:
        return f"{names[0]} and {names[1]} cannot be compared: they share too few cases"
    scores = sorted((found.baseline or 0.0, found.candidate or 0.0), reverse=True)
    chance = f"{percent(scores[0])} and {percent(scores[1])}, p = {pair.p_value:.2g}"
    if not pair.is_clear:
        facts = not_told_apart(found.difference or 0.0, found.interval, found.level).rpartition(": ")[2]
        return f"{names[0]} and {names[1]}: no clear winner ({chance}; {facts})"
    order = f"{names[1]} is worse than {names[0]}" if pair.better == "" else f"{names[0]} is better than {names[1]}"
    return f"{order} by {100 * pair.gain:.1f} points ({chance})"


def strongest_first(pairs: Sequence[LevelPair]) -> str:
    """Say what is known about each factor: first the clearest winner, last the factors without one."""
    by_factor = [list(group) for _, group in groupby(pairs, lambda pair: pair.factor)]
    by_factor.sort(key=lambda group: min(pair.strength for pair in group) if _clear(group) else (3.0, 0.0))
    told = "; ".join(clause for group in by_factor for clause in _of_factor(group))
    return told[:1].upper() + told[1:] if told.startswith("the ") else told


def _of_factor(pairs: Sequence[LevelPair]) -> Iterator[str]:
    """Yield one or two clauses about the levels of one factor."""
    factor, clear = pairs[0].factor, _clear(pairs)
    levels = list(dict.fromkeys(level for pair in pairs for level in (pair.first, pair.second)))
    beaten = {pair.worse for pair in clear}
    unbeaten = [level for level in levels if level not in beaten]
    noun = "" if factor == "subject" else f"the {factor} "
    if len(levels) == 2:
        [pair] = pairs
        yield f"{noun if pair.is_clear or not noun else f'the {factor}s '}{describe_pair(pair)}"
        return
    wins = [pair for pair in clear if pair.better == unbeaten[0]] if len(unbeaten) == 1 else []
    if len(wins) == len(levels) - 1:
        gains, chance = [100 * pair.gain for pair in wins], max(pair.p_value or 0.0 for pair in wins)
        others = f"{'both' if len(wins) == 2 else f'all {len(wins)}'} others"
        by = f"by {min(gains):.1f} to {max(gains):.1f} points (p ≤ {chance:.2g})"
        yield f"{noun}{level_name(factor, unbeaten[0])} is better than {others} {by}"
        return
    if clear:
        yield f"{noun}{describe_pair(min(clear, key=lambda pair: (pair.better in beaten, pair.strength)))}"
    scores = {pair.first: pair.compared.baseline or 0.0 for pair in pairs}
    scores |= {pair.second: pair.compared.candidate or 0.0 for pair in pairs}
    left = sorted(unbeaten if len(unbeaten) > 1 else levels, key=lambda level: -scores[level])
    names = [f"{level_name(factor, level)} ({percent(scores[level])})" for level in left]
    more = [f"{len(names) - _MAX_NAMED} more"] if len(names) > _MAX_NAMED else []
    *first, last = [*names[:_MAX_NAMED], *more]
    yield f"{f'the {factor}s ' if noun else ''}{', '.join(first)} and {last}: no clear winner"


def _clear(pairs: Sequence[LevelPair]) -> list[LevelPair]:
    return [pair for pair in pairs if pair.is_clear]


def level_name(factor: str, level: str) -> str:
    """Return a level as sentences name it: prompts and treatments in quotes."""
    if factor == "subject":
        return visible(level, _NAME)
    return visible(repr(level), _NAME) if level else "none"

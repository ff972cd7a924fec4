"""Give a verdict on a comparison: improved, regressed, equivalent or undecidable. `report.gates` decides by it.

A verdict is refused where too many trials were lost, or unequal shares of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import combinations
from math import prod

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import count_of
from bakeoff.stats.comparison import REVERSAL, Comparison, Key, holm
from bakeoff.stats.intervals import ALPHA

MAX_LOST = 0.05
"""The share of an arm's trials that may be lost before the rest is no longer a fair sample."""

MAX_UNEQUAL = 0.01
"""The difference between the losses of the arms that is allowed where it is more than chance."""


class GateVerdict(StrEnum):
    """The result of a gate."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    EQUIVALENT = "equivalent"
    UNDECIDABLE = "undecidable"


class GateJudgement(FrozenModel):
    """A verdict and the sentence that explains it. `refused`: too much is missing for any other verdict."""

    verdict: GateVerdict
    sentence: str
    p_value: float | None = None  # after Holm, where there were several
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Losses:
    """The finished trials of one arm that were lost to something other than the subject."""

    trials: int
    lost: int
    to: str = "infrastructure"

    @property
    def share(self) -> float:
        """Return the share of trials that were lost."""
        return self.lost / self.trials if self.trials else 0.0

    def __str__(self) -> str:
        return f"{self.lost} of {count_of(self.trials, 'trial')} ({100 * self.share:.1f} %)"


def judge(
    comparison: Comparison,
    *,
    margin: float | None = None,
    losses: tuple[Losses, Losses] | None = None,
    p_value: float | None = None,
) -> GateJudgement:
    """Judge one comparison; `losses` are those of baseline and candidate, `p_value` is one that is already adjusted.

    Improved and regressed need a p-value of at most alpha; the interval then excludes 0. Equivalent needs the 1 − 2α
    interval within ±margin, which is two one-sided tests (Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987). It is
    checked first, since a difference within the margin does not matter to the user.
    """
    refusal = losses and refusal_of(*losses)
    if refusal is None and comparison.difference is None:
        empty = [name for name in ("baseline", "candidate") if getattr(comparison, name) is None]
        refusal = f"refused: no trial of the {' and the '.join(empty)} was scored, so there is nothing to compare"
    if refusal:
        return GateJudgement(verdict=GateVerdict.UNDECIDABLE, sentence=refusal, refused=True)
    chance = comparison.p_value if p_value is None else p_value
    if comparison.interval is None or chance is None:
        why = "fewer than two independent cases can be compared"
        return GateJudgement(
            verdict=GateVerdict.UNDECIDABLE, sentence=f"undecidable: {nothing_shown(comparison)}; {why}"
        )
    verdict = _verdict(comparison, chance, margin)
    return GateJudgement(verdict=verdict, sentence=_sentence(verdict, comparison, chance, margin), p_value=chance)


def judge_all(
    comparisons: Mapping[Key, Comparison],
    *,
    margin: float | None = None,
    losses: Mapping[Key, tuple[Losses, Losses]] | None = None,
) -> dict[Key, GateJudgement]:
    """Judge several comparisons behind one gate: Holm keeps the chance of any false alarm at alpha.

    Equivalence needs no correction: a gate opens only if all its parts do (Berger, Technometrics 24, 1982).
    """
    refused = any(refusal_of(*given) for given in (losses or {}).values())
    if not refused and (ruling := _collapse(list(comparisons.values()))) is not None:
        return dict.fromkeys(comparisons, ruling)
    tested = {name: chance for name, compared in comparisons.items() if (chance := compared.p_value) is not None}
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
    return {
        name: judge(compared, margin=margin, losses=(losses or {}).get(name), p_value=adjusted.get(name))
        for name, compared in comparisons.items()
    }


def _collapse(comparisons: Sequence[Comparison]) -> GateJudgement | None:
    """Return the ruling on several comparisons in which every case fell: Holm would hide what they show together."""
    if len(comparisons) < 2 or not all(each.paired and each.difference == -1 for each in comparisons):
        return None
    # The p-value of a comparison is twice the chance; one of a single case has none.
    chance = 2 * prod(0.25 if each.p_value is None else each.p_value / 2 for each in comparisons)
    if chance > comparisons[0].alpha:
        return None
    cases = sum(each.cases for each in comparisons)
    fell = f"all {cases} cases of all {len(comparisons)} comparisons went from pass to fail"
    sentence = f"regressed: {fell}, which chance does with p ≤ {chance:.2g}"
    return GateJudgement(verdict=GateVerdict.REGRESSED, sentence=sentence, p_value=chance)


def refusal_of(baseline: Losses, candidate: Losses) -> str | None:
    """Say why these losses forbid a verdict, or return None.

    The limits are 5 % of an arm, and arms more than 1 point apart if Fisher's exact test gives p < 0.05: the two arms
    then did not lose the same kind of trial.
    """
    for name, arm in (("baseline", baseline), ("candidate", candidate)):
        if arm.share > MAX_LOST:
            limit = f"more than {100 * MAX_LOST:g} %"
            return f"refused: the {name} lost {arm} to {arm.to}, {limit}: resume the run first"
    if are_unequal(baseline, candidate):
        return (
            f"refused: the baseline lost {baseline} to {baseline.to}, the candidate {candidate} to {candidate.to}, "
            f"more unequal than chance (Fisher's exact test, p = {chance_of_losses(baseline, candidate):.2g}): "
            "resume both runs first"
        )
    return None


def could_miss(comparison: Comparison) -> float:
    """Return the largest loss that the interval of a comparison does not rule out, from 0 to 1."""
    return 1.0 if comparison.interval is None else min(1.0, max(0.0, -comparison.interval.low))


def nothing_shown(comparison: Comparison) -> str:
    """Say that no regression is shown, and how large a one may have been missed."""
    return f"no regression shown (could have missed up to {100 * could_miss(comparison):.1f} points)"


def are_unequal(one: Losses, other: Losses) -> bool:
    """Tell whether two arms lost shares that differ by more than 1 point and by more than chance."""
    return abs(one.share - other.share) > MAX_UNEQUAL and chance_of_losses(one, other) < ALPHA


@lru_cache(maxsize=10_000)  # many subjects lost none of as many trials
def chance_of_losses(one: Losses, other: Losses) -> float:
    """Return the p-value of Fisher's exact test for the shares that two arms lost."""
    if not one.lost and not other.lost:
        return 1.0
    from scipy.stats import fisher_exact

    return float(fisher_exact([[arm.lost, arm.trials - arm.lost] for arm in (one, other)]).pvalue)


def _verdict(comparison: Comparison, chance: float, margin: float | None) -> GateVerdict:
    interval, inner = comparison.interval, comparison.inner
    assert interval is not None
    if margin is not None and inner is not None and -margin < inner.low and inner.high < margin:
        return GateVerdict.EQUIVALENT
    if chance > comparison.alpha:
        return GateVerdict.UNDECIDABLE
    if interval.low > 0:
        return GateVerdict.IMPROVED
    return GateVerdict.REGRESSED if interval.high < 0 else GateVerdict.UNDECIDABLE


def _sentence(verdict: GateVerdict, comparison: Comparison, chance: float, margin: float | None) -> str:
    assert comparison.difference is not None
    assert comparison.interval is not None
    low, high = 100 * comparison.interval.low, 100 * comparison.interval.high
    level = f"{100 * (1 - comparison.level):.4g} % interval"
    facts = f"{100 * comparison.difference:+.1f} points, {level} {low:+.1f} to {high:+.1f}, p = {chance:.2g}"
    if comparison.test == REVERSAL and verdict in (GateVerdict.IMPROVED, GateVerdict.REGRESSED):
        way = "from fail to pass" if comparison.candidate else "from pass to fail"
        return f"{verdict}: all {comparison.cases} cases went {way}, which chance does with p ≤ {chance:.2g}"
    if verdict is GateVerdict.EQUIVALENT and margin is not None:
        return f"equivalence shown: the difference is within ±{100 * margin:g} points ({facts})"
    if verdict is GateVerdict.UNDECIDABLE:
        return f"undecidable: {nothing_shown(comparison)}; {facts}"
    return f"{verdict}: {facts}"


class UnequalLosses(FrozenModel):
    """Two subjects whose shares of lost trials differ by more than chance."""

    more: str  # the subject that lost more
    fewer: str
    more_lost: int
    more_trials: int
    fewer_lost: int
    fewer_trials: int
    p_value: float  # of Fisher's exact test, adjusted by Holm's method for all pairs


def unequal_losses(losses: Mapping[str, Losses]) -> tuple[UnequalLosses, ...]:
    """Return the pairs whose shares differ by more than 1 point and by more than chance, the clearest first.

    Under the null hypothesis that all subjects lose trials alike, any pair is returned with a chance of at most 5 %.
    """
    tried = {name: found for name, found in losses.items() if found.trials}
    if not any(found.lost for found in tried.values()):
        return ()
    pairs = [sorted(pair, key=lambda name: (-tried[name].share, name)) for pair in combinations(tried, 2)]
    chances = holm([chance_of_losses(tried[more], tried[fewer]) for more, fewer in pairs])
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
        if chance < ALPHA and tried[more].share - tried[fewer].share > MAX_UNEQUAL
    ]
    return tuple(sorted(found, key=lambda pair: pair.p_value))

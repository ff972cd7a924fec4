"""Judge a comparison as improved, regressed, equivalent or undecidable, for `report.gates`.

Verdicts are refused if too many trials were lost, or unequal shares of them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import chain, combinations
from typing import NamedTuple, Self

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import count_of
from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.comparison import REVERSAL, Comparison, at_holm_levels, compare, fisher_p_value, holm
from bakeoff.stats.intervals import ALPHA, Interval
from bakeoff.stats.within_cases import WithinChange, change_within
from bakeoff.verdict import Verdict

MAX_LOST = 0.05
"""The share of an arm's trials that may be lost before the rest is no longer a fair sample."""

MAX_UNEQUAL = 0.01
"""The difference between the losses of the arms that is allowed where it is more than chance."""

_MAX_FILLED = 1_000  # lost rounds of a case; a damaged plan may claim more


class GateVerdict(StrEnum):
    """The result of a gate."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    EQUIVALENT = "equivalent"
    UNDECIDABLE = "undecidable"


class GateJudgement(FrozenModel):
    """A verdict and a sentence to explain it. `refused` means that too much data is missing."""

    verdict: GateVerdict
    sentence: str
    p_value: float | None = None  # for cases like these, adjusted by Holm's method
    refused: bool = False
    within: WithinChange | None = None  # the claim about exactly these cases

    @classmethod
    def undecidable(cls, sentence: str, *, refused: bool = False) -> Self:
        """Return an undecidable judgement with the reason."""
        return cls(verdict=GateVerdict.UNDECIDABLE, sentence=sentence, refused=refused)


@dataclass(frozen=True, slots=True)
class Losses:
    """The number of finished trials of an arm, and of those lost without the subject's fault."""

    trials: int
    lost: int
    to: str = "infrastructure"
    final: bool = False  # those of a log, which cannot be resumed

    @classmethod
    def of(cls, verdicts: Mapping[Verdict, int]) -> Self:
        """Count finished trials by verdict. Trials stopped by a budget do not count as lost."""
        lost = verdicts.get(Verdict.INFRA, 0) + verdicts.get(Verdict.GRADER, 0)
        return cls(sum(verdicts.values()), lost)

    @classmethod
    def total(cls, arms: Sequence[Self]) -> Self:
        """Return the losses of several arms together."""
        return cls(sum(arm.trials for arm in arms), sum(arm.lost for arm in arms), arms[0].to, arms[0].final)

    @property
    def share(self) -> float:
        """Return the share of lost trials."""
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
    """Judge one comparison, given the `losses` of both arms, and an adjusted `p_value`.

    Improved and regressed need a p-value of at most alpha; the interval then excludes 0. Equivalent
    needs the 1 − 2α interval within ±margin, as in two one-sided tests (Schuirmann, J.
    Pharmacokinet. Biopharm. 15, 1987). Equivalence comes first, since users do not mind a
    difference within the margin.
    """
    refusal = losses and refusal_of(*losses)
    if refusal is None and comparison.difference is None:
        empty = [name for name in ("baseline", "candidate") if getattr(comparison, name) is None]
        refusal = f"refused: no trial of the {' and the '.join(empty)} was scored, so there is nothing to compare"
    if refusal:
        return GateJudgement.undecidable(refusal, refused=True)
    chance = comparison.p_value if p_value is None else p_value
    if comparison.interval is None or chance is None:
        why = "fewer than two independent cases can be compared"
        return GateJudgement.undecidable(f"undecidable: {nothing_shown(comparison)}; {why}")
    verdict = _verdict(comparison, chance, margin)
    return GateJudgement(verdict=verdict, sentence=_sentence(verdict, comparison, chance, margin), p_value=chance)


TOGETHER = "all together"
"""The key of the comparison of all cases, over all suites or subjects."""


class PairedArms(NamedTuple):
    """A suite or subject before and after, with the number of lost rounds per case."""

    before: Cells
    after: Cells
    lost: tuple[Mapping[CaseKey, int], Mapping[CaseKey, int]] = ({}, {})
    losses: tuple[Losses, Losses] | None = None

    @property
    def final(self) -> bool:
        """Tell whether nothing that was lost can be run again."""
        return self.losses is not None and all(arm.final for arm in self.losses)

    def filled(self, scores: tuple[float, float]) -> Self:
        """Return the arms as if every lost round before and after had these scores."""
        found = []
        for cells, lost, score in zip((self.before, self.after), self.lost, scores, strict=True):
            full = dict(cells)
            for key, rounds in lost.items():
                count = min(rounds, _MAX_FILLED)
                extra = Cell(count, score * count, score * count)  # all 0 or all 1
                full[key] = Cell.joined([full[key], extra]) if key in full else extra
            found.append(full)
        return self._replace(before=found[0], after=found[1], lost=({}, {}), losses=None)


class JudgedPair(NamedTuple):
    """A comparison with its verdict."""

    comparison: Comparison
    ruling: GateJudgement

    def not_worse_by(self, margin: float | None) -> bool:
        """Tell whether a loss of more than the margin is ruled out; one-sided, because only losses matter."""
        inner = self.comparison.inner
        return margin is not None and inner is not None and inner.low > -margin


def judge_pairs(
    pairs: Mapping[str, PairedArms],
    *,
    margin: float | None = None,
    compared: Callable[[str, float], Comparison] | None = None,
    together: bool = True,
) -> dict[str, JudgedPair]:
    """Judge the suites or subjects of a gate, each alone and, if there are several, all together.

    Two claims are tested: that the candidate is worse on cases like these (`compare`, two-sided at
    5 %), and that it is worse on exactly these cases (`change_within`, one-sided at 2.5 %). Each
    claim is adjusted for all pairs, so that each calls unchanged code worse in at most 2.5 % of
    gates. Equivalence needs no correction, since a gate passes only if all parts do (Berger,
    Technometrics 24, 1982). It overrides a loss on exactly these cases, because users do not mind a
    difference within the margin.

    Where rounds were lost, the verdict must be the same if all of them had failed and if all had passed. Where they
    cannot be run again, it must be the same if all of them had been for one arm, and for the other.

    Args:
        pairs: the arms of each suite or subject.
        margin: differences within ±margin are equivalent.
        compared: makes a comparison at a level by other means than the scores, which then decide alone.
        together: whether scores of different pairs mean the same, so that they can be judged together.
    """
    by_scores = compared is None
    whole = dict(pairs) | ({TOGETHER: _together(pairs)} if len(pairs) > 1 and by_scores and together else {})
    make = compared or (lambda key, level: compare(whole[key].before, whole[key].after, level=level))
    # With several pairs, they share half of the level; the test of all together has the other half.
    share = 2 if TOGETHER in whole else 1
    found = at_holm_levels(pairs, make, alpha=ALPHA / share)
    if TOGETHER in whole:
        found[TOGETHER] = make(TOGETHER, ALPHA / share)
    adjusted = _adjusted({name: one.p_value for name, one in found.items() if one.p_value is not None})
    within = _within(whole) if by_scores else {}
    judged = {}
    for name, one in found.items():
        losses = whole[name].losses
        if losses is not None and not by_scores:  # nothing counts them both ways
            losses = (replace(losses[0], final=False), replace(losses[1], final=False))
        ruling = judge(one, margin=margin, losses=losses, p_value=adjusted.get(name))
        judged[name] = JudgedPair(one, _with_claim(ruling, within.get(name)))
    if by_scores and any(rounds for one in pairs.values() for arm in one.lost for rounds in arm.values()):
        return _unless_losses_decide(pairs, judged, margin, together=together)
    return judged


def _within(pairs: Mapping[str, PairedArms]) -> dict[str, WithinChange]:
    shared = {
        name: {key.id: (one.before[key], one.after[key]) for key in one.before if key in one.after}
        for name, one in pairs.items()
    }
    found = {name: change_within(cases, alpha=ALPHA / 2) for name, cases in shared.items() if cases}
    chances = _adjusted({name: one.p_value for name, one in found.items()})
    judged = {name: one.model_copy(update={"shown": chances[name] <= ALPHA / 2}) for name, one in found.items()}
    if TOGETHER in judged:  # its list of cases has the error rate for all pairs
        judged |= {name: one.model_copy(update={"broken": ()}) for name, one in judged.items() if name != TOGETHER}
    return judged


def _adjusted(chances: Mapping[str, float]) -> dict[str, float]:
    """Adjust p-values by Holm's method. A test of all pairs together has half of the level."""
    parts = {name: chance for name, chance in chances.items() if name != TOGETHER}
    share = 2 if TOGETHER in chances else 1
    found = {name: min(1.0, share * one) for name, one in zip(parts, holm(list(parts.values())), strict=True)}
    return found | {name: min(1.0, share * chances[name]) for name in chances if name == TOGETHER}


def _with_claim(ruling: GateJudgement, within: WithinChange | None) -> GateJudgement:
    """Add the findings about exactly these cases."""
    if within is None or ruling.refused:
        return ruling
    worse = within.shown and ruling.verdict is not GateVerdict.EQUIVALENT
    verdict = GateVerdict.REGRESSED if worse else ruling.verdict
    sentence = f"{within.sentence}; on cases like these: {ruling.sentence.removeprefix('undecidable: ')}"
    return ruling.model_copy(update={"verdict": verdict, "sentence": sentence, "within": within})


def _together(pairs: Mapping[str, PairedArms]) -> PairedArms:
    """Pool all pairs. A case that subjects share is one cluster, since its difficulty is equal."""
    ids = Counter(key.id for one in pairs.values() for key in one.before)

    def pooled(name: str, cells: Cells) -> Iterator[tuple[CaseKey, Cell]]:
        for key, cell in cells.items():
            cluster = cell.cluster or (key.id if ids[key.id] > 1 else None)
            yield CaseKey(f"{name}: {key.id}", key.digest), replace(cell, cluster=cluster)

    before = dict(chain.from_iterable(pooled(name, one.before) for name, one in pairs.items()))
    after = dict(chain.from_iterable(pooled(name, one.after) for name, one in pairs.items()))
    known = [one.losses for one in pairs.values() if one.losses is not None]
    losses = (Losses.total([old for old, _ in known]), Losses.total([new for _, new in known])) if known else None
    return PairedArms(before, after, losses=losses)


def _unless_losses_decide(
    pairs: Mapping[str, PairedArms], judged: dict[str, JudgedPair], margin: float | None, *, together: bool
) -> dict[str, JudgedPair]:
    """Refuse verdicts that would change if the lost rounds had ended otherwise."""
    ways, way_out = ((0, 0), (1, 1)), "resume the run first (`bakeoff resume`)"
    how = "with all missing trials counted as failed {} points, as passed {}"
    if final := all(one.final for one in pairs.values()):
        ways, way_out = ((1, 0), (0, 1)), "retry them with the tool that wrote the log, and compare its new log"
        how = "with all lost trials counted against the candidate {} points, for it {}"
    filled = ({name: one.filled(way) for name, one in pairs.items()} for way in ways)
    bounds = [judge_pairs(each, margin=margin, together=together) for each in filled]
    for name, (compared, ruling) in judged.items():
        ends = [bound[name] for bound in bounds]
        said = how.format(*(f"{100 * (end.comparison.difference or 0.0):+.1f}" for end in ends))
        if (
            ruling.refused
            or len({(each.ruling.verdict, each.not_worse_by(margin)) for each in (judged[name], *ends)}) == 1
        ):
            advice = f"; {way_out}" if final and ruling.verdict is GateVerdict.UNDECIDABLE else ""
            found = ruling.model_copy(update={"sentence": f"{ruling.sentence}; {said}{advice}"})
        else:
            sentence = f"refused: what is missing could decide: {said}; {way_out}"
            found = GateJudgement.undecidable(sentence, refused=True)
        judged[name] = JudgedPair(compared, found)
    return judged


def new_failures(before: Cells, after: Cells) -> tuple[str, ...]:
    """Return cases that passed every round before and none now. Cells hold passes and failures."""
    return tuple(
        key.id
        for key, old in before.items()
        if (new := after.get(key)) is not None and old.total == old.rounds and not new.total
    )


def refusal_of(baseline: Losses, candidate: Losses) -> str | None:
    """Return the reason why these losses forbid a verdict; None if they do not, or are counted both ways instead.

    The limits are 5 % of an arm, and a difference of more than 1 point with p < 0.05 by Fisher's
    exact test, since the arms then did not lose the same kind of trial.
    """
    if baseline.final and candidate.final:
        return None
    for name, arm in (("baseline", baseline), ("candidate", candidate)):
        if arm.share > MAX_LOST:
            limit = f"more than {100 * MAX_LOST:g} %"
            return f"refused: the {name} lost {arm} to {arm.to}, {limit}: resume the run first (`bakeoff resume`)"
    if are_unequal(baseline, candidate):
        return (
            f"refused: the baseline lost {baseline} to {baseline.to}, the candidate {candidate} to {candidate.to}, "
            f"more unequal than chance (Fisher's exact test, p = {chance_of_losses(baseline, candidate):.2g}): "
            "resume both runs first (`bakeoff resume`)"
        )
    return None


def could_miss(comparison: Comparison) -> float:
    """Return the largest loss that a comparison's interval does not exclude, from 0 to 1."""
    return 1.0 if comparison.interval is None else min(1.0, max(0.0, -comparison.interval.low))


def not_told_apart(difference: float, interval: Interval | None, level: float = ALPHA) -> str:
    """Return facts to add to "cannot be told apart": the difference, and what could be missed."""
    points = f"{100 * difference:+.1f} points"
    if interval is None:
        return f"{points}, the interval needs 2 cases"
    low, high = 100 * interval.low, 100 * interval.high
    missed = f"a difference of up to {max(-low, high):.1f} points could have been missed"
    return f"{points}, {100 * (1 - level):.4g} % interval {low:+.1f} to {high:+.1f}: {missed}"


def nothing_shown(comparison: Comparison) -> str:
    """Return a sentence that no regression was found, and how large a missed one could be."""
    return f"no regression shown (could have missed up to {100 * could_miss(comparison):.1f} points)"


def are_unequal(one: Losses, other: Losses) -> bool:
    """Return True if the shares lost differ by more than 1 point and by more than chance."""
    return abs(one.share - other.share) > MAX_UNEQUAL and chance_of_losses(one, other) < ALPHA


@lru_cache(maxsize=10_000)  # cached, because many subjects have equal counts
def chance_of_losses(one: Losses, other: Losses) -> float:
    """Return p of Fisher's exact test for the shares that two arms lost."""
    if not one.lost and not other.lost:
        return 1.0
    return fisher_p_value(*((arm.lost, arm.trials - arm.lost) for arm in (one, other)))


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
    p_value: float  # by Fisher's exact test, adjusted by Holm's method


def unequal_losses(losses: Mapping[str, Losses]) -> tuple[UnequalLosses, ...]:
    """Return pairs whose lost shares differ by over 1 point and beyond chance, clearest first.

    If all subjects lose trials equally often, the chance that any pair is returned is at most 5 %.
    """
    tried = {name: found for name, found in losses.items() if found.trials}
    if not any(found.lost for found in tried.values()):
        return ()
    pairs = [sorted(pair, key=lambda name: (-tried[name].share, name)) for pair in combinations(tried, 2)]
    chances = holm([chance_of_losses(tried[more], tried[fewer]) for more, fewer in pairs])
    found = []
    for (more, fewer), chance in zip(pairs, chances, strict=True):
        if chance < ALPHA and tried[more].share - tried[fewer].share > MAX_UNEQUAL:
            sides = (("more", tried[more]), ("fewer", tried[fewer]))
            counts = {f"{side}_{name}": getattr(arm, name) for side, arm in sides for name in ("lost", "trials")}
            found.append(UnequalLosses(more=more, fewer=fewer, **counts, p_value=chance))
    return tuple(sorted(found, key=lambda pair: pair.p_value))

"""Two runs, case by case where the same cases were tried, otherwise side by side."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from bakeoff._kernel.model import FrozenModel
from bakeoff.stats.cells import CaseKey, Cell, Cells, single_pass_or_fail
from bakeoff.stats.differences import UNCHANGED, Change, change_of, difference_interval
from bakeoff.stats.intervals import Interval
from bakeoff.stats.moments import grouped
from bakeoff.stats.permutation import mcnemar_exact, sign_flip_test
from bakeoff.stats.quantiles import ALPHA
from bakeoff.stats.unpaired import newcombe, unpaired_test


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which cases two runs share. A case whose content changed is not the same case."""

    matched: tuple[CaseKey, ...]
    baseline_only: tuple[CaseKey, ...]
    candidate_only: tuple[CaseKey, ...]

    @property
    def changed(self) -> tuple[str, ...]:
        """Ids that both have, with different content."""
        here = {key.id for key in self.baseline_only}
        return tuple(key.id for key in self.candidate_only if key.id in here)


class Comparison(FrozenModel):
    """Candidate minus baseline.

    `interval` is at 1 − alpha; equivalence is read from `inner`, at 1 − 2 alpha.
    """

    paired: bool
    cases: int  # pairs, or the cases of both where nothing could be paired
    baseline: float | None  # scores over the cases compared
    candidate: float | None
    difference: float | None
    interval: Interval | None
    inner: Interval | None
    p_value: float | None
    test: str
    alpha: float
    wins: int = 0  # cases in which the candidate did better
    ties: int = 0
    losses: int = 0
    baseline_only: tuple[CaseKey, ...] = ()
    candidate_only: tuple[CaseKey, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    """What pairs, or two separate samples, say."""

    difference: float | None
    interval: Interval | None = None
    inner: Interval | None = None
    p_value: float | None = None
    test: str = "none"


def align(baseline: Cells, candidate: Cells) -> Alignment:
    """Pair cases by id and content, in the baseline's order."""
    return Alignment(
        matched=tuple(key for key in baseline if key in candidate),
        baseline_only=tuple(key for key in baseline if key not in candidate),
        candidate_only=tuple(key for key in candidate if key not in baseline),
    )


def compare(baseline: Cells, candidate: Cells, *, alpha: float = ALPHA, seed: int = 0) -> Comparison:
    """How much better the candidate is, and how sure that is."""
    alignment = align(baseline, candidate)
    paired = bool(alignment.matched)
    before = [baseline[key] for key in alignment.matched] if paired else list(baseline.values())
    after = [candidate[key] for key in alignment.matched] if paired else list(candidate.values())
    found = _paired(before, after, alpha, seed) if paired else _unpaired(before, after, alpha)
    outcomes = Counter(_outcome(old, new) for old, new in zip(before, after, strict=True)) if paired else Counter[str]()
    return Comparison(
        paired=paired,
        cases=len(before) if paired else len(before) + len(after),
        baseline=_mean(before),
        candidate=_mean(after),
        difference=found.difference,
        interval=found.interval,
        inner=found.inner,
        p_value=found.p_value,
        test=found.test,
        alpha=alpha,
        wins=outcomes["win"],
        ties=outcomes["tie"],
        losses=outcomes["loss"],
        baseline_only=alignment.baseline_only,
        candidate_only=alignment.candidate_only,
        changed=alignment.changed,
    )


def pairs_of(baseline: Cells, candidate: Cells) -> tuple[list[Cell], list[Cell]]:
    """The cells of the cases that both have, in one order."""
    matched = align(baseline, candidate).matched
    return [baseline[key] for key in matched], [candidate[key] for key in matched]


def paired_change(before: Sequence[Cell], after: Sequence[Cell]) -> Change:
    """What pairs say of the difference; there must be one."""
    return change_of(*_differences(before, after), single=single_pass_or_fail([*before, *after]))


def _differences(before: Sequence[Cell], after: Sequence[Cell]) -> tuple[list[float], list[str | None]]:
    pairs = list(zip(before, after, strict=True))
    # The tag is no part of a case's content: the newer word counts.
    return [new.mean - old.mean for old, new in pairs], [new.cluster or old.cluster for old, new in pairs]


def _paired(before: Sequence[Cell], after: Sequence[Cell], alpha: float, seed: int) -> _Found:
    differences, clusters = _differences(before, after)
    change = paired_change(before, after)
    moments = change.moments
    if moments.units < 2:
        return _Found(moments.mean)
    if moments.single and not moments.clustered:
        test, p_value = "exact McNemar", mcnemar_exact(differences.count(1.0), differences.count(-1.0))
    else:
        flip = sign_flip_test([sum(group) for group in grouped(differences, clusters)], seed=seed)
        test, p_value = flip.method, flip.p_value
    interval = difference_interval(change, confidence=1 - alpha)
    return _Found(moments.mean, interval, difference_interval(change, confidence=1 - 2 * alpha), p_value, test)


def _unpaired(before: Sequence[Cell], after: Sequence[Cell], alpha: float) -> _Found:
    if not before or not after:
        return _Found(None)
    difference = fmean(cell.mean for cell in after) - fmean(cell.mean for cell in before)
    interval = newcombe(before, after, confidence=1 - alpha)
    if interval is None:
        return _Found(difference)
    test, p_value = unpaired_test(before, after)
    return _Found(difference, interval, newcombe(before, after, confidence=1 - 2 * alpha), p_value, test)


def _outcome(old: Cell, new: Cell) -> str:
    difference = new.mean - old.mean
    return "tie" if abs(difference) <= UNCHANGED else "win" if difference > 0 else "loss"


def _mean(cells: Sequence[Cell]) -> float | None:
    return fmean(cell.mean for cell in cells) if cells else None

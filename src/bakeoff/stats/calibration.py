"""Correct a judge's scores by labels that people gave to some of the trials.

A fallible judge scores every trial; people label a sample, drawn within strata of the judge's
score. The corrected score is the judge's mean plus the mean of "label minus score", weighted by
stratum: prediction-powered inference (Angelopoulos et al., Science 382, 2023; stratified: Fisch et
al., arXiv:2406.04291). For pass or fail, this is the estimate of Rogan and Gladen (American Journal
of Epidemiology 107, 1978). A subject's score is corrected only by labels of its own trials, in case
the judge favours a subject. See docs/explanation/judges.md for the simulated coverage.

`judge_quality` and later functions measure how well a judge agrees with labels, and labellers with
each other. Labels are weighted by the trials that they represent.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import atanh, fsum, sqrt, tanh
from typing import TYPE_CHECKING, Any, NamedTuple

from bakeoff._kernel.model import FrozenModel
from bakeoff.stats.cells import CaseKey, moments_of_means
from bakeoff.stats.intervals import ALPHA, CONFIDENCE, SKIPPED, TOO_SMALL, Interval, normal_quantile, t_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray


ENOUGH_LABELS = 20
"""The number of labels of a subject's trials from which its score is corrected."""

ENOUGH_IN_STRATUM = 5
"""The number of labels that each stratum needs, unless all its trials are labelled."""

ENOUGH_OF_A_KIND = 5
"""The number of good and of bad answers that labels need for the promised coverage: with fewer, it is up to 100 %."""

MAX_SKIPPED = 0.1
"""The share of skipped answers above which a result is marked: if people skip answers for a reason, such as difficulty,
the labels of the others do not represent them.
"""

MAX_STRATA = 3
_PRIOR = 0.5
"""The weight of one label of each kind that is added to every stratum.

Without it, a stratum whose few labels all agree would count as known exactly: with 20 labels the coverage falls to 74 %
in the worst setting of bench_judges. A weight of 1 gives 97 to 100 % where 0.5 gives 95 to 99 %.
"""


@dataclass(frozen=True, slots=True)
class JudgedTrial:
    """One trial of a subject with its score by a judge."""

    case: CaseKey
    score: float
    stratum: int | None = None  # None: no answer, which certainly scores 0
    label: float | None = None  # 1 pass, 0 fail, 0.5 if labellers disagree
    weight: float = 1.0  # trials that a label represents; unequal after a change of the judge
    cluster: str | None = None
    skipped: bool = False  # people saw the answer, but nobody labelled it


class Strata:
    """Divides scores into strata: one per score if there are at most three, or else thirds."""

    def __init__(self, scores: Iterable[float]) -> None:
        ordered = sorted(scores)
        levels = sorted(set(ordered))
        if len(levels) > MAX_STRATA:
            levels = sorted({ordered[len(ordered) * part // MAX_STRATA] for part in range(1, MAX_STRATA)})
            levels = [ordered[0], *(level for level in levels if level > ordered[0])]
        self._lowest = levels  # the lowest score of each stratum

    def __len__(self) -> int:
        return len(self._lowest)

    def of(self, score: float) -> int:
        """Return the number of a score's stratum, from 0 for the lowest scores."""
        return max(0, sum(lowest <= score for lowest in self._lowest) - 1)


class CorrectedScore(FrozenModel):
    """A judge's mean score, and the score after correction by labels."""

    raw: float
    value: float
    interval: Interval | None  # covers the sampling of cases and labels


class CorrectedDifference(FrozenModel):
    """The difference between two corrected scores: candidate minus baseline."""

    raw: float
    baseline: float
    candidate: float
    difference: float
    interval: Interval | None
    inner: Interval | None  # at twice alpha, for equivalence
    p_value: float | None  # at most the level exactly if the interval excludes 0
    paired: bool
    cases: int


@dataclass(frozen=True, slots=True)
class _Estimate:
    raw: float
    value: float
    by_case: Mapping[CaseKey, float]  # corrected scores, shrunk a little towards one half
    clusters: Mapping[CaseKey, str | None]
    parts: tuple[tuple[float, float], ...]  # per stratum: the labels' variance, degrees of freedom


def missing_labels(trials: Sequence[JudgedTrial]) -> str | None:
    """Return why there are too few labels to correct a score; None if there are enough."""
    answered = [trial for trial in trials if trial.stratum is not None]
    labels = sum(trial.label is not None for trial in answered)
    if not answered or labels == len(answered):
        return None if answered else "the judge has scored no answer"
    if labels < min(ENOUGH_LABELS, len(answered)):
        return f"{labels} of {len(answered)} answers are labelled, {min(ENOUGH_LABELS, len(answered))} are needed"
    for members in _by_stratum(answered).values():
        found, needed = _labelled(members), min(ENOUGH_IN_STRATUM, len(members))
        if len(found) < needed:
            scores = sorted(trial.score for trial in members)
            return (
                f"{len(found)} of the {len(members)} answers with scores from {scores[0]:g} to {scores[-1]:g} are "
                f"labelled, {needed} are needed"
            )
    return None


def corrected_score(trials: Sequence[JudgedTrial]) -> CorrectedScore:
    """Correct a subject's mean score. Every stratum needs a label; see `missing_labels`."""
    found = _estimate(trials)
    cases = list(found.by_case)
    spread = _Spread.of([found.by_case[case] for case in cases], [found.clusters[case] for case in cases], found.parts)
    interval = spread and spread.interval(found.value, CONFIDENCE, 0.0, _method(trials))
    return CorrectedScore(raw=found.raw, value=found.value, interval=interval)


def corrected_difference(
    baseline: Sequence[JudgedTrial], candidate: Sequence[JudgedTrial], *, level: float = ALPHA
) -> CorrectedDifference:
    """Correct the difference between two subjects, paired by case if they share cases.

    The interval has this `level`. Every stratum of the `compared_trials` needs a label.
    """
    baseline, candidate = compared_trials(baseline, candidate)
    old, new = _estimate(baseline), _estimate(candidate)
    paired = old.by_case.keys() == new.by_case.keys()
    parts = old.parts + new.parts
    if paired:
        cases = list(old.by_case)
        changes = [new.by_case[case] - old.by_case[case] for case in cases]
        spread = _Spread.of(changes, [new.clusters[case] or old.clusters[case] for case in cases], parts)
    else:
        spread = _Spread.unpaired(old, new, parts)
    difference, method = new.value - old.value, _method(baseline, candidate)
    return CorrectedDifference(
        raw=new.raw - old.raw,
        baseline=old.value,
        candidate=new.value,
        difference=difference,
        interval=spread and spread.interval(difference, 1 - level, -1.0, method),
        inner=spread and spread.interval(difference, 1 - 2 * ALPHA, -1.0, method),
        p_value=spread and spread.p_value(difference),
        paired=paired,
        cases=len(old.by_case) if paired else len(old.by_case) + len(new.by_case),
    )


def compared_trials(
    baseline: Sequence[JudgedTrial], candidate: Sequence[JudgedTrial]
) -> tuple[Sequence[JudgedTrial], Sequence[JudgedTrial]]:
    """Return the trials of the shared cases, or all trials if no case is shared."""
    common = {trial.case for trial in baseline} & {trial.case for trial in candidate}
    return (_only(common, baseline), _only(common, candidate)) if common else (baseline, candidate)


@dataclass(frozen=True, slots=True)
class _Spread:
    """The middle of an interval, its standard error and Satterthwaite's degrees of freedom."""

    middle: float
    error: float
    freedom: float

    @classmethod
    def of(
        cls, means: Sequence[float], clusters: Sequence[str | None], parts: Iterable[tuple[float, float]]
    ) -> "_Spread | None":
        """Add the variances between cases and of labels; None for fewer than two units."""
        moments = moments_of_means(means, clusters)
        if moments.units < 2:
            return None
        return cls._from(moments.mean, [(moments.variance, moments.freedom), *parts])

    @classmethod
    def unpaired(cls, old: _Estimate, new: _Estimate, parts: Iterable[tuple[float, float]]) -> "_Spread | None":
        arms = [moments_of_means(list(arm.by_case.values()), list(arm.clusters.values())) for arm in (old, new)]
        if any(arm.units < 2 for arm in arms):
            return None
        between = [(arm.variance, arm.freedom) for arm in arms]
        return cls._from(arms[1].mean - arms[0].mean, [*between, *parts])

    @classmethod
    def _from(cls, middle: float, parts: Sequence[tuple[float, float]]) -> "_Spread":
        variance = fsum(part for part, _ in parts)
        uncertain = fsum(part**2 / freedom for part, freedom in parts)
        return cls(middle, sqrt(variance), variance**2 / uncertain if uncertain else 1.0)

    def interval(self, point: float, confidence: float, lowest: float, method: str) -> Interval:
        """Return the t interval around a value, limited to the range of scores."""
        half = t_quantile((1 + confidence) / 2, self.freedom) * self.error
        low, high = max(lowest, self.middle - half), min(1.0, self.middle + half)
        return Interval(low=min(point, low), high=max(point, high), method=method)

    def p_value(self, point: float) -> float:
        """Return the level at which `interval` begins to exclude 0, at most 1."""
        from scipy.special import stdtr

        if not self.error or self.middle * point <= 0:
            return 1.0
        return float(2 * stdtr(self.freedom, -abs(self.middle) / self.error))


def _estimate(trials: Sequence[JudgedTrial]) -> _Estimate:
    rounds: dict[CaseKey, int] = {}
    for trial in trials:
        rounds[trial.case] = rounds.get(trial.case, 0) + 1
    share = {case: 1 / (len(rounds) * count) for case, count in rounds.items()}  # of a trial in the mean
    by_case = dict.fromkeys(rounds, 0.0)
    shift, parts = 0.0, []
    for stratum, members in _by_stratum(trials).items():
        drawn = 0.0
        if stratum is not None:
            weight = fsum(share[trial.case] for trial in members)
            error = _judge_error(members)
            shift += weight * error.mean
            drawn = error.drawn
            # Errors in rounds of a case may be alike, and then average out only over cases.
            alike = weight * error.spread * max(0.0, 1 / len(rounds) - 1 / len(trials))
            parts.append((weight**2 * error.variance + alike, error.freedom))
        for trial in members:
            by_case[trial.case] += (trial.score + drawn) / rounds[trial.case]
    raw = fsum(trial.score * share[trial.case] for trial in trials)
    clusters = {trial.case: trial.cluster for trial in trials}
    return _Estimate(raw, min(1.0, max(0.0, raw + shift)), by_case, clusters, tuple(parts))


class _ErrorRate(NamedTuple):
    """The mean of "label minus score" in a stratum."""

    mean: float
    drawn: float  # the mean with the prior
    variance: float  # the variance of the mean
    spread: float  # the variance of a single label
    freedom: float


def _judge_error(members: Sequence[JudgedTrial]) -> _ErrorRate:
    """Return how much higher the labels of a stratum are than the judge's scores."""
    labelled = _labelled(members)
    total = fsum(trial.weight for trial in labelled)
    size = total**2 / fsum(trial.weight**2 for trial in labelled)  # Kish: the number of equal weights
    errors = [(trial, (trial.label or 0.0) - trial.score, trial.weight * size / total) for trial in labelled]
    seen = fsum(weight * error for _, error, weight in errors)
    score = fsum(trial.score for trial in members) / len(members)
    drawn = (seen + _PRIOR * (1 - 2 * score)) / (size + 2 * _PRIOR)
    units: dict[CaseKey | str, float] = {}
    for trial, error, weight in errors:
        unit = trial.cluster or trial.case  # rounds of a case, or cases of a cluster, may err together
        units[unit] = units.get(unit, 0.0) + weight * (error - drawn)
    alone = fsum(weight * (error - drawn) ** 2 for _, error, weight in errors)
    together = fsum(one**2 for one in units.values()) if len(units) < len(errors) else 0.0
    prior = _PRIOR * fsum((label - score - drawn) ** 2 for label in (0.0, 1.0))
    count = size + 2 * _PRIOR
    return _ErrorRate(seen / size, drawn, (max(alone, together) + prior) / count**2, (alone + prior) / count, count - 1)


def _by_stratum(trials: Iterable[JudgedTrial]) -> dict[int | None, list[JudgedTrial]]:
    strata: dict[int | None, list[JudgedTrial]] = {}
    for trial in trials:
        strata.setdefault(trial.stratum, []).append(trial)
    return strata


def _labelled(trials: Iterable[JudgedTrial]) -> list[JudgedTrial]:
    return [trial for trial in trials if trial.label is not None]


def _only(cases: Collection[CaseKey], trials: Iterable[JudgedTrial]) -> list[JudgedTrial]:
    return [trial for trial in trials if trial.case in cases]


def _method(*arms: Sequence[JudgedTrial]) -> str:
    """Return the method's name, marked if labels are nearly all alike or often missing."""
    binary = all(trial.score in (0, 1) for arm in arms for trial in arm)
    name = "Rogan–Gladen" if binary else "prediction-powered"
    name += f", {TOO_SMALL}" if any(map(_nearly_all_alike, arms)) else ""
    counts = [(sum(trial.skipped for trial in arm), len(_labelled(arm))) for arm in arms]
    often = any(skipped > MAX_SKIPPED * (skipped + labelled) for skipped, labelled in counts)
    return f"{name}, {SKIPPED}" if often else name


def _nearly_all_alike(trials: Iterable[JudgedTrial]) -> bool:
    """Return True if too few good or bad answers are labelled for an exact interval."""
    labels = [trial.label or 0.0 for trial in _labelled(trials)]
    return min(fsum(labels), len(labels) - fsum(labels)) < ENOUGH_OF_A_KIND


_DRAWS = 10_000
_RESAMPLES = 2_000
_JEFFREYS = 0.5  # the prior for each share


class Estimate(FrozenModel):
    """A number and its interval. Either is None if the labels do not permit it."""

    value: float
    interval: Interval | None


class LabelledGroup(FrozenModel):
    """The trials of one stratum with the same verdict of the judge, and their labels."""

    passed: bool  # the verdict of the judge
    trials: float  # number of trials in the run
    labels: float
    label_passes: float


class JudgeQuality(FrozenModel):
    """How well a judge's verdicts agree with labels, over the whole run."""

    sensitivity: Estimate | None  # the share of good answers that the judge passes
    specificity: Estimate | None  # the share of bad answers that it fails
    accuracy: Estimate | None
    kappa: Estimate | None  # Cohen's: 1 is full agreement, 0 that of chance


def judge_quality(groups: Sequence[LabelledGroup]) -> JudgeQuality:
    """Estimate a judge's quality. Groups without labels use those of groups with the same verdict.

    Intervals are quantiles of 10,000 draws. The share of good answers in a group is drawn from its
    Beta posterior with Jeffreys' prior, so that there is a width even if all labels agree. The
    sizes of groups are drawn by a Bayesian bootstrap, since trials are a sample too.
    """
    import numpy as np

    known = [_filled(group, groups) for group in groups if group.trials]
    verdicts = np.array([group.passed for group in known])
    weights = np.array([group.trials for group in known])
    labels, passes = (np.array([getattr(group, name) for group in known]) for name in ("labels", "label_passes"))
    if not known or (labels == 0).any():
        return JudgeQuality(sensitivity=None, specificity=None, accuracy=None, kappa=None)
    random = np.random.default_rng(0)
    drawn = random.beta(passes + _JEFFREYS, labels - passes + _JEFFREYS, (_DRAWS, len(known)))
    found = _qualities(verdicts, weights[None, :], (passes / labels)[None, :])
    ranges = _qualities(verdicts, random.gamma(weights, size=drawn.shape), drawn)

    def estimate(name: str) -> Estimate | None:
        point = float(found[name][0])
        if np.isnan(point):  # there is no good answer, or no bad one
            return None
        low, high = (float(bound) for bound in np.nanpercentile(ranges[name], [2.5, 97.5]))
        return Estimate(value=point, interval=Interval(low=min(point, low), high=max(point, high), method="Beta draws"))

    return JudgeQuality(**{name: estimate(name) for name in found})


def _filled(group: LabelledGroup, groups: Sequence[LabelledGroup]) -> LabelledGroup:
    if group.labels:
        return group
    alike = [other for other in groups if other.passed == group.passed]
    labels, passes = fsum(one.labels for one in alike), fsum(one.label_passes for one in alike)
    return group.model_copy(update={"labels": labels, "label_passes": passes})


def _qualities(verdicts: "NDArray[Any]", weights: "NDArray[Any]", good: "NDArray[Any]") -> "dict[str, NDArray[Any]]":
    """Return each quality per draw, given good shares (`good`) and sizes (`weights`) of groups."""
    import numpy as np

    share = weights / weights.sum(1, keepdims=True)
    right_pass = (good * share)[:, verdicts].sum(1)
    right_fail = ((1 - good) * share)[:, ~verdicts].sum(1)
    truly, passed = (good * share).sum(1), share[:, verdicts].sum(1)
    accuracy = right_pass + right_fail
    chance = truly * passed + (1 - truly) * (1 - passed)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "sensitivity": np.minimum(1, right_pass / truly),  # rounding must not exceed 1
            "specificity": np.minimum(1, right_fail / (1 - truly)),
            "accuracy": accuracy,
            "kappa": (accuracy - chance) / (1 - chance),
        }


def association(errors: Sequence[float], other: Sequence[float], weights: Sequence[float]) -> Estimate | None:
    """Return Spearman's rank correlation, with an interval by Bonett and Wright (Psychometrika 65, 2000).

    None for fewer than five pairs, or if one side does not vary.
    """
    import numpy as np
    from scipy.stats import rankdata

    if len(errors) < 5 or len(set(errors)) < 2 or len(set(other)) < 2:
        return None
    cover = np.cov(rankdata(errors), rankdata(other), aweights=weights)
    value = float(np.clip(cover[0, 1] / np.sqrt(cover[0, 0] * cover[1, 1]), -1, 1))
    size = fsum(weights) ** 2 / fsum(weight**2 for weight in weights)
    if size <= 4 or abs(value) == 1:
        return Estimate(value=value, interval=None)
    half = normal_quantile((1 + CONFIDENCE) / 2) * sqrt((1 + value**2 / 2) / (size - 3))
    low, high = tanh(atanh(value) - half), tanh(atanh(value) + half)
    return Estimate(value=value, interval=Interval(low=low, high=high, method="Fisher z"))


def cohen_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> Estimate | None:
    """Return Cohen's kappa: the agreement of two labellers beyond chance.

    See J. Cohen, Educ. Psychol. Meas. 20, 1960. Each pair has the two labels of an answer. The
    interval is a bootstrap over answers. None if all labels are equal.
    """
    return _resampled(pairs, _kappa)


def krippendorff_alpha(units: Sequence[Sequence[Hashable]]) -> Estimate | None:
    """Return Krippendorff's alpha: the agreement of labellers, who may leave out units.

    For nominal labels (K. Krippendorff, Content Analysis, 2004, ch. 11). A unit is a list of
    labels.
    """
    return _resampled([unit for unit in units if len(unit) > 1], _alpha)


def _resampled(units: Sequence[Any], statistic: Callable[[Sequence[Any]], float | None]) -> Estimate | None:
    """Return a statistic and its bootstrap interval, which is missing if all units agree."""
    import numpy as np

    value = statistic(units)
    if value is None:
        return None
    random = np.random.default_rng(0)
    places = random.integers(len(units), size=(_RESAMPLES, len(units)))
    found = [one for row in places if (one := statistic([units[place] for place in row])) is not None]
    low, high = (float(bound) for bound in np.percentile(found, [2.5, 97.5])) if found else (value, value)
    spread = Interval(low=min(low, value), high=max(high, value), method="bootstrap")
    return Estimate(value=value, interval=spread if low < high else None)


def _kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    total = len(pairs)
    first, second = (Counter(pair[side] for pair in pairs) for side in (0, 1))
    seen = sum(one == other for one, other in pairs) / total if total else 0.0
    chance = sum(first[label] * second[label] for label in first) / total**2 if total else 1.0
    return None if chance == 1 else (seen - chance) / (1 - chance)


def _alpha(units: Sequence[Sequence[Hashable]]) -> float | None:
    counts: Counter[Hashable] = Counter()
    disagreements, pairable = 0.0, 0
    for unit in units:
        given: Mapping[Hashable, int] = Counter(unit)
        counts.update(given)
        pairable += len(unit)
        disagreements += (len(unit) ** 2 - sum(one**2 for one in given.values())) / (len(unit) - 1)
    expected = sum(2 * counts[one] * counts[other] for one, other in combinations(counts, 2))
    return 1 - (pairable - 1) * disagreements / expected if expected else None

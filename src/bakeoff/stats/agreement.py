"""How far a judge agrees with labels, and labellers with each other, each with an interval.

Sensitivity, specificity and kappa of a judge are those of the whole run: labels are drawn within strata of its score,
so that each counts for as many trials as it stands for.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations
from math import atanh, fsum, sqrt, tanh
from typing import TYPE_CHECKING, Any

from bakeoff._kernel.model import FrozenModel
from bakeoff.stats.intervals import CONFIDENCE, Interval, normal_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DRAWS = 10_000
_RESAMPLES = 2_000
_JEFFREYS = 0.5  # the prior of each share


class Estimate(FrozenModel):
    """A number and its interval; None where the labels cannot give it."""

    value: float
    interval: Interval | None


class LabelledGroup(FrozenModel):
    """Trials of one stratum with one verdict of the judge, and their labels."""

    passed: bool  # by the judge
    trials: float  # of the run
    labels: float
    label_passes: float


class JudgeQuality(FrozenModel):
    """How a judge's verdicts relate to labels, over the whole run."""

    sensitivity: Estimate | None  # the share of good answers that the judge passes
    specificity: Estimate | None  # the share of bad answers that it fails
    accuracy: Estimate | None
    kappa: Estimate | None  # Cohen's: 1 full agreement, 0 what chance alone would give


def judge_quality(groups: Sequence[LabelledGroup]) -> JudgeQuality:
    """Estimate a judge's quality. A group without labels takes those of the groups with the same verdict.

    Intervals are quantiles of 10,000 draws: the share of good answers in each group comes from its Beta posterior with
    Jeffreys' prior, so that they have a width where all labels agree, and the sizes of the groups from a Bayesian
    bootstrap of the trials, which are a sample too.
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
    """Return each quality for each row: `good` has the share of good answers in each group, `weights` its size."""
    import numpy as np

    share = weights / weights.sum(1, keepdims=True)
    right_pass = (good * share)[:, verdicts].sum(1)
    right_fail = ((1 - good) * share)[:, ~verdicts].sum(1)
    truly, passed = (good * share).sum(1), share[:, verdicts].sum(1)
    accuracy = right_pass + right_fail
    chance = truly * passed + (1 - truly) * (1 - passed)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "sensitivity": np.minimum(1, right_pass / truly),  # rounding must not lead beyond 1
            "specificity": np.minimum(1, right_fail / (1 - truly)),
            "accuracy": accuracy,
            "kappa": (accuracy - chance) / (1 - chance),
        }


def association(errors: Sequence[float], other: Sequence[float], weights: Sequence[float]) -> Estimate | None:
    """Return Spearman's rank correlation, with an interval by Bonett and Wright (Psychometrika 65, 2000).

    None where fewer than five pairs exist, or one side does not vary.
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
    """Return the agreement of two labellers beyond chance (J. Cohen, Educ. Psychol. Meas. 20, 1960).

    Each pair holds the two labels of one answer. The interval is a bootstrap over answers; None where both always gave
    one and the same label, as chance alone would then agree too.
    """
    return _resampled(pairs, _kappa)


def krippendorff_alpha(units: Sequence[Sequence[Hashable]]) -> Estimate | None:
    """Return the agreement of any number of labellers, of which some may have left units out.

    For nominal labels (K. Krippendorff, Content Analysis, 2004, ch. 11). Each unit holds the labels that it was given.
    """
    return _resampled([unit for unit in units if len(unit) > 1], _alpha)


def _resampled(units: Sequence[Any], statistic: Callable[[Sequence[Any]], float | None]) -> Estimate | None:
    """Return a statistic with its bootstrap interval; no interval where all agree, as resamples then do not vary."""
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

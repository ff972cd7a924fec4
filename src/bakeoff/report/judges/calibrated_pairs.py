"""Compare two subjects by what labels show instead of by what a judge said."""

from collections.abc import Sequence

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import visible
from bakeoff.report.judges.calibration import Calibration, Judgements
from bakeoff.stats.calibration import CorrectedDifference, compared_trials, corrected_difference, missing_labels
from bakeoff.stats.comparison import Comparison
from bakeoff.stats.intervals import ALPHA


class CalibratedPair(FrozenModel):
    """The difference of two subjects in the eyes of one judge, corrected by labels of both."""

    scorer: str
    baseline: Calibration
    candidate: Calibration
    corrected: CorrectedDifference | None = None
    alone: bool  # nothing but this judge scored the two, so that its score is the score
    lacking_in_common: str | None = None  # which labels are missing among the cases that both have

    @property
    def lacking(self) -> str | None:
        """Say which labels are missing, or return None where both scores are corrected."""
        sides = (("baseline", self.baseline), ("candidate", self.candidate))
        missing = [f"in the {side}, {one.lacking}" for side, one in sides if one.lacking]
        return "; ".join(missing) or self.lacking_in_common


def calibrated_pairs(
    old: Judgements,
    new: Judgements,
    subjects: tuple[str, str],
    *,
    unlabelled: bool = False,
    level: float = ALPHA,
) -> tuple[CalibratedPair, ...]:
    """Return every judge that scored both; those without any label only if `unlabelled` asks for them.

    `level` is that of the intervals, less than 5 % where several subjects are compared.
    """
    judges = [scorer for scorer in old.scorers if subjects[0] in old.of(scorer) and subjects[1] in new.of(scorer)]
    known = old.labels.scorers | new.labels.scorers
    return tuple(_pair(old, new, subjects, scorer, level) for scorer in judges if unlabelled or scorer in known)


def _pair(old: Judgements, new: Judgements, subjects: tuple[str, str], scorer: str, level: float) -> CalibratedPair:
    found = CalibratedPair(
        scorer=scorer,
        baseline=old.calibration(scorer, subjects[0]),
        candidate=new.calibration(scorer, subjects[1]),
        alone=old.names | new.names == {scorer},
    )
    if found.lacking:
        return found
    trials = compared_trials(old.trials(scorer, subjects[0]), new.trials(scorer, subjects[1]))
    if missing := next(filter(None, map(missing_labels, trials)), None):
        return found.model_copy(update={"lacking_in_common": f"among the cases that both have, {missing}"})
    difference = corrected_difference(*trials, level=level)
    return found.model_copy(update={"corrected": difference})


def by_labels(compared: Comparison, pairs: Sequence[CalibratedPair]) -> Comparison:
    """Return a comparison by the corrected scores, where one judge alone scored and both sides have labels."""
    corrected = pairs[0].corrected if len(pairs) == 1 and pairs[0].alone else None
    if corrected is None:
        return compared
    return compared.model_copy(
        update={
            "baseline": corrected.baseline,
            "candidate": corrected.candidate,
            "difference": corrected.difference,
            "interval": corrected.interval,
            "inner": corrected.inner,
            "p_value": corrected.p_value,
            "test": "t of the corrected scores",
        }
    )


def refusal(pairs: Sequence[CalibratedPair], sources: Sequence[str]) -> str | None:
    """Say why judged scores are not calibrated, and how to label; None where they are, or nothing is judged."""
    missing = next((pair for pair in pairs if pair.lacking), None)
    if missing is None:
        return None
    commands = " and ".join(f"`bakeoff label {visible(name, 100)}`" for name in dict.fromkeys(sources))
    judge = f"the judge {visible(repr(missing.scorer), 60)}"
    return f"refused: {judge} is not calibrated: {missing.lacking}. Label answers with {commands}"

"""Compare a judge with the labels of people: how often it is right, how often it contradicts itself, what sways it."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import fsum

from bakeoff._kernel.model import FrozenModel
from bakeoff.plan import Plan
from bakeoff.report.judges.calibration import Calibration, Judgement, Judgements, settled
from bakeoff.stats.agreement import (
    Estimate,
    JudgeQuality,
    LabelledGroup,
    association,
    cohen_kappa,
    judge_quality,
    krippendorff_alpha,
)
from bakeoff.stats.calibration import JudgedTrial
from bakeoff.stats.cells import CaseKey, Cell
from bakeoff.stats.rounds import FlipRate, flip_rate_within
from bakeoff.storage.labels import Labels

_USUAL_CUT = 0.5


class LabellerPair(FrozenModel):
    """How far two labellers agree beyond chance."""

    labellers: tuple[str, str]
    answers: int  # that both labelled
    kappa: Estimate | None


class Agreement(FrozenModel):
    """How far labellers agree with each other."""

    labellers: dict[str, int]  # answers that each passed or failed
    pairs: tuple[LabellerPair, ...]
    alpha: Estimate | None  # Krippendorff's, over all labellers


class JudgeAudit(FrozenModel):
    """A judge in one run against the labels."""

    run: str
    scorer: str
    judge: str  # its model, if known
    cut: float  # the score from which on the judge passes an answer
    trials: int
    labels: int  # trials with a label
    outdated: int  # labels of answers that are not in the run any more
    damaged: int  # lines of the labels file that cannot be read
    quality: JudgeQuality
    flips: FlipRate | None
    flips_from: str  # where the repeated verdicts come from, or why there are none
    length_bias: Estimate | None  # positive: long answers are judged too kindly
    position_bias: Estimate | None  # positive: later answers are judged too kindly
    subjects: tuple[Calibration, ...]
    agreement: Agreement


def agreement_of(labels: Labels, scorer: str) -> Agreement:
    """Return how far the labellers of a judge's answers agree with each other."""
    by_answer = labels.of_scorer(scorer)
    names = sorted({name for given in by_answer.values() for name in given})
    pairs = []
    for one, other in combinations(names, 2):
        both = [
            (given[one].label, given[other].label) for given in by_answer.values() if one in given and other in given
        ]
        if both:
            pairs.append(LabellerPair(labellers=(one, other), answers=len(both), kappa=cohen_kappa(both)))
    units = [[label.label for label in given.values()] for given in by_answer.values()]
    counts = {name: sum(name in given for given in by_answer.values()) for name in names}
    return Agreement(labellers=counts, pairs=tuple(pairs), alpha=krippendorff_alpha(units))


def audit_judge(
    run: str,
    plan: Plan,
    found: Judgements,
    scorer: str,
    *,
    cut: float | None = None,
    repeated: Mapping[str, Sequence[float]] | None = None,
    repeated_from: str = "",
) -> JudgeAudit:
    """Audit one judge. `repeated` has its scores of the same answer, asked several times, by attempt key."""
    cut = usual_cut(plan) if cut is None else cut
    judged = found.of(scorer)
    labelled = found.labels.of_scorer(scorer)
    known = {one.place for ones in judged.values() for one in ones}
    calibrations = tuple(found.calibration(scorer, subject) for subject in judged)
    errors = _errors(found, scorer)
    return JudgeAudit(
        run=run,
        scorer=scorer,
        judge=next((one.judge for one in calibrations if one.judge), ""),
        cut=cut,
        trials=sum(map(len, judged.values())),
        labels=sum(place in known for place in labelled),
        outdated=sum(place not in known for place in labelled),
        damaged=found.labels.damaged,
        quality=judge_quality(_groups(found, scorer, cut)),
        flips=_flips(repeated or {}, cut),
        flips_from=repeated_from,
        length_bias=_bias(errors, [float(one.length) for one, _, _ in errors]),
        position_bias=_bias(errors, [one.started for one, _, _ in errors]),
        subjects=calibrations,
        agreement=agreement_of(found.labels, scorer),
    )


def usual_cut(plan: Plan) -> float:
    """Return the threshold of the plan or, if all its cases share one, theirs; else one half."""
    rules = {case.pass_rule.threshold for case in plan.cases if case.pass_rule is not None}
    own = rules.pop() if len(rules) == 1 else None
    return next((cut for cut in (plan.threshold, own) if cut is not None), _USUAL_CUT)


def _groups(found: Judgements, scorer: str, cut: float) -> list[LabelledGroup]:
    """Return the trials of each subject, stratum and verdict, with their labels."""
    groups: dict[tuple[str, int, bool], list[JudgedTrial]] = {}
    for subject in found.of(scorer):
        for trial in found.trials(scorer, subject):
            if trial.stratum is not None:
                groups.setdefault((subject, trial.stratum, trial.score >= cut - 1e-9), []).append(trial)
    return [_group(passed, trials) for (_, _, passed), trials in groups.items()]


def _group(passed: bool, trials: Sequence[JudgedTrial]) -> LabelledGroup:
    """Count labels by their weights; they count for fewer where the weights are unequal (Kish)."""
    labelled = [(trial.label, trial.weight) for trial in trials if trial.label is not None]
    total, squares = fsum(weight for _, weight in labelled), fsum(weight**2 for _, weight in labelled)
    size = total**2 / squares if labelled else 0.0
    share = fsum(label * weight for label, weight in labelled) / total if labelled else 0.0
    return LabelledGroup(passed=passed, trials=len(trials), labels=size, label_passes=size * share)


def _errors(found: Judgements, scorer: str) -> list[tuple[Judgement, float, float]]:
    """Return each labelled trial with the judge's error (score minus label) and the weight of the label."""
    labels, errors = found.labels.of_scorer(scorer), []
    for subject, ones in found.of(scorer).items():
        trials = found.trials(scorer, subject)
        for one, trial in zip(ones, trials, strict=False):  # trials without an answer come last
            if one.place in labels:
                errors.append((one, one.score - settled(labels[one.place].values()), trial.weight))
    return errors


def _bias(errors: Sequence[tuple[Judgement, float, float]], other: Sequence[float]) -> Estimate | None:
    return association([error for _, error, _ in errors], other, [weight for _, _, weight in errors])


def _flips(repeated: Mapping[str, Sequence[float]], cut: float) -> FlipRate | None:
    cells = {
        CaseKey(attempt): Cell.of(score >= cut - 1e-9 for score in scores)
        for attempt, scores in repeated.items()
        if len(scores) > 1
    }
    return flip_rate_within(cells) if cells else None

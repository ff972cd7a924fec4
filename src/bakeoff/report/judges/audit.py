"""Audit a judge against the labels of people: its accuracy, its consistency, and its biases.

`audit_judge` computes the numbers, `describe_judge_audit` describes them as blocks.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import fsum

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import count_of
from bakeoff.plan import Plan
from bakeoff.report.blocks import Block, Column, Datum, Phrase, Quote, Report, Section, Table, TextBlock, Value, columns
from bakeoff.report.formatting import UNKNOWN, percent, span
from bakeoff.report.judges.calibration import Calibration, Judgement, Judgements, calibration_table, settled
from bakeoff.stats.calibration import (
    Estimate,
    JudgedTrial,
    JudgeQuality,
    LabelledGroup,
    association,
    cohen_kappa,
    judge_quality,
    krippendorff_alpha,
)
from bakeoff.stats.cells import CaseKey, Cell
from bakeoff.stats.rounds import FlipRate, flip_rate_within
from bakeoff.storage.labels import Labels

_USUAL_CUT = 0.5


class LabellerPair(FrozenModel):
    """The agreement of two labellers beyond chance: Cohen's kappa, over the answers that both labelled."""

    labellers: tuple[str, str]
    answers: int  # the number that both labelled
    kappa: Estimate | None


class Agreement(FrozenModel):
    """The agreement of labellers with each other, in pairs and all together."""

    labellers: dict[str, int]  # answers that each passed or failed
    pairs: tuple[LabellerPair, ...]
    alpha: Estimate | None  # Krippendorff's, over all labellers


class JudgeAudit(FrozenModel):
    """The audit of a judge in one run against the labels of people."""

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
        common = [given for given in by_answer.values() if one in given and other in given]
        if both := [(given[one].label, given[other].label) for given in common]:
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
    """Audit one judge of a run against the labels of people.

    Args:
        run: the name of the run.
        plan: the plan of the run.
        found: the judged trials with their labels.
        scorer: the name of the judge.
        cut: the lowest score with which the judge passes an answer; by default, as in the plan.
        repeated: the judge's scores when asked repeatedly about one answer, by attempt key.
        repeated_from: the source of these scores, or why there are none.
    """
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
    """Return the threshold of the plan, or else the one that all its cases share, or else 0.5."""
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
    """Count labels by weight. Unequal weights reduce the effective number of labels (Kish)."""
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
    asked = {attempt: [score >= cut - 1e-9 for score in scores] for attempt, scores in repeated.items()}
    cells = {CaseKey(attempt): Cell.of(passed) for attempt, passed in asked.items() if len(passed) > 1}
    return flip_rate_within(cells) if cells else None


def describe_judge_audit(audit: JudgeAudit) -> Report:
    """Describe the quality of a judge, its biases, the corrected scores, and the labellers."""
    quality = audit.quality
    figures = [*((name, found, True) for name, found, _ in _shares(quality)), ("Kappa", quality.kappa, False)]
    flips = audit.flips
    around = f"95 %: {span(flips.interval)}" if flips and flips.interval else "" if flips else "not asked twice"
    tiles = (
        *((name, _number(one, as_share=share), _range(one, as_share=share)) for name, one, share in figures),
        ("Flips", percent(flips.rate if flips else None), around),
        ("Labels", f"{audit.labels:,}", f"of {count_of(audit.trials, 'answer')}"),
    )
    corrected = calibration_table(audit.subjects, audit.run)
    sections = (
        Section("quality", "Judge against labels", (_quality(audit), *_warnings(audit))),
        Section("scores", "Corrected scores", (corrected or TextBlock("The judge has scored nothing."),)),
        Section("labellers", "Labellers", tuple(agreement_blocks(audit.agreement))),
    )
    model = (" (", Quote(audit.judge), ")") if audit.judge else ()
    title = ("Audit of ", Quote(audit.scorer), *model, " in ", Quote(audit.run))
    return Report(title, sections, headline=_headline(audit), tiles=tiles)


def _headline(audit: JudgeAudit) -> str:
    quality = audit.quality
    if not audit.labels:
        return "Nothing is labelled yet."
    parts = []
    if quality.sensitivity:
        parts.append(f"passes {percent(quality.sensitivity.value)} of the good answers")
    if quality.specificity:
        parts.append(f"fails {percent(quality.specificity.value)} of the bad ones")
    return f"The judge {' and '.join(parts)}." if parts else "The labels are too few to tell how good the judge is."


def _shares(quality: JudgeQuality) -> tuple[tuple[str, Estimate | None, str], ...]:
    """Return the shares that tell how good a judge is, each with its name and meaning."""
    return (
        ("Sensitivity", quality.sensitivity, "good answers that the judge passes"),
        ("Specificity", quality.specificity, "bad answers that the judge fails"),
        ("Accuracy", quality.accuracy, "answers on which judge and labels agree"),
    )


def _quality(audit: JudgeAudit) -> Table:
    quality = audit.quality
    rows: list[tuple[Value, ...]] = [
        (name, percent(found.value if found else None), span(found.interval) if found else UNKNOWN, meaning)
        for name, found, meaning in _shares(quality)
    ]
    if audit.flips:
        meaning = f"two verdicts on one answer that disagree; {audit.flips_from}"
        rows.append(("Flips", percent(audit.flips.rate), span(audit.flips.interval), meaning))
    rows += [
        (name, _number(found, as_share=False), _plain_range(found), meaning)
        for name, found, meaning in (
            ("Kappa", quality.kappa, "1: full agreement; 0: what chance alone would give"),
            ("Length bias", audit.length_bias, "above 0: long answers are judged too kindly (rank correlation)"),
            ("Position bias", audit.position_bias, "above 0: later answers are judged too kindly"),
        )
    ]
    titles = (Column("Measure"), Column("Value", "end"), Column("95 % interval", "end"), Column("Meaning", drop=1))
    return Table(titles, tuple(rows), "The judge against the labels", tuple(_quality_notes(audit)))


def _quality_notes(audit: JudgeAudit) -> Iterator[Phrase]:
    yield f"The judge passes an answer at a score of {audit.cut:g} or more."
    yield "Labels are weighted by the strata that they were drawn from, so that the numbers hold for the whole run."
    if audit.flips is None:
        yield f"Flips are unknown: {audit.flips_from}."
    if audit.labels and (audit.length_bias is None or audit.position_bias is None):
        yield "A bias is unknown where the judge made no error, or all answers are alike."


def _warnings(audit: JudgeAudit) -> Iterator[Block]:
    if audit.outdated:
        outdated = count_of(audit.outdated, "label is", "labels are")
        yield TextBlock(f"{outdated} of answers that are not in the run any more.", tone="lost")
    if audit.damaged:
        yield TextBlock(f"{count_of(audit.damaged, 'line')} of labels.jsonl cannot be read: left out.", tone="lost")


def agreement_blocks(agreement: Agreement) -> list[Block]:
    """Describe how many answers each person labelled, and how far they agree."""
    if not agreement.labellers:
        return [TextBlock("Nobody has labelled anything for this judge.")]
    rows = tuple((Quote(name), count) for name, count in agreement.labellers.items())
    blocks: list[Block] = [Table(columns("Labeller", "Labels>"), rows, "Who labelled how much")]
    if agreement.pairs:
        titles = (*columns("Labellers", "Answers>", "Kappa>"), Column("95 % interval", "end"))
        pairs: list[tuple[Value, ...]] = []
        for pair in agreement.pairs:
            names = Datum((Quote(pair.labellers[0]), " and ", Quote(pair.labellers[1])))
            pairs.append((names, pair.answers, _number(pair.kappa, as_share=False), _plain_range(pair.kappa)))
        alpha = agreement.alpha
        said = f"Krippendorff's alpha over all labellers: {_number(alpha, as_share=False)}"
        said += f" (95 % interval {_plain_range(alpha)})" if alpha and alpha.interval else ""
        blocks.append(Table(titles, tuple(pairs), "Agreement between labellers", (f"{said}.",)))
    else:
        text = "One labeller: agreement needs a second one, with `bakeoff label --labeller NAME`."
        blocks.append(TextBlock(text))
    return blocks


def _number(found: Estimate | None, *, as_share: bool) -> str:
    if found is None:
        return UNKNOWN
    return percent(found.value) if as_share else f"{found.value:.2f}"


def _plain_range(found: Estimate | None) -> str:
    if found is None or found.interval is None:
        return UNKNOWN
    return f"{found.interval.low:.2f} to {found.interval.high:.2f}"


def _range(found: Estimate | None, *, as_share: bool) -> str:
    if found is None or found.interval is None:
        return "unknown" if found is None else ""
    return f"95 %: {span(found.interval) if as_share else _plain_range(found)}"

"""Collect the scores that judges gave in a run, and correct them by the labels of people.

Judgements          the scores of judges, by scorer and subject; add every record that counts
Calibration         one judge's score of one subject, corrected if there are enough labels
CalibratedPair      the difference between two subjects by one judge, corrected by labels
calibration_table   shows corrected scores beside the judges' scores
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import count_of, visible
from bakeoff.plan import CLUSTER_TAG, Plan
from bakeoff.record import Record, Score
from bakeoff.report.blocks import Column, Datum, Phrase, Quote, Table, Value
from bakeoff.report.formatting import as_text, percent
from bakeoff.report.scores import interval_datum
from bakeoff.stats.calibration import (
    CorrectedDifference,
    CorrectedScore,
    JudgedTrial,
    Strata,
    compared_trials,
    corrected_difference,
    corrected_score,
    missing_labels,
)
from bakeoff.stats.cells import CaseKey
from bakeoff.stats.comparison import Comparison
from bakeoff.stats.intervals import ALPHA
from bakeoff.storage.labels import Label, Labels, answer_digest

NO_LABELS = Labels({})
JUDGE = "judge"
"""The key in a score's metadata that names the model that judged."""

_PASS = {"pass": 1.0, "fail": 0.0}


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judge's score of one trial."""

    attempt_key: str
    case: str
    round: int
    score: float
    judge: str = ""  # its model, if known
    answer: str | None = None  # the fingerprint of the answer; None: there was none
    length: int = 0  # of the answer, in characters
    started: float = 0.0
    repeats: tuple[float, ...] = ()  # the scores of a judge that was asked several times

    @property
    def place(self) -> tuple[str, str]:
        """Return the key of the judged answer: a label counts only for exactly this answer."""
        return self.attempt_key, self.answer or ""


class Calibration(FrozenModel):
    """The score that a judge gave a subject, corrected by labels."""

    scorer: str
    subject: str
    judge: str
    trials: int
    labels: int
    skipped: int = 0  # answers that people skipped, and that have no label
    corrected: CorrectedScore | None = None
    lacking: str | None = None  # the reason why it is not corrected


class Judgements:
    """The judged trials of a run. Add each trial's latest record once, in any order."""

    def __init__(
        self,
        plan: Plan,
        labels: Labels = NO_LABELS,
        *,
        keys: Mapping[str, CaseKey] | None = None,
        also: str | None = None,  # another scorer to treat as a judge
        only_labelled: bool = False,  # collects nothing if the run has no labels
    ) -> None:
        self.labels = labels
        self._idle = only_labelled and not labels.by_labeller
        self._judges = labels.scorers | ({also} if also else set())
        self._keys = keys or {}
        self._clusters = {case.id: case.tags.get(CLUSTER_TAG) for case in plan.cases}
        self._subjects = [spec.name for spec in plan.subjects]
        self._scored: dict[str, dict[str, list[Judgement]]] = {}
        self.names: set[str] = set()  # of all scorers
        self._unanswered: dict[str, list[Judgement]] = {}  # by subject: trials without an answer score 0

    def add(self, record: Record) -> None:
        """Add the judges' scores of one trial. Trials that do not count for the subject are ignored."""
        if self._idle or record.value is None or not record.verdict.counts:
            return
        about = (record.attempt_key, record.case, record.round)
        if record.failure is not None or record.transcript is None:
            self._unanswered.setdefault(record.subject, []).append(Judgement(*about, score=0.0))
            return
        for score in record.scores:
            self.names.add(score.name)
            judge = score.metadata.get(JUDGE)
            if score.value is None or not (isinstance(judge, str) or score.name in self._judges):
                continue
            output, files = record.transcript.output, record.artefacts
            text = as_text(output)
            found = Judgement(
                *about,
                score=score.value,
                judge=judge if isinstance(judge, str) else "",
                answer=answer_digest(output, files),
                length=len(text) + sum(map(len, files.values())),
                started=record.started,
                repeats=repeated_scores(score),
            )
            self._scored.setdefault(score.name, {}).setdefault(record.subject, []).append(found)

    @property
    def scorers(self) -> list[str]:
        """Return the names of the scorers that are judges."""
        return list(self._scored)

    def of(self, scorer: str) -> dict[str, list[Judgement]]:
        """Return the judgements of a scorer, by subject in the order of the plan."""
        scored = self._scored.get(scorer, {})
        return {subject: scored[subject] for subject in self._subjects if subject in scored}

    def strata(self, scorer: str, subject: str) -> Strata:
        """Divide a judge's scores of a subject into strata."""
        return Strata(one.score for one in self.of(scorer).get(subject, ()))

    def trials(self, scorer: str, subject: str) -> list[JudgedTrial]:
        """Return the trials of a subject with their labels, for `corrected_score`."""
        strata, labels = self.strata(scorer, subject), self.labels.of_scorer(scorer)
        scored, skipped = self.of(scorer).get(subject, []), self.labels.skipped(scorer)
        sampled = {one.place: labels[one.place] for one in scored if one.place in labels}
        # Each label stands for a part of the trials in the stratum from which it was drawn.
        drawn = {place: max(given.values(), key=lambda label: label.time) for place, given in sampled.items()}
        counts = Counter(label.stratum for label in drawn.values())
        weights = {place: max(1.0, label.size / counts[label.stratum]) for place, label in drawn.items()}
        trials = [
            JudgedTrial(
                case=self._key(one),
                score=one.score,
                stratum=strata.of(one.score),
                label=settled(sampled[one.place].values()) if one.place in sampled else None,
                weight=weights.get(one.place, 1.0),
                cluster=self._clusters.get(one.case),
                skipped=one.place in skipped,
            )
            for one in scored
        ]
        lost = self._unanswered.get(subject, ())
        return trials + [JudgedTrial(self._key(one), 0.0, cluster=self._clusters.get(one.case)) for one in lost]

    def _key(self, one: Judgement) -> CaseKey:
        return self._keys.get(one.case) or CaseKey(one.case)

    def calibration(self, scorer: str, subject: str) -> Calibration:
        """Correct a judge's score of a subject, or say which labels are missing."""
        trials = self.trials(scorer, subject)
        lacking = missing_labels(trials)
        return Calibration(
            scorer=scorer,
            subject=subject,
            judge=next((one.judge for one in self.of(scorer).get(subject, []) if one.judge), ""),
            trials=len(trials),
            labels=sum(trial.label is not None for trial in trials),
            skipped=sum(trial.skipped for trial in trials),
            corrected=None if lacking else corrected_score(trials),
            lacking=lacking,
        )

    def calibrations(self) -> tuple[Calibration, ...]:
        """Return the corrected scores of every judge that has any labels."""
        known = [scorer for scorer in self.scorers if scorer in self.labels.scorers]
        return tuple(self.calibration(scorer, subject) for scorer in known for subject in self.of(scorer))


def repeated_scores(score: Score) -> tuple[float, ...]:
    """Return the single scores of a judge that was asked several times. `scorers.judge` keeps them as `values`."""
    values = score.metadata.get("values")
    numbers = [value for value in values if isinstance(value, int | float)] if isinstance(values, list) else []
    return tuple(map(float, numbers))


def settled(labels: Iterable[Label]) -> float:
    """Return the majority of labels: 1 for pass, 0 for fail, and 0.5 for a tie."""
    given = [_PASS[label.label] for label in labels if label.label in _PASS]
    passes = sum(given)
    return 0.5 if 2 * passes == len(given) else float(2 * passes > len(given))


_COLUMNS = (
    Column("Subject"),
    Column("Judge's score", align="end", help="the mean over cases of the mean over rounds, as the judge gave it"),
    Column("Corrected", align="end", help="the score that labels show"),
    Column("95 % interval", align="end", help="of the corrected score; it includes the judge's own error"),
    Column("Labels", align="end", help="labelled trials, of all"),
    Column("Scorer", drop=1),
)


def calibration_table(calibrations: Sequence[Calibration], run: str) -> Table | None:
    """Return the judges' scores beside the corrected ones, or None if nothing is labelled."""
    if not calibrations:
        return None
    rows = tuple(_row(one) for one in calibrations)
    return Table(_COLUMNS, rows, "Scores of judges, corrected by labels", tuple(_notes(calibrations, run)))


def _row(one: Calibration) -> tuple[Value, ...]:
    found = one.corrected
    return (
        Datum(Quote(one.subject), sort=one.subject, tone="strong"),
        Datum(percent(found.raw if found else None), sort=found.raw if found else None),
        Datum(percent(found.value if found else None), sort=found.value if found else None, tone="strong"),
        interval_datum(found.value, found.interval) if found else Datum("too few labels", tone="lost"),
        Datum(f"{one.labels:,}/{one.trials:,}", sort=one.labels),
        Quote(one.scorer),
    )


def _notes(calibrations: Sequence[Calibration], run: str) -> Iterable[Phrase]:
    known = [one.corrected.interval for one in calibrations if one.corrected]
    if methods := sorted({interval.method for interval in known if interval}):
        yield f"Corrected by labels of people; {', '.join(methods)}. The interval includes the judge's own error."
    if skipped := sum(one.skipped for one in calibrations):
        yield f"People skipped {count_of(skipped, 'answer')}; above 10 % of those seen, the score is marked."
    for one in calibrations:
        if one.lacking:
            yield (Quote(one.subject), f": {one.lacking}. Label more with ", Quote(f"bakeoff label {run}"), ".")


class CalibratedPair(FrozenModel):
    """The difference between two subjects by one judge's scores, corrected by labels of both."""

    scorer: str
    baseline: Calibration
    candidate: Calibration
    corrected: CorrectedDifference | None = None
    alone: bool  # this judge is the only scorer of both subjects
    lacking_in_common: str | None = None  # which labels are missing among the cases that both have

    @property
    def lacking(self) -> str | None:
        """Say which labels are missing, or return None if both scores are corrected."""
        sides = (("baseline", self.baseline), ("candidate", self.candidate))
        missing = [f"in the {side}, {one.lacking}" for side, one in sides if one.lacking]
        return "; ".join(missing) or self.lacking_in_common


def calibrated_pairs(
    old: Judgements, new: Judgements, subjects: tuple[str, str], *, unlabelled: bool = False, level: float = ALPHA
) -> tuple[CalibratedPair, ...]:
    """Return a pair for each judge that scored both subjects; skip judges without labels by default.

    `level` is the error level of the intervals: less than 5 % if several subjects are compared.
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
    """Base a comparison on corrected scores if only one judge scored and both sides have labels."""
    corrected = pairs[0].corrected if len(pairs) == 1 and pairs[0].alone else None
    if corrected is None:
        return compared
    names = ("baseline", "candidate", "difference", "interval", "inner", "p_value")
    found = {name: getattr(corrected, name) for name in names}
    return compared.model_copy(update={**found, "test": "t of the corrected scores"})


def refusal(pairs: Sequence[CalibratedPair], sources: Sequence[str]) -> str | None:
    """Say why judged scores are not calibrated, and how to label; None if all are, or if nothing is judged."""
    missing = next((pair for pair in pairs if pair.lacking), None)
    if missing is None:
        return None
    commands = " and ".join(f"`bakeoff label {visible(name, 100)}`" for name in dict.fromkeys(sources))
    judge = f"the judge {visible(repr(missing.scorer), 60)}"
    return f"refused: {judge} is not calibrated: {missing.lacking}. Label answers with {commands}"

"""Draw the answers of a run that people label, without telling them who gave an answer or how it was judged."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from bakeoff._kernel.model import fingerprint
from bakeoff._kernel.text import visible
from bakeoff.errors import UsageError
from bakeoff.plan import Plan
from bakeoff.record import Record
from bakeoff.report.judges.calibration import Judgement, Judgements
from bakeoff.report.summary import is_control
from bakeoff.storage.labels import Choice, Label, answer_digest, read_labels
from bakeoff.storage.run_folder import RunFolder

LABELS_PER_SUBJECT = 30
"""The labels of each subject that a person is asked for, unless another number is."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """An answer to label, and how it was drawn."""

    record: Record
    scorer: str
    judged: float
    answer: str
    stratum: int
    size: int  # trials of the same subject in the same stratum

    @property
    def output(self) -> JsonValue:
        """Return what the subject answered."""
        return self.record.transcript.output if self.record.transcript else None

    def labelled(self, time: float, labeller: str, label: Choice | None, note: str = "") -> Label:
        """Return what one person says of it; None takes an earlier label back."""
        return Label(
            time=time,
            labeller=labeller,
            scorer=self.scorer,
            case=self.record.case,
            subject=self.record.subject,
            round=self.record.round,
            attempt_key=self.record.attempt_key,
            answer=self.answer,
            judged=self.judged,
            stratum=self.stratum,
            size=self.size,
            label=label,
            note=note,
        )


def read_judgements(folder: RunFolder, plan: Plan, scorer: str | None = None) -> Judgements:
    """Read the judged trials of a run; `scorer` may name one that does not say that it is a judge."""
    labels = read_labels(folder.labels_file)
    found = Judgements(plan, labels, also=scorer)
    for record in folder.latest_records(plan):
        found.add(record)
    return found


def judge_of(found: Judgements, plan: Plan, wanted: str | None, run: str) -> str:
    """Return the judge to look at: the one that is wanted, or the only one of the run."""
    judges = found.scorers
    names = ", ".join(visible(repr(name), 60) for name in judges)
    if wanted is not None and wanted in judges:
        return wanted
    if wanted is None and len(judges) == 1:
        return judges[0]
    if wanted is None and judges:
        raise UsageError(f"run {run} has several judges ({names}): choose one with --scorer")
    if wanted is not None:
        others = f"; its judges are {names}" if judges else ""
        raise UsageError(f"--scorer {visible(repr(wanted), 60)} has scored nothing in run {run}{others}")
    scorers = ", ".join(visible(repr(name), 60) for name in plan.scorer_names)
    hint = f" (--scorer names another one of {scorers})" if scorers else ""
    raise UsageError(f"no model judged anything in run {run}, so that there is nothing to calibrate{hint}")


def draw(folder: RunFolder, plan: Plan, scorer: str | None, count: int | None) -> list[Drawn]:
    """Draw answers in equal numbers from each stratum of each subject, always in the same order.

    Everybody who labels a run gets the same answers, so that labels can be compared. Controls are left out.
    """
    found = read_judgements(folder, plan, scorer)
    name = judge_of(found, plan, scorer, folder.label)
    controls = {spec.name for spec in plan.subjects if is_control(spec, bound=False)}
    by_subject = {subject: ones for subject, ones in found.of(name).items() if subject not in controls}
    by_subject = by_subject or found.of(name)
    groups: dict[tuple[str, int], list[Judgement]] = {}
    for subject, ones in by_subject.items():
        strata = found.strata(name, subject)
        for one in ones:
            groups.setdefault((subject, strata.of(one.score)), []).append(one)
    most = LABELS_PER_SUBJECT * len(by_subject) if count is None else count
    chosen = {one.attempt_key: (place, one) for place, one in _in_turn(groups, most)}
    records = {record.attempt_key: record for record in folder.latest_records(plan) if record.attempt_key in chosen}
    return [
        Drawn(records[key], name, one.score, one.answer or "", place[1], len(groups[place]))
        for key, (place, one) in chosen.items()
        if key in records and _answer(records[key]) == one.answer
    ]


def _answer(record: Record) -> str | None:
    return answer_digest(record.transcript.output, record.artefacts) if record.transcript else None


def _in_turn(groups: dict[tuple[str, int], list[Judgement]], most: int) -> Iterator[tuple[tuple[str, int], Judgement]]:
    """Yield one of each group in turn, in an order that looks random and is always the same.

    Each turn is shuffled as well: the order must not tell the groups apart.
    """
    queues = {
        place: sorted(ones, key=lambda one: fingerprint("draw", one.attempt_key)) for place, ones in groups.items()
    }
    turn = 0
    while most > 0 and queues:
        drawn = [(place, queue[turn]) for place, queue in queues.items() if turn < len(queue)]
        if not drawn:
            return
        drawn.sort(key=lambda pair: fingerprint("turn", pair[1].attempt_key))
        yield from drawn[:most]
        most -= len(drawn)
        turn += 1

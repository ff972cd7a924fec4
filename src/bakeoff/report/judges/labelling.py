"""Draw answers of a run for people to label, without showing them the subject or the judge's score.

A judge can also be asked again about the answers that have a label.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path

from pydantic import JsonValue

from bakeoff._kernel.model import fingerprint
from bakeoff._kernel.text import count_of, visible
from bakeoff._kernel.threads import call
from bakeoff.engine.registry import needs_of
from bakeoff.engine.resources import open_resources
from bakeoff.engine.trial import as_score
from bakeoff.errors import BakeoffError, GraderError, UsageError
from bakeoff.plan import Plan
from bakeoff.protocols import ModelJudge, ScoreInput, Scorer, Workspace
from bakeoff.record import NO_USAGE, Record, Transcript, Usage
from bakeoff.report.judges.calibration import JUDGE, Judgement, Judgements, repeated_scores
from bakeoff.report.summary import is_control
from bakeoff.storage.labels import Choice, Label, answer_digest, read_labels
from bakeoff.storage.run_folder import RunFolder, run_folders

LABELS_PER_SUBJECT = 30
"""The number of labels per subject that a person is asked for by default."""


@dataclass(frozen=True, slots=True)
class SampledAnswer:
    """An answer to label, with the stratum from which it was drawn."""

    record: Record
    scorer: str
    judged: float
    answer: str
    stratum: int
    size: int  # trials of the same subject in the same stratum

    @property
    def output(self) -> JsonValue:
        """Return the subject's answer."""
        return self.record.transcript.output if self.record.transcript else None

    def labelled(self, time: float, labeller: str, label: Choice | None, note: str = "") -> Label:
        """Return one person's label of the answer; `label=None` withdraws an earlier label."""
        drawn = {name: getattr(self, name) for name in ("scorer", "answer", "judged", "stratum", "size")}
        trial = {name: getattr(self.record, name) for name in ("case", "subject", "round", "attempt_key")}
        return Label(time=time, labeller=labeller, label=label, note=note, **drawn, **trial)


def read_judgements(folder: RunFolder, plan: Plan, scorer: str | None = None) -> Judgements:
    """Read the judged trials of a run; `scorer` names another scorer to treat as a judge."""
    labels = read_labels(folder.labels_file)
    found = Judgements(plan, labels, also=scorer)
    for record in folder.latest_records(plan):
        found.add(record)
    return found


def judges_calibrated(records: Iterable[Record], results: Path) -> tuple[bool, str]:
    """Tell whether every judge of these records has enough labels in some run of `results`.

    Also return a sentence: the runs with the labels, or a judge with too few and how to add more.
    """
    scores = (score for record in records for score in record.scores)
    judges = {(score.name, judge) for score in scores if isinstance(judge := score.metadata.get(JUDGE), str)}
    if not judges:
        return True, "no model judged anything"
    known = dict(_labelled_judges(results, judges))
    if missing := sorted(judges - known.keys()):
        folder = visible(str(results), 200)
        way_out = f"make some with `bakeoff label latest --results {folder}`"
        return False, f"{_judge_name(missing[0])} has too few labels in the runs of {folder}: {way_out}"
    return True, "; ".join(f"{_judge_name(judge)}: {known[judge]}" for judge in sorted(judges))


def _labelled_judges(results: Path, judges: set[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the judges (each a scorer and its model) that have enough labels in a run, oldest run first."""
    for folder in run_folders(results):
        if not folder.labels_file.is_file():
            continue
        try:
            found = read_judgements(folder, folder.read_plan())
        except BakeoffError:  # a damaged run proves nothing about a judge
            continue
        for one in found.calibrations():
            if one.lacking is None and (one.scorer, one.judge) in judges:
                yield (one.scorer, one.judge), f"{count_of(one.labels, 'label')} in {folder.label}"


def _judge_name(judge: tuple[str, str]) -> str:
    return f"the judge {visible(repr(judge[0]), 60)} ({visible(judge[1], 60)})"


def judge_of(found: Judgements, plan: Plan, wanted: str | None, run: str) -> str:
    """Return the name of the judge to use: `wanted` or, if that is None, the only judge of the run.

    Raises `UsageError` if `wanted` has scored nothing, or if the run has no judge or several.
    """
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


def draw(folder: RunFolder, plan: Plan, scorer: str | None, count: int | None) -> list[SampledAnswer]:
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
        SampledAnswer(record, name, one.score, one.answer or "", place[1], len(groups[place]))
        for key, (place, one) in chosen.items()
        if (record := records.get(key)) and record.transcript  # and its answer is still the one that was judged
        if answer_digest(record.transcript.output, record.artefacts) == one.answer
    ]


def _in_turn(groups: dict[tuple[str, int], list[Judgement]], most: int) -> Iterator[tuple[tuple[str, int], Judgement]]:
    """Yield one judgement of each group in turn, in an order that looks random and is always the same.

    Each turn is shuffled as well, so that the order does not reveal the groups.
    """
    queues = [
        [(place, one) for one in sorted(ones, key=lambda one: fingerprint("draw", one.attempt_key))]
        for place, ones in groups.items()
    ]
    turns = ([pair for pair in turn if pair] for turn in zip_longest(*queues))
    shuffled = (sorted(turn, key=lambda pair: fingerprint("turn", pair[1].attempt_key)) for turn in turns)
    yield from islice(chain.from_iterable(shuffled), max(0, most))


_AT_A_TIME = 8  # questions to a judge


async def ask_again(
    judge: Scorer, scorer: str, plan: Plan, records: Sequence[Record], times: int
) -> tuple[dict[str, Sequence[float]], Usage]:
    """Ask a judge several times about recorded answers. Nothing in the run changes.

    Args:
        judge: The judge. A `ModelJudge` is called once, because it repeats its question itself.
        scorer: The name of the judge's scores.
        plan: The plan of the run.
        records: The records of the answers.
        times: How often to ask about each answer.

    Returns:
        The scores by attempt key, and the usage of the calls.
    """
    asked = 1 if isinstance(judge, ModelJudge) else times
    cases = {case.id: case for case in plan.cases}
    spent: list[Usage] = []
    limit = asyncio.Semaphore(_AT_A_TIME)
    async with open_resources(needs_of(judge).resources) as resources:

        async def scores_of(record: Record) -> list[float]:
            given = ScoreInput(
                case=cases[record.case],
                transcript=record.transcript or Transcript(),
                artefacts=record.artefacts,
                pristine=_no_workspace,
                resources=resources,
                spend=spent.append,
            )
            values: list[float] = []
            async with limit:
                for _ in range(asked):
                    score = as_score(scorer, await call(judge, given))
                    values += repeated_scores(score) or ([] if score.value is None else [score.value])
            return values

        found_scores = await asyncio.gather(*map(scores_of, records))
    by_key = zip((record.attempt_key for record in records), found_scores, strict=True)
    return dict(by_key), sum(spent, NO_USAGE)


def _no_workspace() -> AbstractAsyncContextManager[Workspace]:
    raise GraderError("--repeat asks judges that read an answer, not scorers that run commands")

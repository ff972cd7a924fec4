"""A run that a biased judge has scored: it passes most bad answers of `verbose`, whose answers are long."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec, Trial
from bakeoff.record import Record, Score
from bakeoff.report.judges.calibration import Judgements
from bakeoff.report.judges.labelling import SampledAnswer
from bakeoff.storage.labels import Choice, Label, append_label
from bakeoff.storage.run_folder import RunFolder

from .runs import record_of, write_run

LABELLER = "ann"
Judging = Callable[[random.Random, str, bool], float]
"""The score for a subject's good or bad answer."""


def lenient(random: random.Random, subject: str, good: bool) -> float:
    """Pass good answers, and bad ones too: 20 % of those by `terse`, 70 % of those by `verbose`."""
    return float(random.random() < (0.95 if good else {"terse": 0.2, "verbose": 0.7}[subject]))


def graded(random: random.Random, subject: str, good: bool) -> float:
    middle = 0.75 if good else {"terse": 0.3, "verbose": 0.6}[subject]
    return min(1.0, max(0.0, round(4 * random.gauss(middle, 0.2)) / 4))


def plan_of(cases: int = 60, *, rounds: int = 1, **more: Any) -> Plan:
    return Plan(
        name="judged",
        cases=tuple(Case(id=f"case-{n}", prompt=f"What is {n} + {n}?", expected=str(2 * n)) for n in range(cases)),
        subjects=tuple(SubjectSpec(kind="scripted", name=name) for name in ("terse", "verbose")),
        scorers=(ScorerSpec(kind="judge", options={"criteria": "Is the sum right?", "model": "scripted:judge"}),),
        rounds=rounds,
        threshold=more.pop("threshold", 0.5),
        **more,
    )


def judged_run(
    folder: Path, plan: Plan | None = None, *, seed: int = 1, good: float = 0.6, judging: Judging = lenient
) -> RunFolder:
    """Write a run in which each answer is good with the same probability, and says so: `good` or `bad`."""
    plan = plan or plan_of()
    chance = random.Random(seed)

    def record(trial: Trial) -> Record:
        right = chance.random() < good
        value = judging(chance, trial.subject.name, right)
        words = "so " * chance.randint(20, 80) if trial.subject.name == "verbose" else ""
        answer = f"{words}the {'good' if right else 'bad'} sum"
        score = Score(name="judge", value=value, reason="A: because", metadata={"judge": "scripted:judge"})
        return record_of(trial, value, output=answer, scores=(score,), threshold=plan.threshold)

    return write_run(folder, plan, map(record, plan.trials()))


def label_all(
    run: RunFolder,
    drawn: Any,
    labeller: str = LABELLER,
    choose: Callable[[Record], Choice] | None = None,
) -> None:
    """Give the labels that a careful person would."""
    for one in drawn:
        text = str(one.output)
        label: Choice = choose(one.record) if choose else "pass" if "good" in text else "fail"
        append_label(run.labels_file, label_of(one, labeller, label))


def label_of(one: SampledAnswer, labeller: str, label: Choice | None) -> Label:
    return one.labelled(1.0, labeller, label)


def judgements_of(run: RunFolder) -> Judgements:
    from bakeoff.report.judges.labelling import read_judgements

    return read_judgements(run, run.read_plan())

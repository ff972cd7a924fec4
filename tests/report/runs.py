"""Run folders made of records, without running anything."""

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec, Trial
from bakeoff.record import Failure, Phase, Record, Score, Step, Text, ToolCall, Transcript, Usage
from bakeoff.report.readers import RunFolderReader, Source
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.run_folder import RunFolder

_STARTS = count(1.0)  # a copy of a run would be refused

Values = Mapping[str, Callable[[int, int], float]]
"""Subject -> score by (place of the case, round)."""


def plan_of(cases: int, subjects: Iterable[str], *, rounds: int = 1, **more: Any) -> Plan:
    return Plan(
        name=more.pop("name", "suite"),
        cases=more.pop("case_list", None) or tuple(Case(id=f"case-{i}", prompt=f"Question {i}?") for i in range(cases)),
        subjects=tuple(SubjectSpec(kind="nop" if name == "nop" else "scripted", name=name) for name in subjects),
        scorers=(ScorerSpec(kind="exact"),),
        rounds=rounds,
        **more,
    )


def record_of(trial: Trial, value: float | None = 1.0, **more: Any) -> Record:
    """A finished trial with an answer, a tool call and a cost."""
    answer = more.pop("output", f"answer {value}")
    call = ToolCall(name="search", arguments={"q": trial.case.id}, result="found", id="1")
    usage = Usage(requests=1, input=100, output=20, cache_read=40, cost=0.01)
    steps = (Step(parts=(call, Text(text=str(answer))), usage=usage, finish_reason="stop"),)
    usual: dict[str, Any] = {
        "case": trial.case.id,
        "subject": trial.subject.name,
        "round": trial.round,
        "attempt_key": trial.attempt_key,
        "score_key": trial.score_key,
        "started": 1_700_000_000.0 + trial.index,
        "threshold": 1.0,
        "attempt": Phase(seconds=0.5),
        "transcript": Transcript(output=answer, steps=steps, usage=usage),
        "scores": (Score(name="exact", value=value, reason="" if value == 1 else f"not {trial.case.id}"),),
        "spent": usage,
    }
    return Record(**{**usual, **more})


def lost(trial: Trial, kind: str) -> Record:
    failure = Failure(kind=kind, type="Broken", message=f"{kind} of {trial.case.id}", detail="where it was")
    return record_of(trial, None, scores=(), attempt=Phase(seconds=0.1, failure=failure))


def write_run(folder: Path, plan: Plan, records: Iterable[Record], *, sandbox: str = "process") -> RunFolder:
    folder.mkdir(parents=True)
    run = RunFolder(folder)
    run.write_plan(plan, Redactor({}))
    with JournalWriter(run.journal_file, Redactor({})) as journal:
        journal.append("start", bakeoff="0.1", time=next(_STARTS), sandbox=sandbox)
        for record in records:
            journal.append_record(record)
        journal.append("end", reason="finished", time=2.0)
    return run


def run_of(folder: Path, plan: Plan, values: Values, **more: Any) -> RunFolder:
    """Every trial of the plan, with these scores."""
    places = {case.id: place for place, case in enumerate(plan.cases)}
    records = (
        record_of(trial, values[trial.subject.name](places[trial.case.id], trial.round)) for trial in plan.trials()
    )
    return write_run(folder, plan, records, **more)


def source(run: RunFolder) -> Source:
    return Source(run.path, RunFolderReader())

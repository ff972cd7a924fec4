"""Journals at any size, written as a run would write them, without running anything. The same call, the same bytes."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

from pydantic_core import to_json

from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Failure, Phase, Reasoning, Record, Score, Step, Text, ToolCall, Transcript, Usage
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.run_folder import RunFolder

PRICE = {"input": "0.000003", "output": "0.000015", "cache_read": "0.0000003", "cache_write": None}
START = 1_790_000_000.0
WORDS = (
    "reads",
    "writes",
    "another",
    "file",
    "and",
    "then",
    "runs",
    "every",
    "test",
    "until",
    "all",
    "of",
    "them",
    "pass",
)
SUBJECTS = {
    "opus": (0.82, 30.0, 18.0),
    "sonnet": (0.74, 9.0, 11.0),
    "haiku": (0.55, 2.2, 4.0),
    "mini": (0.31, 0.4, 2.0),
}
"""For each: how often it passes, the dollars of a million tokens, the seconds of a trial."""


def plan_of(cases: int, *, rounds: int = 1, subjects: int = 4, name: str = "generated") -> Plan:
    names = [*SUBJECTS, *(f"subject-{number}" for number in range(len(SUBJECTS), subjects))][:subjects]
    return Plan(
        name=name,
        cases=tuple(
            Case(id=f"case-{number:05d}", prompt=f"Solve task {number}.", tags={"kind": "generated"})
            for number in range(cases)
        ),
        subjects=tuple(SubjectSpec(kind="agent", name=name, options={"model": f"maker/{name}"}) for name in names),
        scorers=(ScorerSpec(kind="command", options={"argv": ["make", "test"]}),),
        rounds=rounds,
    )


def records_of(plan: Plan, seed: int = 0, steps: int = 3) -> Iterator[Record]:
    chance = random.Random(seed)
    hardness = [chance.random() for _ in plan.cases]
    for trial in plan.trials():
        skill, price, seconds = SUBJECTS.get(trial.subject.name, (0.5, 1.0, 5.0))
        hard = hardness[trial.index // len(plan.subjects) % len(plan.cases)]
        yield _record(plan, trial.index, chance, min(0.98, max(0.02, skill + 0.5 - hard)), price, seconds, steps)


def _record(
    plan: Plan, index: int, chance: random.Random, odds: float, price: float, seconds: float, steps: int
) -> Record:
    trial = plan.trial(index)
    fate = chance.random()
    failure = None
    if fate < 0.01:
        failure = Failure(
            kind="infra", type="InfraError", message="the provider answered 503", detail="Traceback …\n" * 5
        )
    elif fate < 0.03:
        failure = Failure(kind="timeout", type="SubjectTimeout", message="no answer in 60 seconds")
    value = 1.0 if chance.random() < odds else round(chance.random() ** 2, 2)
    said = tuple(_step(chance, number, price) for number in range(steps))
    usage = sum((step.usage for step in said), Usage())
    price_of_token = {**PRICE, "input": str(price / 1e6), "output": str(5 * price / 1e6), "cache_read": None}
    score = Score(name="command", value=value, reason="" if value == 1 else f"{100 * value:.0f} % of the tests passed")
    return Record(
        case=trial.case.id,
        subject=trial.subject.name,
        round=trial.round,
        attempt_key=trial.attempt_key,
        score_key=trial.score_key,
        started=START + index,
        threshold=plan.threshold,
        prepare=Phase(seconds=0.01),
        attempt=Phase(seconds=seconds * (0.5 + chance.random()), failure=failure),
        score=None if failure else Phase(seconds=0.5),
        transcript=Transcript(
            output="done",
            steps=said,
            usage=usage,
            metadata={"price": {**price_of_token, "key": trial.subject.name, "source": "config", "date": "2026-11-01"}},
        ),
        artefacts={"solution.py": "def solve(text):\n    return " + _words(chance, 20).replace(" ", "_") + "\n"},
        scores=() if failure else (score,),
        spent=usage,
    )


def _step(chance: random.Random, number: int, price: float) -> Step:
    given, made = 900 + 700 * number, chance.randint(80, 400)
    call = ToolCall(
        name="run_tests",
        arguments={"path": f"tests/test_{chance.randint(1, 99)}.py", "verbose": True},
        result={"passed": chance.randint(0, 9), "failed": chance.randint(0, 9), "log": _words(chance, 60)},
        duration_ms=chance.random() * 900,
    )
    return Step(
        parts=(Reasoning(text=_words(chance, 40)), Text(text=_words(chance, 60)), call),
        usage=Usage(requests=1, input=given, output=made, cost=(given + 5 * made) * price / 1e6),
        finish_reason="tool_calls",
        seconds=chance.random() * 3,
    )


def _words(chance: random.Random, number: int) -> str:
    return " ".join(chance.choices(WORDS, k=number))


def replayed(record: Record) -> Record:
    """The same, answered from recordings."""
    assert record.transcript is not None
    told = {**record.transcript.metadata, "replayed": True}
    return record.model_copy(update={"transcript": record.transcript.model_copy(update={"metadata": told})})


def write_run(
    folder: Path, plan: Plan, *, seed: int = 0, steps: int = 3, started: float = START, replays: int = 0
) -> RunFolder:
    """A run folder as a finished run leaves it; the first trials may be replays."""
    run = RunFolder(folder)
    folder.mkdir(parents=True)
    run.write_plan(plan, Redactor({}))
    with JournalWriter(run.journal_file, Redactor({})) as journal:
        journal.append("start", bakeoff="0.1.0", time=started, sandbox="bwrap")
        for place, record in enumerate(records_of(plan, seed, steps)):
            journal.append_record(replayed(record) if place < replays else record)
        journal.append("end", reason="finished", time=started + 3600)
    return run


def write_lines(folder: Path, plan: Plan | bytes, lines: list[object]) -> RunFolder:
    """A run folder with whatever one likes in its journal: bytes as they are, anything else as JSON."""
    run = RunFolder(folder)
    folder.mkdir(parents=True)
    run.plan_file.write_bytes(plan if isinstance(plan, bytes) else plan.model_dump_json(exclude_defaults=True).encode())
    written = [line if isinstance(line, bytes) else as_line(line) for line in lines]
    run.journal_file.write_bytes(b"".join(line + b"\n" for line in written))
    return run


def line_of(record: Record) -> dict[str, object]:
    data: dict[str, object] = json.loads(to_json(record.model_dump(exclude_defaults=True)))
    return {"type": "record", "v": 1, "record": data}


def as_line(data: object) -> bytes:
    """As the journal's own writer would put it, which is what reading is fast for."""
    return json.dumps(data, separators=(",", ":")).encode()

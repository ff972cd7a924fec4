"""Read a result file into a plan and records, even if it lacks `results` or a model."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from bakeoff._kernel.files import open_file, read_file
from bakeoff._kernel.text import visible
from bakeoff.doors.agents.agents import CONTROLS
from bakeoff.doors.agents.results.model import AgentsResult, Attempt, ExerciseResult
from bakeoff.doors.agents.scoring import EXERCISE, ExerciseOutcome
from bakeoff.doors.result_files import MAX_FILE_SIZE, read_limited, unreadable
from bakeoff.logs.trials import RECORDED, seconds_of
from bakeoff.plan import ORIGIN, Case, Origin, Plan, ScorerSpec, SubjectSpec, Trial
from bakeoff.record import Failure, Phase, Record, Score, Transcript, Usage
from bakeoff.report.readers import Circumstances, Description
from bakeoff.verdict import Verdict

DOOR = "agents"
_KINDS: dict[Verdict, Literal["budget", "grader"]] = {Verdict.BUDGET: "budget", Verdict.GRADER: "grader"}
_HEAD = 8192
_BEGINNING = re.compile(rb'\s*\{\s*"metadata"\s*:\s*\{[^{}]*"agent"\s*:')


class ExerciseResultReader:
    """The reader of result files of agents on exercises."""

    what = "a result file of agents on exercises (.json)"

    def recognises(self, path: Path) -> bool:
        """Tell whether the file is JSON whose metadata names an agent, in any order of keys."""
        if path.suffix != ".json" or not path.is_file():
            return False
        with open_file(path) as file:
            if _BEGINNING.match(file.read(_HEAD)):
                return True  # also if it is damaged further on, which reading reports
        data = read_file(path, MAX_FILE_SIZE) if path.stat().st_size <= MAX_FILE_SIZE else b""
        if b'"metadata"' not in data:
            return False
        # The keys may be in any order. A leaderboard has metadata too, and names no agent in it.
        with suppress(ValueError, RecursionError):
            whole = json.loads(data)
            about = whole.get("metadata") if isinstance(whole, dict) else None
            return isinstance(about, dict) and "agent" in about
        return False

    def describe(self, path: Path) -> Description:
        result = read_result(path)
        run = result.bakeoff.run if result.bakeoff else None
        return Description(name=path.name, plan=plan_of(result, path.stem), content_known=False, run=run)

    def circumstances(self, path: Path) -> Circumstances:
        made = (read_result(path).metadata.generated_by or "").removeprefix("bakeoff ")
        return Circumstances(versions=(made,) if re.fullmatch(r"\d[\w.]{0,30}", made) else ())

    def read(self, path: Path) -> Iterator[Record]:
        result = read_result(path)
        return records_of(result, plan_of(result, path.stem))


def read_result(path: Path) -> AgentsResult:
    """Read a file. Raise an error that says where something is wrong in it."""
    return parse_result(read_limited(path), str(path))


def parse_result(data: bytes, source: str) -> AgentsResult:
    """Read the contents of a file. Raise an error that says where something is wrong in it."""
    try:
        return AgentsResult.model_validate_json(data).with_summary()
    except ValidationError as error:
        raise unreadable(source, error) from error


def subject_name(result: AgentsResult) -> str:
    """Return the name of the subject in its run, or else agent, model and provider."""
    if result.bakeoff is not None:
        return visible(result.bakeoff.subject)
    about = result.metadata
    return visible(" ".join([about.agent, *([about.model] if about.model else []), f"({about.provider})"]))


def plan_of(result: AgentsResult, name: str) -> Plan:
    """Return the plan of a file: its one agent, and its exercises, including those that were lost or not run."""
    about = result.metadata
    control = about.agent.partition(":")[0] if result.bakeoff and result.bakeoff.control else ""
    kind = RECORDED if not control else control if control in CONTROLS else "cheat"
    options = about.model_dump(include={"agent", "model", "provider", "version"}, exclude_none=True)
    added = result.bakeoff
    origin = added.model_dump(include=set(Origin.model_fields), exclude_defaults=True) if added else {}
    missing = (*added.not_run, *(lost.exercise for lost in added.lost)) if added else ()
    planned = dict.fromkeys((*(each.exercise for each in _exercises(result, name)), *missing))
    return Plan(
        name=name if name.isprintable() and name.strip() else "result",
        cases=tuple(Case(id=exercise, prompt="") for exercise in planned),
        subjects=(SubjectSpec(kind=kind, name=subject_name(result), options=options),),
        scorers=(ScorerSpec(kind=EXERCISE),),
        rounds=max([added.rounds if added else 1, *(len(each.attempts or ()) for each in result.results)]),
        door=DOOR,
        settings={ORIGIN: origin} if origin else {},
    )


def _exercises(result: AgentsResult, name: str) -> tuple[ExerciseResult, ...]:
    """Return the exercises of a file.

    For a file with totals only, create as many unnamed exercises as the totals say.
    """
    if result.results:
        return result.results
    count, solved = result.summary.total_count, result.summary.success_count
    stem = visible(name, 100) or "result"
    return tuple(
        ExerciseResult(
            exercise=f"{stem} #{place + 1}",
            agent_success=place < solved,
            test_success=place < solved,
            overall_success=place < solved,
            total_duration=result.summary.avg_duration,
        )
        for place in range(count)
    )


def records_of(result: AgentsResult, plan: Plan) -> Iterator[Record]:
    """Yield one record for each exercise and round of the file, including those that were lost."""
    began = seconds_of(result.metadata.timestamp) or 0.0
    subject = plan.subjects[0].name
    lost = {(one.exercise, one.round - 1): one for one in (result.bakeoff.lost if result.bakeoff else ())}
    for each in _exercises(result, plan.name):
        rounds = (round_ for round_ in range(plan.rounds) if (each.exercise, round_) not in lost)
        for round_, attempt in zip(rounds, each.attempts or (each,), strict=False):
            if (trial := plan.find(each.exercise, subject, round_)) is not None:
                yield _record(trial, attempt, began, plan.threshold)
    for (exercise, round_), one in lost.items():
        if (trial := plan.find(exercise, subject, round_)) is not None:
            kind = _KINDS.get(one.verdict, "infra")
            failed = Phase(seconds=0.0, failure=Failure(kind=kind, type=f"{kind.title()}Error", message=one.reason))
            yield Record(**trial.identity, started=began, threshold=plan.threshold, attempt=failed)


def _record(trial: Trial, attempt: Attempt, began: float, threshold: float | None) -> Record:
    used = attempt.token_usage
    usage = Usage()
    if used is not None:
        usage = Usage(requests=1, input=used.input_tokens, output=used.output_tokens, cost=used.cost)
    outcome = ExerciseOutcome(
        **attempt.model_dump(by_alias=False, include=Attempt.model_fields.keys() & ExerciseOutcome.model_fields.keys())
    )
    score = Score(
        name=EXERCISE,
        value=1.0 if attempt.overall_success else 0.0,
        reason="" if attempt.overall_success else (attempt.agent_error or attempt.test_error or "")[:1000],
        metadata={EXERCISE: outcome.model_dump(mode="json", by_alias=True, exclude_defaults=True)},
    )
    agent = attempt.agent_duration or max(0.0, attempt.total_duration - attempt.test_duration)
    return Record(
        **trial.identity,
        started=began,
        threshold=threshold,
        attempt=Phase(seconds=agent / 1000),
        score=Phase(seconds=attempt.test_duration / 1000),
        transcript=Transcript(usage=usage),
        scores=(score,),
        spent=usage,
    )

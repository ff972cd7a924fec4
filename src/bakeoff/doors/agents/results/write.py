"""Write result files from a plan and its records: one for each subject, with all its rounds."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path

from bakeoff._version import __version__
from bakeoff.doors.agents.results.model import (
    AgentsAdditions,
    AgentsMetadata,
    AgentsResult,
    Attempt,
    ExerciseResult,
    LostTrial,
    TokenUsage,
    added_costs,
    safe_name,
    summary_of,
)
from bakeoff.doors.agents.results.read import read_result
from bakeoff.doors.agents.scoring import EXERCISE, ExerciseOutcome
from bakeoff.doors.result_files import (
    hidden_tests_of,
    noted_by,
    proven_tests_of,
    replayed_in,
    timestamp_of,
    unique_names,
)
from bakeoff.doors.treatments import treated_name
from bakeoff.errors import BakeoffError
from bakeoff.plan import Plan, SubjectSpec
from bakeoff.record import Record
from bakeoff.report.summary import is_control
from bakeoff.subjects.agent_run import agent_run_in

BENCHMARK_VERSION = "1"
NO_PROVIDER = "none"


def result_files(plan: Plan, records: Iterable[Record], run: str | None = None) -> Iterator[tuple[str, AgentsResult]]:
    """Return a result file, with its name, for each subject that has records: controls first, agents last."""
    gathered: dict[str, list[Record]] = {}
    for record in records:
        gathered.setdefault(record.subject, []).append(record)
    specs = [spec for spec in plan.subjects if spec.name in gathered]
    ordered = sorted(specs, key=lambda spec: not is_control(spec, bound=gathered[spec.name][0].bound))
    made = [result_of(plan, spec, gathered[spec.name], run) for spec in ordered]
    yield from zip(unique_names(file_name(result.metadata) for result in made), made, strict=True)


def outdated_files(folder: Path, files: Mapping[str, AgentsResult]) -> Iterator[Path]:
    """Return the files that a run wrote for the same subjects under other names.

    A name contains the time of the first trial, which changes when resuming replaces a lost trial.
    """
    for result in files.values():
        prefix = file_name(result.metadata.model_copy(update={"timestamp": "*"})).removesuffix("_.json")
        for path in folder.glob(f"{escape(prefix)}*.json"):
            try:
                found = read_result(path).bakeoff if path.name not in files else None
            except (BakeoffError, OSError):
                continue
            ours = result.bakeoff
            if found and ours and ours.run and (found.run, found.subject) == (ours.run, ours.subject):
                yield path


def file_name(metadata: AgentsMetadata) -> str:
    """Return the name of a result file: agent, model, provider and time."""
    parts = (metadata.agent, metadata.model or "default", metadata.provider, metadata.timestamp or "undated")
    return "-".join(map(safe_name, parts)) + ".json"


def result_of(plan: Plan, spec: SubjectSpec, records: Sequence[Record], run: str | None = None) -> AgentsResult:
    """Return the results of one subject in all rounds."""
    counted: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.round):
        if record.verdict.counts:
            counted.setdefault(record.case, []).append(record)
    attempts = {case.id: list(map(attempt_of, counted[case.id])) for case in plan.cases if case.id in counted}
    results = tuple(_exercise(name, made, plan.rounds) for name, made in attempts.items())
    began = min(record.started for record in records)
    seen = {record.case for record in records}
    metered = [bool(record.transcript.metadata.get("metered")) for record in records if record.transcript]
    control = is_control(spec, bound=records[0].bound)
    additions = AgentsAdditions(
        run=run,
        subject=spec.name,
        control=control,
        metered=None if control or not metered else all(metered),
        rounds=plan.rounds,
        **plan.origin.model_dump(),
        replayed=replayed_in(records),
        not_run=tuple(case.id for case in plan.cases if case.id not in seen),
        lost=tuple(
            LostTrial(
                exercise=record.case,
                round=record.round + 1,
                verdict=record.verdict,
                reason=record.failure.message[:2000] if record.failure else "",
            )
            for record in records
            if not record.verdict.counts
        ),
        failure_classes=dict(Counter(filter(None, map(class_of, records)))),
        hidden_tests=hidden_tests_of(records),
        proven_tests=proven_tests_of(records),
        hidden_tests_by_exercise={
            name: split for name, made in counted.items() if (split := hidden_tests_of(made)) is not None
        }
        or None,
    )
    metadata = _metadata(spec, records, timestamp_of(began), len(results))
    return AgentsResult(metadata=metadata, summary=summary_of([*attempts.values()]), results=results, bakeoff=additions)


def _metadata(spec: SubjectSpec, records: Sequence[Record], timestamp: str, count: int) -> AgentsMetadata:
    definition, model = spec.options.get("definition"), spec.options.get("model")
    named = definition.get("name") if isinstance(definition, dict) else None
    provider = spec.options.get("provider")
    versions = (agent_run_in(record.transcript).version for record in records if record.transcript)
    return AgentsMetadata(
        agent=treated_name(named, spec) if isinstance(named, str) else spec.name,
        model=model if isinstance(model, str) else None,
        provider=provider if isinstance(provider, str) else NO_PROVIDER,
        version=next(filter(None, versions), None) or (__version__ if definition is None else "unknown"),
        timestamp=timestamp,
        exercise_count=count,
        benchmark_version=BENCHMARK_VERSION,
        generated_by=f"bakeoff {__version__}",
        **_workflow(os.environ),
    )


def _workflow(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the GitHub workflow run, if there is one."""
    server, repository, run = (environment.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    if not run.isdecimal():
        return {}
    url = f"{server}/{repository}/actions/runs/{run}" if server.startswith("https://") and repository else ""
    return {"run_id": run, **({"run_url": url} if url else {})}


def outcome_of(record: Record) -> ExerciseOutcome | None:
    """Return the scorer's outcome of a trial, or None."""
    return noted_by(record, EXERCISE, EXERCISE, ExerciseOutcome)


def class_of(record: Record) -> str | None:
    """Return the class of a failure, or None."""
    if not record.verdict.counts:
        return "infra"
    outcome = outcome_of(record)
    if outcome is not None:
        return outcome.failure_class
    return None if record.failure is None else "timeout" if record.failure.kind == "timeout" else "wrong"


def attempt_of(record: Record) -> Attempt:
    """Return a record as one attempt of a result file."""
    outcome = outcome_of(record)
    if outcome is None:  # the agent failed before there was anything to test
        why = record.failure.message if record.failure else "it was not scored"
        outcome = ExerciseOutcome(agent_success=False, test_success=False, overall_success=False, agent_error=why)
    agent = agent_run_in(record.transcript).seconds if record.transcript else 0.0
    agent_ms = round(1000 * (agent or (record.attempt.seconds if record.attempt else 0.0)), 3)
    shared = outcome.model_dump(include=Attempt.model_fields.keys() & ExerciseOutcome.model_fields.keys())
    return Attempt(
        **shared,
        agent_duration=agent_ms,
        total_duration=round(agent_ms + outcome.test_duration, 3),
        token_usage=_tokens(record),
    )


def _tokens(record: Record) -> TokenUsage | None:
    """Return the tokens of a trial, or None if they were not counted, which is not the same as 0."""
    spent = record.spent
    if not spent.tokens:
        return None
    meter = record.transcript.metadata.get("meter") if record.transcript else None
    partly_priced = isinstance(meter, dict) and meter.get("unpriced")  # the meter saw models without a price
    return TokenUsage(
        input_tokens=spent.input,
        output_tokens=spent.output,
        total_tokens=spent.tokens,
        cost=None if partly_priced else spent.cost,
        estimated=record.usage_is_estimated or None,
    )


def _exercise(name: str, attempts: Sequence[Attempt], rounds: int) -> ExerciseResult:
    """Combine the attempts at an exercise: use mean numbers, and require that all are solved."""
    if rounds == 1:
        return ExerciseResult(exercise=name, **dict(attempts[0]))
    values = {field: [getattr(attempt, field) for attempt in attempts] for field in Attempt.model_fields}
    return ExerciseResult(
        exercise=name,
        attempts=tuple(attempts),
        token_usage=_added([usage for usage in values["token_usage"] if usage]),
        **{field: all(values[field]) for field in ("agent_success", "test_success", "overall_success")},
        **{field: next(filter(None, values[field]), None) for field in ("agent_error", "test_error")},
        **{
            field: round(sum(values[field]) / len(attempts), 3)
            for field in ("agent_duration", "test_duration", "total_duration")
        },
    )


def _added(usages: Sequence[TokenUsage]) -> TokenUsage | None:
    if not usages:
        return None
    counts = ("input_tokens", "output_tokens", "total_tokens")
    sums = {field: sum(getattr(usage, field) for usage in usages) for field in counts}
    return TokenUsage(cost=added_costs(usages), estimated=any(usage.estimated for usage in usages) or None, **sums)

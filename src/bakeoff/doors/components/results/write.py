"""Write result files from a plan and its records: one for each subject and round."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from bakeoff._kernel.text import expectation
from bakeoff._version import __version__
from bakeoff.doors.components.costs import bill_of
from bakeoff.doors.components.results.imported import SUITE, VERIFICATION, RecordedSubject, notes_in
from bakeoff.doors.components.results.model import (
    ComponentResult,
    ComponentsAdditions,
    ComponentsMetadata,
    ComponentsResult,
    Pricing,
    ResultServer,
    SimulatedCache,
    TotalCost,
    TrialFacts,
    Verification,
    totals_of,
)
from bakeoff.doors.components.results.names import timestamped_name
from bakeoff.doors.components.results.steps import extract_result_write_content, write_own_step, write_step
from bakeoff.doors.result_files import RECORDED, hidden_tests_of, replayed_in, timestamp_of, unique_names
from bakeoff.doors.treatments import treated_name
from bakeoff.errors import UsageError
from bakeoff.plan import Case, Plan, SubjectSpec, describe, read_options
from bakeoff.record import NO_USAGE, Record, Transcript, Usage
from bakeoff.verdict import Verdict

Sizes = Mapping[str, int]
"""The number of tests of each suite, for trials that were never graded."""


@dataclass(frozen=True, slots=True)
class ResultOrigin:
    """The run of the records. Names and files have its beginning, because that of a trial changes with a retry."""

    run: str | None = None
    began: str | None = None  # None: unknown; the beginning of the first trial is used


UNKNOWN_ORIGIN = ResultOrigin()


def result_files(
    plan: Plan, records: Iterable[Record], sizes: Sizes | None = None, origin: ResultOrigin = UNKNOWN_ORIGIN
) -> Iterator[tuple[str, ComponentsResult]]:
    """Return a result file, with its name, for each subject and round that has records, and for imported subjects."""
    gathered: dict[tuple[int, str], list[Record]] = {
        (0, spec.name): [] for spec in plan.subjects if spec.kind == RECORDED
    }
    for record in records:
        gathered.setdefault((record.round, record.subject), []).append(record)
    subjects = [spec.name for spec in plan.subjects]
    order = sorted(gathered, key=lambda key: (key[0], subjects.index(key[1])))
    made = [result_of(plan, subject, round_, gathered[round_, subject], sizes, origin) for round_, subject in order]
    yield from zip(unique_names(file_name(result) for result in made), made, strict=True)


def file_name(result: ComponentsResult) -> str:
    """Return the name of a result file. It has the round if there are several."""
    added = result.bakeoff
    servers = [server.name for server in added.mcp_servers] if added else []
    if not servers and result.metadata.mcp_enabled:
        servers = [result.metadata.mcp_server_url or "server"]
    round_ = added.round if added and added.rounds > 1 else None
    return timestamped_name(result.metadata.timestamp, result.metadata.model, servers, round_)


def result_of(
    plan: Plan,
    subject: str,
    round_: int,
    records: Iterable[Record],
    sizes: Sizes | None = None,
    origin: ResultOrigin = UNKNOWN_ORIGIN,
) -> ComponentsResult:
    """Return the results of one subject in one round, counted from 0. Records of others are ignored."""
    spec = next((spec for spec in plan.subjects if spec.name == subject), None)
    if spec is None:
        raise UsageError(f"plan {plan.name!r} has no subject {subject!r}")
    found = {record.case: record for record in records if record.subject == subject and record.round == round_}
    pairs = [(case, found[case.id]) for case in plan.cases if case.id in found]
    if spec.kind == RECORDED:
        return _recorded(read_options(spec, RecordedSubject), pairs)
    tests = tuple(_suite(case, record, sizes or {}) for case, record in pairs)
    ours = [record for _, record in pairs]
    servers = _servers(spec)
    metadata, written = _metadata(plan, spec, servers, ours, origin.began)
    additions = ComponentsAdditions.known(
        version=__version__,
        run=origin.run,
        subject=subject,
        kind=spec.kind,
        round=round_ + 1,
        rounds=plan.rounds,
        **plan.origin.model_dump(include={"checkout", "commit", "left_out"}, exclude_defaults=True),
        replayed=replayed_in(ours) or None,
        mcp_servers=tuple(servers),
        mcp_tools_hash=_tools_hash(ours),
        spent=_spent(sum((record.spent for record in ours), NO_USAGE)),
        cache_write_cost=written,
        not_run=tuple(case.id for case in plan.cases if case.id not in found),
        hidden_tests=hidden_tests_of(ours),
        trials=tuple(map(_facts, ours)),
    )
    metadata = metadata.model_copy(update={"unit_test_totals": totals_of(tests)})
    return ComponentsResult(tests=tests, metadata=metadata, bakeoff=additions)


def _recorded(subject: RecordedSubject, pairs: Sequence[tuple[Case, Record]]) -> ComponentsResult:
    """Write an imported file as it was read, without computing or adding any total."""
    had = ComponentsMetadata.model_fields.keys() & subject.model_fields_set
    metadata = ComponentsMetadata(**{name: getattr(subject, name) for name in had})
    added = subject.bakeoff
    if added is not None:
        added = added.model_copy(update={"trials": tuple(_facts(record) for _, record in pairs)})
    return ComponentsResult.known(
        tests=tuple(_recorded_suite(*pair) for pair in pairs), metadata=metadata, bakeoff=added
    )


def _recorded_suite(case: Case, record: Record) -> ComponentResult:
    transcript = record.transcript or Transcript()
    notes = notes_in(transcript)
    fields = {
        "test_name": case.id,
        "prompt": case.prompt,
        "steps": tuple(write_step(step, notes.of(place)) for place, step in enumerate(transcript.steps)),
        "result_write_content": next(iter(record.artefacts.values()), None),
        "verification": verification_of(record),
    }
    return ComponentResult(**{name: value for name, value in fields.items() if name not in notes.absent})


def _suite(case: Case, record: Record, sizes: Sizes) -> ComponentResult:
    steps = record.transcript.steps if record.transcript else ()
    return ComponentResult(
        test_name=case.id,
        prompt=case.prompt,
        steps=tuple(map(write_own_step, steps)),
        result_write_content=_submitted(case, record),
        verification=verification_of(record) or _never_graded(record, sizes),
    )


def _submitted(case: Case, record: Record) -> str | None:
    written = extract_result_write_content(record.transcript.steps) if record.transcript else None
    if written is not None:
        return written
    if case.answer_file in record.artefacts:
        return record.artefacts[case.answer_file]
    return next(iter(record.artefacts.values())) if len(record.artefacts) == 1 else None


def verification_of(record: Record) -> Verification | None:
    """Return the suite scorer's verification of a trial, or None."""
    for score in record.scores:
        if score.name == SUITE and score.failure is None and VERIFICATION in score.metadata:
            try:
                return Verification.model_validate(score.metadata[VERIFICATION])
            except ValidationError:  # not written by our scorer
                return None
    return None


def _never_graded(record: Record, sizes: Sizes) -> Verification | None:
    """Return a verification without a passed test if the subject failed, or None if the failure was not its doing."""
    failure = record.failure
    if not record.verdict.counts or failure is None:
        return None
    tests = sizes.get(record.case, 0)
    return Verification(
        test_name=record.case,
        passed=False,
        num_tests=tests,
        num_passed=0,
        num_failed=tests,
        duration=0.0,
        error=failure.message,
    )


def _metadata(
    plan: Plan, spec: SubjectSpec, servers: Sequence[ResultServer], records: Sequence[Record], began: str | None
) -> tuple[ComponentsMetadata, float | None]:
    """Return the metadata, and the cost of cache writes, which the format has no field for."""
    model = spec.options.get("model")
    first = min((record.started for record in records), default=None)
    facts = ComponentsMetadata(
        mcp_enabled=bool(servers),
        mcp_server_url=servers[0].address if servers else None,
        mcp_transport_type=servers[0].transport if servers else None,
        timestamp=began or (None if first is None else timestamp_of(first)),
        model=treated_name(model if isinstance(model, str) else spec.name, spec),
    )
    bill = bill_of(records) if plan.settings.get("pricing", True) else None
    if bill is None:
        return facts, None
    priced = {
        "pricing_key": bill.price.key,
        "pricing": Pricing.model_validate(bill.price.per_mtok()),
        "total_cost": TotalCost.model_validate(bill.costs.as_total_cost()),
        "cache_simulation": SimulatedCache.model_validate(bill.cached.as_cache_simulation()),
    }
    return facts.model_copy(update=priced), bill.costs.cache_write_cost or None


def _servers(spec: SubjectSpec) -> list[ResultServer]:
    given = spec.options.get("mcp")
    items = given if isinstance(given, list | tuple) else []
    if not items:
        return []
    from bakeoff.mcp import ServerSpec, parse_mcp_option  # slow to import, and only needed with servers

    try:
        specs = [parse_mcp_option(item) if isinstance(item, str) else ServerSpec.model_validate(item) for item in items]
    except ValidationError as error:
        raise UsageError(f"{describe(spec)}: option mcp: {expectation(error.errors()[0])}") from error
    return [
        ResultServer(
            name=server.name, transport="StdIO" if server.transport == "stdio" else "HTTP", address=server.address
        )
        for server in specs
        if server is not None
    ]


def _tools_hash(records: Iterable[Record]) -> str | None:
    """Return the hash of the tools that the servers offered; several, if they changed during the run."""
    found = (record.transcript.metadata.get("mcp_tools_hash") for record in records if record.transcript)
    return ", ".join(dict.fromkeys(str(one) for one in found if one is not None)) or None


def _spent(usage: Usage) -> dict[str, float | None]:
    known = bool(usage.tokens or not usage.requests)
    counts: dict[str, float | None] = {
        "requests": usage.requests,
        "inputTokens": usage.input if known else None,
        "outputTokens": usage.output if known else None,
        "cachedInputTokens": usage.cache_read if known else None,
        "reasoningTokens": usage.reasoning if known else None,
    }
    return counts if usage.cost is None else {**counts, "cost": usage.cost}


def _facts(record: Record) -> TrialFacts:
    failure = record.failure
    fine = record.verdict in (Verdict.PASS, Verdict.RECORDED)
    reason = failure.message if failure else "; ".join(score.reason for score in record.scores if score.reason)
    return TrialFacts.known(
        test_name=record.case,
        verdict=record.verdict,
        reason=None if fine else reason or None,
        attempt_seconds=record.attempt.seconds if record.attempt else None,
        score_seconds=record.score.seconds if record.score else None,
        started=record.started,
        tries=record.tries,
        bound=record.bound or None,
        hidden_tests=hidden_tests_of([record]),
    )

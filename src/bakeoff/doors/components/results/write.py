"""Write result files from a plan and its records: one for each subject and round."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from pydantic import ValidationError

from bakeoff._kernel.text import expectation
from bakeoff._version import __version__
from bakeoff.doors.components.results.model import (
    SUITE,
    VERIFICATION,
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
    extract_result_write_content,
    timestamped_name,
    totals_of,
    write_step,
)
from bakeoff.doors.result_files import (
    hidden_tests_of,
    noted_by,
    proven_tests_of,
    replayed_in,
    timestamp_of,
    unique_names,
)
from bakeoff.doors.treatments import treated_name
from bakeoff.errors import UsageError
from bakeoff.models.estimate import CacheSimulation, simulate
from bakeoff.models.prices import Costs, Price, split_costs
from bakeoff.plan import Case, Plan, SubjectSpec, describe
from bakeoff.record import NO_USAGE, Record, Usage
from bakeoff.verdict import Verdict

Sums = TypeVar("Sums", Costs, CacheSimulation)


@dataclass(frozen=True, slots=True)
class SuiteCosts:
    """The cost of one subject in one round. `price` is the last price that was used."""

    price: Price
    costs: Costs
    cached: CacheSimulation


def _price_of(record: Record) -> Price | None:
    """Return the price of the model's tokens when the trial ran."""
    found = record.transcript.metadata.get("price") if record.transcript else None
    if found is None:
        return None
    try:
        return Price.model_validate(found)
    except ValidationError:  # a subject of the user may put anything there
        return None


def bill_of(records: Iterable[Record]) -> SuiteCosts | None:
    """Return the bill of all suites, or None if nothing has a price. A resumed run may have several prices."""
    bills: list[SuiteCosts] = []
    for record in records:
        price = _price_of(record)
        used = [step.usage for step in record.transcript.steps] if record.transcript else []
        # A provider that counts nothing leaves the cost unknown.
        if any(usage.tokens for usage in used) and price and (costs := split_costs(used, price)):
            bills.append(SuiteCosts(price, costs, simulate(used, price)))
    if not bills:
        return None
    costs, cached = _added(Costs, [bill.costs for bill in bills]), [bill.cached for bill in bills]
    return SuiteCosts(bills[-1].price, costs, _added(CacheSimulation, cached))


def _added(kind: type[Sums], parts: Sequence[Sums]) -> Sums:
    """Add up models field by field, in decimals, so that the sums have no rounding errors."""
    sums = {name: sum(Decimal(str(getattr(part, name))) for part in parts) for name in kind.model_fields}
    return kind.model_validate(sums)


Sizes = Mapping[str, int]
"""The number of tests of each suite, for trials that were never graded."""


@dataclass(frozen=True, slots=True)
class ResultOrigin:
    """The run that the records belong to.

    Result files use the start of the run, because a retry changes the start of its trial.
    """

    run: str | None = None
    began: str | None = None  # None: unknown; the beginning of the first trial is used


UNKNOWN_ORIGIN = ResultOrigin()


def result_files(
    plan: Plan, records: Iterable[Record], sizes: Sizes | None = None, origin: ResultOrigin = UNKNOWN_ORIGIN
) -> Iterator[tuple[str, ComponentsResult]]:
    """Yield a result file, with its name, for each subject and round that has records."""
    gathered: dict[tuple[int, str], list[Record]] = {}
    for record in records:
        gathered.setdefault((record.round, record.subject), []).append(record)
    order = [(round_, spec.name) for round_ in range(plan.rounds) for spec in plan.subjects]
    made = [result_of(plan, key[1], key[0], gathered[key], sizes, origin) for key in order if key in gathered]
    yield from zip(unique_names(map(file_name, made)), made, strict=True)


def file_name(result: ComponentsResult) -> str:
    """Return the name of a result file. It contains the round if the run has several."""
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
    """Return the results of one subject in one round, counted from 0; ignore all other records."""
    spec = next(spec for spec in plan.subjects if spec.name == subject)
    found = {record.case: record for record in records if record.subject == subject and record.round == round_}
    pairs = [(case, found[case.id]) for case in plan.cases if case.id in found]
    tests = tuple(_suite(case, record, sizes or {}) for case, record in pairs)
    ours = [record for _, record in pairs]
    hashes = [record.transcript.metadata.get("mcp_tools_hash") for record in ours if record.transcript]
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
        # Several, if the tools of the servers changed during the run.
        mcp_tools_hash=", ".join(dict.fromkeys(str(one) for one in hashes if one is not None)) or None,
        spent=_spent(sum((record.spent for record in ours), NO_USAGE)),
        cache_write_cost=written,
        not_run=tuple(case.id for case in plan.cases if case.id not in found),
        hidden_tests=hidden_tests_of(ours),
        proven_tests=proven_tests_of(ours),
        trials=tuple(map(_facts, ours)),
    )
    metadata = metadata.model_copy(update={"unit_test_totals": totals_of(tests)})
    return ComponentsResult(tests=tests, metadata=metadata, bakeoff=additions)


def _suite(case: Case, record: Record, sizes: Sizes) -> ComponentResult:
    steps = record.transcript.steps if record.transcript else ()
    return ComponentResult(
        test_name=case.id,
        prompt=case.prompt,
        steps=tuple(map(write_step, steps)),
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
    return noted_by(record, SUITE, VERIFICATION, Verification)


def _never_graded(record: Record, sizes: Sizes) -> Verification | None:
    """Return a verification without passed tests if the subject caused the failure, else None."""
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
    """Return the metadata, and the cost of cache writes, for which the format has no field."""
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
        proven_tests=record.proven_tests,
    )

"""Read one side of a comparison: a subject's scores by case, its losses, and the conditions of its run."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.model import fingerprint
from bakeoff.errors import RunFolderError, UsageError
from bakeoff.plan import Case, Plan, SubjectSpec
from bakeoff.record import Record, Verdict
from bakeoff.report.formatting import visible
from bakeoff.report.readers import Circumstances, Source
from bakeoff.report.run_records import RunRecords
from bakeoff.report.summary import SubjectSummary, summarise
from bakeoff.stats import CLUSTER_TAG, CaseKey, Cell, Cells, Losses, Stamp

_CONTENT = {"id", "prompt", "files", "collect", "answer_file", "hidden", "reference", "expected"}
_MOST_VALUES = 3  # of one condition that are listed
_LONGEST = 120


@dataclass(slots=True)
class _Sums:
    """The running sums of a case's scores."""

    rounds: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        self.rounds += 1
        self.total += value
        self.squares += value * value


@dataclass(slots=True)
class _Tally:
    """The sums and conditions that one pass over a subject's records collects."""

    scores: dict[str, _Sums] = field(default_factory=dict)
    passes: dict[str, _Sums] = field(default_factory=dict)
    metadata: dict[str, dict[str, None]] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        verdict, value = record.verdict, record.value
        if verdict.counts and value is not None:
            self.scores.setdefault(record.case, _Sums()).add(value)
            self.passes.setdefault(record.case, _Sums()).add(float(verdict is Verdict.PASS))
        if record.transcript:
            for key, condition in _conditions(record.transcript.metadata):
                values = self.metadata.setdefault(key, {})
                if len(values) <= _MOST_VALUES:
                    values[condition] = None

    def condition(self, key: str) -> str | None:
        """Return the values of one condition in the transcripts, joined."""
        values = list(self.metadata.get(key, ()))
        more = ", …" if len(values) > _MOST_VALUES else ""
        return ", ".join(sorted(values[:_MOST_VALUES])) + more if values else None


@dataclass(frozen=True, slots=True)
class Arm:
    """A subject in one source. Use it as a context manager, because its records are in a temporary file."""

    source: str
    path: Path
    plan: Plan
    spec: SubjectSpec
    cells: Cells
    passes: Cells  # the same with 1 for a pass and 0 for other scored trials
    summary: SubjectSummary
    losses: Losses
    stamp: Stamp
    circumstances: Circumstances
    content_known: bool
    records: RunRecords

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.records.__exit__(kind, error, trace)


def read_arm(source: Source, subject: str) -> Arm:
    """Read a subject's records in one pass. Memory depends on the number of cases only."""
    plan = _only(source.plan, subject, source.name)
    if plan.sparse:  # this subject did not miss the cases of other subjects
        had = {record.case for record in source.records() if record.subject == subject}
        plan = with_changes(plan, cases=tuple(case for case in plan.cases if case.id in had))
    tally = _Tally()
    ours = (record for record in source.records() if record.subject == subject)
    records = RunRecords(plan, _tallied(ours, tally))
    try:
        [summary] = summarise(plan, records.records()).subjects
        circumstances = source.circumstances()
    except BaseException:
        records.__exit__(None, None, None)
        raise
    known = source.description.content_known
    return Arm(
        source=source.name,
        path=source.path,
        plan=plan,
        spec=plan.subjects[0],
        cells=_cells(plan, tally.scores, content_known=known),
        passes=_cells(plan, tally.passes, content_known=known),
        summary=summary,
        losses=losses_of(summary),
        stamp=_stamp(plan, circumstances, tally),
        circumstances=circumstances,
        content_known=known,
        records=records,
    )


@contextmanager
def countable(*sources: Source) -> Iterator[None]:
    """Turn overflows, which only damaged or hostile files cause, into an error message."""
    try:
        yield
    except (ValidationError, ArithmeticError) as error:
        paths = " or ".join(dict.fromkeys(visible(str(source.path)) for source in sources))
        raise RunFolderError(
            f"{paths} cannot be counted: the sum of its costs, times or scores is not a finite number; "
            "`bakeoff runs check` checks every line"
        ) from error


def losses_of(summary: SubjectSummary) -> Losses:
    """Return the trials lost to infrastructure and graders. Trials that a budget prevented were not run, not lost."""
    whose = {Verdict.INFRA: "infrastructure", Verdict.GRADER: "graders"}
    counts = {words: summary.verdicts[verdict] for verdict, words in whose.items() if summary.verdicts.get(verdict)}
    lost = sum(counts.values())
    return Losses(trials=summary.scored + lost, lost=lost, to=" and ".join(counts) or "infrastructure")


def case_key(case: Case, *, content_known: bool) -> CaseKey:
    """Return a key that is equal for cases with the same content. Limits are conditions, not content."""
    if not content_known:
        return CaseKey(case.id)
    return CaseKey(case.id, fingerprint(case.model_dump(include=_CONTENT, exclude_defaults=True)))


def by_id_alone(cells: Cells) -> Cells:
    """Drop the content from the keys, to pair with cases of unknown content."""
    return {CaseKey(key.id): cell for key, cell in cells.items()}


def _only(plan: Plan, subject: str, source: str) -> Plan:
    found = [spec for spec in plan.subjects if spec.name == subject]
    if not found:
        raise UsageError(f"{source} has no subject {subject!r}: it has {', '.join(s.name for s in plan.subjects)}")
    return with_changes(plan, subjects=tuple(found[:1]))


def with_changes(plan: Plan, **changes: Any) -> Plan:
    """Return a changed plan. `model_copy` would also copy the cached properties of the old plan."""
    return Plan(**{name: getattr(plan, name) for name in Plan.model_fields} | changes)


def _tallied(records: Iterable[Record], tally: _Tally) -> Iterator[Record]:
    for record in records:
        tally.add(record)
        yield record


def _cells(plan: Plan, sums: dict[str, _Sums], *, content_known: bool) -> Cells:
    return {
        case_key(case, content_known=content_known): Cell(
            found.rounds, found.total, found.squares, case.tags.get(CLUSTER_TAG)
        )
        for case in plan.cases
        if (found := sums.get(case.id))
    }


def _conditions(metadata: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """Yield the conditions that a transcript may name, as short texts."""
    for key in ("agent_version", "network_policy", "mcp_tools_hash", "model"):
        if isinstance(value := metadata.get(key), str | int | float):
            yield key, str(value)[:_LONGEST]
    price = metadata.get("price")
    if isinstance(price, dict):
        date = price.get("date") or "undated"
        yield "price_date", f"{price.get('source', 'unknown')} {date}"[:_LONGEST]


def _stamp(plan: Plan, circumstances: Circumstances, tally: _Tally) -> Stamp:
    spec = plan.subjects[0]
    model, system = spec.options.get("model"), spec.options.get("system")
    return Stamp(
        model=model if isinstance(model, str) else tally.condition("model"),
        agent_version=tally.condition("agent_version") or spec.revision or None,
        sandbox=", ".join(circumstances.sandboxes) or None,
        timeouts=_timeouts(plan),
        network_policy=tally.condition("network_policy"),
        mcp_tools_hash=tally.condition("mcp_tools_hash"),
        prompt_hash=fingerprint(system)[:12] if system is not None else None,
        price_date=tally.condition("price_date"),
    )


def _timeouts(plan: Plan) -> str:
    """Return the time limits of the attempt and score phases; limits that differ by case are shown as a hash."""
    limits = {(case.limits.attempt_seconds, case.limits.score_seconds) for case in plan.cases}
    own = plan.subjects[0].options.get("timeout")
    answer = f", answer {own:g} s" if isinstance(own, int | float) else ""
    if len(limits) == 1:
        [(attempt, score)] = limits
        return f"attempt {attempt:g} s, score {score:g} s{answer}"
    return f"by case ({fingerprint(sorted(limits))[:8]}){answer}"

"""One side of a comparison: a subject's cases as cells, what it lost, and the circumstances it ran under."""

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
from bakeoff.report.outputs_shelf import Shelf
from bakeoff.report.readers import Circumstances, Source
from bakeoff.report.summary import SubjectSummary, summarise
from bakeoff.report.words import visible
from bakeoff.stats import CLUSTER_TAG, CaseKey, Cell, Cells, Losses, Stamp

_CONTENT = {"id", "prompt", "files", "collect", "answer_file", "hidden", "reference", "expected"}
_MOST_TOLD = 3  # values of one circumstance that are told apart
_LONGEST = 120


@dataclass(slots=True)
class _Sums:
    """A case's scores while records stream by."""

    rounds: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        self.rounds += 1
        self.total += value
        self.squares += value * value


@dataclass(slots=True)
class _Notes:
    """What is gathered in the one pass over a subject's records."""

    scores: dict[str, _Sums] = field(default_factory=dict)
    passes: dict[str, _Sums] = field(default_factory=dict)
    metadata: dict[str, dict[str, None]] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        verdict, value = record.verdict, record.value
        if verdict.counts and value is not None:
            self.scores.setdefault(record.case, _Sums()).add(value)
            self.passes.setdefault(record.case, _Sums()).add(float(verdict is Verdict.PASS))
        if record.transcript:
            for key, told in _told(record.transcript.metadata):
                values = self.metadata.setdefault(key, {})
                if len(values) <= _MOST_TOLD:
                    values[told] = None

    def word(self, key: str) -> str | None:
        """What the transcripts say of one circumstance; several answers are all told."""
        values = list(self.metadata.get(key, ()))
        more = ", …" if len(values) > _MOST_TOLD else ""
        return ", ".join(sorted(values[:_MOST_TOLD])) + more if values else None


@dataclass(frozen=True, slots=True)
class Arm:
    """A subject in one source. Close it: its records lie on a shelf."""

    source: str
    path: Path
    plan: Plan
    spec: SubjectSpec
    cells: Cells
    passes: Cells  # the same with 1 for a pass and 0 for everything else that counts
    summary: SubjectSummary
    losses: Losses
    stamp: Stamp
    circumstances: Circumstances
    content_known: bool
    shelf: Shelf

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shelf.__exit__(kind, error, trace)


def read_arm(source: Source, subject: str) -> Arm:
    """One pass over a source's records, in memory that depends on the cases alone."""
    plan = _only(source.plan, subject, source.name)
    if plan.sparse:  # cases of other subjects are nothing that this one missed
        had = {record.case for record in source.records() if record.subject == subject}
        plan = with_changes(plan, cases=tuple(case for case in plan.cases if case.id in had))
    notes = _Notes()
    ours = (record for record in source.records() if record.subject == subject)
    shelf = Shelf(plan, _noted(ours, notes))
    try:
        [summary] = summarise(plan, shelf.records()).subjects
        circumstances = source.circumstances()
    except BaseException:
        shelf.__exit__(None, None, None)
        raise
    known = source.description.content_known
    return Arm(
        source=source.name,
        path=source.path,
        plan=plan,
        spec=plan.subjects[0],
        cells=_cells(plan, notes.scores, content_known=known),
        passes=_cells(plan, notes.passes, content_known=known),
        summary=summary,
        losses=losses_of(summary),
        stamp=_stamp(plan, circumstances, notes),
        circumstances=circumstances,
        content_known=known,
        shelf=shelf,
    )


@contextmanager
def countable(*sources: Source) -> Iterator[None]:
    """Numbers beyond all sums, which only a damaged or hostile file holds, are refused in a sentence."""
    try:
        yield
    except (ValidationError, ArithmeticError) as error:
        paths = " or ".join(dict.fromkeys(visible(str(source.path)) for source in sources))
        raise RunFolderError(
            f"{paths} cannot be counted: costs, times or scores in it add up to no number; "
            "`bakeoff runs check` looks at every line"
        ) from error


def losses_of(summary: SubjectSummary) -> Losses:
    """What our side broke. Trials that a budget kept from running were never lost, only not run."""
    whose = {Verdict.INFRA: "infrastructure", Verdict.GRADER: "graders"}
    counts = {words: summary.verdicts[verdict] for verdict, words in whose.items() if summary.verdicts.get(verdict)}
    lost = sum(counts.values())
    return Losses(trials=summary.scored + lost, lost=lost, to=" and ".join(counts) or "infrastructure")


def case_key(case: Case, *, content_known: bool) -> CaseKey:
    """A case is the same only if its content is. Limits are a circumstance, which the stamp names, not content."""
    if not content_known:
        return CaseKey(case.id)
    return CaseKey(case.id, fingerprint(case.model_dump(include=_CONTENT, exclude_defaults=True)))


def by_id_alone(cells: Cells) -> Cells:
    """For a partner whose cases are known by their ids only."""
    return {CaseKey(key.id): cell for key, cell in cells.items()}


def _only(plan: Plan, subject: str, source: str) -> Plan:
    found = [spec for spec in plan.subjects if spec.name == subject]
    if not found:
        raise UsageError(f"{source} has no subject {subject!r}: it has {', '.join(s.name for s in plan.subjects)}")
    return with_changes(plan, subjects=tuple(found[:1]))


def with_changes(plan: Plan, **changes: Any) -> Plan:
    """Another plan. `model_copy` would also copy what was computed from the old one and remembered."""
    return Plan(**{name: getattr(plan, name) for name in Plan.model_fields} | changes)


def _noted(records: Iterable[Record], notes: _Notes) -> Iterator[Record]:
    for record in records:
        notes.add(record)
        yield record


def _cells(plan: Plan, sums: dict[str, _Sums], *, content_known: bool) -> Cells:
    return {
        case_key(case, content_known=content_known): Cell(
            found.rounds, found.total, found.squares, case.tags.get(CLUSTER_TAG)
        )
        for case in plan.cases
        if (found := sums.get(case.id))
    }


def _told(metadata: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """The circumstances that a transcript may speak of, as short texts."""
    for key in ("agent_version", "network_policy", "mcp_tools_hash", "model"):
        if isinstance(value := metadata.get(key), str | int | float):
            yield key, str(value)[:_LONGEST]
    price = metadata.get("price")
    if isinstance(price, dict):
        date = price.get("date") or "undated"
        yield "price_date", f"{price.get('source', 'unknown')} {date}"[:_LONGEST]


def _stamp(plan: Plan, circumstances: Circumstances, notes: _Notes) -> Stamp:
    spec = plan.subjects[0]
    model, system = spec.options.get("model"), spec.options.get("system")
    return Stamp(
        model=model if isinstance(model, str) else notes.word("model"),
        agent_version=notes.word("agent_version") or spec.revision or None,
        sandbox=", ".join(circumstances.sandboxes) or None,
        timeouts=_timeouts(plan),
        network_policy=notes.word("network_policy"),
        mcp_tools_hash=notes.word("mcp_tools_hash"),
        prompt_hash=fingerprint(system)[:12] if system is not None else None,
        price_date=notes.word("price_date"),
    )


def _timeouts(plan: Plan) -> str:
    """Of the phases that the subject can lose to; cases that differ from each other are told by a hash."""
    limits = {(case.limits.attempt_seconds, case.limits.score_seconds) for case in plan.cases}
    own = plan.subjects[0].options.get("timeout")
    answer = f", answer {own:g} s" if isinstance(own, int | float) else ""
    if len(limits) == 1:
        [(attempt, score)] = limits
        return f"attempt {attempt:g} s, score {score:g} s{answer}"
    return f"by case ({fingerprint(sorted(limits))[:8]}){answer}"

"""Say in a few lines why rounds failed and why rounds were lost."""

from collections.abc import Iterator, Sequence

from bakeoff._kernel.text import count_of, visible
from bakeoff.doors.mcp.outcome import CallOutcome
from bakeoff.doors.mcp.results.report import failure_reason
from bakeoff.record import Record, Verdict
from bakeoff.report.blocks import Block, BulletList, Phrase, Quote, heading

_MAX_REASONS = 3
_MAX_NAMES = 2
_LONGEST = 300


def reasons(outcome: CallOutcome) -> Iterator[Block]:
    """Yield the most frequent reasons of failed rounds, and then of lost rounds."""
    records = [record for cell in outcome.cells for record in cell.records if record.verdict is not Verdict.PASS]
    for title, counted in (("Why rounds failed", True), ("Lost rounds, which count neither way", False)):
        own = [record for record in records if record.verdict.counts is counted]
        if own:
            yield heading(title, level=4)
            yield BulletList(tuple(_most_frequent(own)))


def _most_frequent(records: Sequence[Record]) -> Iterator[Phrase]:
    grouped: dict[str, list[Record]] = {}
    for record in records:
        reason = record.failure.message if record.failure is not None else failure_reason(record)
        grouped.setdefault((reason or "").removeprefix(f"{record.subject}: ")[:_LONGEST], []).append(record)
    by_count = sorted(grouped.items(), key=lambda item: -len(item[1]))
    for reason, own in by_count[:_MAX_REASONS]:
        models, cases = ([*dict.fromkeys(getattr(record, name) for record in own)] for name in ("subject", "case"))
        where = " (", Quote(_names(cases, "case")), "; ", Quote(_names(models, "model")), ")"
        yield (f"{count_of(len(own), 'round')}: ", Quote(reason), *where)
    if len(by_count) > _MAX_REASONS:
        rest = sum(len(own) for _, own in by_count[_MAX_REASONS:])
        others = count_of(len(by_count) - _MAX_REASONS, "other reason")
        yield f"{count_of(rest, 'round')}: {others}; the report has all"


def _names(names: Sequence[str], kind: str) -> str:
    return ", ".join(visible(name, 40) for name in names) if len(names) <= _MAX_NAMES else count_of(len(names), kind)

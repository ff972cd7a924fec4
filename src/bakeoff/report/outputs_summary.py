"""A run's summary and its failures in words, for a pull request or a build's page."""

from collections.abc import Iterator

from bakeoff.plan import Plan
from bakeoff.record import Record, Verdict
from bakeoff.report.compare_cases import why
from bakeoff.report.outputs import Block, Grid, Listing, Quote, Words, columns, heading, paragraph
from bakeoff.report.outputs_shelf import Shelf
from bakeoff.report.summary import SubjectSummary, Summary
from bakeoff.report.words import UNKNOWN, cost, duration, percent, replay_note, span

MOST_FAILURES = 20
HAPPY = (Verdict.PASS, Verdict.RECORDED)


def describe_run(name: str, summary: Summary, plan: Plan, shelf: Shelf) -> tuple[Block, ...]:
    """The table of scores, what its numbers are out of, and the first trials that did not pass."""
    failures = [*_first(unhappy_records(plan, shelf), MOST_FAILURES + 1)]
    return (
        heading("Bakeoff: ", Quote(name)),
        _scores(summary),
        Listing(tuple((note,) for note in _notes(summary))),
        *_failures(failures),
    )


def unhappy_records(plan: Plan, shelf: Shelf) -> Iterator[Record]:
    """The trials that did not pass, in order; nothing is read of a case that has none."""
    for subject in plan.subjects:
        for case in plan.cases:
            if any(verdict not in HAPPY for verdict in shelf.verdicts(subject.name, case.id)):
                rounds = shelf.rounds(subject.name, case.id)
                yield from (record for record in rounds if record.verdict not in HAPPY)


def _first(records: Iterator[Record], most: int) -> Iterator[Record]:
    for _, record in zip(range(most), records, strict=False):
        yield record


def _scores(summary: Summary) -> Grid:
    titles = columns(
        "subject", "score>", "95 % interval>", "passed/scored>", "lost>", "not run>", "cost>", "time>", "tokens>"
    )
    return Grid(titles, tuple(_row(subject, summary.threshold) for subject in summary.subjects))


def _row(subject: SubjectSummary, threshold: float | None) -> tuple[Words, ...]:
    passed = UNKNOWN if threshold is None else str(subject.passed)
    return (
        Quote(subject.subject + (" *" if subject.bound else "")),
        percent(subject.score),
        span(subject.interval),
        f"{passed}/{subject.scored}",
        ", ".join(f"{count} {verdict}" for verdict, count in subject.lost.items()) or "0",
        str(subject.missing),
        cost(subject.spent.cost),
        duration(subject.seconds),
        f"{subject.spent.tokens:,}",
    )


def _notes(summary: Summary) -> Iterator[str]:
    yield (
        f"{summary.cases:,} cases × {len(summary.subjects)} subjects × {summary.rounds:,} rounds; "
        "score is the mean over cases, time the mean of a trial"
    )
    methods = sorted({subject.interval.method for subject in summary.subjects if subject.interval})
    if methods:
        yield f"interval: {', '.join(methods)}"
    if any(subject.bound for subject in summary.subjects):
        yield "* knows the hidden answers on purpose"
    if summary.replayed:
        yield replay_note(summary.replayed, summary.finished)


def _failures(failures: list[Record]) -> Iterator[Block]:
    if not failures:
        yield paragraph("Everything that ran passed.")
        return
    yield heading("What did not pass", level=3)
    rows = tuple(
        (str(record.verdict), Quote(record.case), Quote(record.subject), str(record.round + 1), Quote(why(record)))
        for record in failures[:MOST_FAILURES]
    )
    yield Grid(columns("verdict", "case", "subject", "round>", "why"), rows)
    if len(failures) > MOST_FAILURES:
        yield paragraph("… and more.")

"""A run's summary and its failures in words, for a pull request or a build's page."""

from collections.abc import Iterator

from bakeoff.record import NO_USAGE, Record, Verdict
from bakeoff.report.compare_cases import why
from bakeoff.report.outputs import Block, Grid, Listing, Quote, Words, columns, heading, paragraph
from bakeoff.report.outputs_shelf import Shelf
from bakeoff.report.summary import SubjectSummary, Summary
from bakeoff.report.words import UNKNOWN, cost, duration, judging_note, percent, replay_note, span

MOST_FAILURES = 20
HAPPY = (Verdict.PASS, Verdict.RECORDED)


def describe_run(name: str, summary: Summary, shelf: Shelf) -> tuple[Block, ...]:
    """The table of scores, what its numbers are out of, and the first trials that did not pass."""
    failures = [*_first(unhappy_records(shelf), MOST_FAILURES + 1)]
    return (
        heading("Bakeoff: ", Quote(name)),
        _scores(summary),
        Listing(tuple((note,) for note in _notes(summary))),
        *(_failures(failures) if failures else [paragraph(_without_failures(summary))]),
    )


def unhappy_records(shelf: Shelf) -> Iterator[Record]:
    """Yield the rounds that did not pass of the cases that did not, in order; controls are left out."""
    for subject in shelf.judged:
        for case in shelf.cases_of(subject.name):
            if not shelf.case_verdict(subject.name, case.id).happy:
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
        Quote(subject.subject + (" *" if subject.bound else " (control)" if subject.control else "")),
        percent(subject.score),
        span(subject.interval),
        f"{passed}/{subject.judged}",
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
    if summary.judging != NO_USAGE:
        yield judging_note(summary.judging.tokens, summary.judging.cost)
    if any(subject.bound for subject in summary.subjects):
        yield "* knows the hidden answers on purpose"
    if summary.only_controls:
        yield "every subject is a control, which is there to test the cases"
    elif any(subject.control for subject in summary.subjects):
        yield "what controls did not pass is not listed: they are there to test the cases"
    if summary.replayed:
        yield replay_note(summary.replayed, summary.finished)


def _without_failures(summary: Summary) -> str:
    """What may be said of a run in which nothing that is judged went wrong."""
    finished = sum(subject.finished for subject in summary.judged)
    planned = sum(subject.planned for subject in summary.judged)
    if not finished:
        return "Nothing has been run yet."
    if summary.threshold is None:
        return "Everything that ran was scored. No threshold was set, so nothing passed or failed."
    return "Everything passed." if finished == planned else "Everything that ran passed."


def _failures(failures: list[Record]) -> Iterator[Block]:
    yield heading("What did not pass", level=3)
    rows = tuple(
        (str(record.verdict), Quote(record.case), Quote(record.subject), str(record.round + 1), Quote(why(record)))
        for record in failures[:MOST_FAILURES]
    )
    yield Grid(columns("verdict", "case", "subject", "round>", "why"), rows)
    if len(failures) > MOST_FAILURES:
        yield paragraph("… and more.")

"""Describe a run as blocks for the terminal, `bakeoff merge`, GitHub steps and the HTML page."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from bakeoff._kernel.text import count_of, part_of, visible
from bakeoff.record import NO_USAGE
from bakeoff.report.blocks import (
    Block,
    BulletList,
    Column,
    Datum,
    Quote,
    Section,
    Table,
    TextBlock,
    TextSpan,
    Value,
    columns,
    counted,
    heading,
    paragraph,
    text_blocks,
)
from bakeoff.report.formatting import (
    NO_INTERVAL,
    UNKNOWN,
    duration,
    interval_notes,
    judging_note,
    known_cost,
    percent,
    sentence,
)
from bakeoff.report.gates import GATE_TONES, gates_sentence, worst_last
from bakeoff.report.suites.numbers import MAX_NOT_PASSED, MAX_WORST, SuiteNumbers, SuitesSummary, why_not
from bakeoff.report.suites.outcomes import EvalOutcome
from bakeoff.stats.intervals import Interval
from bakeoff.storage.ledger import describe

WORST = 3
"""The number of the worst cases of a suite that the summary names."""

_MAX_WORST = 15
_COUNTS = (
    ("recorded", "case is only recorded: it has no threshold", "cases are only recorded: they have no threshold"),
    ("unscored", "score is missing, and the mean is without it", "scores are missing, and means are without them"),
    ("grader_errors", "scorer broke", "scorers broke"),
    ("timeouts", "round ran out of time, which scores 0", "rounds ran out of time, which scores 0"),
)
_MAX_NAME_LENGTH = 200


def summary_blocks(summary: SuitesSummary, *, worst: int = WORST) -> Iterator[Block]:
    """Yield the verdict of the gates, the table of suites with notes, the worst cases and the gates, as text."""
    if summary.gates:
        tone = GATE_TONES[worst_last(summary.gates)[-1].state]
        yield TextBlock(gates_sentence(summary.gates, summary.shards), tone=tone)
    if summary.suites:
        table = _suites(summary)
        rows = (tuple(replace(one, span=None) if isinstance(one, Datum) else one for one in row) for row in table.rows)
        yield from text_blocks([replace(table, rows=tuple(rows))])  # spans are drawn on pages only
    if summary.comparisons is not None:
        from bakeoff.report.compare.within_run import describe_comparisons  # most sessions compare nothing

        yield from text_blocks([describe_comparisons(summary.comparisons)])
    if (lowest := _worst(summary, worst, _MAX_WORST)).rows:
        yield paragraph("Worst cases:")
        yield lowest
    if summary.gates:
        yield paragraph("Gates:")
        ordered = worst_last(summary.gates)
        yield BulletList(tuple((f"{gate.option} {gate.word}: ", Quote(gate.sentence)) for gate in ordered))


def step_blocks(summary: SuitesSummary, missed: list[EvalOutcome]) -> Iterator[Block]:
    """Yield the summary of a GitHub step, with the first cases that did not pass."""
    yield heading("Evals")
    if not summary.suites:
        yield paragraph("No eval was run.")
    yield from summary_blocks(summary, worst=0)
    if missed:
        yield heading("What did not pass", level=3)
        rows: list[tuple[Value, ...]] = []
        for one in missed:
            threshold = UNKNOWN if one.threshold is None else f"{one.threshold:g}"
            rows.append((Quote(one.nodeid), _score(one.score), threshold, Quote(one.input), Quote(why_not(one))))
        yield Table(columns("Test", "Score>", "Threshold>", "Input", "Why"), tuple(rows))
        left_out = summary.numbers.failed + summary.numbers.undecided - len(missed)
        if left_out > 0:
            yield paragraph(f"… and {left_out:,} more.")


def page_sections(summary: SuitesSummary) -> Iterator[Section]:
    """Yield the sections that the HTML page has in addition to those of other runs."""
    yield Section("suites", "Suites", (_suites(summary),))
    if summary.comparisons is not None:
        from bakeoff.report.compare.within_run import describe_comparisons

        yield describe_comparisons(summary.comparisons)
    if (worst := _worst(summary, MAX_WORST, MAX_WORST)).rows:
        table = replace(worst, caption=f"Worst cases, {MAX_WORST} at most")
        yield Section("worst", "Worst cases", (table,))


def not_passed(summary: SuitesSummary) -> list[EvalOutcome]:
    """Return the first cases that failed, then those that could not be judged."""
    return [*summary.tallies.missed, *summary.tallies.unjudged][:MAX_NOT_PASSED]


def _suites(summary: SuitesSummary) -> Table:
    """Return a row for each suite and one for all. As text, columns without any value are left out."""
    usage = summary.numbers.usage
    titles = (
        *columns("Suite", "Cases>"),
        Column("Score", align="end", help="the mean over cases of the mean over rounds"),
        Column("95 % interval", align="end"),
        Column("Passed", align="end", help="of the cases that were judged"),
        Column("Rate", align="end", drop=4),
        Column("Not judged", align="end", help="a scorer broke, or a provider or a budget failed", page_only=True),
        Column("Unscored", align="end", help="scorers that returned no number", page_only=True),
        Column("Grader errors", align="end", page_only=True),
        Column("Time", align="end", help="mean of a round", drop=3),
        Column("Tokens", align="end", drop=2, page_only=not usage.tokens),
        Column("Cost", align="end", drop=1, page_only=usage.cost is None),
    )
    names = Counter(name.suite for name in summary.suites)  # suites of one name are told apart by their files
    shown = {name: name.suite if names[name.suite] == 1 else str(name) for name in summary.suites}
    rows = [_suite_row(shown[name], name.file, numbers) for name, numbers in summary.suites.items()]
    if len(rows) > 1:
        rows.append(_suite_row("all", "", summary.numbers))
    return Table(titles, tuple(rows), "Suites", tuple(map(sentence, notes(summary))))


def _suite_row(name: str, file: str, numbers: SuiteNumbers) -> tuple[Value, ...]:
    interval, passed = numbers.interval, numbers.pass_interval
    return (
        Datum(Quote(name), sort=name, tone="strong", note=visible(file, _MAX_NAME_LENGTH)),
        numbers.cases,
        Datum(UNKNOWN if numbers.score is None else f"{numbers.score:.3f}", sort=numbers.score, tone="strong"),
        _drawn(NO_INTERVAL if interval is None else f"{interval.low:.3f}–{interval.high:.3f}", numbers.score, interval),
        Datum(f"{numbers.passed:,}/{numbers.judged:,}" if numbers.judged else UNKNOWN, sort=numbers.passed),
        _drawn(percent(numbers.pass_rate), numbers.pass_rate, passed),
        counted(numbers.undecided),
        counted(numbers.unscored),
        counted(numbers.grader_errors),
        Datum(duration(numbers.seconds), sort=numbers.seconds),
        numbers.usage.tokens,
        Datum(known_cost(numbers.usage), sort=numbers.usage.cost),
    )


def _drawn(text: str, value: float | None, interval: Interval | None) -> Datum:
    """Return a share, which pages draw with its interval."""
    if value is None:
        return Datum(text)
    ends, note = (interval.ends, interval.method) if interval else ((), "fewer than two cases")
    return Datum(text, sort=value, span=TextSpan(value, *ends), note=note)


def notes(summary: SuitesSummary) -> Iterator[str]:
    """Yield notes on the numbers: how they were computed, and what they leave out."""
    total = summary.numbers
    rounds = f" in {count_of(total.rounds, 'round')}" if total.rounds > total.cases else ""
    verb = "has" if total.scored == 1 else "have"
    yield describe(summary.ledger, "eval")
    yield f"{part_of(total.scored, total.cases, 'case')}{rounds} {verb} a score; the mean is over cases"
    yield from (note.removesuffix(".") for note in interval_notes(one.interval for one in summary.suites.values()))
    if summary.comparisons is not None:
        from bakeoff.report.compare.within_run import STOPPED_NOTE

        yield STOPPED_NOTE.removesuffix(".")
    yield from (count_of(number, one, many) for name, one, many in _COUNTS if (number := getattr(total, name)))
    if unequal := summary.tallies.unequal_losses():
        from bakeoff.report.answer import what_was_lost_unequally  # most sessions have nothing to answer

        yield what_was_lost_unequally(unequal).removesuffix(".")
    if total.judging != NO_USAGE:
        yield judging_note(total.judging, "suite")
    if not summary.complete:
        yield "the run was stopped before its end, or not all of it could be read: these are the reported tests"


def _worst(summary: SuitesSummary, of_a_suite: int, most: int) -> Table:
    """Return the cases with the lowest scores, those that failed first."""
    found = [one for tally in summary.tallies.suites.values() for one in tally.lowest(of_a_suite)]
    rows = (
        (Datum(Quote(one.nodeid), tone="strong"), Datum(_score(one.score), sort=one.score), Quote(one.why))
        for one in sorted(found, key=lambda one: one.rank)[:most]
    )
    return Table(columns("Test", "Score>", "Why"), tuple(rows))


def _score(score: float | None) -> str:
    return UNKNOWN if score is None else f"{score:.2f}"

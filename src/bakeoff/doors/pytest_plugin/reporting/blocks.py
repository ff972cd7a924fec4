"""The summary as blocks: for the end of a session, of a merge, and for the page of a GitHub step."""

from collections.abc import Iterator

from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.doors.pytest_plugin.reporting.eval_file import Summary
from bakeoff.doors.pytest_plugin.reporting.numbers import MOST_NOT_PASSED, Numbers, SuiteName, why_not
from bakeoff.record import NO_USAGE
from bakeoff.report.blocks import Block, BulletList, Column, Quote, Table, Words, columns, heading, paragraph
from bakeoff.report.words import UNKNOWN, cost, duration, percent

WORST = 3
"""Cases of a suite that the summary names."""

_MOST_WORST = 15


def summary_blocks(summary: Summary, *, worst: int = WORST) -> Iterator[Block]:
    """Yield the table of suites with notes, the worst cases and the gates."""
    if summary.suites:
        yield _suites(summary)
        yield BulletList(tuple((note,) for note in notes(summary)))
    if lowest := list(_lowest(summary, worst)):
        yield paragraph("Worst cases:")
        yield Table(columns("case", "score>", "why"), tuple(lowest))
    if summary.gates:
        yield paragraph("Gates:")
        yield BulletList(
            tuple((f"{gate_word(gate.met)} {gate.option}: ", Quote(gate.sentence)) for gate in summary.gates)
        )


def page_blocks(summary: Summary, missed: list[EvalOutcome]) -> Iterator[Block]:
    """Yield the summary for GitHub, with the first cases that did not pass."""
    yield heading("Evals")
    if not summary.suites:
        yield paragraph("No eval was run.")
    yield from summary_blocks(summary, worst=0)
    if missed:
        yield heading("What did not pass", level=3)
        yield Table(columns("test", "score>", "threshold>", "input", "why"), tuple(map(_failure_row, missed)))
        left_out = summary.numbers.failed + summary.numbers.undecided - len(missed)
        if left_out > 0:
            yield paragraph(f"… and {left_out:,} more.")


def not_passed(summary: Summary) -> list[EvalOutcome]:
    """Return the first cases that failed, then those that could not be judged."""
    return [*summary.tallies.missed, *summary.tallies.unjudged][:MOST_NOT_PASSED]


def _suites(summary: Summary) -> Table:
    paid = summary.numbers.usage.cost is not None
    used = bool(summary.numbers.usage.tokens)
    titles = (
        Column("suite"),
        Column("cases", align="end"),
        Column("score", align="end"),
        Column("95 % interval", align="end"),
        Column("passed", align="end"),
        Column("rate", align="end", drop=4),
        Column("time", align="end", drop=3),
        *((Column("tokens", align="end", drop=2),) if used else ()),
        *((Column("cost", align="end", drop=1),) if paid else ()),
    )
    rows = [
        _row(Quote(_name(name, summary)), numbers, used=used, paid=paid) for name, numbers in summary.suites.items()
    ]
    if len(rows) > 1:
        rows.append(_row("all", summary.numbers, used=used, paid=paid))
    return Table(titles, tuple(rows))


def _name(name: SuiteName, summary: Summary) -> str:
    """Return the name of a suite, with its file if another file has a suite of that name."""
    return name.suite if sum(name.suite == other.suite for other in summary.suites) == 1 else str(name)


def _row(name: Words, numbers: Numbers, *, used: bool, paid: bool) -> tuple[Words, ...]:
    return (
        name,
        f"{numbers.cases:,}",
        UNKNOWN if numbers.score is None else f"{numbers.score:.3f}",
        _interval(numbers),
        f"{numbers.passed:,}/{numbers.judged:,}" if numbers.judged else UNKNOWN,
        percent(numbers.pass_rate),
        duration(numbers.seconds),
        *((f"{numbers.usage.tokens:,}",) if used else ()),
        *((cost(numbers.usage.cost),) if paid else ()),
    )


def _interval(numbers: Numbers) -> str:
    found = numbers.interval
    return "undefined" if found is None else f"{found.low:.3f}–{found.high:.3f}"


def notes(summary: Summary) -> Iterator[str]:
    """Yield what a reader of the numbers has to know."""
    total = summary.numbers
    rounds = f" in {total.rounds:,} rounds" if total.rounds > total.cases else ""
    yield f"{total.scored:,} of {total.cases:,} cases{rounds} have a score, which is the mean over cases"
    methods = sorted({numbers.interval.method for numbers in summary.suites.values() if numbers.interval})
    if methods:
        yield f"interval: {', '.join(methods)}"
    if any(numbers.interval is None for numbers in summary.suites.values()):
        yield "undefined: fewer than two cases were scored"
    counted = (
        (
            total.recorded,
            "case is only recorded: it has no threshold",
            "cases are only recorded: they have no threshold",
        ),
        (total.undecided, "case could not be judged", "cases could not be judged"),
        (
            total.unscored,
            "score is missing, and the mean is without it",
            "scores are missing, and means are without them",
        ),
        (total.grader_errors, "scorer broke", "scorers broke"),
        (total.timeouts, "round ran out of time, which scores 0", "rounds ran out of time, which scores 0"),
    )
    yield from (f"{number:,} {one if number == 1 else many}" for number, one, many in counted if number)
    if total.judging != NO_USAGE:
        yield f"judges used {total.judging.tokens:,} tokens ({cost(total.judging.cost)}), which are in no suite's cost"
    if not summary.complete:
        yield "the run was stopped before its end: these are the tests reported until then"


def _lowest(summary: Summary, most: int) -> Iterator[tuple[Words, ...]]:
    """Yield the cases with the lowest scores of each suite, lowest first."""
    found = [one for tally in summary.tallies.suites.values() for one in tally.lowest(most)]
    for one in sorted(found, key=lambda one: one.rank)[:_MOST_WORST]:
        yield Quote(one.nodeid), _score(one.score), Quote(one.why)


def _score(score: float | None) -> str:
    return UNKNOWN if score is None else f"{score:.2f}"


def _failure_row(outcome: EvalOutcome) -> tuple[Words, ...]:
    return (
        Quote(outcome.nodeid),
        _score(outcome.score),
        UNKNOWN if outcome.threshold is None else f"{outcome.threshold:g}",
        Quote(outcome.input),
        Quote(why_not(outcome)),
    )


def gate_word(met: bool | None) -> str:
    """Return the word for the result of a gate."""
    return "undecidable" if met is None else "met" if met else "NOT MET"

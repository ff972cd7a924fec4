"""The columns, cells and plots of scores that all reports share."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bakeoff._kernel.text import count_of, visible
from bakeoff.record import ProvenTests
from bakeoff.report.blocks import (
    Axis,
    Column,
    Datum,
    Plot,
    Point,
    Quote,
    Section,
    TextSpan,
    Value,
    counted,
    frontier,
    mark_of,
)
from bakeoff.report.formatting import UNKNOWN, duration, known_cost, percent, points, span
from bakeoff.report.summary import SubjectSummary
from bakeoff.stats.intervals import TOO_SMALL, Interval

BOUND_NOTE = "* control that submits the expected answers."
_NAME = 200

SCORE_COLUMNS = (
    Column("Score", align="end", help="the mean over cases of the mean over rounds"),
    Column("95 % interval", align="end", short="95 %\ninterval", drop=2),
    Column("Passed/scored", align="end", short="Passed/\nscored"),
    Column("Lost", align="end", help="to budget, infra or grader: not the subject's fault, not in its score", drop=3),
    Column("Cost", align="end", help="of all trials, retries included", drop=5),
    Column("Time", align="end", help="the mean of a scored trial", drop=6),
)
"""The numbers of one subject; `score_cells` has their values."""

UNIT_TESTS_COLUMN = Column(
    "Unit tests", align="end", short="Unit\ntests", help="that passed, of all of them, counted one by one", drop=4
)


SHARE_COLUMNS = (
    Column("Visible", align="end", help="tests that passed, of those that the subject saw"),
    Column("Hidden", align="end", help="tests that passed, of those that were hidden from it"),
    Column("Difference", "end", "visible minus hidden, in points: hard-coded answers gain it", short="Diff."),
)
"""Headings of the scores on visible and hidden tests; `share_cells` has the values."""


def score_cells(summary: SubjectSummary, threshold: float | None) -> tuple[Value, ...]:
    """Return a subject's values for `SCORE_COLUMNS`. Without a threshold nothing passes or fails."""
    passed = UNKNOWN if threshold is None else f"{summary.passed:,}"
    return (
        Datum(percent(summary.score), sort=summary.score, tone="strong"),
        interval_datum(summary.score, summary.interval),
        Datum(f"{passed}/{summary.judged:,}", sort=summary.passed),
        losses(summary),
        Datum(known_cost(summary.spent, estimated=bool(summary.estimated)), sort=summary.spent.cost),
        Datum(duration(summary.seconds), sort=summary.seconds),
    )


def unit_tests_datum(summary: SubjectSummary) -> Datum:
    """Return the share of unit tests that passed."""
    if (found := summary.unit_tests) is None:
        return Datum(UNKNOWN)
    return Datum(percent(found.share), sort=found.share, note=f"{found.passed:,} of {count_of(found.total, 'test')}")


def proven_note(known: Iterable[ProvenTests | None]) -> Iterator[str]:
    """Yield how many of the tests behind scores are proven, if that is known for any subject."""
    if found := max((each for each in known if each), key=lambda each: each.total, default=None):
        yield (
            f"{found}: a report that claims everything does not pass them."
            if found.proven
            else f"The tests are {found}."
        )


def share_cells(summary: SubjectSummary) -> tuple[Value, ...]:
    """Return a subject's values for `SHARE_COLUMNS`."""
    tests, difference = summary.tests, summary.hidden_difference
    visible_note = f"{tests.visible_passed:,} of {count_of(tests.visible_total, 'test')}" if tests else ""
    hidden_note = f"{tests.hidden_passed:,} of {count_of(tests.hidden_total, 'test')}" if tests else ""
    return (
        Datum(percent(summary.visible_score), sort=summary.visible_score, note=visible_note),
        Datum(percent(summary.hidden_score), sort=summary.hidden_score, note=hidden_note),
        Datum(points(difference), sort=difference),
    )


def best_first(subjects: Iterable[SubjectSummary]) -> list[SubjectSummary]:
    """Sort subjects by score, best first; those without a score and controls come last."""
    return sorted(subjects, key=lambda one: (one.control, one.score is None, -(one.score or 0.0)))


def name_datum(summary: SubjectSummary) -> Datum:
    """Return a subject's name; an asterisk marks subjects that were given the answers."""
    note = BOUND_NOTE[2:-1] if summary.bound else ""
    mark = " *" if summary.bound else " (control)" if summary.control else ""
    drawn = mark_of(summary.subject, control=summary.control)
    return Datum((Quote(summary.subject), mark), sort=summary.subject, tone="strong", note=note, mark=drawn)


def interval_datum(score: float | None, interval: Interval | None) -> Datum:
    """Return an interval as figures and as a drawing with the score."""
    low, high = (interval.low, interval.high) if interval else (None, None)
    return Datum(
        span(interval),
        sort=low,
        span=None if score is None else TextSpan(score, low, high),
        note=interval.method if interval else "fewer than two cases were scored",
    )


def losses(summary: SubjectSummary) -> Datum:
    """Return each kind of loss by name, because they have different causes."""
    if not summary.lost:
        return counted(0)
    kinds = ", ".join(f"{count:,} {verdict}" for verdict, count in summary.lost.items())
    total = sum(summary.lost.values())
    return Datum(kinds, sort=total, tone="lost", short=f"{total:,}")


def score_plots(priced: tuple[Point, ...], timed: tuple[Point, ...], left_out: Sequence[str] = ()) -> Section | None:
    """Plot scores against cost and time with their frontiers; name the controls left out."""
    score = Axis("score", "percent")
    plots = (
        Plot("Score and cost", Axis("cost of a trial", "usd"), score, frontier(priced)),
        Plot("Score and time", Axis("time of a trial", "seconds"), score, frontier(timed)),
    )
    blocks = tuple(plot for plot in plots if len(plot.points) > 1 and any(point.x for point in plot.points))
    if not blocks:
        return None
    lead = "The line joins the efficient subjects: no other scored as much for less. Whiskers are 95 % intervals."
    if left_out:
        lead += f" Not drawn: {', '.join(left_out)}, which only {'tests' if len(left_out) == 1 else 'test'} the cases."
    if blocks[0].x.unit != "usd":
        lead += _why_no_costs([point.x for point in priced], len(timed))
    return Section("tradeoffs", "Score, cost and time", blocks, lead)


def _why_no_costs(known: Sequence[float], subjects: int) -> str:
    """Say why costs are not drawn: they are all unknown, all zero, or there is only one."""
    if not known:
        return " No costs are known."
    if any(known):
        return " Only one subject has a known cost."
    return " Nothing was paid." if len(known) >= subjects else " The costs that are known are $0."


def tradeoff_plots(
    subjects: Iterable[tuple[SubjectSummary, Interval | None, Interval | None]],
) -> Section | None:
    """Plot the scores of subjects, each with the intervals of its cost and time.

    Controls are left out: they cost neither time nor money, and would compress the scale for the others.
    """
    everyone = list(subjects)
    known = [row for row in everyone if not row[0].control]
    controls = [visible(row[0].subject, 60) for row in everyone if row[0].control]
    priced = tuple(_point(one, paid, around) for one, around, _ in known if (paid := one.cost_per_trial) is not None)
    timed = tuple(_point(one, one.seconds, around) for one, _, around in known if one.seconds is not None)
    found = score_plots(priced, timed, controls)
    if found is None or all(around is None or around.promised for row in known for around in row[1:]):
        return found
    return replace(found, lead=f"{found.lead} Some intervals of cost or time have {TOO_SMALL}.".strip())


def _point(subject: SubjectSummary, x: float, x_interval: Interval | None) -> Point:
    across, up = (interval.ends if interval else None for interval in (x_interval, subject.interval))
    return Point(x, subject.score or 0.0, visible(subject.subject, _NAME), across, up)

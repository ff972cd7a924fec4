"""Scores as tables and plots show them, on every page on which subjects stand side by side."""

from bakeoff.report.html.detail import NAME
from bakeoff.report.sections import Axis, Datum, Plot, Point, Section, Span, frontier
from bakeoff.report.spread import Range
from bakeoff.report.summary import SubjectSummary
from bakeoff.report.words import span, visible
from bakeoff.stats import Interval


def interval_datum(score: float | None, interval: Interval | None) -> Datum:
    """The interval in figures, and drawn on a track with the score."""
    low, high = (interval.low, interval.high) if interval else (None, None)
    return Datum(
        text=span(interval),
        sort=low,
        span=None if score is None else Span(value=score, low=low, high=high),
        note=interval.method if interval else "fewer than two cases were scored",
    )


def losses(subject: SubjectSummary) -> Datum:
    """Each kind of loss by its name: together they would hide whose doing it was."""
    if not subject.lost:
        return counted(0)
    said = ", ".join(f"{count:,} {verdict}" for verdict, count in subject.lost.items())
    return Datum(text=said, sort=sum(subject.lost.values()), tone="lost")


def counted(number: int) -> Datum:
    return Datum(text=f"{number:,}", sort=number, tone="lost" if number else "muted")


def score_plots(priced: tuple[Point, ...], timed: tuple[Point, ...], bound: frozenset[str]) -> Section | None:
    """Points by cost and points by time, with the frontier of each; `bound` knows the answers and is not on it."""
    plots = [
        _tradeoff("Score and cost", Axis(title="cost of a trial", unit="usd"), frontier(priced, bound)),
        _tradeoff("Score and time", Axis(title="time of a trial", unit="seconds"), frontier(timed, bound)),
    ]
    blocks = tuple(plot for plot in plots if any(point.x for point in plot.points))
    if not blocks:
        return None
    lead = "The line joins what is efficient: nothing else scored as much for less. Whiskers are 95 % intervals."
    if bound:
        lead += " Subjects that know the answers are not on it."
    if blocks[0].x.unit != "usd":
        lead += " Nothing was paid." if priced else " No costs are known."
    return Section(id="tradeoffs", title="Score, cost and time", blocks=blocks, lead=lead)


def _tradeoff(title: str, x: Axis, points: tuple[Point, ...]) -> Plot:
    return Plot(title=title, x=x, y=Axis(title="score", unit="percent"), points=points)


def score_point(subject: SubjectSummary, x: float, x_interval: Range | None) -> Point:
    interval = subject.interval
    return Point(
        x=x,
        y=subject.score or 0.0,
        label=visible(subject.subject, NAME),
        x_interval=x_interval,
        y_interval=(interval.low, interval.high) if interval else None,
    )


def cost_per_trial(subject: SubjectSummary) -> float | None:
    tried = subject.finished
    return subject.spent.cost / tried if tried and subject.spent.cost is not None else None

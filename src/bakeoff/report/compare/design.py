"""Describe what a design of so many cases and rounds can show."""

from bakeoff._kernel.text import count_of
from bakeoff.report.blocks import Column, Datum, Report, Section, Table, Value
from bakeoff.report.formatting import UNKNOWN, sentence
from bakeoff.stats.power import Design, too_few


def verdict_on(design: Design) -> str:
    """Say in one sentence what a design can show, and what to do if that is nothing."""
    size = f"{count_of(design.cases, 'case')} × {count_of(design.rounds, 'round')}"
    if few := too_few(design.cases):
        return few
    if design.too_small or design.detectable is None:
        return f"{size} are too few to tell any two subjects apart: use more cases"
    return (
        f"{size} find a difference of {100 * design.detectable:.0f} points between two subjects 4 times in 5, at usual "
        f"noise; the interval of the difference is about ±{_points(design.difference_width)} points"
    )


def describe_design(design: Design, others: tuple[Design, ...]) -> Report:
    titles = (
        Column("Cases", align="end"),
        Column("Rounds", align="end"),
        Column("Finds", align="end", help="the difference that is found 4 times in 5, in points"),
        Column("Difference", align="end", help="half the width of its 95 % interval, in points"),
        Column("Score", align="end", help="the same of one subject's score"),
    )
    notes = (
        "Finds: the true difference, in points, that a paired comparison shows 4 times in 5 (power 80 %, level 5 %).",
        "Difference and Score: half the width of their 95 % intervals, in points.",
        f"Guessed: scores near {100 * design.score:.0f} %, half of a round's variance between cases, and a correlation "
        "of 0.5 between the case scores of two subjects. After a run, `bakeoff compare` uses what was seen.",
    )
    table = Table(titles, tuple(map(_row, (design, *others))), "This design, twice its cases, twice its rounds", notes)
    headline = sentence(verdict_on(design))
    return Report("What this design can show", (Section("design", "Designs", (table,)),), headline=headline)


def _row(design: Design) -> tuple[Value, ...]:
    return (
        design.cases,
        design.rounds,
        Datum("nothing" if design.too_small else _points(design.detectable), sort=design.detectable, tone="strong"),
        Datum(f"±{_points(design.difference_width)}", sort=design.difference_width),
        Datum(f"±{_points(design.score_width)}", sort=design.score_width),
    )


def _points(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:.1f}"

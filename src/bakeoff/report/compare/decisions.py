"""Describe the comparisons of a run that ends when they are decided: verdicts, intervals, and what was saved."""

from collections.abc import Iterator

from bakeoff._kernel.text import part_of
from bakeoff.report.blocks import Column, Datum, Phrase, Quote, Section, Table, Value
from bakeoff.report.formatting import UNKNOWN, cost, percent, sentence
from bakeoff.report.summary import Comparisons
from bakeoff.stats.decisions import PairDecision
from bakeoff.stats.sequential import SequentialDecision

STOPPED_NOTE = (
    "The intervals of single scores assume that the number of cases was fixed in advance. This run ends when its "
    "comparisons are decided, so they promise less than 95 %: compare subjects by the anytime-valid intervals."
)


def describe_comparisons(compared: Comparisons) -> Section:
    """Return the verdict and the anytime-valid interval of every pair."""
    level = f"{100 * (1 - compared.alpha):g} %"
    titles = (
        Column("Verdict"),
        Column(
            "Difference", align="end", short="Diff.", help="the subject that is named first minus the other, in points"
        ),
        Column(f"{level} interval", align="end", short=f"{level}\ninterval", help="anytime-valid, in points"),
        Column("Cases", align="end", help="compared, in the random order of the plan's seed"),
    )
    rows = tuple(map(_row, compared.pairs))
    table = Table(titles, rows, "Subjects in pairs, compared after every case", tuple(_notes(compared)))
    return Section("comparisons", "Comparisons", (table,))


def _row(pair: PairDecision) -> tuple[Value, ...]:
    ahead = pair.difference is not None and pair.difference > 0
    turned = pair.decision is SequentialDecision.IMPROVED or (
        ahead and pair.decision is not SequentialDecision.REGRESSED
    )
    first, second = (pair.second, pair.first) if turned else (pair.first, pair.second)
    sign = 1 if turned else -1  # the difference of a pair is its second subject minus its first
    bounds = sorted((sign * pair.interval.low, sign * pair.interval.high)) if pair.interval else None
    difference = None if pair.difference is None else sign * pair.difference
    return (
        _verdict(pair.decision, Quote(first), Quote(second)),
        Datum(_points(difference), sort=difference),
        Datum(
            f"{_points(bounds[0])} to {_points(bounds[1])}" if bounds else "undefined",
            sort=bounds[0] if bounds else None,
            note=pair.interval.method if pair.interval else "no case was compared",
        ),
        pair.cases,
    )


def _verdict(decision: SequentialDecision, first: Quote, second: Quote) -> Datum:
    if decision is SequentialDecision.UNDECIDED:
        return Datum(("undecided: ", first, " and ", second), sort=decision, tone="muted")
    if decision is SequentialDecision.EQUIVALENT:
        return Datum((first, " and ", second, " are equivalent"), sort=decision, tone="strong")
    return Datum((first, " is better than ", second), sort=decision, tone="strong")


def _points(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:+.1f}"


def _notes(compared: Comparisons) -> Iterator[Phrase]:
    open_pairs = sum(pair.decision is SequentialDecision.UNDECIDED for pair in compared.pairs)
    count = len(compared.pairs)
    if not open_pairs:
        yield "Decided." if count == 1 else f"All {count} pairs are decided."
    else:
        why = "the run is not finished" if compared.trials_left else "all cases were tried"
        yield f"{'Not decided' if count == 1 else f'Not decided: {open_pairs} of {count} pairs'}; {why}."
    yield _saved(compared)
    if compared.margin is not None:
        yield f"Equivalent: the interval lies within ±{100 * compared.margin:g} points."
    every = "" if count == 1 else f", all {count} pairs together"
    yield (
        "Differences are the subject that is named first minus the other, in points. Their intervals are "
        "anytime-valid: looking after every case and stopping because of what was seen do not make them wrong in more "
        "than "
        f"{100 * compared.alpha:g} % of runs{every}."
    )
    for reason in sorted({pair.refused for pair in compared.pairs if pair.refused is not None}):
        yield sentence(reason)


def _saved(compared: Comparisons) -> str:
    if not compared.trials_saved:
        return "No trial was saved."
    share = percent(compared.trials_saved / compared.trials_planned)
    money = "" if compared.cost_saved is None else f", which saved about {cost(compared.cost_saved)}"
    saved = part_of(compared.trials_saved, compared.trials_planned, "trial")
    return f"{saved} ({share}) {'was' if compared.trials_saved == 1 else 'were'} not needed{money}."

"""Describe the comparisons of a run that ends when they are decided: verdicts, intervals, and what was saved."""

from collections.abc import Iterator

from bakeoff.report.blocks import Column, Datum, Difference, ForestPlot, Phrase, Quote, Section, Table, Tone, Value
from bakeoff.report.formatting import UNKNOWN, cost, percent, sentence, visible
from bakeoff.report.summary import Comparisons
from bakeoff.stats.decisions import PairDecision
from bakeoff.stats.sequential import Decision

STOPPED_NOTE = (
    "The intervals of single scores assume that the number of cases was fixed in advance. This run ends when its "
    "comparisons are decided, so they promise less than 95 %: compare subjects by the anytime-valid intervals."
)
_TONES: dict[Decision, Tone] = {Decision.UNDECIDED: "lost"}
_MOST_DRAWN = 60
_NAME = 40


def describe_comparisons(compared: Comparisons) -> Section:
    """Return the verdict and the anytime-valid interval of every pair."""
    level = f"{100 * (1 - compared.alpha):g} % interval"
    titles = (
        Column("Pair"),
        Column("Verdict"),
        Column("Difference", align="end", short="Diff.", help="the second minus the first, in points"),
        Column(level, align="end", help="anytime-valid, in points"),
        Column("Cases", align="end", help="compared, in the random order of the plan's seed"),
    )
    rows = tuple(map(_row, compared.pairs))
    table = Table(titles, rows, "Comparisons, decided case by case", tuple(_notes(compared)))
    drawn = tuple(_drawn(pair) for pair in compared.pairs[:_MOST_DRAWN] if pair.interval is not None)
    plot = ForestPlot("Differences", drawn, compared.margin, f"Anytime-valid {level}s, in points")
    return Section("comparisons", "Comparisons", (table, plot) if drawn else (table,))


def _verdict(pair: PairDecision) -> Phrase:
    match pair.decision:
        case Decision.IMPROVED:
            return (Quote(pair.second), " is better")
        case Decision.REGRESSED:
            return (Quote(pair.first), " is better")
        case Decision.EQUIVALENT:
            return "equivalent"
    return "undecided"


def _points(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:+.1f}"


def _row(pair: PairDecision) -> tuple[Value, ...]:
    interval = pair.interval
    return (
        Datum((Quote(pair.first), " → ", Quote(pair.second)), sort=pair.first, tone="strong"),
        Datum(_verdict(pair), sort=pair.decision, tone=_TONES.get(pair.decision, "plain")),
        Datum(_points(pair.difference), sort=pair.difference),
        Datum(
            "undefined" if interval is None else f"{_points(interval.low)} to {_points(interval.high)}",
            sort=interval.low if interval else None,
            note=interval.method if interval else "no case was compared",
        ),
        pair.cases,
    )


def _drawn(pair: PairDecision) -> Difference:
    bounds = (pair.interval.low, pair.interval.high) if pair.interval else None
    label = f"{visible(pair.first, _NAME)} → {visible(pair.second, _NAME)}"
    return Difference(label, pair.difference, bounds, None, pair.decision)


def _notes(compared: Comparisons) -> Iterator[Phrase]:
    open_pairs = sum(pair.decision is Decision.UNDECIDED for pair in compared.pairs)
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
        "Differences are the second subject minus the first. Their intervals are anytime-valid: looking after every "
        "case and stopping because of what was seen do not make them wrong in more than "
        f"{100 * compared.alpha:g} % of runs{every}."
    )
    for reason in sorted({pair.refused for pair in compared.pairs if pair.refused is not None}):
        yield sentence(reason)


def _saved(compared: Comparisons) -> str:
    if not compared.trials_saved:
        return "No trial was saved."
    share = percent(compared.trials_saved / compared.trials_planned)
    money = "" if compared.cost_saved is None else f", which saved about {cost(compared.cost_saved)}"
    return f"{compared.trials_saved:,} of {compared.trials_planned:,} trials ({share}) were not needed{money}."

"""Follow the comparisons of a run that ends when they are decided, and describe verdicts, intervals and savings."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from bakeoff._kernel.text import part_of
from bakeoff.plan import Plan, UntilDecided
from bakeoff.record import Record, Round, Verdict
from bakeoff.report.blocks import Column, Datum, Phrase, Quote, Section, Table, Value
from bakeoff.report.formatting import UNKNOWN, cost, percent, sentence
from bakeoff.report.summary import Comparisons
from bakeoff.stats.decisions import PairDecision, PairDecisions, random_order
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


_LOST = Round(Verdict.INFRA, None, failed=True)


def random_ranks(plan: Plan) -> dict[str, int]:
    """Return the place of each case in the random order of a plan, by its id; those of a cluster share one."""
    return {case.id: place for place, unit in enumerate(random_order(plan)) for case in unit}


@dataclass(frozen=True, slots=True, eq=False)
class FollowedComparison:
    """One comparison of some subjects over the cases that all of them have.

    Args:
        plan: has these subjects and cases, and the level and margin of the comparison.
        names: the names of subjects in reports.
        suite: with its file and parameters, where the comparison is with an earlier run.
    """

    plan: Plan
    names: Mapping[str, str]
    suite: str | None
    decisions: PairDecisions = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "decisions", PairDecisions(self.plan))

    def results(self) -> Iterator[PairDecision]:
        for pair in self.decisions.results():
            yield pair.model_copy(update={"first": self.names[pair.first], "second": self.names[pair.second]})

    def add_earlier(self, subject: str, case: str, score: float | None) -> None:
        """Add a case of an earlier run. Its rounds may have been more or fewer: the score is their mean."""
        found = _LOST if score is None else Round(Verdict.RECORDED, score, failed=False)
        for number in range(self.plan.rounds):
            self.decisions.add_round(subject, case, number, found)


@dataclass(slots=True, eq=False)
class _FollowedTrial:
    """One case of one subject that is part of a comparison, with all its rounds."""

    comparison: FollowedComparison
    subject: str
    case: str
    cost: float | None = None
    state: Literal["open", "finished", "saved"] = "open"


class FollowedComparisons:
    """Follow comparisons case by case, and tell which trials can still decide anything. Callers choose the keys."""

    def __init__(self, margin: float | None) -> None:
        self.margin = margin
        self.alpha = UntilDecided().alpha  # the chance that any pair is decided wrongly, at most
        self._comparisons: list[FollowedComparison] = []
        self._trials: dict[str, _FollowedTrial] = {}

    def compare(self, plan: Plan, names: Mapping[str, str], suite: str | None) -> FollowedComparison:
        """Start a comparison."""
        made = FollowedComparison(plan, names, suite)
        self._comparisons.append(made)
        return made

    def follow(self, key: str, comparison: FollowedComparison, subject: str, case: str) -> None:
        self._trials[key] = _FollowedTrial(comparison, subject, case)

    def follows(self, key: str) -> bool:
        return key in self._trials

    def needs(self, key: str) -> bool:
        """Tell whether a trial can still decide anything, or is compared with nothing."""
        one = self._trials.get(key)
        return one is None or one.comparison.decisions.needs(one.subject)

    def save(self, key: str) -> None:
        """Note that a trial is not run."""
        self._trials[key].state = "saved"

    def add(self, key: str, records: Iterable[Record]) -> None:
        """Take the rounds of a trial into account."""
        if (one := self._trials.get(key)) is None:
            return
        one.state = "finished"
        for record in records:
            one.comparison.decisions.add_round(one.subject, one.case, record.round, Round.of(record))
            if record.spent.cost is not None:
                one.cost = record.spent.cost + (one.cost or 0.0)

    def add_lost(self, key: str) -> None:
        """Count a trial that ended without a result as lost, so that no other waits for it."""
        one = self._trials.get(key)
        if one is not None and one.state == "open":
            one.state = "finished"
            one.comparison.add_earlier(one.subject, one.case, None)

    def against_baseline(self) -> dict[str, PairDecision]:
        """Return the comparisons with an earlier run, by suite."""
        return {one.suite: next(one.results()) for one in self._comparisons if one.suite is not None}

    def comparisons(self) -> Comparisons | None:
        """Return the comparisons so far; None if there was nothing to compare."""
        if not self._comparisons:
            return None
        trials = dict.fromkeys(("open", "finished", "saved"), 0)
        costs: dict[tuple[FollowedComparison, str], list[float]] = {}
        for one in self._trials.values():
            trials[one.state] += one.comparison.plan.rounds
            if one.cost is not None:
                costs.setdefault((one.comparison, one.subject), []).append(one.cost)
        saved = [(one.comparison, one.subject) for one in self._trials.values() if one.state == "saved"]
        return Comparisons(
            alpha=self.alpha,
            margin=self.margin,
            pairs=tuple(pair for comparison in self._comparisons for pair in comparison.results()),
            trials_planned=sum(trials.values()),
            trials_saved=trials["saved"],
            trials_left=trials["open"],
            cost_saved=sum(fmean(costs[key]) for key in saved if key in costs) if costs else None,
        )

"""Follow comparisons case by case while a session runs, so that it can end when they are decided."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from bakeoff.plan import Plan, UntilDecided
from bakeoff.record import Record
from bakeoff.report.summary import Comparisons
from bakeoff.stats.sequential import PairDecision, PairDecisions, random_order
from bakeoff.verdict import Round, Verdict

_LOST = Round(Verdict.INFRA, None, failed=True)


def random_ranks(plan: Plan) -> dict[str, int]:
    """Return the place of each case in the random order of a plan, by case id; cases of a cluster share a place."""
    return {case.id: place for place, unit in enumerate(random_order(plan)) for case in unit}


@dataclass(frozen=True, slots=True, eq=False)
class FollowedComparison:
    """One comparison of some subjects over the cases that all of them have.

    Args:
        plan: a plan of these subjects and cases, with the level and margin of the comparison.
        names: the names of subjects in reports.
        suite: the suite with its file and parameters, if the comparison is with an earlier run.
    """

    plan: Plan
    names: Mapping[str, str]
    suite: str | None
    decisions: PairDecisions = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "decisions", PairDecisions(self.plan))

    def results(self) -> Iterator[PairDecision]:
        """Yield the decision on each pair so far, under the names that reports show."""
        for pair in self.decisions.results():
            yield pair.model_copy(update={"first": self.names[pair.first], "second": self.names[pair.second]})

    def add_earlier(self, subject: str, case: str, score: float | None) -> None:
        """Add a case of an earlier run. Its mean score stands for every round, as the number of rounds may differ."""
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
    """Comparisons that are followed case by case, to tell which trials are still needed."""

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
        """Add the trial of a subject on a case to a comparison, under a key of the caller's choice."""
        self._trials[key] = _FollowedTrial(comparison, subject, case)

    def follows(self, key: str) -> bool:
        """Tell whether the trial of this key is part of a comparison."""
        return key in self._trials

    def needs(self, key: str) -> bool:
        """Tell whether a trial must be run: it can still change a decision, or belongs to no comparison."""
        one = self._trials.get(key)
        return one is None or one.comparison.decisions.needs(one.subject)

    def save(self, key: str) -> None:
        """Mark a trial as not needed, so that it is not run."""
        self._trials[key].state = "saved"

    def add(self, key: str, records: Iterable[Record]) -> None:
        """Take the rounds of a trial into account."""
        if (one := self._trials.get(key)) is None:
            return
        one.state = "finished"
        for record in records:
            one.comparison.decisions.add_round(one.subject, one.case, record.round, record.judged())
            if record.spent.cost is not None:
                one.cost = record.spent.cost + (one.cost or 0.0)

    def add_lost(self, key: str) -> None:
        """Count a trial that ended without a result as lost, so that its comparison does not wait for it."""
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

"""How far the mean cost and time of a trial may be off: sums by case, from which plots take their whiskers."""

from dataclasses import dataclass, field
from math import isfinite, sqrt

from bakeoff.plan import Plan
from bakeoff.record import Record
from bakeoff.stats import CLUSTER_TAG, CONFIDENCE
from bakeoff.stats.intervals import t_quantile

Range = tuple[float, float]


@dataclass(slots=True)
class Sums:
    """The trials of each case, or of each cluster where cases are tagged: how many, and their sum."""

    by_unit: dict[str, tuple[int, float]] = field(default_factory=dict)

    def add(self, unit: str, value: float) -> None:
        trials, total = self.by_unit.get(unit, (0, 0.0))
        self.by_unit[unit] = trials + 1, total + value

    def interval(self) -> Range | None:
        """The t interval of the mean of a trial; None where nothing varies or there is one case.

        Trials of a case stand together: the variance is that of `stats.cells.clustered_variance`, from sums.
        """
        units, trials = len(self.by_unit), sum(count for count, _ in self.by_unit.values())
        if units < 2:
            return None
        mean = sum(total for _, total in self.by_unit.values()) / trials  # unlike fsum, it may become infinite
        apart = (total - count * mean for count, total in self.by_unit.values())
        error = sqrt(units / (units - 1) * sum(rest * rest for rest in apart)) / trials
        half = t_quantile((1 + CONFIDENCE) / 2, units - 1) * error
        return (max(0.0, mean - half), mean + half) if half > 1e-12 * abs(mean) and isfinite(mean + half) else None


@dataclass(slots=True)
class Spread:
    """One subject's cost and time by case."""

    costs: Sums = field(default_factory=Sums)
    times: Sums = field(default_factory=Sums)


class Spreads:
    """Of every subject of a plan, while records stream by."""

    def __init__(self, plan: Plan) -> None:
        # A case may be called like a cluster, so the two are told apart.
        self._units = {
            case.id: f"cluster {tag}" if (tag := case.tags.get(CLUSTER_TAG)) is not None else f"case {case.id}"
            for case in plan.cases
        }
        self.by_subject = {spec.name: Spread() for spec in plan.subjects}

    def add(self, record: Record) -> None:
        """Cost is that of every trial, as what was spent is; time that of the scored ones."""
        spread, unit = self.by_subject[record.subject], self._units[record.case]
        spread.costs.add(unit, record.used.cost or 0.0)
        if record.verdict.counts and record.value is not None:
            spread.times.add(unit, record.seconds)

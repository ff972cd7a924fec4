"""Compute confidence intervals of the mean cost and time of a trial, for the whiskers of plots."""

from dataclasses import dataclass, field
from math import isfinite, sqrt

from bakeoff.plan import CLUSTER_TAG, Plan
from bakeoff.record import Record
from bakeoff.stats.intervals import CONFIDENCE, t_quantile

Range = tuple[float, float]


@dataclass(slots=True)
class CaseSums:
    """The number and the sum of the trials of each case, or of each cluster if cases are tagged."""

    by_unit: dict[str, tuple[int, float]] = field(default_factory=dict)

    def add(self, unit: str, value: float) -> None:
        trials, total = self.by_unit.get(unit, (0, 0.0))
        self.by_unit[unit] = trials + 1, total + value

    def interval(self) -> Range | None:
        """Return the t interval of the mean of a trial, or None if nothing varies or there is only one case.

        Trials of a case are not independent: cases, or clusters of them, are the units, from their sums.
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
class CostAndTime:
    """One subject's cost and time by case."""

    costs: CaseSums = field(default_factory=CaseSums)
    times: CaseSums = field(default_factory=CaseSums)


class CostsAndTimes:
    """Collect the cost and time of every subject while records stream by."""

    def __init__(self, plan: Plan) -> None:
        # A case may have the same name as a cluster.
        self._units = {
            case.id: f"cluster {tag}" if (tag := case.tags.get(CLUSTER_TAG)) is not None else f"case {case.id}"
            for case in plan.cases
        }
        self.by_subject = {spec.name: CostAndTime() for spec in plan.subjects}

    def add(self, record: Record) -> None:
        """Add the cost of any trial, and the time of a scored one."""
        cost_and_time, unit = self.by_subject[record.subject], self._units[record.case]
        cost_and_time.costs.add(unit, record.used.cost or 0.0)
        if record.verdict.counts and record.value is not None and record.timed:
            cost_and_time.times.add(unit, record.seconds)

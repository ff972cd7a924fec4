"""Which cells (a case and a model) passed, and whether the suite as a whole did."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from bakeoff.plan import Plan
from bakeoff.record import Record, Verdict

State = Literal["passed", "failed", "undecided"]


@dataclass(slots=True)
class CellOutcome:
    """The rounds of one case with one model. What was lost to others (infra, budget) counts for nobody."""

    case: str
    model: str
    rounds: int
    threshold: float
    passed: int = 0
    scored: int = 0
    records: list[Record] = field(default_factory=list)

    @property
    def pass_rate(self) -> float | None:
        """Of the rounds that say something about the model."""
        return self.passed / self.scored if self.scored else None

    @property
    def state(self) -> State:
        """Decided as soon as the rounds that are missing cannot change it."""
        missing = self.rounds - self.scored
        if self.passed / self.rounds >= self.threshold - 1e-9:
            return "passed"
        return "failed" if (self.passed + missing) / self.rounds < self.threshold - 1e-9 else "undecided"


@dataclass(frozen=True, slots=True)
class Outcome:
    """All cells, in the plan's order: cases outside, models inside."""

    cells: tuple[CellOutcome, ...]
    rule: Literal["all", "ratio"]
    threshold: float

    @property
    def passed(self) -> int:
        return sum(cell.state == "passed" for cell in self.cells)

    @property
    def failed(self) -> int:
        return sum(cell.state == "failed" for cell in self.cells)

    @property
    def state(self) -> State:
        least = self.threshold if self.rule == "ratio" else 1.0
        size = len(self.cells)
        if self.passed / size >= least - 1e-9:
            return "passed"
        return "failed" if (size - self.failed) / size < least - 1e-9 else "undecided"

    def by_case(self) -> Iterator[tuple[str, list[CellOutcome]]]:
        grouped: dict[str, list[CellOutcome]] = {}
        for cell in self.cells:
            grouped.setdefault(cell.case, []).append(cell)
        yield from grouped.items()


def outcome_of(
    plan: Plan, records: Iterable[Record], rule: Literal["all", "ratio"], threshold: float, *, keep: bool = False
) -> Outcome:
    """Give each trial's latest record once. With `keep`, cells hold their records, by round."""
    cells = {
        (case.id, subject.name): CellOutcome(case.id, subject.name, plan.rounds, threshold)
        for case in plan.cases
        for subject in plan.subjects
    }
    for record in records:
        cell = cells[record.case, record.subject]
        cell.passed += record.verdict is Verdict.PASS
        cell.scored += record.verdict.counts
        if keep:
            cell.records.append(record)
    for cell in cells.values():
        cell.records.sort(key=lambda record: record.round)
    return Outcome(tuple(cells.values()), rule, threshold)

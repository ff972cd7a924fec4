"""Decide which cells (one case with one model) pass, and whether the suite passes."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from bakeoff.doors.mcp.plan import McpPlanSettings
from bakeoff.plan import PassRule, Plan
from bakeoff.record import Record, Round, Verdict, case_verdict
from bakeoff.stats.sequential import PairDecisions

State = Literal["passed", "failed", "undecided"]
_STATES: dict[bool | None, State] = {True: "passed", False: "failed", None: "undecided"}


@dataclass(frozen=True, slots=True)
class CellOutcome:
    """The rounds of one case with one model. Rounds that infra or budget ended are lost: they count neither way."""

    case: str
    model: str
    rounds: int
    records: tuple[Record, ...]  # by round
    state: State

    @property
    def passed(self) -> int:
        return sum(record.verdict is Verdict.PASS for record in self.records)

    @property
    def scored(self) -> int:
        return sum(record.verdict.counts for record in self.records)

    @property
    def pass_rate(self) -> float | None:
        """Return the share of scored rounds that passed, or None if no round was scored."""
        return self.passed / self.scored if self.scored else None

    @property
    def lost(self) -> str:
        """Return `, 2 lost` if rounds were not scored, else an empty text."""
        return f", {self.rounds - self.scored} lost" if self.scored < self.rounds else ""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """All cells in the plan's order: cases outside, models inside."""

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
        """Return the outcome of the suite. It is decided as soon as undecided cells cannot change it."""
        needed = (self.threshold if self.rule == "ratio" else 1.0) * len(self.cells) - 1e-9
        if self.passed >= needed:
            return "passed"
        return "failed" if len(self.cells) - self.failed < needed else "undecided"

    def by_case(self) -> Iterable[tuple[str, list[CellOutcome]]]:
        """Return each case with its cells."""
        grouped: dict[str, list[CellOutcome]] = {}
        for cell in self.cells:
            grouped.setdefault(cell.case, []).append(cell)
        return grouped.items()


def _settled(plan: Plan, records: Iterable[Record]) -> set[str]:
    """Return the models of which no further trial is needed, in a run that ends when it is decided."""
    if plan.until_decided is None:
        return set()
    decisions = PairDecisions.of(plan, records)
    return {name for name in plan.compared if not decisions.needs(name)}


def outcome_of(plan: Plan, records: Iterable[Record], settings: McpPlanSettings) -> CallOutcome:
    """Compute the outcome of all cells. `records` must contain the latest record of each trial once.

    A cell that was not run because its comparisons were decided before is left out, like one that was not selected.
    One that was begun by then counts with the rounds that it has.
    """
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        found.setdefault((record.case, record.subject), []).append(record)
    settled = _settled(plan, chain.from_iterable(found.values()))
    cells: list[CellOutcome] = []
    for case in plan.cases:
        rule = case.pass_rule or PassRule(gate="share")
        for subject in plan.subjects:
            own = sorted(found.get((case.id, subject.name), ()), key=lambda record: record.round)
            planned = len(own) if subject.name in settled else plan.rounds
            if planned:
                passed = case_verdict(rule, [Round.of(record) for record in own], planned).passed
                cells.append(CellOutcome(case.id, subject.name, planned, tuple(own), _STATES[passed]))
    return CallOutcome(tuple(cells), settings.suiteRule, settings.threshold)

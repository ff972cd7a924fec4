"""Decide which cells (one case with one model) pass, and count which tools were confused."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Literal

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.mcp.plan import McpPlanSettings
from bakeoff.mcp import ServerTool
from bakeoff.plan import PassRule, Plan
from bakeoff.record import Record
from bakeoff.report.gates import GateEvidence, GateState, decide_gate, of_shard_alone
from bakeoff.report.summary import RunTally, settled_subjects
from bakeoff.scorers.mcp.calls import NO_TOOL, UNREADABLE, Call, CaseExpectation, noted_in, turns_in
from bakeoff.scorers.values import most_pairs_in_order
from bakeoff.storage.ledger import Ledger
from bakeoff.verdict import Verdict, case_verdict


@dataclass(frozen=True, slots=True)
class CellOutcome:
    """The rounds of one case with one model. Rounds that infra or budget ended are lost: they count neither way."""

    case: str
    model: str
    rounds: int
    records: tuple[Record, ...]  # by round
    state: GateState

    @property
    def passed(self) -> int:
        """Return the number of rounds that passed."""
        return sum(record.verdict is Verdict.PASS for record in self.records)

    @property
    def scored(self) -> int:
        """Return the number of rounds that count; those that infra or budget ended do not."""
        return sum(record.verdict.counts for record in self.records)

    @property
    def pass_rate(self) -> float | None:
        """Return the share of scored rounds that passed, or None if no round was scored."""
        return self.passed / self.scored if self.scored else None

    @property
    def lost(self) -> str:
        """Return `, 2 lost` if rounds were not scored, else an empty string."""
        return f", {self.rounds - self.scored} lost" if self.scored < self.rounds else ""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """All cells in the plan's order: by case, and by model within a case."""

    cells: tuple[CellOutcome, ...]
    rule: Literal["all", "ratio"]
    threshold: float
    ledger: Ledger  # of trials
    alone: str = ""  # a remark that only some shards were judged

    @property
    def passed(self) -> int:
        """Return the number of cells that passed."""
        return sum(cell.state is GateState.PASSED for cell in self.cells)

    @property
    def failed(self) -> int:
        """Return the number of cells that failed. The others are undecided, because rounds were lost."""
        return sum(cell.state is GateState.FAILED for cell in self.cells)

    @property
    def evidence(self) -> GateEvidence:
        """Return the evidence for the suite's gate, which fails if undecided cells cannot save it.

        Undecided cells that are allowed are left out.
        """
        decided, wanted = self.passed + self.failed, self.threshold if self.rule == "ratio" else 1.0
        value, best = self.passed / decided if decided else None, 1 - self.failed / (len(self.cells) or 1)
        return GateEvidence(ledgers={"": self.ledger}, wanted=wanted, value=value, best=best)

    @property
    def state(self) -> GateState:
        """Return the outcome of the suite if no cell may be undecided."""
        return decide_gate(self.evidence).state

    def by_case(self) -> Iterable[tuple[str, list[CellOutcome]]]:
        """Return the cells of each case."""
        grouped: dict[str, list[CellOutcome]] = {}
        for cell in self.cells:
            grouped.setdefault(cell.case, []).append(cell)
        return grouped.items()


def outcome_of(plan: Plan, records: Iterable[Record], settings: McpPlanSettings) -> CallOutcome:
    """Compute the outcome of all cells. `records` must contain the latest record of each trial once.

    A cell without rounds is left out if its comparisons were already decided, like a cell that was not selected. A cell
    that was started counts with its rounds.
    """
    found: dict[tuple[str, str], list[Record]] = {}
    tally = RunTally(plan)
    for record in records:
        tally.add(record)
        found.setdefault((record.case, record.subject), []).append(record)
    settled = settled_subjects(plan, chain.from_iterable(found.values()))
    cells: list[CellOutcome] = []
    for case in plan.cases:
        rule = case.pass_rule or PassRule(gate="share")
        for subject in plan.subjects:
            own = sorted(found.get((case.id, subject.name), ()), key=lambda record: record.round)
            planned = len(own) if subject.name in settled else plan.rounds
            if planned:
                passed = case_verdict(rule, [record.judged() for record in own], planned).passed
                cells.append(CellOutcome(case.id, subject.name, planned, tuple(own), GateState.of_met(passed)))
    summary = tally.summary()
    alone = "" if summary.merged else of_shard_alone(summary.ledger.shards)
    return CallOutcome(tuple(cells), settings.suiteRule, settings.threshold, summary.gated_ledger, alone)


NO_ANSWER = "no answer"
OTHERS = "other tools"
ALL_MODELS = "all models"
_NOT_TOOLS = (NO_TOOL, UNREADABLE, NO_ANSWER, OTHERS)
_MAX_PAIRS = 10
_MAX_OTHERS = 30  # unwanted tools with a column of their own: a model may invent one for every call

Pair = tuple[str, str]
"""The expected tool, and the one that was called instead."""


@dataclass(frozen=True, slots=True)
class Confusion:
    """One model's rounds, counted by expected tool, and by pair of expected and called tool."""

    model: str
    counts: Mapping[Pair, int]
    rounds: Mapping[str, int]

    def wanted(self) -> list[str]:
        """Return the expected tools in the order of the plan, which are the rows of the matrix."""
        return list(dict.fromkeys(wanted for wanted, _ in self.counts))

    def called(self) -> list[str]:
        """Return the called tools, expected ones first: correct calls are on the diagonal."""
        wanted = self.wanted()
        others = {called for _, called in self.counts} - set(wanted)
        return [*wanted, *sorted(others, key=lambda name: (name in _NOT_TOOLS, name))]


class ConfusedTools(FrozenModel):
    """An expected tool and another that was called instead, over all models."""

    wanted: str
    called: str
    rounds: int
    models: tuple[str, ...]
    wantedDescription: str = ""
    calledDescription: str = ""


def confusions(plan: Plan, records: Iterable[Record]) -> tuple[Confusion, ...]:
    """Return one confusion matrix for each model, in the plan's order. Lost rounds are not counted."""
    rounds: dict[str, list[list[Pair]]] = {spec.name: [] for spec in plan.subjects}
    expected = {case.id: CaseExpectation.model_validate(case.expected) for case in plan.cases}
    wanted = {id: [call.tool for call in each.calls or ()] for id, each in expected.items()}
    for record in records:
        if record.verdict.counts:
            turns = turns_in(record)
            # Only of the turns that were asked: a turn that fails ends the conversation.
            reached = expected[record.case].turns[: len(turns)]
            asked = [call.tool for turn in reached for call in turn.calls or ()] if turns else wanted[record.case]
            rounds[record.subject].append(_pairs(asked, record))
    labels = sorted({label for labels in wanted.values() for label in labels})
    if not all(wanted.values()):
        labels.append(NO_TOOL)
    return tuple(_confusion(model, found, labels) for model, found in rounds.items())


def _confusion(model: str, rounds: Sequence[Sequence[Pair]], order: Sequence[str]) -> Confusion:
    """Count the rounds of each pair. If there are too many tools, the rarest unexpected ones are counted together."""
    wanted = Counter(name for pairs in rounds for name in {wanted for wanted, _ in pairs})
    called = Counter(name for pairs in rounds for _, name in pairs if name not in order and name not in _NOT_TOOLS)
    kept = {name for name, _ in called.most_common(_MAX_OTHERS)}
    counts: Counter[Pair] = Counter()
    for pairs in rounds:
        counts.update({(wanted, OTHERS if name in called and name not in kept else name) for wanted, name in pairs})
    ordered = sorted(counts, key=lambda pair: (order.index(pair[0]) if pair[0] in order else len(order), pair))
    return Confusion(model, {pair: counts[pair] for pair in ordered}, wanted)


def pooled(found: Sequence[Confusion]) -> Confusion:
    """Return the counts of all models together."""
    counts: Counter[Pair] = Counter()
    rounds: Counter[str] = Counter()
    for one in found:
        counts.update(one.counts)
        rounds.update(one.rounds)
    return Confusion(ALL_MODELS, counts, rounds)


def most_confused(found: Sequence[Confusion], tools: Iterable[ServerTool]) -> tuple[ConfusedTools, ...]:
    """Return the pairs of tools that were confused most often, with the descriptions that models read."""
    texts = {tool.label: tool.description for tool in tools}
    rounds: Counter[Pair] = Counter()
    models: dict[Pair, list[str]] = {}
    for confusion in found:
        for pair, count in confusion.counts.items():
            if pair[0] != pair[1] and pair[1] not in (UNREADABLE, NO_ANSWER, OTHERS):
                rounds[pair] += count
                models.setdefault(pair, []).append(confusion.model)
    return tuple(
        ConfusedTools(
            wanted=wanted,
            called=called,
            rounds=count,
            models=tuple(models[wanted, called]),
            wantedDescription=texts.get(wanted, ""),
            calledDescription=texts.get(called, ""),
        )
        for (wanted, called), count in rounds.most_common(_MAX_PAIRS)
    )


def called_in(record: Record) -> list[Call]:
    """Return the calls that the scorer read from the reply."""
    return noted_in(record, "called", Call)


def _pairs(wanted: Sequence[str], record: Record) -> list[Pair]:
    """Pair each expected tool with a call: as many correct pairs as the order allows, then the others.

    Pairing by position alone would make every call after a missing one look like a confusion.
    """
    unreadable = record.scores and record.scores[0].metadata.get("failure_class") == UNREADABLE
    if unreadable or not record.scores:
        return [(name, UNREADABLE if unreadable else NO_ANSWER) for name in wanted or [NO_TOOL]]
    called = [call.tool for call in called_in(record)]
    places = most_pairs_in_order([[name == other for other in called] for name in wanted])
    correct = [(at, place) for at, place in enumerate(places) if place is not None]
    found: list[Pair] = []
    at = place = 0
    for next_at, next_place in [*correct, (len(wanted), len(called))]:
        found += zip_longest(wanted[at:next_at], called[place:next_place], fillvalue=NO_TOOL)
        found += zip(wanted[next_at : next_at + 1], called[next_place : next_place + 1], strict=True)
        at, place = next_at + 1, next_place + 1
    return found or [(NO_TOOL, NO_TOOL)]

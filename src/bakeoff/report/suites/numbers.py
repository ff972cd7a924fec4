"""Compute the numbers of a suite from outcomes, each with its denominator. The unit is the case, never the round.

Outcomes are read once and not kept: a session may have more of them than fit in memory.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import shorten
from bakeoff.record import NO_USAGE, Usage
from bakeoff.report.suites.outcomes import EvalOutcome
from bakeoff.stats.cells import Cell
from bakeoff.stats.intervals import Interval, interval_of_passes, score_interval
from bakeoff.storage.ledger import Ledger, Missing, ShardsHere, missing_kind, scorers_heard, silent_scorers
from bakeoff.verdict import LOST, Verdict

if TYPE_CHECKING:
    from bakeoff.report.gates import GateResult
    from bakeoff.report.summary import Comparisons
    from bakeoff.stats.gates import UnequalLosses


Redact = Callable[[EvalOutcome], EvalOutcome]
"""A function that returns an outcome without secrets, fit to be written to a file."""

MAX_WORST = 50
"""The number of a suite's worst cases that are kept by name."""

MAX_NOT_PASSED = 20
"""The number of failed cases, and of cases that could not be judged, that are kept whole."""

_MAX_WHY_LENGTH = 200


class SuiteNumbers(FrozenModel):
    """The numbers of some cases."""

    cases: int
    scored: int  # cases with a score; `score` is their mean
    passed: int
    failed: int
    recorded: int  # cases without a threshold, which neither pass nor fail
    undecided: int  # cases that could not be judged: a scorer broke, or a provider or a budget failed
    score: float | None
    interval: Interval | None  # None: fewer than two cases were scored
    pass_rate: float | None  # passed / (passed + failed)
    pass_interval: Interval | None
    rounds: int  # of all cases
    lost: dict[Verdict, int] = {}  # rounds that say nothing about the subject
    timeouts: int = 0
    unscored: int = 0  # scorers that returned no number, over all rounds
    grader_errors: int = 0  # scorers that broke, over all rounds
    seconds: float | None = None  # mean of a round
    tool_calls: int = 0
    usage: Usage = NO_USAGE  # of tasks
    judging: Usage = NO_USAGE  # of scorers

    @property
    def judged(self) -> int:
        """Return the number of cases that passed or failed."""
        return self.passed + self.failed


class Worst(NamedTuple):
    """A case with a score below 1, or without a score."""

    rank: tuple[bool, float]  # failures first, then by score; a case without a score is below all others
    nodeid: str
    score: float | None
    why: str


@dataclass(slots=True)
class SuiteTally:
    """The sums of some cases while they are read."""

    cells: list[Cell] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    unscored: int = 0
    grader_errors: int = 0
    seconds: float = 0.0
    tool_calls: int = 0
    usage: Usage = NO_USAGE
    judging: Usage = NO_USAGE
    worst: list[Worst] = field(default_factory=list)
    missing: Counter[Missing] = field(default_factory=Counter)
    heard: Counter[tuple[str, bool]] = field(default_factory=Counter)  # scorers, by whether they gave a number

    def add(self, outcome: EvalOutcome) -> None:
        """Count one case."""
        kind: str = "recorded" if outcome.threshold is None and outcome.problem is None else "undecided"
        if outcome.passed is not None:
            kind = "passed" if outcome.passed else "failed"
        self.kinds[kind] += 1
        if kind == "undecided":
            lost = (missing_kind(record) for record in outcome.records)
            why: Missing = next(filter(None, lost), "not run")
            self.missing[why] += 1
            kind = why
        if (cell := cell_of(outcome)) is not None:
            self.cells.append(cell)
        scores = [score for record in outcome.records for score in record.scores]
        if outcome.problem is None:
            judged = (record.scores for record in outcome.records if record.verdict.counts)
            self.heard.update(scorers_heard(chain.from_iterable(judged)))
        self.grader_errors += sum(score.failure is not None for score in scores)
        self.unscored += sum(score.failure is None and score.value is None for score in scores)
        self.seconds += outcome.seconds
        for record in outcome.records:
            self.verdicts[record.verdict] += 1
            self.tool_calls += len(record.transcript.tool_calls) if record.transcript else 0
            if record.spent != NO_USAGE:
                self.usage += record.used
                self.judging += record.judging
        if kind != "skipped" and (outcome.problem or outcome.score is None or outcome.score < 1):
            held = outcome.problem is None and outcome.passed is not False
            rank = (held, -1.0 if outcome.score is None else outcome.score)
            self.worst.append(Worst(rank, outcome.nodeid, outcome.score, why_not(outcome)))
            if len(self.worst) > 2 * MAX_WORST:
                self.worst = self.lowest(MAX_WORST)

    def lowest(self, most: int) -> list[Worst]:
        """Return the failures and then the other cases, both sorted by score, lowest first."""
        return sorted(self.worst, key=lambda one: one.rank)[:most]

    def numbers(self) -> SuiteNumbers:
        """Compute the numbers of the cases so far."""
        kinds, cells, rounds = self.kinds, self.cells, self.verdicts.total()
        judged = kinds["passed"] + kinds["failed"]
        return SuiteNumbers(
            cases=kinds.total(),
            scored=len(cells),
            **{kind: kinds[kind] for kind in ("passed", "failed", "recorded", "undecided")},
            score=fmean(cell.mean for cell in cells) if cells else None,
            interval=score_interval(cells),
            pass_rate=kinds["passed"] / judged if judged else None,
            pass_interval=interval_of_passes(kinds["passed"], judged),
            rounds=rounds,
            lost={verdict: self.verdicts[verdict] for verdict in sorted(LOST) if self.verdicts[verdict]},
            timeouts=self.verdicts[Verdict.TIMEOUT],
            seconds=self.seconds / rounds if rounds else None,
            **{name: getattr(self, name) for name in ("unscored", "grader_errors", "tool_calls", "usage", "judging")},
        )


class SuiteName(NamedTuple):
    """The name of a suite with its file: two files may have a suite of the same name."""

    file: str
    suite: str

    def __str__(self) -> str:
        return f"{self.file}::{self.suite}"


@dataclass(slots=True)
class SuiteTallies:
    """The sums of a whole session, by suite."""

    suites: dict[SuiteName, SuiteTally] = field(default_factory=dict)
    missed: list[EvalOutcome] = field(default_factory=list)  # the first cases below their threshold
    unjudged: list[EvalOutcome] = field(default_factory=list)
    unscored: list[str] = field(default_factory=list)  # node ids of the first that are recorded without a score
    rounds: dict[str, Counter[Verdict]] = field(default_factory=dict)  # by the parameters that tell subjects apart

    @classmethod
    def of(cls, outcomes: Iterable[EvalOutcome]) -> "SuiteTallies":
        """Count some cases."""
        made = cls()
        for outcome in outcomes:
            made.add(outcome)
        return made

    def add(self, outcome: EvalOutcome) -> None:
        """Count one case in its suite."""
        suite = suite_of(outcome)
        tally = self.suites.get(suite) or self.suites.setdefault(suite, SuiteTally())
        tally.add(outcome)
        if outcome.parameters:
            rounds = self.rounds.setdefault(outcome.parameters, Counter())
            rounds.update(record.verdict for record in outcome.records)
        if outcome.passed is False or outcome.problem is not None:
            kept = self.missed if outcome.passed is False else self.unjudged
            if len(kept) < MAX_NOT_PASSED:
                kept.append(outcome)
        elif outcome.score is None and len(self.unscored) < MAX_NOT_PASSED:
            self.unscored.append(outcome.nodeid)

    def unequal_losses(self) -> "tuple[UnequalLosses, ...]":
        """Return the subjects, by their parameters, that lost unequal shares of their rounds."""
        if len(self.rounds) < 2:
            return ()
        from bakeoff.stats.gates import Losses, unequal_losses

        return unequal_losses({name: Losses.of(found) for name, found in self.rounds.items()})

    def whole(self) -> SuiteTally:
        """Return the sums of all suites together."""
        total = SuiteTally()
        for tally in self.suites.values():
            for each in fields(SuiteTally):
                setattr(total, each.name, getattr(total, each.name) + getattr(tally, each.name))
        return total


def suite_of(outcome: EvalOutcome) -> SuiteName:
    """Return the suite of a case with its parameters, because each set of parameters has its own row."""
    parameters = f"[{outcome.parameters}]" if outcome.parameters else ""
    return SuiteName(file_part(outcome.nodeid), outcome.suite + parameters)


def file_part(nodeid: str) -> str:
    """Return the file part of a node id."""
    return nodeid.partition("::")[0]


def cell_of(outcome: EvalOutcome) -> Cell | None:
    """Return the rounds of a case as sums; None if it has no score. The score of a pass@k rule counts as one round."""
    if outcome.score is None:
        return None
    if outcome.rule.gate != "mean" or len(outcome.records) < 2:
        return Cell(1, outcome.score, outcome.score * outcome.score)
    values = [value for record in outcome.records if (value := record.value) is not None]
    return Cell.of(values or [outcome.score])


def why_not(outcome: EvalOutcome) -> str:
    """Say in a few words why the score of a case is below 1 or missing."""
    if outcome.problem:
        return shorten(outcome.problem, _MAX_WHY_LENGTH)
    from bakeoff.report.reasons import why

    reasons = (why(record) for record in outcome.records)
    return shorten(next((reason for reason in reasons if reason), ""), _MAX_WHY_LENGTH)


@dataclass(frozen=True, slots=True)
class SuitesSummary:
    """The numbers of a run, which are also at the head of an `--eval-json` file."""

    tallies: SuiteTallies
    suites: dict[SuiteName, SuiteNumbers]
    numbers: SuiteNumbers
    gates: "tuple[GateResult, ...]" = ()
    complete: bool = True
    shards: ShardsHere | None = None
    comparisons: "Comparisons | None" = None

    @property
    def ledger(self) -> Ledger:
        """Return what was planned, and how much of it passed, failed or is missing."""
        numbers, tallies = self.numbers, self.tallies
        return Ledger(
            planned=numbers.cases,
            **numbers.model_dump(include={"passed", "failed", "recorded"}),
            missing=dict(sum((tally.missing for tally in tallies.suites.values()), Counter[Missing]())),
            silent=dict(sum((Counter(silent_scorers(each.heard)) for each in tallies.suites.values()), Counter[str]())),
            unscored=numbers.cases - numbers.scored - numbers.undecided,
            named=tuple(f"{outcome.nodeid}: {outcome.problem}" for outcome in tallies.unjudged),
            ended=self.complete,
            shards=self.shards,
        )


def summary_of(
    tallies: SuiteTallies,
    gates: "Sequence[GateResult]" = (),
    *,
    complete: bool = True,
    shards: ShardsHere | None = None,
) -> SuitesSummary:
    """Return the numbers of every suite and of all together."""
    numbers = {name: tally.numbers() for name, tally in tallies.suites.items()}
    total = next(iter(numbers.values())) if len(numbers) == 1 else tallies.whole().numbers()
    return SuitesSummary(tallies, numbers, total, tuple(gates), complete, shards)

"""From outcomes to the numbers of a suite, each with what it is out of. The unit is the case, never the round.

Outcomes pass by once and are not kept: a session may have more of them than its reports should remember.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import fmean
from typing import NamedTuple

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.record import LOST, NO_USAGE, Record, Usage, Verdict, round_value
from bakeoff.stats import Cell, Interval, score_interval
from bakeoff.stats.intervals import rule_of_three, wilson

MOST_WORST = 50
"""Cases of a suite that are remembered by name."""

MOST_UNHAPPY = 20
"""Cases that did not pass, and cases that could not be judged, that are remembered whole."""

_LONGEST_WHY = 200


class Numbers(FrozenModel):
    """What some cases came to."""

    cases: int
    scored: int  # cases with a score: what `score` is the mean of
    passed: int
    failed: int
    recorded: int  # cases without a threshold, which neither pass nor fail
    undecided: int  # cases that a broken scorer, a provider or a budget kept from being judged
    score: float | None
    interval: Interval | None  # None: fewer than two cases were scored
    pass_rate: float | None  # passed / (passed + failed)
    pass_interval: Interval | None
    rounds: int  # of all cases
    lost: dict[Verdict, int] = {}  # rounds that say nothing about what is tested
    timeouts: int = 0
    unscored: int = 0  # scorers that returned no number, over all rounds
    grader_errors: int = 0  # scorers that broke, over all rounds
    seconds: float | None = None  # mean of a round
    tool_calls: int = 0
    usage: Usage = NO_USAGE  # of tasks
    judging: Usage = NO_USAGE  # of scorers

    @property
    def judged(self) -> int:
        return self.passed + self.failed


class Worst(NamedTuple):
    """A case that is less than perfect."""

    rank: float  # its score, or less than any where it has none
    nodeid: str
    score: float | None
    why: str


@dataclass(slots=True)
class Tally:
    """The sums of some cases while they pass by."""

    cells: list[Cell] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    unscored: int = 0
    broken: int = 0
    seconds: float = 0.0
    tool_calls: int = 0
    usage: Usage = NO_USAGE
    judging: Usage = NO_USAGE
    worst: list[Worst] = field(default_factory=list)

    def add(self, outcome: EvalOutcome) -> None:
        self.kinds[kind_of(outcome)] += 1
        if (cell := cell_of(outcome)) is not None:
            self.cells.append(cell)
        for record in outcome.records:
            self._add_round(record)
        if outcome.problem or outcome.score is None or outcome.score < 1:
            rank = -1.0 if outcome.score is None else outcome.score
            self.worst.append(Worst(rank, outcome.nodeid, outcome.score, why_not(outcome)))
            if len(self.worst) > 2 * MOST_WORST:
                self.worst = self.lowest(MOST_WORST)

    def _add_round(self, record: Record) -> None:
        self.verdicts[record.verdict] += 1
        for score in record.scores:
            if score.failure is not None:
                self.broken += 1
            elif score.value is None:
                self.unscored += 1
        if record.attempt is not None:
            self.seconds += record.attempt.seconds
        if record.transcript is not None and record.transcript.steps:
            self.tool_calls += len(record.transcript.tool_calls)
        if record.spent != NO_USAGE:
            self.usage += record.used
            self.judging += record.judging

    def lowest(self, most: int) -> list[Worst]:
        """The worst first; of equals, the one that came first."""
        return sorted(self.worst, key=lambda one: one.rank)[:most]

    def numbers(self) -> Numbers:
        kinds, cells, rounds = self.kinds, self.cells, self.verdicts.total()
        judged = kinds["passed"] + kinds["failed"]
        return Numbers(
            cases=kinds.total(),
            scored=len(cells),
            passed=kinds["passed"],
            failed=kinds["failed"],
            recorded=kinds["recorded"],
            undecided=kinds["undecided"],
            score=fmean(cell.mean for cell in cells) if cells else None,
            interval=score_interval(cells),
            pass_rate=kinds["passed"] / judged if judged else None,
            pass_interval=_share_interval(kinds["passed"], judged),
            rounds=rounds,
            lost={verdict: self.verdicts[verdict] for verdict in sorted(LOST) if self.verdicts[verdict]},
            timeouts=self.verdicts[Verdict.TIMEOUT],
            unscored=self.unscored,
            grader_errors=self.broken,
            seconds=self.seconds / rounds if rounds else None,
            tool_calls=self.tool_calls,
            usage=self.usage,
            judging=self.judging,
        )


def _share_interval(passed: int, judged: int) -> Interval | None:
    """What `score_interval` says of so many that passed or failed, without a cell for each."""
    if judged < 2:
        return None
    return rule_of_three(passed / judged, judged) if passed in (0, judged) else wilson(passed / judged, judged)


class SuiteName(NamedTuple):
    """Two files may have a suite of one name."""

    file: str
    suite: str

    def __str__(self) -> str:
        return f"{self.file}::{self.suite}"


@dataclass(slots=True)
class Tallies:
    """A whole session, suite by suite in the order met."""

    suites: dict[SuiteName, Tally] = field(default_factory=dict)
    missed: list[EvalOutcome] = field(default_factory=list)  # the first of those that did not reach their threshold
    unjudged: list[EvalOutcome] = field(default_factory=list)

    @classmethod
    def of(cls, outcomes: Iterable[EvalOutcome]) -> "Tallies":
        made = cls()
        for outcome in outcomes:
            made.add(outcome)
        return made

    def add(self, outcome: EvalOutcome) -> None:
        self.suites.setdefault(suite_of(outcome), Tally()).add(outcome)
        if did_not_pass(outcome):
            kept = self.missed if outcome.passed is False else self.unjudged
            if len(kept) < MOST_UNHAPPY:
                kept.append(outcome)

    def whole(self) -> Tally:
        """All suites as one."""
        total = Tally()
        for tally in self.suites.values():
            total.cells += tally.cells
            total.kinds += tally.kinds
            total.verdicts += tally.verdicts
            total.unscored += tally.unscored
            total.broken += tally.broken
            total.seconds += tally.seconds
            total.tool_calls += tally.tool_calls
            total.usage += tally.usage
            total.judging += tally.judging
        return total


def numbers_of(outcomes: Sequence[EvalOutcome]) -> Numbers:
    return Tallies.of(outcomes).whole().numbers()


def suite_of(outcome: EvalOutcome) -> SuiteName:
    """What a summary is of: the suite, with one set of its parameters."""
    return SuiteName(file_part(outcome.nodeid), f"{outcome.suite}{_column(outcome.parameters)}")


def _column(parameters: str) -> str:
    return f"[{parameters}]" if parameters else ""


def suite_alone(suite: str, parameters: str) -> str:
    return suite.removesuffix(_column(parameters))


def file_part(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def kind_of(outcome: EvalOutcome) -> str:
    if outcome.passed is not None:
        return "passed" if outcome.passed else "failed"
    return "recorded" if outcome.threshold is None and outcome.problem is None else "undecided"


def did_not_pass(outcome: EvalOutcome) -> bool:
    return outcome.passed is False or outcome.problem is not None


def cell_of(outcome: EvalOutcome) -> Cell | None:
    """A case's rounds as sums; None where it has no score. A pass@k is one number, however many rounds it is of."""
    if outcome.score is None:
        return None
    if outcome.rule.gate != "mean" or len(outcome.records) < 2:
        return _single(outcome.score)
    values = [value for record in outcome.records if (value := round_value(record, outcome.rule)) is not None]
    return Cell.of(values or [outcome.score])


@lru_cache(maxsize=1024)
def _single(score: float) -> Cell:
    """Of thousands of cases, most have one of a few scores."""
    return Cell(1, score, score * score)


def why_not(outcome: EvalOutcome) -> str:
    """In a few words, why a case is not perfect."""
    if outcome.problem:
        return outcome.problem[:_LONGEST_WHY]
    from bakeoff.report.reasons import why

    reasons = (why(record) for record in outcome.records)
    return next((reason for reason in reasons if reason), "")[:_LONGEST_WHY]

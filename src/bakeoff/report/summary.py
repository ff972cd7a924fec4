"""Compute the numbers of a run in one pass. Memory depends on cases × subjects, not on rounds."""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean

from bakeoff._kernel.model import FrozenModel
from bakeoff.plan import Plan, SubjectSpec
from bakeoff.record import LOST, NO_USAGE, Record, Usage, Verdict
from bakeoff.report.case_verdicts import CaseVerdicts
from bakeoff.stats import CLUSTER_TAG, Cell, Interval, score_interval

MOST_ROUNDS = 100
"""The number of rounds up to which each round has its own mean."""

CONTROLS = frozenset({"nop", "oracle", "cheat"})
"""The kinds of subjects that test the cases."""

_COUNTED = ("requests", "input", "output", "cache_read", "cache_write", "reasoning")


def is_control(spec: SubjectSpec, *, bound: bool) -> bool:
    """Tell whether a subject tests the cases; `bound` means that it was given their hidden parts."""
    return bound or spec.kind in CONTROLS


class SubjectSummary(FrozenModel):
    """One subject's numbers with every denominator."""

    subject: str
    bound: bool  # it was given the hidden parts of the cases on purpose
    control: bool = False  # it tests the cases and is not judged itself
    planned: int
    verdicts: dict[Verdict, int]  # of trials
    scored: int  # trials that say something about the subject
    judged: int  # trials that passed or failed; a case with a pass rule of its own counts once, for all its rounds
    passed: int  # of these
    failed: int  # of these
    cases: int  # cases with at least one of those
    score: float | None  # mean over cases of the mean over rounds
    interval: Interval | None
    seconds: float | None  # mean of the scored trials
    spent: Usage  # by the subject itself
    judging: Usage = NO_USAGE  # by scorers on its answers
    replayed: int = 0  # trials whose model answers came from recordings, at least in part
    by_round: tuple[float | None, ...] = ()  # the mean over the cases of each round; empty where there are too many

    @property
    def finished(self) -> int:
        """Return the number of trials with a record."""
        return sum(self.verdicts.values())

    @property
    def lost(self) -> dict[Verdict, int]:
        return {verdict: self.verdicts[verdict] for verdict in sorted(LOST) if self.verdicts.get(verdict)}

    @property
    def missing(self) -> int:
        """Return the number of trials without a record."""
        return self.planned - self.finished


class Summary(FrozenModel):
    """The numbers of a whole run."""

    name: str
    cases: int
    rounds: int
    threshold: float | None
    own_rules: bool = False  # cases say in the plan when they pass
    subjects: tuple[SubjectSummary, ...]

    @property
    def planned(self) -> int:
        return sum(subject.planned for subject in self.subjects)

    @property
    def finished(self) -> int:
        return sum(subject.finished for subject in self.subjects)

    @property
    def replayed(self) -> int:
        return sum(subject.replayed for subject in self.subjects)

    @property
    def complete(self) -> bool:
        """Tell whether every planned trial was scored."""
        return all(subject.scored == subject.planned for subject in self.subjects)

    @property
    def judged(self) -> tuple[SubjectSummary, ...]:
        """Return the subjects without controls; all, if there are only controls."""
        return tuple(subject for subject in self.subjects if not subject.control) or self.subjects

    @property
    def only_controls(self) -> bool:
        return all(subject.control for subject in self.subjects)

    @property
    def all_passed(self) -> bool:
        """Tell whether nothing that was judged failed."""
        return not any(subject.failed for subject in self.judged)

    @property
    def spent(self) -> Usage:
        """Return everything that was paid for, judges included."""
        return sum((subject.spent for subject in self.subjects), self.judging)

    @property
    def judging(self) -> Usage:
        return sum((subject.judging for subject in self.subjects), NO_USAGE)


class _Spending:
    """A sum of usages that creates no object for each."""

    def __init__(self) -> None:
        self._counts = [0] * len(_COUNTED)
        self._cost: float | None = None

    def add(self, usage: Usage) -> None:
        if usage is NO_USAGE:
            return
        for place, name in enumerate(_COUNTED):
            self._counts[place] += getattr(usage, name)
        if usage.cost is not None:
            self._cost = usage.cost + (self._cost or 0.0)

    def total(self) -> Usage:
        return Usage(**dict(zip(_COUNTED, self._counts, strict=True)), cost=self._cost)


class _Tally:
    """The running sums of one subject."""

    def __init__(self, cases: int, rounds: int) -> None:
        self.totals = array("d", bytes(8 * cases))  # of the scores of each case
        self.squares = array("d", bytes(8 * cases))  # of the same scores, squared
        self.counts = array("L", bytes(array("L").itemsize * cases))
        self.rounds = [[0.0, 0] for _ in range(rounds if rounds <= MOST_ROUNDS else 0)]  # total and count of each
        self.verdicts: Counter[Verdict] = Counter()
        self.judged = 0
        self.passed = 0
        self.failed = 0
        self.seconds = 0.0
        self.spent = _Spending()
        self.judging = _Spending()
        self.bound = False
        self.replayed = 0

    def add(self, record: Record, place: int, *, alone: bool = True) -> None:
        """Count a trial; `alone` says that it is judged by itself, not with the other rounds of its case."""
        verdict, value = record.verdict, record.value
        self.verdicts[verdict] += 1
        if alone:
            self.judge(verdict)
        self.bound = self.bound or record.bound
        self.spent.add(record.used)
        self.judging.add(record.judging)
        if record.transcript is not None and record.transcript.metadata.get("replayed") is True:
            self.replayed += 1
        if value is not None and verdict.counts:
            self.totals[place] += value
            self.squares[place] += value * value
            self.counts[place] += 1
            self.seconds += record.seconds
            if 0 <= record.round < len(self.rounds):
                self.rounds[record.round][0] += value
                self.rounds[record.round][1] += 1

    def judge(self, verdict: Verdict | None) -> None:
        """Count the verdict of a trial, or of a case with a pass rule of its own."""
        self.judged += verdict is not None and verdict.counts
        self.passed += verdict is Verdict.PASS
        self.failed += verdict in (Verdict.FAIL, Verdict.TIMEOUT)

    def cells(self, clusters: Sequence[str | None]) -> list[Cell]:
        """Return the cases that were scored at least once."""
        sums = zip(self.counts, self.totals, self.squares, clusters, strict=True)
        return [Cell(count, total, squares, cluster) for count, total, squares, cluster in sums if count]

    def summary(self, spec: SubjectSpec, planned: int | None, clusters: Sequence[str | None]) -> SubjectSummary:
        cells = self.cells(clusters)
        scored = sum(self.counts)
        planned = self.verdicts.total() if planned is None else planned
        return SubjectSummary(
            subject=spec.name,
            bound=self.bound,
            control=is_control(spec, bound=self.bound),
            planned=planned,
            verdicts={verdict: self.verdicts[verdict] for verdict in Verdict if self.verdicts[verdict]},
            scored=scored,
            judged=self.judged,
            passed=self.passed,
            failed=self.failed,
            cases=len(cells),
            score=fmean(cell.mean for cell in cells) if cells else None,
            interval=score_interval(cells),
            seconds=self.seconds / scored if scored else None,
            spent=self.spent.total(),
            judging=self.judging.total(),
            replayed=self.replayed,
            by_round=tuple(total / count if count else None for total, count in self.rounds),
        )


def summarise(plan: Plan, records: Iterable[Record]) -> Summary:
    """Return the numbers of a run. `records` has each trial's latest record once, in any order."""
    tallies = {spec.name: _Tally(len(plan.cases), plan.rounds) for spec in plan.subjects}
    places = {case.id: place for place, case in enumerate(plan.cases)}
    cases = CaseVerdicts(plan, ruled_only=True)
    for record in records:
        tallies[record.subject].add(record, places[record.case], alone=not cases.add(record))
    for spec in plan.subjects:
        for verdict in cases.of_subject(spec.name):
            if verdict is not Verdict.RECORDED:
                tallies[spec.name].judge(verdict)
    planned = None if plan.sparse else plan.rounds * len(plan.cases)
    clusters = [case.tags.get(CLUSTER_TAG) for case in plan.cases]
    return Summary(
        name=plan.name,
        cases=len(plan.cases),
        rounds=plan.rounds,
        threshold=plan.threshold,
        own_rules=any(case.pass_rule is not None for case in plan.cases),
        subjects=tuple(tallies[spec.name].summary(spec, planned, clusters) for spec in plan.subjects),
    )

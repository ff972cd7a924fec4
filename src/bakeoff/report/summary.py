"""From records to numbers, in one pass and in memory that depends on cases × subjects, never on rounds."""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean

from bakeoff.frozen import Frozen
from bakeoff.plan import Plan, SubjectSpec
from bakeoff.record import LOST, NO_USAGE, Record, Usage, Verdict
from bakeoff.stats import CLUSTER_TAG, Cell, Interval, score_interval


class SubjectSummary(Frozen):
    """One subject's numbers with every denominator."""

    subject: str
    bound: bool  # it was given the hidden parts of the cases on purpose
    control: bool = False  # it is there to test the cases, and is not itself judged
    planned: int
    verdicts: dict[Verdict, int]
    scored: int  # trials that say something about the subject
    cases: int  # cases with at least one of those
    score: float | None  # mean over cases of the mean over rounds
    interval: Interval | None
    seconds: float | None  # mean of the scored trials
    spent: Usage

    @property
    def passed(self) -> int:
        return self.verdicts.get(Verdict.PASS, 0)

    @property
    def lost(self) -> dict[Verdict, int]:
        return {verdict: self.verdicts[verdict] for verdict in sorted(LOST) if self.verdicts.get(verdict)}

    @property
    def missing(self) -> int:
        """Trials that no process has got to yet."""
        return self.planned - sum(self.verdicts.values())


class Summary(Frozen):
    """A whole run's numbers."""

    name: str
    cases: int
    rounds: int
    threshold: float | None
    subjects: tuple[SubjectSummary, ...]

    @property
    def planned(self) -> int:
        return sum(subject.planned for subject in self.subjects)

    @property
    def complete(self) -> bool:
        """Whether every trial has said something about its subject."""
        return all(subject.scored == subject.planned for subject in self.subjects)

    @property
    def judged(self) -> tuple[SubjectSummary, ...]:
        """Those whom the run is about; all, where there are only controls."""
        return tuple(subject for subject in self.subjects if not subject.control) or self.subjects

    @property
    def all_passed(self) -> bool:
        """Whether nothing that was judged failed."""
        return not any(
            subject.verdicts.get(verdict) for subject in self.judged for verdict in (Verdict.FAIL, Verdict.TIMEOUT)
        )

    @property
    def spent(self) -> Usage:
        return sum((subject.spent for subject in self.subjects), NO_USAGE)


class _Tally:
    """One subject's sums while records stream by."""

    def __init__(self, cases: int) -> None:
        self.totals = array("d", bytes(8 * cases))  # of the scores of each case
        self.squares = array("d", bytes(8 * cases))  # of the same scores, squared
        self.counts = array("L", bytes(array("L").itemsize * cases))
        self.verdicts: Counter[Verdict] = Counter()
        self.seconds = 0.0
        self.spent = NO_USAGE
        self.bound = False

    def add(self, record: Record, place: int) -> None:
        verdict, value = record.verdict, record.value
        self.verdicts[verdict] += 1
        self.bound = self.bound or record.bound
        if record.spent is not NO_USAGE and record.spent != NO_USAGE:
            self.spent += record.spent
        if verdict.counts and value is not None:
            self.totals[place] += value
            self.squares[place] += value * value
            self.counts[place] += 1
            self.seconds += record.seconds

    def cells(self, clusters: Sequence[str | None]) -> list[Cell]:
        """The cases that were scored at least once."""
        sums = zip(self.counts, self.totals, self.squares, clusters, strict=True)
        return [Cell(count, total, squares, cluster) for count, total, squares, cluster in sums if count]

    def summary(self, spec: SubjectSpec, planned: int, clusters: Sequence[str | None]) -> SubjectSummary:
        cells = self.cells(clusters)
        scored = sum(self.counts)
        return SubjectSummary(
            subject=spec.name,
            bound=self.bound,
            control=self.bound or spec.kind == "nop",
            planned=planned,
            verdicts={verdict: self.verdicts[verdict] for verdict in Verdict if self.verdicts[verdict]},
            scored=scored,
            cases=len(cells),
            score=fmean(cell.mean for cell in cells) if cells else None,
            interval=score_interval(cells),
            seconds=self.seconds / scored if scored else None,
            spent=self.spent,
        )


def summarise(plan: Plan, records: Iterable[Record]) -> Summary:
    """The numbers of a run. Give each trial's latest record once, in any order."""
    tallies = {spec.name: _Tally(len(plan.cases)) for spec in plan.subjects}
    places = {case.id: place for place, case in enumerate(plan.cases)}
    for record in records:
        tallies[record.subject].add(record, places[record.case])
    planned = plan.rounds * len(plan.cases)
    clusters = [case.tags.get(CLUSTER_TAG) for case in plan.cases]
    return Summary(
        name=plan.name,
        cases=len(plan.cases),
        rounds=plan.rounds,
        threshold=plan.threshold,
        subjects=tuple(tallies[spec.name].summary(spec, planned, clusters) for spec in plan.subjects),
    )

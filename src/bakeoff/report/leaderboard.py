"""Who is best over many runs: the latest word on each subject, with groups that cannot be told apart."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from bakeoff.errors import UsageError
from bakeoff.frozen import Frozen
from bakeoff.plan import Plan
from bakeoff.record import Record
from bakeoff.report.compare_arms import case_key, countable
from bakeoff.report.readers import Source
from bakeoff.report.spread import Range, Spread, Spreads
from bakeoff.report.summary import SubjectSummary, summarise
from bakeoff.stats import CLUSTER_TAG, CaseKey, Cell, Cells, Standing, leaderboard


class Entry(Frozen):
    """One subject's line."""

    standing: Standing
    summary: SubjectSummary
    model: str | None
    source: str  # where its numbers come from
    path: str
    updated: float | None  # when its last trial began, in seconds since 1970
    history: tuple[float, ...]  # its scores in all the sources that have it, oldest first
    cost_interval: Range | None = None  # of the mean cost of a trial
    time_interval: Range | None = None

    @property
    def cost_per_trial(self) -> float | None:
        spent, trials = self.summary.spent.cost, sum(self.summary.verdicts.values())
        return None if spent is None or not trials else spent / trials

    @property
    def rank(self) -> str:
        best, worst = self.standing.best, self.standing.worst
        return str(best) if best == worst else f"{best}–{worst}"


class Leaderboard(Frozen):
    entries: tuple[Entry, ...]
    left_out: tuple[str, ...]  # subjects that know the answers, or of which nothing was scored
    strangers: bool  # some two subjects share no case
    unreadable: tuple[str, ...]  # sources that could not be read, and why


@dataclass(frozen=True, slots=True)
class _Found:
    """One subject in one source."""

    source: Source
    summary: SubjectSummary
    cells: Cells
    updated: float
    model: str | None
    spread: Spread


class _Seen:
    """The cells and the last start of every subject, while records stream by."""

    def __init__(self, plan: Plan, *, content_known: bool) -> None:
        self._keys = {case.id: case_key(case, content_known=content_known) for case in plan.cases}
        self._clusters = {case.id: case.tags.get(CLUSTER_TAG) for case in plan.cases}
        self._sums: dict[str, dict[str, tuple[int, float, float]]] = {}
        self.updated: dict[str, float] = {}
        self.spreads = Spreads(plan)

    def passing(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            value = record.value
            if record.verdict.counts and value is not None:
                cases = self._sums.setdefault(record.subject, {})
                rounds, total, squares = cases.get(record.case, (0, 0.0, 0.0))
                cases[record.case] = rounds + 1, total + value, squares + value * value
            self.spreads.add(record)
            self.updated[record.subject] = max(self.updated.get(record.subject, 0.0), record.started)
            yield record

    def cells(self, subject: str) -> dict[CaseKey, Cell]:
        return {
            self._keys[case]: Cell(*sums, self._clusters[case]) for case, sums in self._sums.get(subject, {}).items()
        }


def rank_sources(sources: Iterable[Source], unreadable: tuple[str, ...] = ()) -> Leaderboard:
    """The latest scored run of each subject, by its name; bound subjects are left out."""
    histories: dict[str, list[_Found]] = {}
    left_out: dict[str, None] = {}
    for source in sources:
        with countable(source):
            subjects = list(_subjects_of(source))
        for found in subjects:
            if found.summary.bound or not found.cells:
                left_out[found.summary.subject] = None
            else:
                histories.setdefault(found.summary.subject, []).append(found)
    if not histories:
        raise UsageError("nothing to rank: no subject has a scored trial; `bakeoff runs list` shows what there is")
    for runs in histories.values():
        runs.sort(key=lambda found: found.updated)
    latest = {name: runs[-1] for name, runs in histories.items()}
    standings = leaderboard({name: found.cells for name, found in latest.items()})
    return Leaderboard(
        entries=tuple(_entry(standing, histories[standing.subject]) for standing in standings),
        left_out=tuple(name for name in left_out if name not in latest),
        strangers=_strangers([found.cells for found in latest.values()]),
        unreadable=unreadable,
    )


def _subjects_of(source: Source) -> Iterator[_Found]:
    seen = _Seen(source.plan, content_known=source.description.content_known)
    summary = summarise(source.plan, seen.passing(source.records()))
    for spec, subject in zip(source.plan.subjects, summary.subjects, strict=True):
        model = spec.options.get("model")
        yield _Found(
            source=source,
            summary=subject,
            cells=seen.cells(spec.name),
            updated=seen.updated.get(spec.name, 0.0),
            model=model if isinstance(model, str) else None,
            spread=seen.spreads.by_subject[spec.name],
        )


def _entry(standing: Standing, runs: list[_Found]) -> Entry:
    found = runs[-1]
    return Entry(
        standing=standing,
        summary=found.summary,
        model=found.model,
        source=found.source.name,
        path=str(found.source.path),
        updated=found.updated or None,
        history=tuple(run.summary.score for run in runs if run.summary.score is not None),
        cost_interval=found.spread.costs.interval(),
        time_interval=found.spread.times.interval(),
    )


def _strangers(subjects: list[Cells]) -> bool:
    """Whether any neighbours have no case in common; every pair of many would take too long to look at."""
    return any(not (one.keys() & other.keys()) for one, other in pairwise(subjects))

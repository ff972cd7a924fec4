"""Read a run folder or a result file once, and collect everything that its page shows.

Each record is passed on and not kept in memory."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.bitmap import Bitmap
from bakeoff.errors import RunFolderError
from bakeoff.models.cache_simulation import simulate
from bakeoff.models.prices import Price, split_costs
from bakeoff.plan import Plan
from bakeoff.record import Record, Verdict
from bakeoff.report.case_verdicts import CaseVerdicts
from bakeoff.report.formatting import visible
from bakeoff.report.readers import Source
from bakeoff.report.reasons import failure_class, failure_message
from bakeoff.report.summary import Summary, summarise
from bakeoff.report.usage_intervals import CostAndTime, CostsAndTimes
from bakeoff.stats import Cell
from bakeoff.storage.journal import Damage, Entry, Mark
from bakeoff.storage.run_folder import RunFolder

MOST_TRIALS = 10_000_000
"""The largest plan that a page can show. A hostile plan could name more trials than fit in memory."""

_MOST_CLASSES = 200
State = Literal["running", "complete", "incomplete"]


@dataclass(slots=True)
class Bill:
    """The cost of one subject's conversations, and their cost with a prompt cache."""

    price: Price | None = None
    conversations: int = 0
    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    simulated: float = 0.0
    hits: int = 0
    writes: int = 0

    @property
    def total(self) -> float:
        return self.input + self.output + self.cache_read + self.cache_write

    def add(self, record: Record, price: Price | None) -> None:
        steps = record.transcript.steps if record.transcript else ()
        requests = [step.usage for step in steps if step.usage.tokens]
        if not requests:
            return
        self.price = price or self.price
        self.conversations += 1
        cached = simulate(requests, price)
        self.hits += cached.hits
        self.writes += cached.writes
        costs = split_costs(requests, price)
        if costs is not None and cached.simulated_cost is not None:
            self.input += costs.input_cost
            self.output += costs.output_cost
            self.cache_read += costs.cache_read_cost
            self.cache_write += costs.cache_write_cost
            self.simulated += cached.simulated_cost


@dataclass(frozen=True, slots=True)
class FailureClass:
    """A class of trials that did not pass."""

    verdict: Verdict
    name: str


@dataclass(slots=True)
class FailureCount:
    subjects: Counter[str] = field(default_factory=Counter)
    example: str = ""
    trial: int = 0  # of the example


@dataclass(slots=True)
class RunData:
    """Everything that a run's page shows, except the transcripts."""

    name: str
    plan: Plan
    state: State
    summary: Summary
    bills: dict[str, Bill]
    costs_and_times: dict[str, CostAndTime]
    cells: dict[str, dict[str, Cell]]  # scores by subject and case, for the sections of doors
    cases: CaseVerdicts  # of cases with a pass rule of their own
    failures: dict[FailureClass, FailureCount]
    marks: list[Mark]  # oldest first
    damaged: int  # lines that cannot be read
    first_damage: str
    foreign: int  # records of an earlier version of the plan
    unscored: int  # trials that the plan's current scorers have not scored yet
    torn: bool
    folder: RunFolder | None = None  # for the sections of doors


Sink = Callable[[int, Record], None]


class _Collector:
    """Collect numbers while records stream by."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.bills = {spec.name: Bill() for spec in plan.subjects}
        self.costs_and_times = CostsAndTimes(plan)
        self.cells: dict[str, dict[str, Cell]] = {spec.name: {} for spec in plan.subjects}
        self.cases = CaseVerdicts(plan, ruled_only=True)
        self._unhappy: list[tuple[int, Record]] = []  # rounds of such cases, without what they said
        self._failures: dict[FailureClass, FailureCount] = {}
        self.marks: list[Mark] = []
        self.damaged = 0
        self.first_damage = ""
        self.foreign = 0
        self.unscored = 0
        self._prices: dict[str, Price | None] = {}

    def counted(self, entries: Iterator[Entry], sink: Sink) -> Iterator[Record]:
        """Yield the record that counts for each trial, and count everything else."""
        seen = Bitmap(self.plan.size)
        for entry in entries:
            if isinstance(entry, Mark):
                self.marks.append(entry)
            elif isinstance(entry, Damage):
                self.damaged += 1
                self.first_damage = entry.reason
            elif isinstance(entry, Record):
                trial = self.plan.find(entry.case, entry.subject, entry.round)
                if trial is None or trial.attempt_key != entry.attempt_key:
                    self.foreign += 1
                elif not seen[trial.index]:
                    seen[trial.index] = True
                    if entry.attempted and entry.score_key != trial.score_key:
                        self.unscored += 1  # an older record was scored by other scorers
                        continue
                    self._note(trial.index, entry)
                    sink(trial.index, entry)
                    yield entry

    def all_of(self, records: Iterable[Record], sink: Sink) -> Iterator[Record]:
        """Yield records that all count."""
        for record in records:
            trial = self.plan.find(record.case, record.subject, record.round)
            if trial is None:
                self.foreign += 1
                continue
            self._note(trial.index, record)
            sink(trial.index, record)
            yield record

    def _note(self, index: int, record: Record) -> None:
        self.bills[record.subject].add(record, self._price(record))
        self.costs_and_times.add(record)
        if self.plan.door is not None:
            self._note_score(record)
        ruled = self.cases.add(record)
        if record.verdict in (Verdict.PASS, Verdict.RECORDED):
            return
        if ruled:  # whether its case passed is known only when all rounds have been read
            self._unhappy.append((index, record.model_copy(update={"transcript": None, "artefacts": {}})))
        else:
            self._note_failure(index, record)

    def failures(self) -> dict[FailureClass, FailureCount]:
        """Return what did not pass; rounds of a case that passed are left out."""
        for index, record in self._unhappy:
            if not self.cases.passed(record):
                self._note_failure(index, record)
        self._unhappy.clear()
        return self._failures

    def _note_failure(self, index: int, record: Record) -> None:
        kind = FailureClass(record.verdict, failure_class(record))
        if kind not in self._failures and len(self._failures) >= _MOST_CLASSES:
            kind = FailureClass(record.verdict, "others")
        count = self._failures.setdefault(kind, FailureCount(example=failure_message(record), trial=index))
        count.subjects[record.subject] += 1

    def _note_score(self, record: Record) -> None:
        value = record.value
        if value is not None and record.verdict.counts:
            cells = self.cells[record.subject]
            old = cells.get(record.case, Cell(0, 0.0, 0.0))
            cells[record.case] = Cell(old.rounds + 1, old.total + value, old.squares + value * value)

    def _price(self, record: Record) -> Price | None:
        found: JsonValue = record.transcript.metadata.get("price") if record.transcript else None
        if not isinstance(found, dict):
            return None
        key = repr(found)
        if key not in self._prices:
            try:
                self._prices[key] = Price.model_validate(found)
            except ValidationError:  # a subject may put anything there
                self._prices[key] = None
        return self._prices[key]


def read_plan(folder: RunFolder) -> Plan:
    """Return the plan of a folder, or raise an error that explains why it cannot be shown."""
    try:
        plan = folder.read_plan()
    except (OSError, RecursionError) as error:
        raise RunFolderError(f"{folder.plan_file} cannot be read: {error}") from error
    _refuse_unshowable(plan, f"run {folder.label}")
    if folder.started and not folder.journal_file.is_file():
        raise RunFolderError(f"{folder.journal_file} is not a file")
    return plan


def _refuse_unshowable(plan: Plan, what: str) -> None:
    if problems := plan.problems():
        raise RunFolderError(f"{what} cannot be shown: {visible(problems[0], 300)}")
    if plan.size > MOST_TRIALS:
        raise RunFolderError(f"{what} plans {plan.size:,} trials: a page shows at most {MOST_TRIALS:,}")


@contextmanager
def readable_errors(folder: RunFolder | Path) -> Iterator[None]:
    """Turn the problems of damaged or hostile folders into error messages."""
    what = f"run {folder.label}" if isinstance(folder, RunFolder) else visible(str(folder), 300)
    try:
        yield
    except OSError as error:
        raise RunFolderError(f"{what} cannot be read: {os.strerror(error.errno or 0)}") from error
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise RunFolderError(f"{what} cannot be shown: {visible(str(error), 300)}") from error


def read_run(folder: RunFolder, sink: Sink) -> RunData:
    """Read a run. `sink` receives each record that counts, unordered, with its trial's index in the plan."""
    plan = read_plan(folder)
    collector = _Collector(plan)
    summary = summarise(plan, collector.counted(folder.newest_first(), sink))
    running, torn = folder.is_being_written(), folder.has_torn_line()
    data = _data(folder.label, collector, summary, running=running, torn=torn)
    return replace(data, folder=folder)


def read_source(source: Source, sink: Sink) -> RunData:
    """Read a result file. It has records only, without the times of starts and interruptions."""
    _refuse_unshowable(source.plan, visible(str(source.path), 300))
    collector = _Collector(source.plan)
    summary = summarise(source.plan, collector.all_of(source.records(), sink))
    collector.damaged = source.circumstances().damaged
    return _data(source.name, collector, summary)


def _data(name: str, collector: _Collector, summary: Summary, *, running: bool = False, torn: bool = False) -> RunData:
    return RunData(
        name=name,
        plan=collector.plan,
        state="running" if running else "complete" if summary.complete else "incomplete",
        summary=summary,
        bills=collector.bills,
        costs_and_times=collector.costs_and_times.by_subject,
        cells=collector.cells,
        cases=collector.cases,
        failures=collector.failures(),
        marks=collector.marks[::-1],
        damaged=collector.damaged,
        first_damage=visible(collector.first_damage, 300),
        foreign=collector.foreign,
        unscored=collector.unscored,
        torn=torn,
    )

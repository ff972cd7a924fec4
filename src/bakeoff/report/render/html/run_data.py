"""Read a run folder or a result file once, and collect everything that its page shows.

Each record is passed on and not kept in memory."""

import math
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.text import visible
from bakeoff.errors import RunFolderError
from bakeoff.models.estimate import simulate
from bakeoff.models.prices import Price, split_costs
from bakeoff.plan import Case, Plan
from bakeoff.record import Record
from bakeoff.report.judges.calibration import NO_LABELS, Judgements
from bakeoff.report.readers import Circumstances, Source, circumstances_at
from bakeoff.report.reasons import failure_class, failure_message, normalised
from bakeoff.report.summary import RunTally, Summary, is_control
from bakeoff.stats.cells import Cell
from bakeoff.storage.journal import Entry, JournalMark
from bakeoff.storage.journal_lines import Damage, note_damage
from bakeoff.storage.labels import read_labels
from bakeoff.storage.run_folder import RunFolder
from bakeoff.verdict import Verdict

MAX_TRIALS = 10_000_000
"""The largest plan that a page can show. A hostile plan could name more trials than fit in memory."""

_MAX_CLASSES = 200
State = Literal["running", "passed", "failed", "recorded", "incomplete", "undecided"]


@dataclass(slots=True)
class Bill:
    """The cost of one subject's conversations, with and without a prompt cache."""

    price: Price | None = None
    total: float = 0.0  # of all requests, as the price list gives it
    simulated: float = 0.0
    hits: int = 0
    writes: int = 0

    def add(self, record: Record, price: Price | None) -> None:
        """Add the requests of a trial; without a price, only count the tokens of the cache."""
        steps = record.transcript.steps if record.transcript else ()
        requests = [step.usage for step in steps if step.usage.tokens]
        if not requests:
            return
        self.price = price or self.price
        cached = simulate(requests, price)
        self.hits += cached.hits
        self.writes += cached.writes
        costs = split_costs(requests, price)
        if costs is not None and cached.simulated_cost is not None:
            self.total += costs.total_cost
            self.simulated += cached.simulated_cost


@dataclass(frozen=True, slots=True)
class FailureClass:
    """A class of trials that did not pass."""

    verdict: Verdict
    name: str
    reason: str  # normalised
    control: bool  # of subjects that only test the cases


@dataclass(slots=True)
class FailureCount:
    """The trials of one failure class: their number by subject, their cases, and an example."""

    subjects: Counter[str] = field(default_factory=Counter)
    cases: set[str] = field(default_factory=set)
    example: str = ""
    trial: int = 0  # of the example


class CellCounts:
    """The number of scored, passed, timed-out and lost trials of each case and subject."""

    def __init__(self, plan: Plan) -> None:
        self._cells = len(plan.cases) * len(plan.subjects)
        self.scored, self.passed, self.timeouts, self.lost = (array("i", bytes(4 * self._cells)) for _ in range(4))

    def add(self, trial: int, verdict: Verdict) -> None:
        """Count a trial by its index in the plan; rounds of one case and subject share a cell."""
        cell = trial % self._cells
        if verdict.counts:
            self.scored[cell] += 1
            self.passed[cell] += verdict is Verdict.PASS
            self.timeouts[cell] += verdict is Verdict.TIMEOUT
        else:
            self.lost[cell] += 1

    def columns(self) -> dict[str, list[int]]:
        """Return the counts by name, each as a list over all cells."""
        return {name: getattr(self, name).tolist() for name in ("scored", "passed", "timeouts", "lost")}


Sink = Callable[[int, Record, Case], None]


class RunData:
    """Everything that a run's page shows except transcripts, collected while records are read."""

    state: State
    summary: Summary
    cells: dict[str, dict[str, Cell]]  # scores by subject and case
    torn = False

    def __init__(self, name: str, plan: Plan, folder: RunFolder | None = None) -> None:
        self.name = name
        self.plan = plan
        self.folder = folder
        self.counts = CellCounts(plan)
        self.bills = {spec.name: Bill() for spec in plan.subjects}
        self.failures: dict[FailureClass, FailureCount] = {}
        self.marks: list[JournalMark] = []  # oldest first
        self.known = Circumstances()
        self.first_started = math.inf  # of the trials whose start is known
        self.damaged = 0  # lines that cannot be read
        self.first_damage = ""
        self.versions: dict[str, str] = {}  # of command-line agents, by subject
        self.foreign = 0  # records of an earlier version of the plan
        self.unscored = 0  # trials that the plan's current scorers have not scored yet
        labels = read_labels(folder.labels_file) if folder else NO_LABELS
        self.judgements = Judgements(plan, labels, only_labelled=True)
        self._tally = RunTally(plan)
        self.cases = self._tally.cases  # those with a pass rule of their own
        self._ruled = {case.id for case in plan.cases if case.rule_over_rounds is not None}
        self._failures: list[tuple[int, Record]] = []  # rounds of such cases, without their texts
        self._prices: dict[str, Price | None] = {}

    def take_entries(self, entries: Iterator[Entry], sink: Sink) -> None:
        """Collect the latest record of each trial, marks and damage from entries, newest first."""
        seen = bytearray(self.plan.size)
        for entry in entries:
            if isinstance(entry, JournalMark):
                self.marks.append(entry)
            elif isinstance(entry, Damage):
                self.damaged += 1
                self.first_damage = visible(entry.reason, 300)
            elif isinstance(entry, Record):
                trial = entry.trial_in(self.plan)
                if trial is None:
                    self.foreign += 1
                elif not seen[trial.index]:
                    seen[trial.index] = True
                    if entry.needs_score(trial):
                        self.unscored += 1  # an older record was scored by other scorers
                    else:
                        self.take(trial.index, entry, sink)
        self.marks.reverse()
        known = circumstances_at(self.marks[-1] if self.marks else None)
        self.known = known.model_copy(update={"damaged": self.damaged})

    def take(self, index: int, record: Record, sink: Sink) -> None:
        """Count the record of a trial, and pass it to `sink`."""
        self.counts.add(index, record.verdict)
        self._tally.add(record)
        if record.started > 0:
            self.first_started = min(self.first_started, record.started)
        self.judgements.add(record)
        self.bills[record.subject].add(record, self._price(record))
        agent = record.transcript.metadata.get("agent") if record.transcript else None
        if isinstance(agent, dict) and isinstance(version := agent.get("version"), str):
            self.versions.setdefault(record.subject, version)
        if not record.verdict.ok and record.case in self._ruled:
            # Whether its case passed is known only when all rounds have been read.
            self._failures.append((index, record.model_copy(update={"transcript": None, "artefacts": {}})))
        elif not record.verdict.ok:
            self._note_failure(index, record)
        sink(index, record, self.plan.cases[index // len(self.plan.subjects) % len(self.plan.cases)])

    def finish(self, *, running: bool = False, torn: bool = False) -> Self:
        """Compute the numbers that depend on all records."""
        for index, record in self._failures:
            if not self.cases.passed(record):
                self._note_failure(index, record)
        self.summary = self._tally.summary()
        self.cells = {spec.name: self._tally.cells(spec.name) for spec in self.plan.subjects}
        self.state = "running" if running else self.known.state_of(self.plan, self.summary)
        self.torn = torn
        return self

    def _note_failure(self, index: int, record: Record) -> None:
        spec, message = self.plan.subjects[index % len(self.plan.subjects)], failure_message(record)
        control = is_control(spec, bound=record.bound)
        kind = FailureClass(record.verdict, failure_class(record), normalised(message), control)
        if kind not in self.failures and len(self.failures) >= _MAX_CLASSES:
            kind = FailureClass(record.verdict, "others", "", control)
        count = self.failures.setdefault(kind, FailureCount(example=message, trial=index))
        count.subjects[record.subject] += 1
        count.cases.add(record.case)

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
    if plan.size > MAX_TRIALS:
        raise RunFolderError(f"{what} plans {plan.size:,} trials: a page shows at most {MAX_TRIALS:,}")


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
    data = RunData(folder.label, read_plan(folder), folder)
    data.take_entries(folder.newest_first(), sink)
    note_damage(folder.label, data.damaged)
    return data.finish(running=folder.is_being_written(), torn=folder.has_torn_line())


def read_source(source: Source, sink: Sink) -> RunData:
    """Read a result file, which has records, but not the times of starts and interruptions."""
    _refuse_unshowable(source.plan, visible(str(source.path), 300))
    data = RunData(source.name, source.plan)
    for record in source.records():
        if trial := source.plan.find(record.case, record.subject, record.round):
            data.take(trial.index, record, sink)
        else:
            data.foreign += 1
    data.known = source.circumstances()
    data.damaged = data.known.damaged
    return data.finish()

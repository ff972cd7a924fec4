"""The cases of one suite, carried out side by side on the session's loop while pytest reports them in order."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from bakeoff._kernel.json import as_json
from bakeoff.doors.pytest_plugin.columns import SUBJECT
from bakeoff.doors.pytest_plugin.judging import shown_input
from bakeoff.doors.pytest_plugin.loops import LoopThread
from bakeoff.doors.pytest_plugin.replaying import replay_round
from bakeoff.doors.pytest_plugin.rows import Row, graded_by
from bakeoff.doors.pytest_plugin.scoring import refuse_incomplete
from bakeoff.doors.pytest_plugin.settings import Settings
from bakeoff.doors.pytest_plugin.shared import SharedResources
from bakeoff.doors.pytest_plugin.tasks import Errors
from bakeoff.engine.registry import ResolvedPlan
from bakeoff.engine.resources import Opened, open_resources
from bakeoff.engine.run_control import RunControl
from bakeoff.engine.trial import Job, TrialRunner
from bakeoff.errors import BakeoffError, InfraError
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import Sandbox, Scorer, Subject
from bakeoff.record import Failure, Phase, Record, Usage
from bakeoff.replay.store import recordings_resource

RUN = Plan(
    name=SUBJECT,
    cases=(),
    subjects=(SubjectSpec(kind="eval", name=SUBJECT),),
    scorers=(ScorerSpec(kind="eval"),),
    door="pytest",
    sparse=True,
)
"""What the evals of a session are kept as, but for cases and subjects. Suites have thresholds and scorers of their own,
which their records tell; here they would only make the records of two suites look like those of two plans."""

_AHEAD = 256  # finished cases that may wait to be reported


@dataclass(slots=True, eq=False)
class Ticket:
    """One case that was ordered, and what has come of it."""

    place: int  # among the rows
    number: int  # among what was ordered
    records: list[Record]
    missing: int  # rounds that are not finished
    errors: dict[int, BaseException] = field(default_factory=dict)  # what the task raised, by round
    broken: BakeoffError | None = None  # the whole crew is
    bell: threading.Event | None = None

    @property
    def done(self) -> bool:
        return self.missing == 0 or self.broken is not None

    def wait(self) -> None:
        """From pytest's thread. What is finished already costs no change of threads."""
        if not self.done:
            self.bell = threading.Event()
            if not self.done:  # it may have been finished before the bell was there to be rung
                self.bell.wait()

    def ring(self) -> None:
        if self.bell is not None:
            self.bell.set()


class _Cases(Sequence[Case]):
    """Cases made when they are asked for: thousands of rows need not be thousands of them at a time."""

    def __init__(self, production: "Production") -> None:
        self._production = production

    def __len__(self) -> int:
        return len(self._production.rows)

    def __getitem__(self, place: Any) -> Any:
        row = self._production.rows[place]
        return Case(id=self._production.case_id(row), **_said(row))


def _said(row: Row) -> dict[str, Any]:
    return {"prompt": shown_input(row), "expected": as_json(row.values.get("expected"))}


def _carried_out(case: Case, row: Row, limits: Limits) -> Case:
    """The case as subject and scorers are given it: in its own words, and with what it is graded with."""
    if files := graded_by(row.values):
        return Case(id=case.id, limits=limits, **_said(row), **files)
    return case.model_copy(update={"limits": limits, **_said(row)})


@dataclass(frozen=True, slots=True)
class Production:
    """A suite as the core sees it: a subject, scorers, cases, and how they are run."""

    name: str
    rows: Sequence[Row]
    around: tuple[str, str]  # what stands before and after a row's id in the id of its case
    subject: Subject
    scorers: Mapping[str, Scorer]
    settings: Settings
    rounds: int
    options: RunOptions = field(default_factory=RunOptions)
    column: SubjectSpec = RUN.subjects[0]
    shared: SharedResources | None = None  # None: this is not carried out on the session's loop

    def case_id(self, row: Row) -> str:
        return f"{self.around[0]}{row.id}{self.around[1]}"

    def jobs(self) -> Callable[[int, int], Job]:
        """What is to be done for a row in a round.

        Keys are those of the plan that all evals of a session are kept as, of which limits and files are no part.
        """
        plan = RUN.model_copy(update={"cases": _Cases(self), "subjects": (self.column,), "rounds": self.rounds})
        seconds = self.settings.timeout
        limits = Limits(attempt_seconds=seconds, score_seconds=seconds)

        def job(place: int, round_: int) -> Job:
            trial = plan.trial(round_ * len(self.rows) + place)
            return Job(replace(trial, case=_carried_out(trial.case, self.rows[place], limits)))

        return job

    def resolve(self) -> ResolvedPlan:
        rows = {self.case_id(row): row.values for row in self.rows}
        plan = RUN.model_copy(update={"threshold": self.settings.threshold})  # that of the suite's records
        return ResolvedPlan(plan, {self.column.name: self.subject}, {}, self.scorers, rows=rows)

    def opened(self, resolved: ResolvedPlan) -> AbstractAsyncContextManager[Opened]:
        refuse_incomplete(self.scorers)
        wanted, given = list(resolved.resources()), recordings_resource(self.options)
        return self.shared.lent(wanted, given) if wanted and self.shared else open_resources(wanted, given)

    def runner(self, resolved: ResolvedPlan, resources: Opened) -> TrialRunner:
        return TrialRunner(resolved, self.options, partial(_sandbox, self.options), resources, RunControl())

    async def records(self) -> list[Record]:
        """Every round of the first case, on the loop that asks."""
        job, resolved = self.jobs(), self.resolve()
        async with self.opened(resolved) as resources:
            runner = self.runner(resolved, resources)
            return [await _round(runner, job(0, round_), round_) for round_ in range(self.rounds)]


async def _round(runner: TrialRunner, job: Job, round_: int) -> Record:
    """One round of one case. What its recordings lack is its own failure, and that of no other case."""
    record = None
    try:
        with replay_round(round_):
            record = await runner.run(job, _not_limited)
    except InfraError as error:
        if record is None:
            raise
        lost = Failure(kind="infra", type="InfraError", message=str(error), permanent=True)
        seconds = record.attempt.seconds if record.attempt else 0.0
        return record.model_copy(update={"attempt": Phase(seconds=seconds, failure=lost), "scores": ()})
    return record


def _sandbox(options: RunOptions) -> Sandbox:
    """For a scorer that runs commands; most do not, and need not wait for what it takes."""
    from bakeoff.engine.run import sandbox_of

    return sandbox_of(options)()


def _not_limited(usage: Usage) -> None:
    """A suite has no budget: what is spent stands in its records."""


class Crew:
    """Works through what is ordered, case by case in that order, no more trials at a time than `width`."""

    def __init__(self, loop: LoopThread, production: Production, errors: Errors, width: int) -> None:
        self._loop = loop
        self._production = production
        self._errors = errors
        self._width = width
        self._ordered = 0
        self._open: set[Ticket] = set()  # not finished; kept on the loop alone
        self._todo: deque[tuple[Ticket, int]] = deque()
        self._more: asyncio.Event | None = None  # set when there may be something to do, or to end for
        self._last = False  # nothing more will be ordered
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._finished = 0  # cases; counted on the loop alone
        self._reached = 0  # the case that pytest is at; set by its thread alone
        self._full = False

    def order(self, places: Iterable[int], *, last: bool) -> list[Ticket]:
        """From pytest's thread: have these cases done; `last` says that there will be no others."""
        before = self._ordered
        tickets = [
            Ticket(place, number, [], self._production.rounds) for number, place in enumerate(places, before + 1)
        ]
        self._ordered += len(tickets)
        self._loop.call(lambda: self._accept(tickets, last=last))
        if not before:
            self._loop.spawn(self._work)
        return tickets

    def take(self, ticket: Ticket) -> None:
        """From pytest's thread: wait for a case. Those ordered before it count as reported, even if skipped."""
        self._reached = max(self._reached, ticket.number)
        if self._full and self._ahead <= _AHEAD // 2:
            self._full = False
            self._loop.call(self._wake)
        ticket.wait()

    @property
    def _ahead(self) -> int:
        return self._finished - self._reached

    def stop(self) -> None:
        """From pytest's thread: give up what was not taken."""
        self._stopped = True
        self._loop.call(self._cancel)

    def _accept(self, tickets: Sequence[Ticket], *, last: bool) -> None:
        self._open.update(tickets)
        self._todo.extend((ticket, round_) for ticket in tickets for round_ in range(self._production.rounds))
        self._last = last
        self._wake()

    def _wake(self) -> None:
        if self._more is not None:
            self._more.set()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _work(self) -> None:
        self._task = asyncio.current_task()
        if self._stopped:
            return
        self._more = asyncio.Event()
        try:
            await self._carry_out()
        except BakeoffError as error:
            self._break(error)
        except BaseExceptionGroup as group:
            self._break(InfraError(f"the suite could not go on: {group.exceptions[0]!r}", permanent=True))
        finally:
            self._break(InfraError("it was given up before it was finished", permanent=True))

    def _break(self, error: BakeoffError) -> None:
        """Nobody may wait for ever."""
        for ticket in self._open:
            ticket.broken = ticket.broken or error
            ticket.ring()

    async def _carry_out(self) -> None:
        production = self._production
        job, resolved = production.jobs(), production.resolve()
        async with production.opened(resolved) as resources:
            runner = production.runner(resolved, resources)
            async with asyncio.TaskGroup() as workers:
                for _ in range(self._width):
                    workers.create_task(self._worker(job, runner))

    async def _worker(self, job: Callable[[int, int], Job], runner: TrialRunner) -> None:
        assert self._more is not None
        while True:
            while self._todo and self._ahead < _AHEAD:
                ticket, round_ = self._todo.popleft()
                self._finish(ticket, await _round(runner, job(ticket.place, round_), round_))
            if self._last and not self._todo:
                self._more.set()
                return
            self._full = bool(self._todo)
            self._more.clear()
            await self._more.wait()

    def _finish(self, ticket: Ticket, record: Record) -> None:
        error = self._errors.pop((record.case, record.round), None)
        if error is not None:
            ticket.errors[record.round] = error
        ticket.records.append(record)
        ticket.missing -= 1
        if ticket.missing == 0:
            self._finished += 1
            self._open.discard(ticket)
            ticket.ring()

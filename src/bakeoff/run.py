"""RUN: carries out a plan and yields each record once it can no longer be lost."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from typing import Any

from bakeoff._version import __version__
from bakeoff.bitmap import Bitmap
from bakeoff.budget import Budget
from bakeoff.catalogue import Cast, Catalogue, default_catalogue
from bakeoff.control import RunControl
from bakeoff.errors import BudgetError, PlanError, RunFolderError
from bakeoff.executors import Executor
from bakeoff.executors.local import LocalExecutor
from bakeoff.journal import Damage, JournalWriter, Spent, record_at
from bakeoff.options import RunOptions
from bakeoff.plan import Plan, Trial
from bakeoff.protocols import Sandbox
from bakeoff.record import NO_USAGE, Failure, Phase, Record, Usage
from bakeoff.resources import open_resources
from bakeoff.rundir import RunFolder, new_run_folder
from bakeoff.sandbox import choose_sandbox
from bakeoff.trial import Job, TrialRunner, was_attempted

_GATHER_SECONDS = 0.005  # how long finished records wait for company before an fsync is paid for
_ROOM = 1024  # records that may wait to become durable


async def run(
    plan: Plan,
    options: RunOptions | None = None,
    *,
    catalogue: Catalogue | None = None,
    control: RunControl | None = None,
) -> AsyncIterator[Record]:
    """Carry out what is not yet done of a plan. Nothing is spent before all of the plan has been checked."""
    options = options or RunOptions()
    control = control or RunControl()
    cast = (catalogue or default_catalogue()).cast(plan)
    redactor = options.redactor()
    if leaked := redactor.names_in(plan):
        raise PlanError(
            [
                f"plan {plan.name!r} holds the value of {name}, which no file of a run may: "
                "take it out of the plan, or unset the variable where it is no secret"
                for name in leaked
            ]
        )
    sandbox = _sandbox_of(options)
    control.sandbox = sandbox().name if cast.may_run_commands(plan) else None
    folder = RunFolder(options.folder) if options.folder else new_run_folder(options.results, plan.name)
    with JournalWriter(folder.journal_file, redactor) as journal:
        done = what_is_done(folder, plan, options)
        control.finished_before = done.finished.count()
        folder.write_plan(plan, redactor)
        journal.append("start", bakeoff=__version__, time=time.time(), sandbox=control.sandbox)
        desk = Desk(journal, Budget(options, done.spent), control, pending_jobs(plan, done, folder, options))
        work = asyncio.create_task(_work(plan, options, cast, sandbox, desk))
        control.when_stopped(partial(desk.give_up, work))
        try:
            async for record in desk.records(work):
                yield record
            if not work.cancelled():
                work.result()
        finally:
            desk.give_up(work)
            await asyncio.wait([work])
        journal.append("end", reason=desk.ending(), time=time.time())


async def _work(plan: Plan, options: RunOptions, cast: Cast, sandbox: Callable[[], Sandbox], desk: "Desk") -> None:
    """Everything between opening the resources and closing them, in one task."""
    async with open_resources(cast.resources()) as resources:
        runner = TrialRunner(plan, cast, options, sandbox, {**resources, **_recordings(options)}, desk.control)
        desk.trials = asyncio.create_task(_trials(plan, LocalExecutor(runner, options.jobs), desk))
        await desk.trials


def _recordings(options: RunOptions) -> dict[str, Any]:
    if options.replay == "off":
        return {}
    from bakeoff.models.replay import RECORDINGS, Recordings  # behind it are SDKs that take a second to load

    return {RECORDINGS: Recordings(options.replay, options.recordings, options.redactor())}


async def _trials(plan: Plan, executor: Executor, desk: "Desk") -> None:
    await executor.execute(desk.jobs(), desk)
    await desk.mark_the_rest(plan)


def _sandbox_of(options: RunOptions) -> Callable[[], Sandbox]:
    """Chosen when first needed, and only once; one that is insisted on must be there from the start."""
    hidden = tuple(path.resolve() for path in (options.results, options.folder) if path)
    choose = cache(lambda: choose_sandbox(options.sandbox, hidden=hidden))
    if options.sandbox != "auto":
        choose()
    return choose


@dataclass(slots=True)
class Desk:
    """Where jobs are handed out and finished records become durable."""

    journal: JournalWriter
    budget: Budget
    control: RunControl
    pending: Iterator[Job]
    trials: asyncio.Task[None] | None = None
    _given_up: bool = False
    _fresh: list[Record] = field(default_factory=list)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _room: asyncio.Event = field(default_factory=asyncio.Event)
    _out_of: str | None = None  # which limit of the run was reached

    def jobs(self) -> Iterator[Job]:
        """What is left to do, for as long as the run is to go on."""
        for job in self.pending:
            self._out_of = self.budget.exceeded()
            if self._out_of or self.control.draining:
                self.pending = chain((job,), self.pending)
                return
            yield job

    def spent(self, job: Job, usage: Usage) -> None:
        self.budget.spent += usage
        self.journal.append(
            "usage",
            trial=job.trial.attempt_key,
            usage=usage.model_dump(exclude_defaults=True),
            total=self.budget.spent.model_dump(exclude_defaults=True),
        )
        self._wake.set()
        if reason := self.budget.exceeded():
            raise BudgetError(reason)

    def give_up(self, work: asyncio.Task[None]) -> None:
        """Cancel the opening of resources or the trials, once: what is being closed is left to close."""
        if not self._given_up:
            self._given_up = True
            (self.trials or work).cancel()

    async def finished(self, record: Record) -> None:
        self.journal.append_record(record)
        self._fresh.append(record)
        self._wake.set()
        if len(self._fresh) >= _ROOM:
            self._room.clear()
            await self._room.wait()

    async def mark_the_rest(self, plan: Plan) -> None:
        """Record which trials a limit kept from starting; an attempt already made is never written over."""
        if self._out_of:
            for job in self.pending:
                if job.prior is None:
                    await self.finished(_never_started(plan, job.trial, self._out_of))

    async def records(self, work: asyncio.Task[None]) -> AsyncIterator[Record]:
        """Each record after the fsync that makes it safe, until the work is over."""
        work.add_done_callback(lambda _: self._wake.set())
        over = False
        while not over:
            await self._wake.wait()
            if not work.done() and len(self._fresh) < _ROOM:
                await asyncio.sleep(_GATHER_SECONDS)
            over = work.done()
            self._wake.clear()
            durable, self._fresh = self._fresh, []
            self._room.set()
            await self.journal.commit()
            for record in durable:
                yield record

    def ending(self) -> str:
        if self._out_of:
            return self._out_of
        return "interrupted" if self.control.draining else "finished"


def _never_started(plan: Plan, trial: Trial, reason: str) -> Record:
    return Record(
        case=trial.case.id,
        subject=trial.subject.name,
        round=trial.round,
        attempt_key=trial.attempt_key,
        score_key=trial.score_key,
        started=time.time(),
        tries=0,
        threshold=plan.threshold,
        attempt=Phase(seconds=0.0, failure=Failure(kind="budget", type="BudgetError", message=reason)),
    )


@dataclass(slots=True)
class Done:
    """What earlier processes of a run have left behind."""

    finished: Bitmap
    attempted: dict[int, int] = field(default_factory=dict)  # trial -> where its record is, if only scoring is left
    spent: Usage = NO_USAGE
    spent_on: dict[str, Usage] = field(default_factory=dict)  # attempt key -> by a trial that is not finished


def what_is_done(folder: RunFolder, plan: Plan, options: RunOptions) -> Done:
    """Read a journal once, in constant memory. A record of an edited case or subject is not one of this plan."""
    done = Done(Bitmap(plan.size))
    for place, entry in folder.entries_with_places():
        if isinstance(entry, Spent):
            done.spent = entry.total
            done.spent_on[entry.trial] = done.spent_on.get(entry.trial, NO_USAGE) + entry.usage
        elif isinstance(entry, Damage) and entry.newer:
            raise RunFolderError(f"run {folder.name} cannot be gone on with: line {entry.line}: {entry.reason}")
        elif isinstance(entry, Record):
            trial = plan.find(entry.case, entry.subject, entry.round)
            if trial is not None and trial.attempt_key == entry.attempt_key:
                _note(done, trial, entry, place, again=options.rescore_all)
                if done.finished[trial.index] or trial.index in done.attempted:
                    done.spent_on.pop(entry.attempt_key, None)
    return done


def _note(done: Done, trial: Trial, record: Record, place: int, *, again: bool) -> None:
    attempted = was_attempted(record)
    scored = record.score_key == trial.score_key and not again
    done.finished[trial.index] = record.verdict.counts and (scored or not attempted)
    if attempted and not done.finished[trial.index]:
        done.attempted[trial.index] = place
    else:
        done.attempted.pop(trial.index, None)


def pending_jobs(plan: Plan, done: Done, folder: RunFolder, options: RunOptions) -> Iterator[Job]:
    """What is not finished, in the plan's order, one at a time."""
    for index in range(plan.size):
        if not done.finished[index]:
            place = done.attempted.get(index)
            if place is not None:
                prior = record_at(folder.journal_file, place)
                yield Job(plan.trial(index), prior, prior.spent)
            elif not options.rescore_only:
                trial = plan.trial(index)
                yield Job(trial, spent=done.spent_on.get(trial.attempt_key, NO_USAGE))

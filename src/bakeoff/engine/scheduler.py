"""Where a run's jobs are handed out and its finished records become durable."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import chain

from bakeoff.engine.budget import Budget
from bakeoff.engine.run_control import RunControl
from bakeoff.engine.trial import Job
from bakeoff.errors import BudgetError
from bakeoff.plan import Plan
from bakeoff.record import Failure, Phase, Record, Usage
from bakeoff.storage.journal import JournalWriter

_GATHER_SECONDS = 0.005  # how long finished records wait for company before an fsync is paid for
_ROOM = 1024  # records that may wait to become durable
_UNREAD = 4 * _ROOM  # durable records that may wait to be read


@dataclass(slots=True)
class Desk:
    """Where jobs are handed out and finished records become durable."""

    journal: JournalWriter
    budget: Budget
    control: RunControl
    pending: Iterator[Job]
    trials: asyncio.Task[None] | None = None
    _given_up: bool = False
    _fresh: list[Record] = field(default_factory=list)  # written by no fsync yet
    _durable: list[Record] = field(default_factory=list)  # not yet read
    _wake: asyncio.Event = field(default_factory=asyncio.Event)  # something is to be committed
    _news: asyncio.Event = field(default_factory=asyncio.Event)  # something is to be read
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
        self.budget.add(usage)
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
        while len(self._fresh) >= _ROOM or len(self._durable) >= _UNREAD:
            self._room.clear()
            await self._room.wait()

    async def mark_the_rest(self, plan: Plan) -> None:
        """Record which trials a limit kept from starting; an attempt already made is never written over."""
        if self._out_of:
            for job in self.pending:
                if job.prior is None:
                    await self.finished(_never_started(plan, job, self._out_of))

    async def records(self, work: asyncio.Task[None]) -> AsyncIterator[Record]:
        """Each record after the fsync that makes it safe, until the work is over.

        Committing goes on while a slow reader holds a record; only how far it may run ahead is bounded.
        """
        work.add_done_callback(lambda _: self._wake.set())
        committing = asyncio.create_task(self._commit(work))
        committing.add_done_callback(lambda _: self._news.set())
        try:
            while not committing.done() or self._durable:
                await self._news.wait()
                self._news.clear()
                durable, self._durable = self._durable, []
                self._room.set()
                for record in durable:
                    yield record
            committing.result()
        finally:
            committing.cancel()
            await asyncio.wait([committing])

    async def _commit(self, work: asyncio.Task[None]) -> None:
        over = False
        while not over:
            await self._wake.wait()
            if not work.done() and len(self._fresh) < _ROOM:
                await asyncio.sleep(_GATHER_SECONDS)
            over = work.done()
            self._wake.clear()
            fresh, self._fresh = self._fresh, []
            self._room.set()  # trials go on while this batch is written
            await self.journal.commit()
            self._durable += fresh
            self._news.set()

    def ending(self) -> str:
        if self._out_of:
            return self._out_of
        return "interrupted" if self.control.draining else "finished"


def _never_started(plan: Plan, job: Job, reason: str) -> Record:
    trial = job.trial
    return Record(
        case=trial.case.id,
        subject=trial.subject.name,
        round=trial.round,
        attempt_key=trial.attempt_key,
        score_key=trial.score_key,
        started=time.time(),
        tries=0,
        threshold=plan.threshold,
        spent=job.spent,
        attempt=Phase(seconds=0.0, failure=Failure(kind="budget", type="BudgetError", message=reason)),
    )

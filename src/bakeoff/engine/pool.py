"""Run trials in parallel within the limits of a run. `bakeoff.run` and pytest sessions use it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Literal, Protocol, Self

from bakeoff._kernel.temporary import Removals, removing_beside
from bakeoff.engine.run_control import Budget, RunControl
from bakeoff.engine.run_journal import RunJournal
from bakeoff.engine.trial import Job, apart
from bakeoff.errors import BudgetError
from bakeoff.record import Record, Usage

_MIN_QUEUE = 64  # jobs that wait for a worker
_REMOVAL_SECONDS = 600.0  # for removing the folders of all trials, after the last of them
_STOPPED_SECONDS = 10.0  # the same limit after the run was stopped


class Runner(Protocol):
    """Runs one trial, either in this process, as `TrialRunner` does, or on another machine."""

    @property
    def control(self) -> RunControl:
        """Return the object with which the caller watches and stops the run."""

    async def run(self, job: Job, spend: Callable[[Usage], None]) -> Record:
        """Run a trial to its end. Failures are part of the record; only cancellation raises.

        `spend` is called with usage as it arrives.
        """

    def not_started(self, job: Job, reason: str, kind: Literal["budget", "infra"] = "budget") -> Record:
        """Return the record of a trial that was not started for this reason."""


class TrialPool:
    """Run submitted jobs with a fixed number of workers, and commit their records.

    Once a budget limit is reached, no trial starts, and all remaining trials get the verdict
    `budget`. If a provider refuses every call of a subject, its remaining trials get the verdict
    `infra`. While the runner's control is draining, remaining jobs are dropped.

    Args:
        runner: runs each trial.
        budget: the limits, which pools can share.
        width: how many trials run at a time.
        commit: called with each record; the worker waits for it before its next job.
        journal: records spending as it arrives.
        needed: called before each trial; if it returns False, the trial is dropped without a
            record.
        most_ahead: how many trials may start after an unfinished one; None sets no limit.
    """

    def __init__(
        self,
        runner: Runner,
        budget: Budget,
        *,
        width: int,
        commit: Callable[[Record], Awaitable[None]],
        journal: RunJournal | None = None,
        needed: Callable[[Job], bool] = lambda _: True,
        most_ahead: int | None = None,
    ) -> None:
        self._runner = runner
        self._budget = budget
        self._width = width
        self._commit = commit
        self._journal = journal
        self._needed = needed
        self._most_ahead = most_ahead
        self._started = 0
        self._unfinished: set[int] = set()  # numbers of trials, in the order in which they were started
        self._one_finished = asyncio.Event()
        self._queue: asyncio.Queue[Job | None] = asyncio.Queue(max(width, _MIN_QUEUE))
        self.limit_reached: str | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Start the workers, and wait for them at the end. An error in one of them stops all."""
        control = self._runner.control
        async with removing_beside(lambda: _STOPPED_SECONDS if control.stopped else _REMOVAL_SECONDS) as removals:
            try:
                async with asyncio.TaskGroup() as workers:
                    for _ in range(self._width):
                        workers.create_task(apart(partial(self._work, removals)))
                    yield self
                    await self._queue.put(None)
            except BaseExceptionGroup as group:
                raise group.exceptions[0] from None
        control.left_behind.update(removals.left)

    async def submit(self, job: Job) -> None:
        """Queue a job. Return when there is room for the next job."""
        await self._queue.put(job)

    async def _work(self, removals: Removals) -> None:
        while (job := await self._queue.get()) is not None:
            await removals.room()
            if self._most_ahead is None:
                await self._run(job)
                continue
            self._started += 1
            number = self._started
            self._unfinished.add(number)
            while number - min(self._unfinished) > self._most_ahead:
                await self._one_finished.wait()
            await self._run(job)
            self._unfinished.remove(number)
            self._one_finished.set()
            self._one_finished = asyncio.Event()
        await self._queue.put(None)  # pass the end mark on to the next worker

    async def _run(self, job: Job) -> None:
        if not self._needed(job):
            return
        self.limit_reached = self._budget.exceeded()
        if self.limit_reached:
            if job.prior is None:  # the record of an attempt is never replaced by one without
                await self._commit(self._runner.not_started(job, self.limit_reached))
        elif refused := self._runner.control.refused.get(job.trial.subject.name):
            if job.prior is None:
                await self._commit(self._runner.not_started(job, refused, "infra"))
        elif not self._runner.control.draining:
            await self._commit(await self._runner.run(job, partial(self._spend, job)))

    def _spend(self, job: Job, usage: Usage) -> None:
        self._budget.add(usage)
        if self._journal is not None:
            self._journal.add_usage(job.trial.attempt_key, usage, self._budget.spent)
        if reason := self._budget.exceeded():
            raise BudgetError(reason)

"""The default executor: asyncio tasks in this process, never more trials in flight than asked for."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from bakeoff.engine.executors import Inbox
from bakeoff.engine.trial import Job, TrialRunner


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    runner: TrialRunner
    width: int

    async def execute(self, jobs: Iterator[Job], inbox: Inbox) -> None:
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(self.width):
                    workers.create_task(self._work(jobs, inbox))
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None  # what ended the run, as the one sentence that it is

    async def _work(self, jobs: Iterator[Job], inbox: Inbox) -> None:
        for job in jobs:
            await inbox.finished(await self.runner.run(job, partial(inbox.spent, job)))

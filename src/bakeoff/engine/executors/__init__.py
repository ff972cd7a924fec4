"""Where trials are carried out. Jobs go in and records come out as data, so an executor may cross machines."""

from collections.abc import Iterator
from typing import Protocol

from bakeoff.engine.trial import Job
from bakeoff.record import Record, Usage


class Inbox(Protocol):
    """Where an executor delivers."""

    def spent(self, job: Job, usage: Usage) -> None:
        """Usage as it arrives; raises BudgetError when the run may spend no more."""

    async def finished(self, record: Record) -> None:
        """A finished trial; returns when there is room for the next."""


class Executor(Protocol):
    async def execute(self, jobs: Iterator[Job], inbox: Inbox) -> None:
        """Carry out every job; being cancelled means giving up those in flight."""

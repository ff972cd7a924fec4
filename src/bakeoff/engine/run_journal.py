"""Write the events of a run to its folder, and report when they are safely on disk."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from typing import Any

from bakeoff._version import __version__
from bakeoff.plan import Plan
from bakeoff.record import Record, Usage
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.run_folder import RunFolder

_GATHER_SECONDS = 0.005  # finished records wait this long for others, so that they share an fsync
_MAX_UNCOMMITTED = 1024  # queued records
_MAX_UNREAD = 4 * _MAX_UNCOMMITTED  # records on disk that the reader has not taken
_FLUSH_RECORDS, _FLUSH_SECONDS = 64, 1.0  # `append` writes at the latest after these


class RunJournal(AbstractContextManager["RunJournal"]):
    """Writes the plan and the journal of a run, under a lock that keeps other processes out.

    A run awaits `commit` for each record and reads `records`. Without an event loop, use `append`.
    """

    def __init__(self, folder: RunFolder, redactor: Redactor) -> None:
        self._folder = folder
        self._redactor = redactor
        self._writer = JournalWriter(folder.journal_file, redactor)
        self._unflushed = 0  # records of `append`
        self._flushed_at = 0.0
        self._uncommitted: list[Record] = []
        self._durable: list[Record] = []  # not yet read
        self._to_commit = asyncio.Event()
        self._to_read = asyncio.Event()
        self._room = asyncio.Event()

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def start(self, plan: Plan, *, made_here: bool = True, **facts: Any) -> None:
        """Write the plan, and a line about this process with these facts and the time."""
        self._folder.write_plan(plan, self._redactor, made_here=made_here)
        self._writer.append("start", **{"bakeoff": __version__, "time": time.time(), **facts})

    def end(self, reason: str, **facts: Any) -> None:
        """Write a line with the reason why the process ended its work, the facts and the time."""
        self._writer.append("end", **{"reason": reason, "time": time.time(), **facts})

    def add_usage(self, attempt_key: str, usage: Usage, total: Usage) -> None:
        """Write spending as it arrives, so that it counts even if the trial is killed."""
        self._writer.append(
            "usage",
            trial=attempt_key,
            usage=usage.model_dump(exclude_defaults=True),
            total=total.model_dump(exclude_defaults=True),
        )
        self._to_commit.set()

    def append(self, record: Record) -> None:
        """Queue a record for the next write. Killing the process loses queued records."""
        self._writer.append_record(record)
        self._unflushed += 1
        now = time.monotonic()
        if self._unflushed >= _FLUSH_RECORDS or now - self._flushed_at > _FLUSH_SECONDS:
            self._writer.flush()
            self._unflushed, self._flushed_at = 0, now

    async def commit(self, record: Record) -> None:
        """Queue a record for `records`. Return when there is room for another record."""
        self._writer.append_record(record)
        self._uncommitted.append(record)
        self._to_commit.set()
        while len(self._uncommitted) >= _MAX_UNCOMMITTED or len(self._durable) >= _MAX_UNREAD:
            self._room.clear()
            await self._room.wait()

    async def records(self, work: asyncio.Task[None]) -> AsyncIterator[Record]:
        """Yield each committed record after its fsync, until the work has ended.

        Commits wait for a slow reader only if they are far ahead.
        """
        work.add_done_callback(lambda _: self._to_commit.set())
        committing = asyncio.create_task(self._commit_until_done(work))
        committing.add_done_callback(lambda _: self._to_read.set())
        try:
            while not committing.done() or self._durable:
                await self._to_read.wait()
                self._to_read.clear()
                durable, self._durable = self._durable, []
                self._room.set()
                for record in durable:
                    yield record
            committing.result()
        finally:
            committing.cancel()
            await asyncio.wait([committing])

    async def _commit_until_done(self, work: asyncio.Task[None]) -> None:
        over = False
        while not over:
            await self._to_commit.wait()
            if not work.done() and len(self._uncommitted) < _MAX_UNCOMMITTED:
                await asyncio.sleep(_GATHER_SECONDS)
            over = work.done()
            self._to_commit.clear()
            fresh, self._uncommitted = self._uncommitted, []
            self._room.set()  # trials continue while this batch is written
            await self._writer.commit()
            self._durable += fresh
            self._to_read.set()

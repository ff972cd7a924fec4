"""Remove the folders of trials beside the trials, so that removing them is on nobody's clock.

A subject decides how long its folders take to remove. While a trial or its scoring waited for that, a slow removal ran
into a time limit and became a lost trial.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from queue import SimpleQueue

from bakeoff.errors import InfraError

_THREADS = 4
_MAX_PENDING = 64  # more would fill the disk
_Job = tuple[Path, Callable[[], None]]


class Removals:
    """Remove folders in threads that do not keep the process alive: what is left is removed by the next run."""

    def __init__(self) -> None:
        self.left: dict[Path, str] = {}  # folders that could not be removed, and why
        self._pending: set[Path] = set()
        self._one_done = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads = 0
        self.open = True  # what outlives the block removes its folders itself

    def add(self, root: Path, remove: Callable[[], None]) -> None:
        """Have a folder removed soon."""
        self._pending.add(root)
        self._queue.put((root, remove))
        if self._threads < min(_THREADS, len(self._pending)):
            self._threads += 1
            threading.Thread(target=self._work, name="bakeoff-removals", daemon=True).start()

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            root, remove = job
            try:
                remove()
                problem = None
            except (InfraError, OSError) as error:
                problem = str(error)
            try:
                self._loop.call_soon_threadsafe(self._note, root, problem)
            except RuntimeError:  # the loop has ended, and nobody waits
                return

    def _note(self, root: Path, problem: str | None) -> None:
        self._pending.discard(root)
        if problem is not None:
            self.left[root] = problem
        self._one_done.set()
        self._one_done = asyncio.Event()

    async def room(self) -> None:
        """Wait until few enough folders are left to be removed."""
        while len(self._pending) >= _MAX_PENDING:
            await self._one_done.wait()

    async def finish(self, seconds: float) -> None:
        """Wait for the removals, for this long at most, and note what is left. Take no more of them."""
        self.open = False
        try:
            async with asyncio.timeout(seconds):
                while self._pending:
                    await self._one_done.wait()
        except TimeoutError:
            self.left |= dict.fromkeys(self._pending, f"not removed after {seconds:g} s")
        for _ in range(self._threads):
            self._queue.put(None)


REMOVALS: ContextVar[Removals | None] = ContextVar("REMOVALS", default=None)
"""Where `open_place` leaves its folders; None removes them before it returns."""


@asynccontextmanager
async def removing_beside(seconds: Callable[[], float]) -> AsyncIterator[Removals]:
    """Remove places that are closed inside the block beside it. At its end, wait for `seconds()` at most."""
    removals = Removals()
    before = REMOVALS.set(removals)
    try:
        yield removals
    finally:
        REMOVALS.reset(before)
        await removals.finish(seconds())

"""Make temporary folders and remove them in the background, even if their process was killed.

A process locks its folders until it ends, so a later process recognises the folders of a killed
one. Folders without a lock file were kept on purpose, and stay.

`Removals` keeps slow removals (of huge folders) out of the time limits of trials.
"""

import asyncio
import contextlib
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from queue import SimpleQueue

from bakeoff._kernel.files import file_locks
from bakeoff.errors import InfraError

LOCK = "held"
FRESH_SECONDS = 60.0  # a younger folder may not hold its lock yet


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make a folder for the block, and remove folders of killed processes with the same prefix."""
    sweep_folders(Path(tempfile.gettempdir()), prefix)
    root = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        with held(root):
            yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def held(root: Path) -> Iterator[None]:
    """Hold the lock of a folder inside the block."""
    lock = root / LOCK
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        file_locks.flock(descriptor, file_locks.LOCK_EX | file_locks.LOCK_NB)
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


@cache
def sweep_folders(parent: Path, prefix: str) -> None:
    """Remove, once per process, the folders in `parent` that killed processes left behind."""
    for root in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # another user's, or just removed by another process
            if is_left_behind(root):
                shutil.rmtree(root)


def is_left_behind(root: Path) -> bool:
    """Return True if a folder is ours, old enough and unlocked. It must have a lock file."""
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or time.time() - found.st_mtime < FRESH_SECONDS:
        return False
    descriptor = os.open(root / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        file_locks.flock(descriptor, file_locks.LOCK_EX | file_locks.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


_THREADS = 4
_MAX_PENDING = 64  # so that waiting folders do not fill the disk
_Job = tuple[Path, Callable[[], None]]


class Removals:
    """Removes folders in background threads that do not keep the process alive."""

    def __init__(self) -> None:
        self.left: dict[Path, str] = {}  # folders that could not be removed, and why
        self._pending: set[Path] = set()
        self._one_done = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads = 0
        self.open = True  # False: places remove their folders themselves

    def add(self, root: Path, remove: Callable[[], None]) -> None:
        """Queue a folder for removal in the background."""
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
            except RuntimeError:  # the loop has ended, and nothing waits
                return

    def _note(self, root: Path, problem: str | None) -> None:
        self._pending.discard(root)
        if problem is not None:
            self.left[root] = problem
        self._one_done.set()
        self._one_done = asyncio.Event()

    async def room(self) -> None:
        """Wait until there are few pending removals."""
        while len(self._pending) >= _MAX_PENDING:
            await self._one_done.wait()

    async def finish(self, seconds: float) -> None:
        """Wait at most `seconds` for pending removals, note the rest, and accept no new ones."""
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
"""The removals to which `open_place` passes its folders; with None, `open_place` removes them itself."""


@asynccontextmanager
async def removing_beside(seconds: Callable[[], float]) -> AsyncIterator[Removals]:
    """Remove places in the background during the block. At its end, wait at most `seconds()`."""
    removals = Removals()
    before = REMOVALS.set(removals)
    try:
        yield removals
    finally:
        REMOVALS.reset(before)
        await removals.finish(seconds())

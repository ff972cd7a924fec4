"""Notice code that blocks the event loop that all cases share, and give the lost time back to the other cases."""

import asyncio
import sys
import sysconfig
import threading
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import bakeoff
from bakeoff._kernel.clock import RUNNING
from bakeoff.doors.pytest_plugin.own_task import clock_of

_BEAT = 0.05  # seconds
_STALL = 0.15  # seconds; shorter ones are the scheduling of the machine
_WORTH_TELLING = 0.5  # seconds
_NOT_THE_USERS = tuple(
    str(path) for path in (Path(bakeoff.__file__).parent, sysconfig.get_path("stdlib"), "<frozen")
)  # beginnings of file names


class _Blocking(NamedTuple):
    task: "asyncio.Task[Any] | None"
    place: str


class StallWatch:
    """Watch the loop of this thread: a timer on it tells how late it is, and another thread sees what it does then."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread_id = threading.get_ident()
        self._due = loop.time()
        self._seen: _Blocking | None = None
        self._ended = threading.Event()
        self._beat()
        threading.Thread(target=self._look, daemon=True, name="bakeoff-stalls").start()

    def close(self) -> None:
        self._timer.cancel()
        self._ended.set()

    def _beat(self) -> None:
        now = self._loop.time()
        if (late := now - self._due) > _STALL:
            self._excuse(late)
        self._seen = None
        self._due = now + _BEAT
        self._timer = self._loop.call_at(self._due, self._beat)

    def _excuse(self, seconds: float) -> None:
        seen = self._seen
        blocking = clock_of(seen.task) if seen else None
        for clock in RUNNING.get(self._loop, ()):
            if clock is not blocking:
                clock.excuse(seconds)
        if seen is not None and blocking is not None and seconds >= _WORTH_TELLING:
            blocking.remarks.append(
                f"it blocked the event loop for {seconds:.1f} s at {seen.place}, and the other cases with it: "
                "make it a plain `def`, or await `asyncio.to_thread`"
            )

    def _look(self) -> None:
        """Wait for the loop to be late, and remember what it runs."""
        while not self._ended.wait(_BEAT):
            if self._seen is None and self._loop.time() - self._due > _STALL:
                frame = sys._current_frames().get(self._thread_id)
                place = _users_place(frame)
                if place is not None:
                    self._seen = _Blocking(asyncio.current_task(self._loop), place)


def _users_place(frame: FrameType | None) -> str | None:
    """Return the file and line of the innermost frame of the user's code."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_NOT_THE_USERS):
            return f"{Path(name).name}:{frame.f_lineno}"
        frame = frame.f_back
    return None

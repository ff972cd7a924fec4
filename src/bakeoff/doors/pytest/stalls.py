"""Notice code that blocks the event loop that all cases share, and give the lost time back to the other cases."""

import asyncio
import sys
import sysconfig
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import bakeoff
from bakeoff._kernel.clock import RUNNING, Clock
from bakeoff.doors.pytest.own_task import clock_of

_BEAT = 0.02  # seconds
_STALL = 0.05  # seconds; shorter ones are the scheduling of the machine
_WORTH_TELLING = 0.5  # seconds
_BY_ONE = 0.8  # the share of a stall for which one case is seen, if it is the only one to blame
_MAX_NAMED = 5
_NOT_THE_USERS = tuple(
    str(path) for path in (Path(bakeoff.__file__).parent, sysconfig.get_path("stdlib"), "<frozen")
)  # beginnings of file names


class _StallSample(NamedTuple):
    """What the loop does at one moment at which it is late."""

    clock: Clock | None  # of the case that runs, if it is one
    place: str | None  # in the user's code


class StallWatch:
    """Watch the loop of this thread: a timer on it tells how late it is, and another thread sees what it does then.

    The time is given back to all cases but the one that blocked. If several did, it is given back to all.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread_id = threading.get_ident()
        self._due = loop.time()
        self._samples: list[_StallSample] = []  # since the loop became late
        self._ended = threading.Event()
        self._beat()
        threading.Thread(target=self._look, daemon=True, name="bakeoff-stalls").start()

    def close(self) -> None:
        self._timer.cancel()
        self._ended.set()

    def _beat(self) -> None:
        now = self._loop.time()
        samples, self._samples = self._samples, []
        if (late := now - self._due) > _STALL:
            self._excuse(late, now, samples)
        self._due = now + _BEAT
        self._timer = self._loop.call_at(self._due, self._beat)

    def _excuse(self, seconds: float, now: float, samples: list[_StallSample]) -> None:
        seen = Counter(sample.clock for sample in samples)
        first, times = seen.most_common(1)[0] if seen else (None, 0)
        by_one = first is not None and times >= _BY_ONE * len(samples)
        for clock in RUNNING.get(self._loop, ()):
            if not by_one or clock is not first:
                clock.excuse(min(seconds, now - clock.began))  # it may have begun while the loop was blocked
        if seconds < _WORTH_TELLING:
            return
        blocking = [clock for clock in seen if clock is not None]
        places = dict.fromkeys(
            sample.place for sample in samples if sample.place and (not by_one or sample.clock is first)
        )
        if by_one and first is not None and places:
            first.remarks.append(
                f"it blocked the event loop for {seconds:.1f} s at {next(iter(places))}, and the other cases with it: "
                f"{_WAY_OUT}"
            )
        elif places:
            _blame_all(blocking, seconds, list(places))

    def _look(self) -> None:
        """Wait for the loop to be late, and remember what it runs."""
        while not self._ended.wait(_BEAT):
            if self._loop.time() > self._due + _BEAT / 2:
                place = _users_place(sys._current_frames().get(self._thread_id))
                self._samples.append(_StallSample(clock_of(asyncio.current_task(self._loop)), place))


def _blame_all(clocks: list[Clock], seconds: float, places: list[str]) -> None:
    """Tell the cases that may have blocked the loop, each once."""
    names = [clock.name for clock in clocks if clock.name] or places
    shown = ", ".join(names[:_MAX_NAMED]) + (", …" if len(names) > _MAX_NAMED else "")
    for clock in clocks:
        if not any(remark.startswith(_SHARED) for remark in clock.remarks):
            clock.remarks.append(f"{_SHARED} {seconds:.1f} s by one of: {shown} (at {places[0]}): {_WAY_OUT}")


_SHARED = "the event loop was blocked for"
_WAY_OUT = "make it a plain `def`, or await `asyncio.to_thread`"


def _users_place(frame: FrameType | None) -> str | None:
    """Return the file and line of the innermost frame of the user's code."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_NOT_THE_USERS):
            return f"{Path(name).name}:{frame.f_lineno}"
        frame = frame.f_back
    return None

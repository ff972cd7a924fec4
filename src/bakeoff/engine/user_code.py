"""Run the user's code beside other trials without blocking their shared event loop.

`call_apart` runs a function in its own task and context, and abandons it if it ignores
cancellation. `StallWatch` detects code that blocks the loop, and gives the lost time back to other
trials.
"""

import asyncio
import contextvars
import inspect
import sys
import sysconfig
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import bakeoff
from bakeoff._kernel.clock import RUNNING, Clock
from bakeoff._kernel.threads import carried, in_daemon_thread, is_async

GRACE_SECONDS = 2.0  # for a cancelled case to clean up
IGNORED = "it ignored its cancellation, and goes on in the background"

_RUNNING: dict["asyncio.Task[Any]", Clock] = {}
_ABANDONED: set["asyncio.Task[Any]"] = set()  # event loops hold tasks only weakly


async def call_apart(function: "partial[Any]", clock: Clock) -> Any:
    """Run the user's function, in a thread if sync or in its own task if async."""
    if is_async(function.func):
        return await in_own_task(function, clock)
    result = await in_daemon_thread(function)
    return await in_own_task(lambda: result, clock) if inspect.isawaitable(result) else result


async def in_own_task(function: Callable[[], Awaitable[Any]], clock: Clock) -> Any:
    """Run an async function in its own task, and return the result.

    If the function ignores cancellation for `GRACE_SECONDS`, abandon it, with a remark.
    """
    task = asyncio.get_running_loop().create_task(_settled(function), context=contextvars.copy_context())
    _RUNNING[task] = clock
    try:
        await _ended(task)
        result, error = task.result()
        if error is not None:
            raise carried(error) if isinstance(error, asyncio.CancelledError) else error
        return result
    except asyncio.CancelledError:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_SECONDS)
        if not task.done():  # asyncio waits for all known tasks at the end; this may never end
            _ABANDONED.add(task)
            task.add_done_callback(_forget)
            asyncio.tasks._unregister_task(task)
            clock.remarks.append(IGNORED)
        raise
    finally:
        del _RUNNING[task]


def _ended(task: "asyncio.Task[Any]") -> "asyncio.Future[None]":
    """Return a future for the end of a task. Cancelling the future does not cancel the task."""
    ended: asyncio.Future[None] = task.get_loop().create_future()

    def end(_: object) -> None:
        if not ended.done():
            ended.set_result(None)

    task.add_done_callback(end)
    return ended


async def _settled(function: Callable[[], Awaitable[Any]]) -> tuple[Any, BaseException | None]:
    """Return the result and the error as values, because some errors would end the loop."""
    try:
        return await function(), None
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        return None, error  # raised again for the caller


def _forget(task: "asyncio.Task[Any]") -> None:
    _ABANDONED.discard(task)
    if not task.cancelled():
        task.exception()  # mark it as retrieved, or asyncio reports it


_BEAT = 0.02  # seconds
_STALL = 0.05  # seconds; shorter stalls come from the scheduler
_WORTH_TELLING = 0.5  # seconds; shorter stalls are not reported
_BY_ONE = 0.8  # a case seen for this share of a stall is alone to blame
_MAX_NAMED = 5
_NOT_THE_USERS = tuple(
    str(path) for path in (Path(bakeoff.__file__).parent, sysconfig.get_path("stdlib"), "<frozen")
)  # beginnings of file names


class _StallSample(NamedTuple):
    """One observation of a late loop: the running case, and the place in its code."""

    clock: Clock | None  # the clock of the running case, if any
    place: str | None  # in the user's code


class StallWatch:
    """Watches the loop of this thread: a timer measures delays, a thread records what causes them.

    The lost time is given back to all cases except the one that blocked the loop. If several
    blocked it, all cases get the time back.
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
        """Stop watching. The thread ends soon after."""
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
                clock.excuse(min(seconds, now - clock.began))  # the case may have begun while the loop was blocked
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
        elif places:  # tell each case that may have blocked the loop, once
            names = [clock.name for clock in blocking if clock.name] or list(places)
            shown = ", ".join(names[:_MAX_NAMED]) + (", …" if len(names) > _MAX_NAMED else "")
            for clock in blocking:
                if not any(remark.startswith(_SHARED) for remark in clock.remarks):
                    told = f"{_SHARED} {seconds:.1f} s by one of: {shown} (at {next(iter(places))}): {_WAY_OUT}"
                    clock.remarks.append(told)

    def _look(self) -> None:
        """Wait until the loop is late, and record what is running."""
        while not self._ended.wait(_BEAT):
            if self._loop.time() > self._due + _BEAT / 2:
                place = _users_place(sys._current_frames().get(self._thread_id))
                task = asyncio.current_task(self._loop)
                self._samples.append(_StallSample(_RUNNING.get(task) if task else None, place))


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

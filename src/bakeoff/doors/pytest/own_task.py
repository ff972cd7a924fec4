"""Run async code of the user's in a task and a context of its own, and give it up if it ignores its cancellation."""

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from bakeoff._kernel.clock import Clock
from bakeoff._kernel.threads import carried, in_daemon_thread, is_async

GRACE_SECONDS = 2.0  # for a case to clean up after it was cancelled
IGNORED = "it ignored its cancellation, and goes on in the background"

_RUNNING: dict["asyncio.Task[Any]", Clock] = {}
_ABANDONED: set["asyncio.Task[Any]"] = set()  # a loop holds its tasks only weakly


async def call_apart(function: "partial[Any]", clock: Clock) -> Any:
    """Return the result of the user's function: a sync one runs in a thread, and what is async in a task of its own."""
    if is_async(function.func):
        return await in_own_task(function, clock)
    result = await in_daemon_thread(function)
    return await in_own_task(lambda: result, clock) if inspect.isawaitable(result) else result


async def in_own_task(function: Callable[[], Awaitable[Any]], clock: Clock) -> Any:
    """Return the result of an async function. The clock of its case is told if it goes on after it was given up."""
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
        if not task.done():
            _abandon(task)
            clock.remarks.append(IGNORED)
        raise
    finally:
        del _RUNNING[task]


def _ended(task: "asyncio.Task[Any]") -> "asyncio.Future[None]":
    """Return a future for the end of a task. Unlike the task, it may be cancelled; `asyncio.wait` takes longer."""
    ended: asyncio.Future[None] = task.get_loop().create_future()

    def end(_: object) -> None:
        if not ended.done():
            ended.set_result(None)

    task.add_done_callback(end)
    return ended


async def _settled(function: Callable[[], Awaitable[Any]]) -> tuple[Any, BaseException | None]:
    """Return a result or an error, because some errors of a task would end its loop."""
    try:
        return await function(), None
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        return None, error  # raised again for who waits


def clock_of(task: "asyncio.Task[Any] | None") -> Clock | None:
    """Return the time limit of the case that runs in a task."""
    return None if task is None else _RUNNING.get(task)


def _abandon(task: "asyncio.Task[Any]") -> None:
    """Leave a task behind. Whoever ends its loop waits for every task that asyncio knows, and for this one in vain."""
    _ABANDONED.add(task)
    task.add_done_callback(_forget)
    asyncio.tasks._unregister_task(task)


def _forget(task: "asyncio.Task[Any]") -> None:
    _ABANDONED.discard(task)
    if not task.cancelled():
        task.exception()  # mark it as retrieved: nobody will ask for it

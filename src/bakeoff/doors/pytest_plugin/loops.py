"""Event loops that leave everybody else's alone: one for a moment in this thread, one for a session in its own."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")

_GRACE_SECONDS = 5.0  # for what is cancelled to clear up


def on_asyncio() -> bool:
    """Whether a loop of asyncio runs in this thread: that of trio is none."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def run_here(awaitable: Awaitable[Result]) -> Result:
    """What an awaitable comes to, in this thread. Unlike `asyncio.run`, the thread's current loop stays what it was."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_awaited(awaitable))
    finally:
        _finish(loop)


async def _awaited(awaitable: Awaitable[Result]) -> Result:
    return await awaitable


def _finish(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left, let it clear up for a moment, and close."""
    try:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=_GRACE_SECONDS))
        for task in left:
            if task.done() and not task.cancelled():
                task.exception()  # it was given up: nobody is going to ask for it
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


class LoopThread:
    """An event loop that runs beside pytest, from its first use until it is closed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._kept: set[asyncio.Task[Any]] = set()  # a loop holds its tasks only weakly

    def spawn(self, coroutine: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin a task. The coroutine is made on the loop, so that none is left unawaited where that has ended."""
        self.call(lambda: self._begin(coroutine))

    def _begin(self, coroutine: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine())
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)

    def call(self, callback: Callable[[], object]) -> None:
        """Have something called on the loop; once it is closed, nothing is."""
        loop = self._loop or self._start()
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(callback)

    def is_here(self) -> bool:
        """Whether this is called on the loop."""
        return on_asyncio() and asyncio.get_running_loop() is self._loop

    async def awaited(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """What a coroutine comes to on the loop, for who waits on another one."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop or self._start()))

    def result(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Wait for what a coroutine comes to on the loop; being interrupted cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop or self._start())
        try:
            return future.result()
        finally:
            future.cancel()

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(loop,), daemon=True, name="bakeoff-evals")
        self._thread.start()
        return loop

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            _finish(loop)

    def close(self) -> None:
        """Cancel what is running, and end the thread. What ignores its cancellation is left behind."""
        if self._loop is None or self._thread is None:
            return
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(2 * _GRACE_SECONDS)
        self._loop = self._thread = None

"""Run event loops: for a moment, in a separate thread, or on the loop of async fixtures.

The cases of an async suite must run on the loop of its async fixtures. pytest-asyncio has a runner for each scope, and
anyio one for each backend. Both run their loops in pytest's thread while pytest waits, so that cases which run side by
side on such a loop pause between two tests.
"""

import asyncio
import inspect
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from bakeoff._kernel.clock import RUNNING, Clock
from bakeoff.engine.user_code import StallWatch
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.doors.pytest.parallel import PendingCase

Result = TypeVar("Result")

_STOPPED = "Event loop stopped before Future completed"  # says asyncio
_GRACE_SECONDS = 5.0  # for cancelled tasks to clean up


def on_asyncio() -> bool:
    """Return True if an asyncio loop runs in this thread. Trio event loops do not count."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def run_here(awaitable: Awaitable[Result]) -> Result:
    """Return the result of an awaitable, in this thread. Unlike `asyncio.run`, this keeps the thread's current loop."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_awaited(awaitable))
    finally:
        _finish(loop)


async def _awaited(awaitable: Awaitable[Result]) -> Result:
    return await awaitable


def _finish(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the remaining tasks, give them a moment to clean up, and close the loop."""
    try:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=_GRACE_SECONDS))
        for task in left:
            if task.done() and not task.cancelled():
                task.exception()  # mark it as retrieved: nobody will ask for it
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


class BorrowedLoop:
    """The event loop of a plugin or a debugger, in pytest's thread. It runs while pytest waits.

    Args:
        run: creates a coroutine on that loop, and runs it until it is done.
        watched: whether to look for cases that block the loop. A debugger blocks it on purpose.
    """

    def __init__(
        self, run: Callable[[Callable[[], Coroutine[Any, Any, None]]], object], *, watched: bool = True
    ) -> None:
        self._run = run
        self._watched = watched
        self._loop: asyncio.AbstractEventLoop | None = None
        self._callbacks: list[Callable[[], object]] = []  # for the loop, before it is known
        self._kept: set[asyncio.Task[Any]] = set()
        self._clocks: set[Clock] = set()  # of the cases that run
        self._left_at = 0.0

    def spawn(self, coroutine: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task when the loop runs next."""
        self.call(lambda: _keep(coroutine(), self._kept))

    def call(self, callback: Callable[[], object]) -> None:
        """Call a function when the loop runs next. Once the loop is closed, this does nothing."""
        if self._loop is None:
            self._callbacks.append(callback)
        else:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(callback)

    def wait_for(self, case: "PendingCase") -> None:
        """Run the loop until a case is done. If the case itself stops the loop, it is run again."""
        while not case.broken.done():
            try:
                self._run(lambda: self._until_done(case))
            except RuntimeError as error:
                if not str(error).startswith(_STOPPED):  # by a case, and not closed: it can run again
                    raise

    async def _until_done(self, case: "PendingCase") -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            self._clocks = RUNNING.setdefault(loop, self._clocks)
            callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                callback()
        for clock in self._clocks:  # the time during which the loop stood still does not count
            clock.excuse(loop.time() - self._left_at)
        finished = asyncio.Event()
        case.broken.add_done_callback(lambda _: finished.set())  # on this loop
        watch = StallWatch(loop) if self._watched else None
        try:
            await finished.wait()
        finally:
            self._left_at = loop.time()
            if watch is not None:
                watch.close()

    def close(self) -> None:
        """Forget the loop, which its owner closes."""
        if self._loop is not None:
            RUNNING.pop(self._loop, None)


def _keep(coroutine: Coroutine[Any, Any, None], kept: set[asyncio.Task[Any]]) -> None:
    """Start a task and keep a reference to it, because a loop has only weak references."""
    task = asyncio.get_running_loop().create_task(coroutine)
    kept.add(task)
    task.add_done_callback(kept.discard)


class _InheritingExecutor(ThreadPoolExecutor):
    """An executor that keeps the caller's context, so that output goes to the right case."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        return super().submit(copy_context().run, fn, *args, **kwargs)


class LoopThread:
    """An event loop in a thread beside pytest, from its first use until it is closed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._kept: set[asyncio.Task[Any]] = set()
        self._closing = False

    def spawn(self, coroutine: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task. The coroutine is made on the loop, so that none is left unawaited if the loop has ended."""
        self.call(lambda: _keep(coroutine(), self._kept))

    def wait_for(self, case: "PendingCase") -> None:
        """Wait on pytest's thread until a case is done."""
        case.broken.result()

    def call(self, callback: Callable[[], object]) -> None:
        """Call a function on the loop. Once the loop is closed, this does nothing."""
        loop = self._loop or self._start()
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(callback)

    def is_here(self) -> bool:
        """Return True if the caller runs on the loop."""
        return on_asyncio() and asyncio.get_running_loop() is self._loop

    async def awaited(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the loop and await its result on another one."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop or self._start()))

    def result(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the loop and wait for its result. An interrupt cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop or self._start())
        try:
            return future.result()
        finally:
            future.cancel()

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = self._loop = asyncio.new_event_loop()
        loop.set_default_executor(_InheritingExecutor(thread_name_prefix="asyncio"))
        self._thread = threading.Thread(target=self._run, args=(loop,), daemon=True, name="bakeoff-evals")
        self._thread.start()
        return loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        RUNNING[loop] = set()
        watch = StallWatch(loop)
        try:
            while not self._closing:  # a task may stop the loop that all cases share
                with suppress(SystemExit, KeyboardInterrupt):  # of a callback that a task has left on the loop
                    loop.run_forever()
        finally:
            watch.close()
            del RUNNING[loop]
            _finish(loop)

    def close(self) -> None:
        """Cancel all tasks, and end the thread. A task that ignores its cancellation is left behind."""
        if self._loop is None or self._thread is None:
            return
        self._closing = True
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(2 * _GRACE_SECONDS)
        self._loop = self._thread = None
        self._closing = False


_SCOPES = ("function", "class", "module", "package", "session")  # narrowest first
_Run = Callable[[Callable[[], Coroutine[Any, Any, None]]], object]


EvalLoop = LoopThread | BorrowedLoop
"""An event loop for the cases of a suite."""


def async_fixtures(template: pytest.Function) -> list[Any]:
    """Return the definitions of the async fixtures that a test uses, directly or through other fixtures."""
    found = (definitions[-1] for definitions in template._fixtureinfo.name2fixturedefs.values() if definitions)
    is_async = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return [each for each in found if any(test(each.func) for test in is_async)]


def runner_of(item: Any) -> tuple[object, _Run] | None:
    """Return the runner of the async fixtures of an item, and how it runs a coroutine; None if no plugin runs them."""
    definitions = async_fixtures(item)
    if not definitions:
        return None
    if scopes := list(_asyncio_scopes(item, definitions)):
        runner = item._request.getfixturevalue(f"_{max(scopes, key=_SCOPES.index)}_scoped_runner")
        return runner, lambda make: runner.run(make())
    if "anyio_backend" not in item.fixturenames:
        return None
    from anyio.pytest_plugin import extract_backend_and_options, get_runner

    name, options = extract_backend_and_options(item._request.getfixturevalue("anyio_backend"))
    if name != "asyncio":
        raise UsageError(
            f"{item.name}: its async fixtures run on {name}, and evals need asyncio: "
            "let the fixture `anyio_backend` return 'asyncio'"
        )

    def run(make: Callable[[], Coroutine[Any, Any, None]]) -> None:
        with get_runner(name, options) as runner:
            runner.run_test(make, {})

    with get_runner(name, options) as runner:
        return runner, run


def _asyncio_scopes(item: Any, definitions: list[Any]) -> Iterator[str]:
    """Yield the scopes of the loops on which pytest-asyncio runs these fixtures."""
    config = item.config
    if sys.modules.get("pytest_asyncio.plugin") not in config.pluginmanager.get_plugins():  # under whatever name
        return
    mode = config.getoption("asyncio_mode", None) or config.getini("asyncio_mode")
    for each in definitions:
        function = getattr(each.func, "__func__", each.func)
        if str(getattr(mode, "value", mode)) == "auto" or getattr(function, "_force_asyncio_fixture", False):
            default = config.getini("asyncio_default_fixture_loop_scope")
            yield str(getattr(function, "_loop_scope", None) or default or each.scope)

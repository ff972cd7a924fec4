"""Call user functions, sync or async, without blocking the event loop or the program's exit."""

import asyncio
import atexit
import contextlib
import contextvars
import inspect
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Result = TypeVar("Result")
_Body = Callable[[], Callable[[], None]]
"""Calls something in a thread and returns a function that reports the result."""

_MAX_IDLE = 32  # idle threads that are kept
_GRACE_SECONDS = 1.0  # how long they get to end

NOT_FOR_A_LOOP = (StopIteration, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)
"""Errors that an event loop would take as signals to itself, although user code raised them."""


def carried(error: BaseException) -> RuntimeError:
    """Wrap an error that an event loop cannot pass on. The original becomes the cause."""
    carrier = RuntimeError(_said_by(error))
    carrier.__cause__ = error
    return carrier


def carried_by(error: BaseException) -> BaseException | None:
    """Return the error that `carried` wrapped in this one; None if there is none."""
    cause = error.__cause__
    carries = type(error) is RuntimeError and isinstance(cause, NOT_FOR_A_LOOP) and str(error) == _said_by(cause)
    return cause if carries else None


def _said_by(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def is_async(function: Callable[..., Any]) -> bool:
    """Return True if calling the function returns a coroutine. Faster than `inspect`."""
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return inspect.iscoroutinefunction(function) if code is None else bool(code.co_flags & inspect.CO_COROUTINE)


async def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the function's result. A sync function runs in a thread of its own."""
    if is_async(function):
        return await function(*arguments)
    result = await in_daemon_thread(function, *arguments)
    return await result if inspect.isawaitable(result) else result


def end_despite_threads(exit_code: int) -> None:
    """End the process now if an abandoned call still runs in a thread.

    Before 3.14, Python kills such threads at exit, and aborts if one is inside foreign code.
    """
    if any(isinstance(thread, _Thread) for thread in threading.enumerate()):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)


async def in_daemon_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a sync function as it is, even if it is an awaitable."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            return  # the caller has given up
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def body() -> Callable[[], None]:
        value, problem = None, None
        try:
            value = context.run(function, *arguments)
        except BaseException as error:  # noqa: BLE001 - carried over to the waiting task, which judges it
            problem = carried(error) if isinstance(error, NOT_FOR_A_LOOP) else error
        return partial(tell, value, problem)

    def tell(value: Any, problem: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(settle, value, problem)

    if (idle := _IDLE.get(loop)) is None:
        idle = _IDLE[loop] = _IdleThreads()
        await idle.open()
    idle.run(body, f"call-{getattr(function, '__name__', 'object')}")
    return await future


class _Thread(threading.Thread):
    """A thread that runs functions one after the other.

    It is a daemon because a hanging sync call cannot be killed and must not keep the program alive.
    """

    def __init__(self, idle: "_IdleThreads") -> None:
        super().__init__(daemon=True)
        self._idle = idle
        self.bodies: SimpleQueue[_Body | None] = SimpleQueue()  # None ends the thread

    def run(self) -> None:
        while (body := self.bodies.get()) is not None:
            tell = body()
            # Before the result is reported, because the caller may make its next call at once.
            waits = self._idle.take_back(self)
            tell()
            del body, tell  # do not keep them alive while the thread waits
            if not waits:
                return


class _IdleThreads:
    """The idle threads of one loop, kept because starting a thread can be slower than a scorer."""

    def __init__(self) -> None:
        self._waiting: list[_Thread] | None = []  # None: the loop has ended
        self._lock = threading.Lock()
        self._end: AsyncGenerator[None, None] | None = None

    async def open(self) -> None:
        """Register with the loop, which closes its async generators, and so this, when it ends."""
        self._end = self._until_the_loop_ends()
        await anext(self._end)

    async def _until_the_loop_ends(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._end = None  # it references the loop
            with self._lock:
                waiting, self._waiting = self._waiting or [], None
            for thread in waiting:
                thread.bodies.put(None)
            for thread in waiting:
                thread.join(_GRACE_SECONDS)

    def run(self, body: _Body, name: str) -> None:
        """Run a function in an idle thread, or in a new one."""
        with self._lock:
            thread = self._waiting.pop() if self._waiting else _Thread(self)
        thread.name = name
        thread.bodies.put(body)
        if thread.ident is None:
            thread.start()

    def take_back(self, thread: _Thread) -> bool:
        """Keep the thread for more work. Return False if it must end."""
        with self._lock:
            if self._waiting is None or len(self._waiting) >= _MAX_IDLE:
                return False
            self._waiting.append(thread)
            return True


_IDLE: WeakKeyDictionary[asyncio.AbstractEventLoop, _IdleThreads] = WeakKeyDictionary()

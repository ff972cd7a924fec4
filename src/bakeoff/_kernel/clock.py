"""Limit the time of coroutines, and run coroutines until an event."""

import asyncio
import contextlib
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")

RUNNING: dict[asyncio.AbstractEventLoop, "set[Clock]"] = {}
"""The running clocks of each event loop that is being observed."""

CLOCK: ContextVar["Clock"] = ContextVar("CLOCK")
"""The clock of the current coroutine."""


@dataclass(frozen=True, slots=True)
class Delay:
    """A wait before the next try."""

    reason: str
    seconds: float  # length of this wait
    most_seconds: float  # longest time from now until the last try


class Clock:
    """A time limit for one coroutine. No timer is made for a coroutine that never waits."""

    __slots__ = (
        "_deadline",
        "_paused_at",
        "_pauses",
        "_sleep",
        "_timer",
        "began",
        "expired",
        "name",
        "remarks",
        "seconds",
        "waited",
    )

    def __init__(self, seconds: float, sleep: Callable[[Delay], Awaitable[bool]] | None = None) -> None:
        self.seconds = seconds
        self.name = ""  # the name of the limited work
        self.began = 0.0  # when it began, by the clock of its event loop
        self._sleep = sleep  # waits for a delay, shows it, and may end it early
        self.expired = False
        self.waited = 0.0  # time that does not count against the limit
        self.remarks: list[str] = []  # notes for people on how the time was used
        self._deadline = 0.0
        self._timer: asyncio.Timeout | None = None
        self._pauses = 0
        self._paused_at = 0.0

    async def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Return the coroutine's result. When the time is up, cancel it and raise TimeoutError."""
        before = CLOCK.set(self)
        try:
            return await self._run(coroutine)
        finally:
            CLOCK.reset(before)

    async def _run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        loop = asyncio.get_running_loop()
        self.began = loop.time()
        self._deadline = self.began + self.seconds
        try:
            waits_for = coroutine.send(None)
        except StopIteration as done:
            self.expired = loop.time() > self._deadline
            result: Result = done.value
            return result
        self._timer = asyncio.timeout_at(None if self._pauses else self._deadline)
        running = RUNNING.get(loop, set())
        running.add(self)
        try:
            async with self._timer:
                return await _rest(coroutine, waits_for)
        finally:
            self.expired = self._timer.expired()
            self._timer = None
            running.discard(self)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock inside the block, while the coroutine waits for others."""
        loop = asyncio.get_running_loop()
        if self._pauses == 0:
            self._paused_at = loop.time()
            self._set_timer(None)
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0:
                pause = loop.time() - self._paused_at
                self.waited += pause
                self._deadline += pause
                self._set_timer(self._deadline)

    async def sleep(self, delay: Delay) -> bool:
        """Wait with the clock stopped. Return False if the wait ended early."""
        with self.paused():
            if self._sleep is not None:
                return await self._sleep(delay)
            await asyncio.sleep(delay.seconds)
            return True

    @property
    def waited_so_far(self) -> float:
        """Return the time that does not count against the limit, including a pause in progress."""
        return self.waited + (asyncio.get_running_loop().time() - self._paused_at if self._pauses else 0.0)

    def excuse(self, seconds: float) -> None:
        """Extend the limit by time that was lost through no fault of the coroutine."""
        self.waited += seconds
        self._deadline += seconds
        if self._pauses == 0:
            self._set_timer(self._deadline)

    def _set_timer(self, when: float | None) -> None:
        if self._timer is not None and not self._timer.expired():
            self._timer.reschedule(when)


async def run_until(work: Coroutine[Any, Any, Result], event: Awaitable[object]) -> Result | None:
    """Run the work until it ends or the event comes. Return the result of the work, or None."""
    working, waiting = asyncio.ensure_future(work), asyncio.ensure_future(event)
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        waiting.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)


@types.coroutine
def _rest(coroutine: Coroutine[Any, Any, Result], waits_for: Any) -> Generator[Any, Any, Result]:
    """Continue a coroutine that is already waiting, as `await` would."""
    try:
        while True:
            try:
                answer = yield waits_for
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as error:  # noqa: BLE001 - cancellation above all: it belongs to who is waiting
                waits_for = coroutine.throw(error)
            else:
                waits_for = coroutine.send(answer)
    except StopIteration as done:
        result: Result = done.value
        return result

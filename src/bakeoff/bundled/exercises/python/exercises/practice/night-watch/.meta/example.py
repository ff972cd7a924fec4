import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

Job = Callable[[], Awaitable[object]]


class Clock(Protocol):
    def now(self) -> float: ...

    async def sleep_until(self, moment: float) -> None: ...


class Duty:
    def __init__(
        self, job: Job, begin: float, period: float | None, timeout: float | None, changed: asyncio.Event
    ) -> None:
        self.turns = 0
        self.skipped = 0
        self.errors: list[Exception] = []
        self.active = True
        self.job = job
        self.timeout = timeout
        self.running: asyncio.Task[None] | None = None
        self._begin = begin
        self._period = period
        self._steps = 1
        self._failures = 0
        self._changed = changed

    @property
    def due(self) -> float:
        return self._begin + self._steps * (self._period or 0)

    def cancel(self) -> None:
        self.active = False
        self._changed.set()

    def advance(self) -> None:
        self._steps += 1
        self.active = self.active and self._period is not None

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self, error: Exception) -> None:
        self.errors.append(error)
        self._failures += 1
        if self._failures >= 3:
            self.active = False


class Watch:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._duties: list[Duty] = []
        self._changed = asyncio.Event()

    def once(self, delay: float, job: Job, timeout: float | None = None) -> Duty:
        if delay < 0:
            raise ValueError(f"not a delay: {delay}")
        return self._plan(job, self._clock.now() + delay, None, timeout)

    def every(self, period: float, job: Job, timeout: float | None = None) -> Duty:
        if period <= 0:
            raise ValueError(f"not a period: {period}")
        return self._plan(job, self._clock.now(), period, timeout)

    async def run(self, until: float) -> None:
        try:
            while self._clock.now() < until:
                self._changed.clear()
                self._start_what_is_due()
                moments = [duty.due for duty in self._duties if duty.active]
                if not moments and not any(duty.running for duty in self._duties):
                    return
                await self._wait_until(min([until, *moments]))
        finally:
            running = [duty.running for duty in self._duties if duty.running]
            await _end(*running)

    def _plan(self, job: Job, begin: float, period: float | None, timeout: float | None) -> Duty:
        if timeout is not None and timeout <= 0:
            raise ValueError(f"not a timeout: {timeout}")
        duty = Duty(job, begin, period, timeout, self._changed)
        self._duties.append(duty)
        self._changed.set()
        return duty

    def _start_what_is_due(self) -> None:
        for duty in self._duties:
            if not duty.active or duty.due > self._clock.now():
                continue
            duty.advance()
            if duty.running:
                duty.skipped += 1
            else:
                duty.turns += 1
                duty.running = asyncio.create_task(self._turn(duty))

    async def _wait_until(self, moment: float) -> None:
        tasks = [asyncio.create_task(self._changed.wait()), asyncio.create_task(_sleep(self._clock, moment))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(*tasks)

    async def _turn(self, duty: Duty) -> None:
        try:
            await self._attempt(duty)
        except Exception as error:
            duty.failed(error)
        else:
            duty.succeeded()
        finally:
            duty.running = None
            self._changed.set()

    async def _attempt(self, duty: Duty) -> None:
        work = asyncio.create_task(_call(duty.job))
        tasks: list[asyncio.Task[None]] = [work]
        if duty.timeout is not None:
            tasks.append(asyncio.create_task(_sleep(self._clock, self._clock.now() + duty.timeout)))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            in_time = work.done()
        finally:
            await _end(*tasks)
        if not in_time:
            raise TimeoutError
        await work


async def _call(job: Job) -> None:
    await job()


async def _sleep(clock: Clock, moment: float) -> None:
    await clock.sleep_until(moment)


async def _end(*tasks: "asyncio.Task[Any]") -> None:
    """Cancels tasks and waits for them."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

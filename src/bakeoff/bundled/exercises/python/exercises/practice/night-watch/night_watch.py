from collections.abc import Awaitable, Callable
from typing import Protocol

Job = Callable[[], Awaitable[object]]


class Clock(Protocol):
    def now(self) -> float: ...

    async def sleep_until(self, moment: float) -> None: ...


class Duty:
    turns: int
    skipped: int
    errors: list[Exception]
    active: bool

    def cancel(self) -> None:
        raise NotImplementedError


class Watch:
    def __init__(self, clock: Clock) -> None:
        raise NotImplementedError

    def once(self, delay: float, job: Job, timeout: float | None = None) -> Duty:
        raise NotImplementedError

    def every(self, period: float, job: Job, timeout: float | None = None) -> Duty:
        raise NotImplementedError

    async def run(self, until: float) -> None:
        raise NotImplementedError

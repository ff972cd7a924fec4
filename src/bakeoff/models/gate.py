"""One gate per provider and run: how many calls may be in flight, adapted to what the provider bears."""

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from bakeoff._kernel.clock import Clock
from bakeoff.errors import InfraError

Result = TypeVar("Result")

USUAL_MOST = 64


class Busy(Exception):
    """A call failed in a way that may pass: the provider is overloaded, down or out of reach."""

    def __init__(self, message: str, *, retry_after: float | None = None, overloaded: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.overloaded = overloaded  # it asks for less; a dropped connection does not
        self.lost = 0.0  # seconds that the call took to fail


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a call may be tried again."""

    first_seconds: float = 0.5
    longest_seconds: float = 30.0
    total_seconds: float = 300.0  # lost to waiting and to calls that failed, over all tries of one call
    most_retries: int | None = None  # after which it is given up for good; None: as many as there is time for


class Gate:
    """Halves what is allowed when the provider says it is too much, and lets it grow slowly while all goes well."""

    def __init__(
        self,
        most: int = USUAL_MOST,
        patience: Patience | None = None,
        revive: Callable[[], Awaitable[object]] | None = None,  # before a call is tried again
    ) -> None:
        self._most = most
        self._revive = revive
        self._allowed = float(most)
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._patience = patience or Patience()

    @property
    def allowed(self) -> int:
        return max(1, int(self._allowed))

    @property
    def in_flight(self) -> int:
        return self._in_flight

    async def pass_through(self, call: Callable[[], Awaitable[Result]], clock: Clock) -> Result:
        """The call's result, after as many tries as patience allows.

        Waiting is not the subject's doing, nor is the time of a call that the provider lost: neither counts.
        """
        lost, tries = 0.0, 0
        while True:
            tries += 1
            try:
                return await self._try(call, clock)
            except Busy as busy:
                clock.excuse(busy.lost)
                wait = self._wait(busy, tries)
                lost += busy.lost + wait
                if self._patience.most_retries is not None and tries > self._patience.most_retries:
                    raise InfraError(f"{busy} (given up after {tries} tries)", permanent=True) from busy
                if lost > self._patience.total_seconds:
                    raise InfraError(
                        f"{busy} (given up after {tries} tries; the next would have to wait {wait:.3g} s)",
                        retry_after=busy.retry_after,
                    ) from busy
            with clock.paused():
                await asyncio.sleep(wait)
                if self._revive is not None:
                    await self._revive()

    async def _try(self, call: Callable[[], Awaitable[Result]], clock: Clock) -> Result:
        async with self._slot(clock):
            allowed = self._allowed  # by which this call got in: what calls that started together say counts once
            started = asyncio.get_running_loop().time()
            try:
                result = await call()
            except Busy as busy:
                busy.lost = asyncio.get_running_loop().time() - started
                if busy.overloaded:
                    self._allowed = max(1.0, min(self._allowed, allowed / 2))
                raise
            self._allowed = min(float(self._most), self._allowed + 1 / self._allowed)
            return result

    def _wait(self, busy: Busy, tries: int) -> float:
        doubled = self._patience.first_seconds * 2.0 ** min(tries - 1, 60)
        jittered: float = min(self._patience.longest_seconds, doubled) * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, guards nothing
        return max(jittered, busy.retry_after or 0.0)

    @asynccontextmanager
    async def _slot(self, clock: Clock) -> AsyncIterator[None]:
        if self._in_flight >= self.allowed:
            with clock.paused():
                await self._turn()
        else:
            self._in_flight += 1
        try:
            yield
        finally:
            self._leave()

    async def _turn(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was ours already: pass it on
                self._leave()
            raise

    def _leave(self) -> None:
        self._in_flight -= 1
        while self._waiting and self._in_flight < self.allowed:
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)

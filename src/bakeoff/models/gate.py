"""One gate per provider and run: how many calls may be in flight, adapted to what the provider bears."""

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from bakeoff.errors import InfraError

Result = TypeVar("Result")


class Busy(Exception):
    """A call failed in a way that may pass: the provider is overloaded, down or out of reach."""

    def __init__(self, message: str, *, retry_after: float | None = None, overloaded: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.overloaded = overloaded  # it asks for less; a dropped connection does not


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a call may be tried again."""

    first_seconds: float = 0.5
    longest_seconds: float = 30.0
    total_seconds: float = 300.0  # of waiting, over all tries of one call


class Gate:
    """Halves what is allowed when the provider says it is too much, and lets it grow slowly while all goes well."""

    def __init__(self, most: int = 64, patience: Patience | None = None) -> None:
        self._most = most
        self._allowed = float(most)
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._patience = patience or Patience()

    @property
    def allowed(self) -> int:
        return max(1, int(self._allowed))

    async def pass_through(
        self, call: Callable[[], Awaitable[Result]], off_the_clock: Callable[[], AbstractContextManager[object]]
    ) -> Result:
        """The call's result, after as many tries as patience allows. Waiting is not the subject's doing."""
        waited, tries = 0.0, 0
        while True:
            tries += 1
            allowed = self._allowed
            try:
                async with self._slot(off_the_clock):
                    result = await call()
            except Busy as busy:
                if busy.overloaded:
                    # Calls that started together fail together: what they say counts once.
                    self._allowed = max(1.0, min(self._allowed, allowed / 2))
                wait = self._wait(busy, tries)
                waited += wait
                if waited > self._patience.total_seconds:
                    raise InfraError(
                        f"{busy} (given up after {tries} tries; the next would have to wait {wait:.0f} s)",
                        retry_after=busy.retry_after,
                    ) from busy
            else:
                self._allowed = min(float(self._most), self._allowed + 1 / self._allowed)
                return result
            with off_the_clock():
                await asyncio.sleep(wait)

    def _wait(self, busy: Busy, tries: int) -> float:
        backoff: float = min(self._patience.longest_seconds, self._patience.first_seconds * 2 ** (tries - 1))
        jittered: float = backoff * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, guards nothing
        return max(jittered, busy.retry_after or 0.0)

    @asynccontextmanager
    async def _slot(self, off_the_clock: Callable[[], AbstractContextManager[object]]) -> AsyncIterator[None]:
        if self._in_flight >= self.allowed:
            with off_the_clock():
                await self._turn()
        else:
            self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1
            self._let_in()

    async def _turn(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was ours already: pass it on
                self._in_flight -= 1
                self._let_in()
            raise

    def _let_in(self) -> None:
        while self._waiting and self._in_flight < self.allowed:
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)

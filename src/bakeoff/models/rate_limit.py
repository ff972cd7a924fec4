"""Limit the calls in flight to a provider, and retry calls that fail because it is busy."""

import asyncio
import math
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, TypeVar

from bakeoff._kernel.clock import Clock, Delay
from bakeoff.errors import InfraError, RequestTooLarge

Result = TypeVar("Result")

DEFAULT_MAX_IN_FLIGHT = 64
_MAX_REMEMBERED = 256  # answered calls
_TIMES_LARGER = 2  # a request must be so many times larger than all answered ones
_MIN_ANSWERED, _MIN_TRIES = 3, 3  # before size is taken as the reason of a refusal
_MAX_TRIES_UNREACHED = 3  # of a provider to which there never was a connection
_LESS_PATIENCE = 0.1  # share of the retry time after a failed call, until a success


class ProviderBusy(Exception):
    """A call failed for a reason that may pass: the provider is overloaded or unreachable."""

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        overloaded: bool = False,
        most_tries: int | None = None,
        refused: bool = False,
        unreached: bool = False,
    ) -> None:
        super().__init__(message)
        self.unreached = unreached  # there was no connection
        self.refused = refused  # the provider read the request and answered with an error
        self.retry_after = retry_after
        self.most_tries = most_tries  # if the reason seldom passes; None: as the policy allows
        self.overloaded = overloaded  # the provider asks for fewer calls; a dropped connection does not


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits for retries: the total time and the waits, which double, with jitter."""

    first_seconds: float = 0.5
    longest_seconds: float = 30.0
    total_seconds: float = 300.0  # for waits and failed tries of one call together
    max_retries: int | None = None  # None: as many as fit into the total

    @property
    def most_tries(self) -> int | None:
        """Return how often a call may be tried in total; None without a limit."""
        return None if self.max_retries is None else self.max_retries + 1


Outcome = Literal["answered", "overloaded", "failed"]
"""How a call ended, as far as the limit depends on it."""


class CallSlots:
    """Limits the calls in flight for one provider.

    The limit is halved when the provider reports that it is overloaded, and grows slowly with every success.
    """

    def __init__(self, max_in_flight: int) -> None:
        self._max = max_in_flight
        self._limit = float(max_in_flight)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.in_flight = 0

    @property
    def limit(self) -> int:
        """Return how many calls may be in flight at present."""
        return max(1, int(self._limit))

    @asynccontextmanager
    async def slot(self, clock: Clock) -> AsyncIterator[None]:
        """Wait for a slot with the clock stopped, and hold it during the block."""
        limit = await self.take(clock)
        outcome: Outcome = "failed"
        try:
            yield
            outcome = "answered"
        except ProviderBusy as busy:
            outcome = "overloaded" if busy.overloaded else "failed"
            raise
        finally:
            self.give_back(limit, outcome)

    async def take(self, clock: Clock) -> float:
        """Wait for a slot. Return the limit, for `give_back`."""
        if self.in_flight < self.limit:
            self.in_flight += 1
            return self._limit
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            with clock.paused():
                await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # pass on the slot that was already granted
                self._release()
            raise
        return self._limit

    def give_back(self, limit: float, outcome: Outcome) -> None:
        """Free a slot. `limit` is the limit at the time when the call began.

        Failures of calls that began together halve the limit only once.
        """
        if outcome == "answered":
            self._limit = min(float(self._max), self._limit + 1 / self._limit)
        elif outcome == "overloaded":
            self._limit = max(1.0, min(self._limit, limit / 2))
        self._release()

    def _release(self) -> None:
        self.in_flight -= 1
        while self._waiting and self.in_flight < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)


SHARED_SLOTS: ContextVar[Callable[[str, int], CallSlots] | None] = ContextVar("SHARED_SLOTS", default=None)
"""Returns the slots of a provider, by its name, that several processes share; None where this process is alone."""


def slots_of(provider: str, max_in_flight: int) -> CallSlots:
    """Return the slots for calls of a provider, shared by all processes of the run."""
    shared = SHARED_SLOTS.get()
    return CallSlots(max_in_flight) if shared is None else shared(provider, max_in_flight)


class RateLimiter:
    """Limits and retries the calls of one provider, for all trials of a run.

    `revive`, if it is set, is awaited before each retry.
    """

    def __init__(
        self,
        max_in_flight: int = DEFAULT_MAX_IN_FLIGHT,
        policy: RetryPolicy | None = None,
        slots: CallSlots | None = None,
    ) -> None:
        self.revive: Callable[[], Awaitable[object]] | None = None
        self.slots = slots or CallSlots(max_in_flight)
        self._policy = policy or RetryPolicy()
        self._gave_up = False  # whether the last call to end was given up
        self._reached = False  # whether there was ever a connection
        self._unreachable = ""  # why no call is tried any more
        self._answered: deque[tuple[float, int]] = deque(maxlen=_MAX_REMEMBERED)  # time and request size of each

    async def run(self, call: Callable[[], Awaitable[Result]], clock: Clock, size: int = 0) -> Result:
        """Return the result of a call of `size` characters, retrying as the policy allows.

        Waits and failed tries stop the clock, because the subject did not cause them. Raise InfraError when the policy
        allows no more tries, and RequestTooLarge if the provider refused all but answered much smaller calls.
        """
        policy = self._policy
        lost, tries, refused = 0.0, 0, 0
        now = asyncio.get_running_loop().time
        began, seconds = now(), 0.0
        # If a provider is down, do not let every trial wait for the whole time.
        patience = policy.total_seconds * (_LESS_PATIENCE if self._gave_up else 1.0)
        while True:
            if self._unreachable:
                raise InfraError(self._unreachable, stops_subject=True)
            tries += 1
            try:
                async with self.slots.slot(clock):
                    started = now()
                    try:
                        result = await call()
                    finally:
                        seconds = now() - started
                self._gave_up, self._reached = False, True
                self._answered.append((now(), size))
                return result
            except ProviderBusy as busy:
                clock.excuse(seconds)
                self._reached = self._reached or not busy.unreached
                if tries >= _MAX_TRIES_UNREACHED and not self._reached:
                    self._unreachable = f"{busy} (gave up after {_times(tries)} without a connection)"
                    raise InfraError(self._unreachable, stops_subject=True) from busy
                refused += busy.refused
                doubled = policy.first_seconds * 2.0 ** min(tries - 1, 60)
                jitter = random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, guards nothing
                wait = max(min(policy.longest_seconds, doubled) * jitter, busy.retry_after or 0.0)
                lost += seconds + wait
                most = [limit for limit in (busy.most_tries, policy.most_tries) if limit is not None]
                gave_up = f"{busy} (gave up after {_times(tries)})"
                if most and tries >= min(most):
                    raise InfraError(gave_up, permanent=True) from busy
                if lost > patience:
                    if refused == tries >= _MIN_TRIES and (others := self._smaller_answered_since(began, size)):
                        raise RequestTooLarge(
                            f"{busy} ({_times(tries)}, while it answered {others} other requests, all of less than "
                            f"half the {size:,} characters of this one)"
                        ) from busy
                    self._gave_up = True
                    raise InfraError(gave_up, retry_after=busy.retry_after, exhausted=True) from busy
                limit = busy.most_tries if self._reached else _MAX_TRIES_UNREACHED
                left = math.inf if limit is None else wait * (2.0 ** (limit - tries) - 1)
                delay = Delay(str(busy), wait, min(left, patience - lost + wait))
            if not await clock.sleep(delay):
                raise InfraError(f"{delay.reason} (the run was stopped while it waited)", exhausted=True)
            if self.revive is not None:
                with clock.paused():
                    await self.revive()

    def _smaller_answered_since(self, moment: float, size: int) -> int:
        """Return how many calls were answered since then if all were much smaller, or else 0."""
        sizes = [each for when, each in self._answered if when > moment]
        return len(sizes) if len(sizes) >= _MIN_ANSWERED and max(sizes) * _TIMES_LARGER < size else 0


def _times(tries: int) -> str:
    return "1 try" if tries == 1 else f"{tries} tries"

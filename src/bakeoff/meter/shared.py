"""Keep what all trials of a run share: limits, clients, rate limits, prices, and the budget of requests in flight."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol

import httpx2

from bakeoff._kernel.clock import Clock
from bakeoff._kernel.http_server import ServerLimits
from bakeoff.errors import BudgetError
from bakeoff.meter.answer import MAX_TOKENS, characters_in
from bakeoff.meter.upstreams import Upstream
from bakeoff.meter.wire_formats import data_in
from bakeoff.models.clients import http_client
from bakeoff.models.estimate import CHARS_PER_TOKEN
from bakeoff.models.gateway import PriceBook
from bakeoff.models.prices import Price, cost_of
from bakeoff.models.rate_limit import RateLimiter, RetryPolicy, slots_of
from bakeoff.record import Usage
from bakeoff.storage.redaction import Redactor

USUAL_OUTPUT = 4096  # tokens of an answer when the request sets no limit
_BOUNDS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_MAX_CHOICES = 128


@dataclass(frozen=True, slots=True)
class MeterLimits:
    """The most that an agent, or a provider, may ask of the meter of one trial."""

    body_bytes: int = 32 << 20  # of one request
    held_bytes: int = 64 << 20  # of all requests together
    exchanges: int = 24  # at one time
    head_seconds: float = 20.0  # to the end of a request's headers
    body_seconds: float = 60.0  # for a complete request
    taking_seconds: float = 120.0  # for a piece of an answer: a reader that stops must not block the provider's slots
    event_bytes: int = 16 << 20  # of one event of a stream
    connections: int = 64

    @property
    def of_server(self) -> ServerLimits:
        """Return the limits below HTTP. They are wider where the meter itself answers that a limit was reached."""
        return ServerLimits(self.connections, self.head_seconds, self.body_seconds + 5, self.taking_seconds + 5)


class SharedMeter:
    """Clients and rate limits by the address of a provider, and the reservations of all requests in flight."""

    def __init__(self, limits: MeterLimits, policy: RetryPolicy, most_in_flight: int, stack: AsyncExitStack) -> None:
        self.limits = limits
        self.prices = PriceBook()
        self.redactor = Redactor({})
        self.clients: dict[str, httpx2.AsyncClient] = {}
        self.rate_limiters: dict[str, RateLimiter] = {}
        self._policy = policy
        self._most_in_flight = most_in_flight
        self._stack = stack
        self._keys: dict[str, str] = {}
        self._held: dict[object, Usage] = {}
        self._freed = asyncio.Event()

    async def prepare(self, upstream: Upstream) -> None:
        """Open the client of a provider, and keep its key out of everything that is passed on."""
        address = upstream.base_url
        if address not in self.clients:
            self.clients[address] = await self._stack.enter_async_context(http_client(address, None))
            self.rate_limiters[address] = RateLimiter(
                self._most_in_flight, self._policy, slots_of(f"meter/{address}", self._most_in_flight)
            )
        if upstream.key and upstream.key not in self._keys.values():
            self._keys[f"{upstream.key_name}{'_' * len(self._keys)}"] = upstream.key
            self.redactor = Redactor(self._keys)

    @asynccontextmanager
    async def reserve(self, limit: "SpendingLimit | None", most: Usage, excused: Clock | None) -> AsyncIterator[None]:
        """Reserve budget, so that requests that fit one by one do not exceed it together.

        Wait for room; raise BudgetError when the budget is used up. `excused` is paused meanwhile. When the budget runs
        low, requests are made one by one.
        """
        if limit is None:
            yield
            return
        if not self._has_room(limit, most):
            with excused.paused() if excused else nullcontext():
                while not self._has_room(limit, most):
                    await self._freed.wait()
        mine = object()
        self._held[mine] = most
        try:
            yield
        finally:
            del self._held[mine]
            self._freed.set()
            self._freed = asyncio.Event()

    def _has_room(self, limit: "SpendingLimit", most: Usage) -> bool:
        if reason := limit.exceeded():
            raise BudgetError(reason)
        if not self._held:
            return True
        known = all(usage.cost is not None for usage in (most, *self._held.values()))
        total = sum(self._held.values(), start=most)
        return limit.fits(total if known else total.model_copy(update={"cost": None}))


class SpendingLimit(Protocol):
    """The remaining budget of the run."""

    def exceeded(self) -> str | None: ...
    def fits(self, more: Usage) -> bool: ...


def most_of(data: Mapping[str, Any], price: Price | None) -> Usage:
    """Return the most that a request may use: its prompt by its characters, and the longest answer it allows."""
    wanted = [data.get(name) for name in _BOUNDS] + [data_in(data.get("generationConfig")).get("maxOutputTokens")]
    bound = max((count for count in wanted if isinstance(count, int) and 0 < count <= MAX_TOKENS), default=0)
    choices = data.get("n")
    times = choices if isinstance(choices, int) and 0 < choices <= _MAX_CHOICES else 1
    prompt = ceil(characters_in(data) / CHARS_PER_TOKEN)
    usage = Usage(requests=1, input=prompt, output=(bound or USUAL_OUTPUT) * times)
    return usage.model_copy(update={"cost": cost_of(usage, price)})

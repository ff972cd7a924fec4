"""Provide the meter as a resource: prices, clients and rate limits that all trials of a run share."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import httpx2

from bakeoff.errors import UsageError
from bakeoff.meter.app import MeterApp
from bakeoff.meter.listener import listen, sweep
from bakeoff.meter.reservations import Reservations
from bakeoff.meter.trial import TrialMeter
from bakeoff.meter.upstreams import Upstream
from bakeoff.models.clients import http_client
from bakeoff.models.gateway import PriceBook
from bakeoff.models.prices import Price
from bakeoff.models.rate_limit import DEFAULT_MAX_IN_FLIGHT, RateLimiter, RetryPolicy
from bakeoff.protocols import Place, Task
from bakeoff.replay.store import recordings_of
from bakeoff.storage.redaction import Redactor

METER = "meter"
"""The key of the meter among the resources of a trial."""


@dataclass(frozen=True, slots=True)
class Meter:
    """The resource."""

    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    most_in_flight: int = DEFAULT_MAX_IN_FLIGHT  # requests to one provider, over all trials

    @property
    def key(self) -> str:
        return METER

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenMeter"]:
        await asyncio.to_thread(sweep)
        async with AsyncExitStack() as stack:
            yield OpenMeter(self, stack)


class OpenMeter:
    """Opens a meter for each trial. Clients and rate limits are shared by address."""

    def __init__(self, settings: Meter, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._stack = stack
        self._rate_limiters: dict[str, RateLimiter] = {}
        self._clients: dict[str, httpx2.AsyncClient] = {}
        self._keys: dict[str, str] = {}
        self._prices: dict[tuple[str, str], Price | None] = {}
        self._book = PriceBook()
        self._pricing = asyncio.Lock()  # all trials ask at the same time
        self.reservations = Reservations()
        self.redactor = Redactor({})

    @asynccontextmanager
    async def open_trial(
        self, task: Task, upstreams: Iterable[Upstream], *, place: Place | None = None
    ) -> AsyncIterator[TrialMeter]:
        """Open the meter of one trial. When the block ends, all connections are closed and all usage is recorded.

        `place` is where the agent will run: its user may use the socket.
        """
        named = {upstream.name: upstream for upstream in upstreams}
        if not named:
            raise UsageError("a meter needs at least one provider")
        for upstream in named.values():
            await self._prepare(upstream)
        trial = TrialMeter(self, task, named, recordings_of(task.resources))
        async with listen(MeterApp(trial), place.uid if place else None) as listener:
            trial.port, trial.folder = listener.port, listener.folder
            try:
                yield trial
            finally:
                await trial.end_exchanges()

    async def _prepare(self, upstream: Upstream) -> None:
        if upstream.base_url not in self._clients:
            client = http_client(upstream.base_url, None)
            self._clients[upstream.base_url] = await self._stack.enter_async_context(client)
        if upstream.key and upstream.key not in self._keys.values():
            self._keys[f"{upstream.key_name}{'_' * len(self._keys)}"] = upstream.key
            self.redactor = Redactor(self._keys)

    def client(self, upstream: Upstream) -> httpx2.AsyncClient:
        return self._clients[upstream.base_url]

    def rate_limiter(self, upstream: Upstream) -> RateLimiter:
        settings = self._settings
        return self._rate_limiters.setdefault(
            upstream.base_url, RateLimiter(settings.most_in_flight, settings.retry_policy)
        )

    async def price(self, upstream: Upstream, model: str) -> Price | None:
        """Return the price of a model; None where it is unknown. The first lookup may need the network."""
        provider = upstream.provider.prices or upstream.provider.name
        async with self._pricing:
            if (provider, model) not in self._prices:
                self._prices[provider, model] = await asyncio.to_thread(self._book.price, provider, model)
        return self._prices[provider, model]

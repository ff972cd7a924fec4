"""Reserve budget for requests in flight, so that requests that fit one by one do not exceed the budget together."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from math import ceil
from typing import Any, Protocol

from bakeoff._kernel.clock import Clock
from bakeoff.errors import BudgetError
from bakeoff.meter.answer import MOST_TOKENS, characters_in
from bakeoff.meter.wire_formats import data_in
from bakeoff.models.estimate import CHARS_PER_TOKEN
from bakeoff.models.prices import Price, cost_of
from bakeoff.record import Usage

USUAL_OUTPUT = 4096  # tokens of an answer when the request sets no limit
_BOUNDS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_MOST_CHOICES = 128


class SpendingLimit(Protocol):
    """The remaining budget of the run."""

    def exceeded(self) -> str | None: ...
    def fits(self, more: Usage) -> bool: ...


def most_of(data: Mapping[str, Any], price: Price | None) -> Usage:
    """Return the most that a request may use: its prompt by its characters, and the longest answer it allows."""
    wanted = [data.get(name) for name in _BOUNDS] + [data_in(data.get("generationConfig")).get("maxOutputTokens")]
    bound = max((count for count in wanted if isinstance(count, int) and 0 < count <= MOST_TOKENS), default=0)
    choices = data.get("n")
    times = choices if isinstance(choices, int) and 0 < choices <= _MOST_CHOICES else 1
    usage = Usage(
        requests=1,
        input=ceil(characters_in(data) / CHARS_PER_TOKEN),
        output=(bound or USUAL_OUTPUT) * times,
    )
    return usage.model_copy(update={"cost": cost_of(usage, price)})


class Reservations:
    """The reservations of all trials of a run. When the budget runs low, requests are made one by one."""

    def __init__(self) -> None:
        self._held: dict[object, Usage] = {}
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def hold(self, limit: SpendingLimit | None, most: Usage, excused: Clock | None) -> AsyncIterator[None]:
        """Wait for room in the budget; raise BudgetError when it is used up. `excused` is paused meanwhile."""
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

    def _has_room(self, limit: SpendingLimit, most: Usage) -> bool:
        if reason := limit.exceeded():
            raise BudgetError(reason)
        if not self._held:
            return True
        known = all(usage.cost is not None for usage in (most, *self._held.values()))
        total = sum(self._held.values(), start=most)
        return limit.fits(total if known else total.model_copy(update={"cost": None}))

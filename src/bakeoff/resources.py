"""What a run shares: each resource is opened once, and closed by the task that opened it."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from bakeoff.protocols import Resource


@asynccontextmanager
async def open_resources(wanted: Iterable[Resource]) -> AsyncIterator[Mapping[str, Any]]:
    """Open every distinct resource in order; close them in reverse, also when a later one fails to open.

    Enter and leave this in one task: many clients tie their connection to the task that opened it.
    """
    opened: dict[str, Any] = {}
    async with AsyncExitStack() as stack:
        for resource in wanted:
            if resource.key not in opened:
                opened[resource.key] = await stack.enter_async_context(resource.open())
        yield opened

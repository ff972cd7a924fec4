"""Wait for two things at a time."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

First = TypeVar("First")
Second = TypeVar("Second")


async def both(first: Coroutine[Any, Any, First], second: Coroutine[Any, Any, Second]) -> tuple[First, Second]:
    """Return both results. If one raises, cancel the other and wait for its end, so that nothing runs on unnoticed."""
    tasks = asyncio.ensure_future(first), asyncio.ensure_future(second)
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise

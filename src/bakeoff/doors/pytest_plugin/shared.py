"""What scorers need opened (a judge's provider, an embedded model), once for a session, on its loop."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from bakeoff.engine.resources import Opened, open_resources
from bakeoff.errors import BakeoffError
from bakeoff.protocols import Resource

_Request = tuple[Sequence[Resource], "asyncio.Future[None]"]
_CLOSING_SECONDS = 5.0


class SharedResources:
    """Opened by whichever suite asks first, by one task, which closes them when the session's loop ends."""

    def __init__(self) -> None:
        self._opened: dict[str, Any] = {}
        self._failed: dict[str, str] = {}
        self._requests: asyncio.Queue[_Request | None] | None = None
        self._keeper: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def lent(self, wanted: Iterable[Resource], given: Mapping[str, Any]) -> AsyncIterator[Opened]:
        """On the session's loop: what is wanted, beside what is `given`; it stays open for others."""
        missing = [each for each in wanted if each.key not in self._opened and each.key not in self._failed]
        if missing:
            await self._open(missing)
        yield Opened({**self._opened, **given}, self._failed)

    async def close(self) -> None:
        """Close what is open, within a few seconds."""
        if self._requests is not None and self._keeper is not None:
            self._requests.put_nowait(None)
            await asyncio.wait([self._keeper], timeout=_CLOSING_SECONDS)

    @property
    def used(self) -> bool:
        return self._keeper is not None

    async def _open(self, missing: Sequence[Resource]) -> None:
        if self._requests is None:
            self._requests = asyncio.Queue()
            self._keeper = asyncio.get_running_loop().create_task(self._keep(self._requests))
        done = asyncio.get_running_loop().create_future()
        self._requests.put_nowait((missing, done))
        await done

    async def _keep(self, requests: "asyncio.Queue[_Request | None]") -> None:
        """The one task that opens, and so may close."""
        async with AsyncExitStack() as stack:
            while (request := await requests.get()) is not None:
                missing, done = request
                try:
                    await self._add(stack, missing)
                    _settle(done, None)
                except BakeoffError as error:
                    _settle(done, error)
                finally:
                    done.cancel()  # nobody may wait for ever; what is settled stays so

    async def _add(self, stack: AsyncExitStack, missing: Sequence[Resource]) -> None:
        known = {**self._opened, **self._failed}
        more = await stack.enter_async_context(open_resources(each for each in missing if each.key not in known))
        self._opened |= more.opened
        self._failed |= more.failed


def _settle(done: "asyncio.Future[None]", error: BakeoffError | None) -> None:
    if done.done():  # whoever asked has been cancelled
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)

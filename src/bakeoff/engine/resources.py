"""Open each shared resource once, and close it in the task that opened it. Choose the sandbox."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

from bakeoff.errors import InfraError
from bakeoff.options import RunOptions
from bakeoff.plan import HIDDEN, Plan
from bakeoff.protocols import Resource, Sandbox

_CLOSING_SECONDS = 5.0


@dataclass(frozen=True, slots=True, eq=False)  # compare by content, as mappings do
class OpenResources(Mapping[str, Any]):
    """Maps keys to open resources. Getting a resource that failed to open raises `InfraError`."""

    opened: Mapping[str, Any]
    failed: Mapping[str, str]

    def __getitem__(self, key: str) -> Any:
        if key in self.failed:
            # Raise a new error each time, so that tracebacks of trials do not mix.
            raise InfraError(self.failed[key], permanent=True)
        return self.opened[key]

    def __iter__(self) -> Iterator[str]:
        yield from self.opened
        yield from self.failed

    def __len__(self) -> int:
        return len(self.opened) + len(self.failed)


@asynccontextmanager
async def open_resources(
    wanted: Iterable[Resource], given: Mapping[str, Any] | None = None
) -> AsyncIterator[OpenResources]:
    """Open every distinct resource in order, and close them in reverse order at the end.

    Enter and leave this in the same task, because many clients bind connections to a task.

    Args:
        wanted: the resources to open; resources with the same key are opened once.
        given: resources that are already open, by key.
    """
    opened: dict[str, Any] = dict(given or {})
    failed: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        for resource in wanted:
            key = resource.key
            if key in opened or key in failed:
                continue
            try:
                opened[key] = await stack.enter_async_context(resource.open())
            except (InfraError, OSError) as error:
                failed[key] = str(error)
        yield OpenResources(opened, failed)


class SharedResources:
    """Resources that stay open for several pools of one event loop.

    One task opens each resource on first use, and closes all of them in `close`.
    """

    def __init__(self) -> None:
        self._opened: dict[str, Any] = {}
        self._failed: dict[str, str] = {}
        self._requests: asyncio.Queue[tuple[Sequence[Resource], asyncio.Future[None]] | None] = asyncio.Queue()
        self._opener: asyncio.Task[None] | None = None

    async def open(self, wanted: Iterable[Resource], given: Mapping[str, Any]) -> OpenResources:
        """Return the wanted and the given resources. Open those that are not open yet."""
        missing = [each for each in wanted if each.key not in self._opened and each.key not in self._failed]
        if missing:
            if self._opener is None:
                self._opener = asyncio.create_task(self._open_requested())
            done = asyncio.get_running_loop().create_future()
            self._requests.put_nowait((missing, done))
            await done
        return OpenResources({**self._opened, **given}, self._failed)

    async def close(self) -> None:
        """Close all resources, within a few seconds."""
        if self._opener is not None:
            self._requests.put_nowait(None)
            await asyncio.wait([self._opener], timeout=_CLOSING_SECONDS)

    @property
    def used(self) -> bool:
        """Return True if any resource was asked for."""
        return self._opener is not None

    @classmethod
    @asynccontextmanager
    async def on_demand(cls) -> AsyncIterator[Self]:
        """Yield an object that opens more resources during a run."""
        shared = cls()
        try:
            yield shared
        finally:
            await shared.close()

    async def _open_requested(self) -> None:
        async with AsyncExitStack() as stack:
            while (request := await self._requests.get()) is not None:
                wanted, done = request
                known = {**self._opened, **self._failed}
                missing = [each for each in wanted if each.key not in known]
                try:
                    more = await stack.enter_async_context(open_resources(missing))
                except Exception as error:  # noqa: BLE001 - for the caller; other callers still need this task
                    if not done.done():  # the waiting task may have been cancelled
                        done.set_exception(error)
                else:
                    self._opened |= more.opened
                    self._failed |= more.failed
                    if not done.done():
                        done.set_result(None)
                finally:
                    done.cancel()  # without a result, the caller would wait forever


def sandbox_of(options: RunOptions, plan: Plan | None = None) -> Callable[[], Sandbox]:
    """Return a function that chooses the sandbox once. A sandbox named by the user must work.

    Args:
        options: name the sandbox and the folder of results, which commands must not see.
        plan: names more folders to hide.
    """
    from bakeoff.sandbox import choose_sandbox  # not available everywhere, and rarely needed in pytest

    named = plan.settings.get(HIDDEN) if plan else None
    more = [Path(path) for path in named if isinstance(path, str)] if isinstance(named, list) else []
    hidden = tuple(path.resolve() for path in (options.results, options.folder, *more) if path)
    choose = cache(lambda: choose_sandbox(options.sandbox, hidden=hidden))
    if options.sandbox != "auto":
        choose()
    return choose

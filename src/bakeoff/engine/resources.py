"""What a run shares: each resource is opened once, and closed by the task that opened it."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bakeoff.errors import InfraError
from bakeoff.protocols import Resource


@dataclass(frozen=True, slots=True, eq=False)  # equal to any mapping of the same, as mappings are
class Opened(Mapping[str, Any]):
    """Resources by key. One that did not open is the `InfraError` of whoever asks for it, and of nobody else."""

    opened: Mapping[str, Any]
    failed: Mapping[str, str]

    def __getitem__(self, key: str) -> Any:
        if key in self.failed:
            # Made anew each time: trials that fail together must not add to one another's traceback.
            raise InfraError(self.failed[key], permanent=True)
        return self.opened[key]

    def __iter__(self) -> Iterator[str]:
        yield from self.opened
        yield from self.failed

    def __len__(self) -> int:
        return len(self.opened) + len(self.failed)


@asynccontextmanager
async def open_resources(wanted: Iterable[Resource], given: Mapping[str, Any] | None = None) -> AsyncIterator[Opened]:
    """Open every distinct resource in order, beside what is `given`; close them in reverse, whatever happens.

    Enter and leave this in one task: many clients tie their connection to the task that opened it.
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
        yield Opened(opened, failed)

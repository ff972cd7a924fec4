"""Keep embedded models loaded between the cycles of a watch."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from bakeoff.errors import BakeoffError
from bakeoff.models.embedded import EmbeddedServer
from bakeoff.models.providers import parse_model_name


@dataclass(slots=True)
class WarmModels:
    """Keep the servers of embedded models running between cycles."""

    runner: asyncio.Runner
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    kept: set[str] = field(default_factory=set)

    def keep(self, names: Sequence[str]) -> None:
        for name in map(parse_model_name, names):
            if name.provider == "local" and name.model not in self.kept:
                self.kept.add(name.model)
                with suppress(BakeoffError):  # the cycle tells
                    self.runner.run(self.stack.enter_async_context(EmbeddedServer(name.model).open()))


@contextmanager
def warm_models(runner: asyncio.Runner) -> Iterator[WarmModels]:
    warm = WarmModels(runner)
    try:
        yield warm
    finally:
        runner.run(warm.stack.aclose())

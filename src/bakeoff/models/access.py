"""A provider's models as a resource that a run opens once: one client, one gate, shared by all trials."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property

import httpx2
from pydantic_ai.exceptions import UsageExtractionFailedWarning
from pydantic_ai.models import Model

from bakeoff._kernel.model import fingerprint
from bakeoff.errors import UsageError
from bakeoff.models.gate import USUAL_MOST, Gate, Patience
from bakeoff.models.gateway import PriceBook
from bakeoff.models.in_process import scripted_model, simple_model
from bakeoff.models.names import ModelName
from bakeoff.models.prices import Price
from bakeoff.models.providers import Provider, ProviderSettings, SimpleProvider, made_by
from bakeoff.models.wire import Endpoint, build_model, http_client


class OpenProvider:
    """A provider that can be asked."""

    def __init__(self, provider: Provider, gate: Gate, build: Callable[[str], Model]) -> None:
        self.gate = gate
        self._price_name = provider.prices or provider.name
        self._build = build
        self._models: dict[str, Model] = {}
        self._prices: dict[str, Price | None] = {}
        self._book = PriceBook()
        self._pricing = asyncio.Lock()  # all trials want to know at the same time

    def rebuild(self, build: Callable[[str], Model]) -> None:
        """Ask at another place from now on."""
        self._build = build
        self._models.clear()

    def model(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = self._build(name)
        return self._models[name]

    def knows_price(self, name: str) -> bool:
        """Whether `price` has its answer already."""
        return name in self._prices

    async def price(self, name: str) -> Price | None:
        """None where nobody knows a price. The first time may need the network, so it waits in a thread."""
        if name in self._prices:
            return self._prices[name]
        async with self._pricing:
            if name not in self._prices:
                self._prices[name] = await asyncio.to_thread(self._book.price, self._price_name, name)
        return self._prices[name]


@contextmanager
def _quietly() -> Iterator[None]:
    """A count that makes no sense is noted in the record, and an old model is asked on purpose: no need to warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UsageExtractionFailedWarning)
        warnings.filterwarnings("ignore", "The model .* is deprecated", DeprecationWarning)
        warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
        yield


@dataclass(frozen=True)  # without slots: what is asked for in every call is worked out once
class ProviderAccess:
    """The resource. Models of one provider share it; each embedded model has a server, and so an access, of its own.

    So does whoever asks for another address or another patience under the same name.
    """

    name: ModelName
    provider: Provider
    environment: Mapping[str, str] = field(repr=False)
    idle_seconds: float | None = None
    most_in_flight: int = USUAL_MOST
    patience: Patience = field(default_factory=Patience)

    @cached_property
    def endpoint(self) -> str:
        """Which address is meant, without telling it: there may be a password inside."""
        url = self.provider.url(self.environment)
        return fingerprint(url)[:8] if url else ""

    @cached_property
    def key(self) -> str:
        provider = self.provider
        own = self.name.model if provider.wire == "embedded" else ""
        # By identity: two functions may have one name, and the key is for this process only.
        made = (id(provider.factory), dict(provider.options))
        reached = fingerprint(provider.url(self.environment), provider.keys, made)
        manner = fingerprint(self.idle_seconds, self.most_in_flight, asdict(self.patience))
        return f"provider:{provider.name}/{own}/{reached[:8]}/{manner[:8]}"

    def open(self) -> AbstractAsyncContextManager[OpenProvider]:
        match self.provider.wire:
            case "embedded":
                return self._open_embedded()
            case "scripted" | "custom":
                return self._open_in_process()
            case _:
                return self._open_remote()

    def _gate(self) -> Gate:
        return Gate(self.most_in_flight, self.patience)

    @asynccontextmanager
    async def _open_remote(self) -> AsyncIterator[OpenProvider]:
        endpoint = Endpoint(self.provider.url(self.environment), self.provider.key(self.environment))
        with _quietly():
            async with http_client(endpoint.base_url, self.idle_seconds) as client:
                yield OpenProvider(self.provider, self._gate(), self._builder(endpoint, client))

    @asynccontextmanager
    async def _open_embedded(self) -> AsyncIterator[OpenProvider]:
        from bakeoff.models.embedded.server import EmbeddedServer

        embedded = EmbeddedServer(self.name.model)
        async with embedded.open() as server, http_client(server.base_url, self.idle_seconds) as client:

            async def revive() -> None:
                again = await embedded.ensure_alive()  # its port may have been taken meanwhile
                opened.rebuild(self._builder(Endpoint(again.base_url, again.api_key), client))

            gate = Gate(self.most_in_flight, self.patience, revive=revive)
            opened = OpenProvider(self.provider, gate, self._builder(Endpoint(server.base_url, server.api_key), client))
            yield opened

    @asynccontextmanager
    async def _open_in_process(self) -> AsyncIterator[OpenProvider]:
        yield OpenProvider(self.provider, self._gate(), self._in_process_model)

    def _builder(self, endpoint: Endpoint, client: httpx2.AsyncClient) -> Callable[[str], Model]:
        return lambda model: build_model(self.provider, model, endpoint, client)

    def _in_process_model(self, model: str) -> Model:
        if self.provider.wire == "scripted":
            return scripted_model(model)
        assert self.provider.factory is not None, "a custom provider is made with its factory"
        made = made_by(
            self.provider.factory,
            ProviderSettings(
                model, self.provider.key(self.environment), self.provider.url(self.environment), self.provider.options
            ),
        )
        if isinstance(made, Model):
            return made
        if isinstance(made, SimpleProvider):
            return simple_model(made, model)
        raise UsageError(
            f"provider {self.provider.name!r} made a {type(made).__name__}: it needs `create_message(system, message)`"
        )

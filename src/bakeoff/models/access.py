"""Check before a run that a provider's model can be called, and open its client or server."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from functools import cached_property

import httpx2
from pydantic_ai.exceptions import UsageExtractionFailedWarning
from pydantic_ai.models import Model

from bakeoff._kernel.clock import Clock
from bakeoff._kernel.model import fingerprint
from bakeoff.errors import InfraError, UsageError
from bakeoff.models.clients import Endpoint, build_model, client_problem, http_client, inferred_model
from bakeoff.models.embedded.weights import check_name
from bakeoff.models.gateway import PriceBook, gateway_base, kept_models, refresh_models
from bakeoff.models.in_process import read_script, scripted_model, simple_model
from bakeoff.models.prices import Price
from bakeoff.models.providers import GATEWAY, ModelName, Provider, ProviderSettings, SimpleProvider, made_by
from bakeoff.models.rate_limit import DEFAULT_MAX_IN_FLIGHT, RateLimiter, RetryPolicy, slots_of


def what_is_missing(name: ModelName, provider: Provider, environment: Mapping[str, str]) -> list[str]:
    """Return a sentence on why the model cannot be called; empty if it can.

    The reason may be a missing key, address or weights file, or an unknown name.
    """
    try:
        if provider.wire == "embedded":
            check_name(name.model)
        elif provider.wire == "scripted":
            read_script(name.model)
        elif provider.wire == "pydantic-ai":
            inferred_model(provider, name.model, Endpoint(provider.url(environment), provider.key(environment)))
        problem = _key_problem(provider, environment) or _address_problem(provider, environment)
        problem = problem or _unknown_model(name, provider, environment)
    except UsageError as error:
        problem = str(error)
    return [f"model {str(name)!r}: {problem}"] if problem else []


def _key_problem(provider: Provider, environment: Mapping[str, str]) -> str | None:
    for name in provider.keys:
        if key := environment.get(name, "").strip():
            if key.isascii() and key.isprintable():
                return None
            return f"the key in {name} contains a line break or a character outside ASCII: remove it"
    if provider.keys and provider.key_required:
        return f"no key: set {' or '.join(provider.keys)} in the environment, in .env or in .env.local"
    return None


def _address_problem(provider: Provider, environment: Mapping[str, str]) -> str | None:
    if provider.wire not in ("openai", "responses", "anthropic", "google"):
        return None
    url = provider.url(environment)
    if url is None:
        return f"no address: set {provider.base_url_variable}"
    if not url.startswith(("http://", "https://")):
        return f"its address {url!r} does not begin with http:// or https://"
    try:
        host = httpx2.URL(url).host
    except httpx2.InvalidURL as error:
        return f"its address {url!r} cannot be read: {error}"
    return client_problem(url) if host else f"its address {url!r} names no host"


def _unknown_model(name: ModelName, provider: Provider, environment: Mapping[str, str]) -> str | None:
    """Return a problem if the gateway's list lacks the model; None if there is no list.

    If the stored list lacks the model, fetch a new one.
    """
    if name.provider != GATEWAY or provider.wire == "custom":
        return None
    try:
        base = gateway_base(environment)
        kept = kept_models(base)
        if kept is not None and kept.find(name.model):
            return None
        known = [model.id for model in refresh_models(base).models]
    except InfraError:
        return None  # unknown without the list
    if name.model in known:
        return None
    near = get_close_matches(name.model, known, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "`bakeoff models list` shows all models"
    return f"the gateway has no such model; {hint}"


class OpenProvider:
    """A provider that is ready to be called."""

    def __init__(
        self, provider: Provider, limiter: RateLimiter, build: Callable[[str], Model], *, first_alone: bool = False
    ) -> None:
        self.limiter = limiter
        self.keys = provider.keys
        self._first_alone = first_alone
        self._first_ended: dict[str, asyncio.Event] = {}  # by the name of the model
        self._refused: dict[str, str] = {}  # reasons, by the name of the model
        self._price_name = provider.price_name
        self._prices = PriceBook()
        self._build = build
        self._models: dict[str, Model] = {}

    def rebuild(self, build: Callable[[str], Model]) -> None:
        """Replace the function that builds models, after a change of address."""
        self._build = build
        self._models.clear()

    def model(self, name: str) -> Model:
        """Return the model. It is built on the first call."""
        if name not in self._models:
            self._models[name] = self._build(name)
        return self._models[name]

    @asynccontextmanager
    async def in_order(self, name: str, clock: Clock) -> AsyncIterator[None]:
        """Let a model's first call end before others begin, to try a wrong key only once."""
        if not self._first_alone:
            yield
            return
        first = name not in self._first_ended
        ended = self._first_ended.setdefault(name, asyncio.Event())
        if not first and not ended.is_set():
            with clock.paused():
                await ended.wait()
        if name in self._refused:
            raise InfraError(self._refused[name], stops_subject=True)
        try:
            yield
        except InfraError as error:
            if error.stops_subject:
                self._refused[name] = str(error)
            raise
        finally:
            ended.set()

    async def price(self, name: str, clock: Clock) -> Price | None:
        """Return the model's price, or None. The clock is paused while prices are fetched."""
        return await self._prices.lookup(self._price_name, name, clock)


@dataclass(frozen=True)  # no slots, because cached properties need a dict
class ProviderAccess:
    """The resource of a provider. Subjects with the same `key` share it.

    Each embedded model, address and retry policy has its own resource.
    """

    name: ModelName
    provider: Provider
    environment: Mapping[str, str] = field(repr=False)
    idle_seconds: float | None = None
    most_in_flight: int = DEFAULT_MAX_IN_FLIGHT
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    first_alone: bool = False  # wait for each model's first call before the others

    def lacks(self) -> list[str]:
        """Return why the model cannot be called yet; empty if it can."""
        return what_is_missing(self.name, self.provider, self.environment)

    def secrets(self) -> dict[str, str]:
        """Return the provider's keys, by the names of their variables."""
        return {name: self.environment[name].strip() for name in self.provider.keys if self.environment.get(name)}

    @cached_property
    def endpoint(self) -> str:
        """Return a short hash of the address, which may contain a password."""
        url = self.provider.url(self.environment)
        return fingerprint(url)[:8] if url else ""

    @cached_property
    def key(self) -> str:
        """Return the key of the resource in this process."""
        provider = self.provider
        model = self.name.model if provider.wire == "embedded" else ""
        made = (id(provider.factory), dict(provider.options))  # by identity, since two functions may have one name
        address = fingerprint(provider.url(self.environment), provider.keys, made)
        limits = fingerprint(self.idle_seconds, self.most_in_flight, asdict(self.retry_policy), self.first_alone)
        return f"provider:{provider.name}/{model}/{address[:8]}/{limits[:8]}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[OpenProvider]:
        """Open the provider's client or server, and close it afterwards."""
        match self.provider.wire:
            case "embedded":
                async with self._open_embedded() as opened:
                    yield opened
            case "scripted" | "custom" | "pydantic-ai":
                yield OpenProvider(self.provider, self._limiter(), self._in_process_model)
            case _:
                endpoint = Endpoint(self.provider.url(self.environment), self.provider.key(self.environment))
                with warnings.catch_warnings():
                    # The record notes invalid counts, and users choose old models on purpose.
                    warnings.simplefilter("ignore", UsageExtractionFailedWarning)
                    warnings.filterwarnings("ignore", "The model .* is deprecated", DeprecationWarning)
                    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
                    async with http_client(endpoint.base_url, self.idle_seconds) as client:
                        build = self._builder(endpoint, client)
                        yield OpenProvider(self.provider, self._limiter(), build, first_alone=self.first_alone)

    def _limiter(self) -> RateLimiter:
        name = f"{self.provider.name}/{self.endpoint}/{self.most_in_flight}"
        return RateLimiter(self.most_in_flight, self.retry_policy, slots_of(name, self.most_in_flight))

    @asynccontextmanager
    async def _open_embedded(self) -> AsyncIterator[OpenProvider]:
        from bakeoff.models.embedded.server import EmbeddedServer

        embedded = EmbeddedServer(self.name.model)
        limiter = RateLimiter(self.most_in_flight, self.retry_policy)  # each process has its own server
        async with embedded.open() as server, http_client(server.base_url, self.idle_seconds) as client:
            build = self._builder(Endpoint(server.base_url, server.api_key), client)
            opened = OpenProvider(self.provider, limiter, build)

            async def revive() -> None:
                again = await embedded.ensure_alive()  # its port may have changed
                opened.rebuild(self._builder(Endpoint(again.base_url, again.api_key), client))

            limiter.revive = revive
            yield opened

    def _builder(self, endpoint: Endpoint, client: httpx2.AsyncClient) -> Callable[[str], Model]:
        return lambda model: build_model(self.provider, model, endpoint, client)

    def _in_process_model(self, model: str) -> Model:
        provider, environment = self.provider, self.environment
        if provider.wire == "pydantic-ai":
            return inferred_model(provider, model, Endpoint(provider.url(environment), provider.key(environment)))
        if provider.factory is None:
            return scripted_model(model)
        settings = ProviderSettings(model, provider.key(environment), provider.url(environment), provider.options)
        made = made_by(provider.factory, settings)
        if isinstance(made, Model):
            return made
        if isinstance(made, SimpleProvider):
            return simple_model(made, model)
        raise UsageError(
            f"provider {provider.name!r} made a {type(made).__name__}: it needs `create_message(system, message)`"
        )

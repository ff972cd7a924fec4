"""The Vercel AI Gateway's list of models and prices: fetch it, cache it, look up entries.

The list is public, so no key is sent.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Annotated

import httpx2
from pydantic import AliasChoices, AwareDatetime, ConfigDict, Field, JsonValue, ValidationError

from bakeoff._kernel.clock import Clock
from bakeoff._kernel.environment import cache_folder, read_environment
from bakeoff._kernel.files import read_file, write_atomically
from bakeoff._kernel.model import FrozenModel, fingerprint, first_problem
from bakeoff._version import __version__
from bakeoff.errors import InfraError, UsageError
from bakeoff.models.prices import GENAI, Price, parse_gateway_pricing, price_from_genai
from bakeoff.models.providers import GATEWAY

BASE_URL = "https://ai-gateway.vercel.sh"
BASE_URL_VARIABLE = "AI_GATEWAY_BASE_URL"
LOCAL = "local"  # the embedded model, which costs nothing
FRESH = timedelta(days=1)

_MAX_BYTES = 16 * 1024**2  # the real list has less than one MiB
_READ_SECONDS = 10.0
TOTAL_SECONDS = 30.0

Say = Callable[[str], None]


def _say_nothing(_: str) -> None: ...


class GatewayModel(FrozenModel):
    """One model, with the field names of the REST API or of the AI SDK.

    Prices are parsed when needed, so that one invalid price does not spoil the list.
    """

    model_config = ConfigDict(extra="ignore")

    id: Annotated[str, Field(min_length=1, max_length=200)]
    kind: str | None = Field(default=None, validation_alias=AliasChoices("kind", "type", "modelType"))
    context: int | None = Field(
        default=None, validation_alias=AliasChoices("context", "context_window", "contextWindow")
    )
    pricing: JsonValue = None


class GatewayModels(FrozenModel):
    """The list of models at one time."""

    # Keep NaN, so that it is reported as an invalid price.
    model_config = ConfigDict(extra="ignore", ser_json_inf_nan="strings")

    base: str = ""
    fetched: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))
    models: tuple[GatewayModel, ...] = Field(min_length=1, validation_alias=AliasChoices("data", "models"))

    @property
    def date(self) -> date:
        """Return the UTC date of the list."""
        return self.fetched.astimezone(UTC).date()

    @property
    def is_fresh(self) -> bool:
        """Return True if the list is less than a day old, and not from the future."""
        return timedelta(0) <= datetime.now(UTC) - self.fetched < FRESH

    def find(self, model_id: str) -> GatewayModel | None:
        """Return the model with this id, or None."""
        return next((model for model in self.models if model.id == model_id), None)

    def price(self, model_id: str) -> Price | None:
        """Return the model's price, or None if unlisted. Raise UsageError if it is invalid."""
        model = self.find(model_id)
        return None if model is None else parse_gateway_pricing(model.id, model.pricing, date=self.date)


def gateway_base(environment: Mapping[str, str] | None = None) -> str:
    """Return the gateway's address without the `/v1` of its API.

    `environment` may name another address; None means the process and its `.env` files. Raise
    `UsageError` if the address is not a web address, or contains a password.
    """
    given = (read_environment() if environment is None else environment).get(BASE_URL_VARIABLE) or BASE_URL
    base = given.rstrip("/").removesuffix("/v1")
    try:
        url = httpx2.URL(base)
    except httpx2.InvalidURL as error:
        raise UsageError(f"{BASE_URL_VARIABLE}={given!r} is not an address: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(f"{BASE_URL_VARIABLE}={given!r} does not begin with https://, as {BASE_URL} does")
    if url.userinfo:
        raise UsageError(
            f"{BASE_URL_VARIABLE} contains a password, which would end up in messages and files: remove it"
        )
    return base


def gateway_models(base: str | None = None, say: Say = _say_nothing) -> GatewayModels:
    """Return the stored list if it is fresh or we are offline, or else a new list."""
    base = base or gateway_base()
    kept = kept_models(base)
    if kept is not None and kept.is_fresh:
        return kept
    try:
        return refresh_models(base, say)
    except InfraError as error:
        if kept is None:
            raise
        say(f"{error}\nusing the gateway's models and prices of {kept.date}")
        return kept


def refresh_models(base: str | None = None, say: Say = _say_nothing) -> GatewayModels:
    """Fetch the list and store it. An unusable answer leaves the stored list unchanged."""
    base = base or gateway_base()
    models = fetch_models(base)
    try:
        write_atomically(_file(base), models.model_dump_json().encode())
    except OSError as error:
        say(f"the gateway's list of models cannot be stored in {_file(base).parent}: {error.strerror or error}")
    return models


def kept_models(base: str | None = None) -> GatewayModels | None:
    """Return the stored list; None if it is missing or damaged."""
    with suppress(OSError, ValidationError):
        return GatewayModels.model_validate_json(read_file(_file(base or gateway_base())))
    return None


def _file(base: str) -> Path:
    return cache_folder() / "gateway" / f"models-{fingerprint(base)[:12]}.json"


def fetch_models(base: str, seconds: float = TOTAL_SECONDS) -> GatewayModels:
    """Fetch the list. Raise InfraError if the answer is not a list of models."""
    url = f"{base}/v1/models"
    try:
        client = httpx2.Client(timeout=_READ_SECONDS, headers={"User-Agent": f"bakeoff/{__version__}"})
    except (ValueError, ImportError, OSError, httpx2.InvalidURL) as error:
        raise UsageError(f"the proxy or certificate settings of the environment cannot be used: {error}") from error
    give_up = time.monotonic() + seconds
    body = bytearray()
    try:
        with client, client.stream("GET", url) as response:
            if response.status_code != 200:
                raise InfraError(f"{url} answered {response.status_code} {response.reason_phrase!r:.60}")
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > _MAX_BYTES:
                    raise InfraError(f"{url} answered with more than {_MAX_BYTES // 1024**2} MiB")
                # The client limits only single reads, which a slow server would never exceed.
                if time.monotonic() > give_up:
                    raise InfraError(f"{url} did not finish its answer in {seconds:g} seconds")
        now = {"base": base, "fetched": datetime.now(UTC)}
        return GatewayModels.model_validate_json(bytes(body)).model_copy(update=now)
    except (httpx2.HTTPError, UnicodeError, OverflowError) as error:  # the last two for an impossible host or port
        raise InfraError(f"{url} cannot be read: {type(error).__name__}: {error}") from error
    except ValidationError as error:
        raise InfraError(f"{url} did not answer with a list of models: {first_problem(error)}") from error


class PriceBook:
    """Looks up prices for one run. The gateway is asked at most once, and only for its own models.

    `price` may wait for the network: on an event loop, use `lookup`.
    """

    def __init__(self, *, base: str | None = None, say: Say = _say_nothing) -> None:
        self._base, self._say = base, say
        self._known: dict[tuple[str, str], Price | None] = {}
        self._lock = asyncio.Lock()  # because all trials ask for prices at once

    @cached_property
    def _gateway(self) -> GatewayModels | None:
        try:
            return gateway_models(self._base, self._say)
        except InfraError as error:
            self._say(f"{error}\nusing the prices of {GENAI} instead")
            return None

    async def lookup(self, provider: str, model: str, clock: Clock) -> Price | None:
        """Return the price, or None if unknown. The clock is paused while prices are fetched."""
        if (provider, model) not in self._known:
            with clock.paused():
                async with self._lock:
                    if (provider, model) not in self._known:
                        self._known[provider, model] = await asyncio.to_thread(self.price, provider, model)
        return self._known[provider, model]

    def price(self, provider: str, model: str, when: datetime | None = None) -> Price | None:
        """Return the price, or None if it is unknown."""
        return known_price(self._gateway if provider == GATEWAY else None, provider, model, when)


def known_price(gateway: GatewayModels | None, provider: str, model: str, when: datetime | None = None) -> Price | None:
    """Return a price without using the network, or None if it is unknown.

    If the gateway lists no price for a model, use its maker's, since the gateway adds nothing.
    """
    if provider == LOCAL:
        return Price(input=Decimal(0), output=Decimal(0), key=model, source=LOCAL)
    if provider != GATEWAY:
        return price_from_genai(provider, model, when)
    maker, _, name = model.partition("/")
    return (gateway.price(model) if gateway else None) or price_from_genai(maker, name, when)

"""The Vercel AI Gateway's list of models with their prices: fetched, kept on disk with its date, and looked up.

The list is public, so no key is sent for it.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Annotated

import httpx2
from pydantic import AliasChoices, AwareDatetime, ConfigDict, Field, JsonValue, ValidationError

from bakeoff._kernel.cache import cache_folder
from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._version import __version__
from bakeoff.errors import InfraError, UsageError
from bakeoff.models.names import GATEWAY
from bakeoff.models.prices import GENAI, Price, parse_gateway_pricing, price_from_genai

BASE_URL = "https://ai-gateway.vercel.sh"
BASE_URL_VARIABLE = "AI_GATEWAY_BASE_URL"
LOCAL = "local"  # runs on this machine, and nobody sends a bill
FRESH = timedelta(days=1)

_LARGEST = 16 * 1024**2  # the real list is under one
_SILENCE_SECONDS = 10.0
TOTAL_SECONDS = 30.0

Say = Callable[[str], None]


class GatewayModel(FrozenModel):
    """One model, in the words of the REST API or of the AI SDK. The price is parsed only when it is asked for, so that
    one model with a senseless price does not take the others' away."""

    model_config = ConfigDict(extra="ignore")

    id: Annotated[str, Field(min_length=1, max_length=200)]
    kind: str | None = Field(default=None, validation_alias=AliasChoices("kind", "type", "modelType"))
    context: int | None = Field(
        default=None, validation_alias=AliasChoices("context", "context_window", "contextWindow")
    )
    pricing: JsonValue = None


class _Answer(FrozenModel):
    model_config = ConfigDict(extra="ignore")

    models: tuple[GatewayModel, ...] = Field(min_length=1, validation_alias=AliasChoices("data", "models"))


class GatewayModels(FrozenModel):
    """The list as it was at one time."""

    model_config = ConfigDict(ser_json_inf_nan="strings")  # a price of NaN must not come back as no price

    base: str
    fetched: AwareDatetime
    models: tuple[GatewayModel, ...]

    @property
    def date(self) -> date:
        return self.fetched.astimezone(UTC).date()

    @property
    def is_fresh(self) -> bool:
        # A date in the future is a wrong clock's, and no reason never to ask again.
        return timedelta(0) <= datetime.now(UTC) - self.fetched < FRESH

    def find(self, model_id: str) -> GatewayModel | None:
        return next((model for model in self.models if model.id == model_id), None)

    def price(self, model_id: str) -> Price | None:
        """None where the model or its price is not listed; a senseless price is an error that names it."""
        model = self.find(model_id)
        return None if model is None else parse_gateway_pricing(model.id, model.pricing, date=self.date)


def gateway_base(environment: Mapping[str, str] | None = None) -> str:
    """Where the gateway is, without the `/v1` that its API's addresses begin with."""
    given = (read_environment() if environment is None else environment).get(BASE_URL_VARIABLE) or BASE_URL
    base = given.rstrip("/").removesuffix("/v1")
    try:
        url = httpx2.URL(base)
    except httpx2.InvalidURL as error:
        raise UsageError(f"{BASE_URL_VARIABLE}={given!r} is not an address: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(f"{BASE_URL_VARIABLE}={given!r} does not begin with https://, as {BASE_URL} does")
    if url.userinfo:
        raise UsageError(f"{BASE_URL_VARIABLE} has a password in it, which would end up in messages and files")
    return base


def gateway_models(base: str | None = None, say: Say | None = None) -> GatewayModels:
    """The kept list if it is of today; else a new one; else, without a network, the kept one however old it is."""
    base = base or gateway_base()
    kept = kept_models(base)
    if kept is not None and kept.is_fresh:
        return kept
    try:
        return refresh_models(base, say)
    except InfraError as error:
        if kept is None:
            raise
        _tell(say, f"{error}\nthe gateway's models and prices are those of {kept.date}")
        return kept


def refresh_models(base: str | None = None, say: Say | None = None) -> GatewayModels:
    """Ask the gateway and keep the answer; what was kept before is left alone if the answer is of no use."""
    base = base or gateway_base()
    models = fetch_models(base)
    try:
        write_atomically(_file(base), models.model_dump_json().encode())
    except OSError as error:
        _tell(say, f"the gateway's list of models cannot be kept in {_file(base).parent}: {error.strerror or error}")
    return models


def kept_models(base: str | None = None) -> GatewayModels | None:
    """The list that was fetched last. A damaged file counts as none: the next fetch replaces it."""
    base = base or gateway_base()
    try:
        return GatewayModels.model_validate_json(_file(base).read_bytes())
    except (OSError, ValidationError):
        return None


def _file(base: str) -> Path:
    return cache_folder() / "gateway" / f"models-{fingerprint(base)[:12]}.json"


def _tell(say: Say | None, message: str) -> None:
    if say is not None:
        say(message)


def fetch_models(base: str, seconds: float = TOTAL_SECONDS) -> GatewayModels:
    """Ask the gateway. Whatever it answers that is not a list of models is an `InfraError` that says what it was."""
    url = f"{base}/v1/models"
    body = _download(url, seconds)
    try:
        answer = _Answer.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "it"
        raise InfraError(f"{url} answered with something that is no list of models: {place}: {first['msg']}") from error
    return GatewayModels(base=base, fetched=datetime.now(UTC), models=answer.models)


def _download(url: str, seconds: float) -> bytes:
    give_up = time.monotonic() + seconds
    body = bytearray()
    with _answer(url) as response:
        if response.status_code != 200:
            raise InfraError(f"{url} answered {response.status_code} {response.reason_phrase!r:.60}")
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > _LARGEST:
                raise InfraError(f"{url} answered with more than {_LARGEST // 1024**2} MiB")
            # The client's own time limit is one for each read; a server that drips would never meet it.
            if time.monotonic() > give_up:
                raise InfraError(f"{url} did not finish its answer in {seconds:g} seconds")
    return bytes(body)


@contextmanager
def _answer(url: str) -> Iterator[httpx2.Response]:
    try:
        client = httpx2.Client(timeout=_SILENCE_SECONDS, headers={"User-Agent": f"bakeoff/{__version__}"})
    except (ValueError, ImportError, OSError, httpx2.InvalidURL) as error:
        raise UsageError(f"the proxy or certificate settings of the environment cannot be used: {error}") from error
    with client:
        try:
            with client.stream("GET", url) as response:
                yield response
        except (httpx2.HTTPError, UnicodeError, OverflowError) as error:  # the latter two: no host, or port, can be so
            raise InfraError(f"{url} cannot be read: {type(error).__name__}: {error}") from error


class PriceBook:
    """Prices for one run: the gateway is asked once at most, and only if one of its models is looked up.

    Looking up may wait for the network; on an event loop, do it in a thread.
    """

    def __init__(self, *, base: str | None = None, say: Say | None = None) -> None:
        self._base = base
        self._say = say

    @cached_property
    def _gateway(self) -> GatewayModels | None:
        try:
            return gateway_models(self._base, self._say)
        except InfraError as error:
            _tell(self._say, f"{error}\nprices come from {GENAI} instead")
            return None

    def price(self, provider: str, model: str, when: datetime | None = None) -> Price | None:
        """None where nobody knows a price."""
        return known_price(self._gateway if provider == GATEWAY else None, provider, model, when)


def known_price(gateway: GatewayModels | None, provider: str, model: str, when: datetime | None = None) -> Price | None:
    """A price from the gateway's list and what needs no network.

    A gateway model without a price in that list has its maker's: the gateway adds nothing to it.
    """
    if provider == LOCAL:
        return Price(input=Decimal(0), output=Decimal(0), key=model, source=LOCAL)
    if provider != GATEWAY:
        return price_from_genai(provider, model, when)
    maker, _, name = model.partition("/")
    return (gateway.price(model) if gateway else None) or price_from_genai(maker, name, when)


def lookup_price(
    provider: str, model: str, when: datetime | None = None, *, base: str | None = None, say: Say | None = None
) -> Price | None:
    """The gateway's own price for its models, else that of genai-prices. For several models, use a `PriceBook`."""
    return PriceBook(base=base, say=say).price(provider, model, when)

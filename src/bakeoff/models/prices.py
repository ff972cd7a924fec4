"""What tokens cost. Sums are made in decimals and become floats once, at the end, so that no digit is invented."""

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import UsageError
from bakeoff.models.names import GATEWAY
from bakeoff.record import Usage

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo, ModelPrice, TieredPrices

MILLION = 1_000_000
GENAI = "genai-prices"

PerToken = Annotated[Decimal, Field(ge=0, le=1)]
"""USD. One dollar a token is beyond any price list: whoever writes 3 meant three dollars a million."""


class Rates(FrozenModel):
    """USD per token. Where reading or writing a cache has no price of its own, the input price is paid."""

    input: PerToken
    output: PerToken
    cache_read: PerToken | None = None
    cache_write: PerToken | None = None

    @property
    def read(self) -> Decimal:
        return self.input if self.cache_read is None else self.cache_read

    @property
    def write(self) -> Decimal:
        return self.input if self.cache_write is None else self.cache_write

    def per_mtok(self) -> dict[str, float]:
        """USD per million tokens, under the names of a result file; a price that is not known is left out."""
        named = {
            "inputCostPerMTok": self.input,
            "outputCostPerMTok": self.output,
            "cacheReadCostPerMTok": self.cache_read,
            "cacheCreationCostPerMTok": self.cache_write,
        }
        return {name: float(rate * MILLION) for name, rate in named.items() if rate is not None}


class Tier(Rates):
    """What every token of a request costs once its prompt has more than `above` tokens."""

    above: Annotated[int, Field(ge=0)]


class Price(Rates):
    """What a model costs, who said so, and when."""

    key: str  # under which the source lists it
    source: str  # "gateway", "genai-prices", "local", "config"
    date: datetime.date | None = None
    tiers: tuple[Tier, ...] = ()

    def at(self, prompt_tokens: float) -> Rates:
        """The rates of a request with a prompt of this length."""
        reached = [tier for tier in self.tiers if prompt_tokens > tier.above]
        return max(reached, key=lambda tier: tier.above, default=self)


class Costs(FrozenModel):
    """What was spent, in USD, on which tokens. `total_cost` has everything in it, cache writes included."""

    input_cost: float
    output_cost: float
    cache_read_cost: float
    cache_write_cost: float
    total_cost: float
    input_tokens: int  # billed at the input rate, so neither read from nor written to a cache
    output_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int

    def as_total_cost(self) -> dict[str, float]:
        """The `totalCost` of a result file."""
        return {
            "inputCost": self.input_cost,
            "outputCost": self.output_cost,
            "cacheReadCost": self.cache_read_cost,
            "totalCost": self.total_cost,
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "cachedInputTokens": self.cached_input_tokens,
        }


def cost_of(usage: Usage, price: Price | None) -> float | None:
    """What a request cost in USD; None where no price is known, which is not the same as nothing.

    For several requests in one usage the tier is that of their mean prompt: to be exact, price each and add.
    """
    return None if price is None else float(exact_cost(usage, price))


def exact_cost(usage: Usage, price: Price) -> Decimal:
    return _bill(usage, price).total


def split_costs(requests: Iterable[Usage], price: Price | None) -> Costs | None:
    """What requests cost together, by kind of token; None where no price is known."""
    if price is None:
        return None
    bill = sum((_bill(usage, price) for usage in requests), start=_NOTHING)
    return Costs(
        input_cost=float(bill.input),
        output_cost=float(bill.output),
        cache_read_cost=float(bill.read),
        cache_write_cost=float(bill.write),
        total_cost=float(bill.total),
        input_tokens=bill.input_tokens,
        output_tokens=bill.output_tokens,
        cached_input_tokens=bill.read_tokens,
        cache_write_tokens=bill.write_tokens,
    )


@dataclass(frozen=True, slots=True)
class _Bill:
    input_tokens: int = 0
    output_tokens: int = 0
    read_tokens: int = 0
    write_tokens: int = 0
    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    read: Decimal = Decimal(0)
    write: Decimal = Decimal(0)

    @property
    def total(self) -> Decimal:
        return self.input + self.output + self.read + self.write

    def __add__(self, other: Self) -> "_Bill":
        return _Bill(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            read_tokens=self.read_tokens + other.read_tokens,
            write_tokens=self.write_tokens + other.write_tokens,
            input=self.input + other.input,
            output=self.output + other.output,
            read=self.read + other.read,
            write=self.write + other.write,
        )


_NOTHING = _Bill()


def _bill(usage: Usage, price: Price) -> _Bill:
    rates = price.at(usage.input / max(1, usage.requests))
    # A provider that counts cached tokens beside the prompt, not in it, must not earn a negative price.
    fresh = max(0, usage.input - usage.cache_read - usage.cache_write)
    return _Bill(
        input_tokens=fresh,
        output_tokens=usage.output,
        read_tokens=usage.cache_read,
        write_tokens=usage.cache_write,
        input=fresh * rates.input,
        output=usage.output * rates.output,
        read=usage.cache_read * rates.read,
        write=usage.cache_write * rates.write,
    )


def format_cost(dollars: float) -> str:
    """The smaller, the more digits."""
    return _dollars(dollars, 2 if dollars == 0 or dollars >= 1 else 4 if dollars >= 0.01 else 6)


def format_mtok_cost(dollars: float) -> str:
    """A price per million tokens."""
    return "$0" if dollars == 0 else _dollars(dollars, 2 if dollars >= 0.01 else 4)


def _dollars(amount: float, digits: int) -> str:
    # Halves go up, as in JavaScript's toFixed, so that old and new reports of one run show the same.
    with localcontext(rounding=ROUND_HALF_UP):
        return f"${Decimal(amount):.{digits}f}"


# The AI SDK's name, which is the specification's, and the REST API's.
_FIELDS = {
    "input": ("input",),
    "output": ("output",),
    "cache_read": ("cachedInputTokens", "input_cache_read"),
    "cache_write": ("cacheCreationInputTokens", "input_cache_write"),
}
_TIERS = {
    "input": "input_tiers",
    "output": "output_tiers",
    "cache_read": "input_cache_read_tiers",
    "cache_write": "input_cache_write_tiers",
}
_NUMBER = re.compile(r"\d{1,30}(\.\d{1,60})?([eE][+-]?\d{1,3})?", re.ASCII)


def parse_gateway_pricing(model_id: str, raw: object, *, date: datetime.date | None = None) -> Price | None:
    """The price in a gateway's description of a model; None where there is none for both input and output tokens."""
    if raw is None:
        return None
    if not isinstance(raw, Mapping):
        raise _no_price(model_id, "pricing", raw, "is not an object")
    rates = {rate: _first(model_id, raw, names) for rate, names in _FIELDS.items()}
    if rates["input"] is None or rates["output"] is None:
        return None
    brackets = {rate: _brackets(model_id, name, raw.get(name)) for rate, name in _TIERS.items()}
    tiers = _tiers(brackets, rates)
    return Price.model_validate({**rates, "key": model_id, "source": GATEWAY, "date": date, "tiers": tiers})


def _first(model_id: str, raw: Mapping[Any, Any], names: Iterable[str]) -> Decimal | None:
    for name in names:
        if raw.get(name) is not None:
            return _amount(model_id, name, raw[name])
    return None


def _amount(model_id: str, field: str, value: object) -> Decimal:
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    if not _NUMBER.fullmatch(text):
        raise _no_price(model_id, field, value, "is not a number of 0 or more")
    amount = Decimal(text)
    if amount > 1:
        raise _no_price(model_id, field, value, "is more than a dollar per token; is it per million?")
    return amount


def _brackets(model_id: str, field: str, raw: object) -> dict[int, Decimal]:
    """Prices by the prompt length, in tokens, above which they hold."""
    if raw is None:
        return {}
    if not isinstance(raw, list) or not all(isinstance(bracket, Mapping) for bracket in raw):
        raise _no_price(model_id, field, raw, "is not a list of tiers")
    found: dict[int, Decimal] = {}
    for bracket in raw:
        least = bracket.get("min") or 0
        if not isinstance(least, int) or least < 0:
            raise _no_price(model_id, f"{field}.min", least, "is not a number of tokens")
        found[least - 1] = _amount(model_id, f"{field}.cost", bracket.get("cost"))
    return found


def _tiers(brackets: Mapping[str, Mapping[int, Decimal]], base: Mapping[str, Decimal | None]) -> tuple[Tier, ...]:
    """Each rate has brackets of its own; where one of any rate begins, there begins a tier of all rates."""
    starts = sorted({above for rate in brackets.values() for above in rate if above >= 0})
    return tuple(
        Tier.model_validate({"above": start, **{rate: _reached(brackets[rate], start, base[rate]) for rate in base}})
        for start in starts
    )


def _reached(brackets: Mapping[int, Decimal], start: int, base: Decimal | None) -> Decimal | None:
    return brackets[max(begun)] if (begun := [above for above in brackets if above <= start]) else base


def _no_price(model_id: str, field: str, value: object, problem: str) -> UsageError:
    return UsageError(
        f"the gateway's price for {model_id!r:.120} is unusable: {field} {value!r:.80} {problem}; "
        "give the subject one of its own with its option `price`"
    )


# What we, or the gateway, call a provider, where genai-prices calls it something else. Only whole names are matched:
# its own search takes any name with `openai` in it for OpenAI, a server of one's own included.
_GENAI_NAMES = {
    "amazon": "aws",
    "bedrock": "aws",
    "gemini": "google",
    "openai-responses": "openai",
    "xai": "x-ai",
}


def price_from_genai(provider: str, model: str, when: datetime.datetime | None = None) -> Price | None:
    """The standard price that held at that time (now, unless told), from the list that genai-prices ships.

    None for what has no price per token alone: audio, embeddings, models with a fee for each request.
    """
    known = _genai()
    name = _GENAI_NAMES.get(provider.lower(), provider.lower())
    offered = next((one for one in known.providers if one.id == name), None)
    if offered is None:
        return None
    found = offered.find_model(model, all_providers=known.providers)
    if found is None:
        return None
    return _genai_price(f"{offered.id}/{found.id}", found.get_prices(when or datetime.datetime.now(datetime.UTC)))


def genai_provider_of(model: str) -> str | None:
    """Whose a model is, going by its name alone."""
    try:
        return _genai().find_provider(model.lower(), None, None).id
    except LookupError:
        return None


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model in the list that genai-prices ships."""

    provider: str
    model: str
    context: int | None
    price: Price | None


def models_of_genai(when: datetime.datetime | None = None) -> Iterator[KnownModel]:
    """All that genai-prices knows, with the prices that held at that time (now, unless told)."""
    moment = when or datetime.datetime.now(datetime.UTC)
    for provider in _genai().providers:
        for model in provider.models:
            price = _genai_price(f"{provider.id}/{model.id}", model.get_prices(moment))
            yield KnownModel(provider.id, model.id, model.context_window, price)


@cache
def _genai() -> "DataSnapshot":
    """The shipped list itself: what an updater elsewhere in this process may have fetched has another date."""
    from genai_prices.data import providers
    from genai_prices.data_snapshot import DataSnapshot

    return DataSnapshot(providers=providers, from_auto_update=False)


@cache
def genai_date() -> datetime.date | None:
    """The day of the newest price in the shipped list, which bears no date of its own.

    Only OpenRouter's are asked: they are noted when they are seen, while makers announce prices ahead of time.
    """
    models = (model for provider in _genai().providers if provider.id == "openrouter" for model in provider.models)
    return max((day for model in models for day in _start_dates(model)), default=None)


def _start_dates(model: "ModelInfo") -> Iterator[datetime.date]:
    from genai_prices.types import StartDateConstraint

    for price in model.prices if isinstance(model.prices, list) else ():
        if isinstance(price.constraint, StartDateConstraint):
            yield price.constraint.start_date


def _genai_price(key: str, prices: "ModelPrice") -> Price | None:
    if prices.input_mtok is None or prices.output_mtok is None or prices.requests_kcount is not None:
        return None
    listed = {rate: getattr(prices, f"{rate}_mtok") for rate in _FIELDS}
    rates = {rate: _per_token(value) for rate, value in listed.items()}
    brackets = {
        rate: {tier.start: tier.price / MILLION for tier in getattr(value, "tiers", ())}
        for rate, value in listed.items()
    }
    tiers = _tiers(brackets, rates)
    return Price.model_validate({**rates, "key": key, "source": GENAI, "date": genai_date(), "tiers": tiers})


def _per_token(price: "Decimal | TieredPrices | None") -> Decimal | None:
    """What is paid before the first tier is reached."""
    if price is None:
        return None
    return (price if isinstance(price, Decimal) else price.base) / MILLION

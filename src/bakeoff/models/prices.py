"""Compute prices of tokens. Sums use decimals, converted to floats only at the end."""

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import UsageError
from bakeoff.models.providers import GATEWAY
from bakeoff.record import Usage

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo, ModelPrice, TieredPrices

MILLION = 1_000_000
GENAI = "genai-prices"

PerToken = Annotated[Decimal, Field(ge=0, le=1)]
"""USD per token, at most 1: a higher price, such as 3, is meant per million tokens."""


class Rates(FrozenModel):
    """USD per token. If a cache has no price, the input price applies."""

    input: PerToken
    output: PerToken
    cache_read: PerToken | None = None
    cache_write: PerToken | None = None

    def per_mtok(self) -> dict[str, float]:
        """Return known prices in USD per million tokens, with the names of a result file."""
        named = {
            "inputCostPerMTok": self.input,
            "outputCostPerMTok": self.output,
            "cacheReadCostPerMTok": self.cache_read,
            "cacheCreationCostPerMTok": self.cache_write,
        }
        return {name: float(rate * MILLION) for name, rate in named.items() if rate is not None}


class Tier(Rates):
    """The rates for requests whose prompt has more than `above` tokens."""

    above: Annotated[int, Field(ge=0)]


class Price(Rates):
    """The price of a model, with source and date."""

    key: str  # the model's name in the source
    source: str  # "gateway", "genai-prices", "local", "config"
    date: datetime.date | None = None
    tiers: tuple[Tier, ...] = ()

    def at(self, prompt_tokens: float) -> Rates:
        """Return the rates for a request with a prompt of this length."""
        reached = [tier for tier in self.tiers if prompt_tokens > tier.above]
        return max(reached, key=lambda tier: tier.above, default=self)


class PriceOptions(FrozenModel):
    """The price in a subject's options: USD per million tokens."""

    input: Decimal = Field(ge=0)
    output: Decimal = Field(ge=0)
    cache_read: Decimal | None = Field(default=None, ge=0)
    cache_write: Decimal | None = Field(default=None, ge=0)

    def price(self, key: str) -> Price:
        """Return the price for the model of this name."""
        per_token = {name: amount / MILLION for name, amount in self if amount is not None}
        return Price(**per_token, key=key, source="config")


class Costs(FrozenModel):
    """Costs in USD with their token counts. `total_cost` includes cache writes."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    input_cost: float
    output_cost: float
    cache_read_cost: float
    cache_write_cost: float
    total_cost: float
    input_tokens: int  # billed at the input rate, not cached
    output_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int

    def as_total_cost(self) -> dict[str, float]:
        """Return the `totalCost` object of a result file."""
        return self.model_dump(by_alias=True, exclude={"cache_write_cost", "cache_write_tokens"})


def cost_of(usage: Usage, price: Price | None) -> float | None:
    """Return the cost of a request in USD, or None if the price is unknown.

    For several requests, their mean prompt decides the tier. For exact costs, price each request.
    """
    return None if price is None else float(exact_cost(usage, price))


def exact_cost(usage: Usage, price: Price) -> Decimal:
    """Return the cost of a request in USD."""
    return sum((tokens * rate for tokens, rate in _billed(usage, price)), start=Decimal(0))


def split_costs(requests: Iterable[Usage], price: Price | None) -> Costs | None:
    """Return the total cost of requests by kind of token; None if the price is unknown."""
    if price is None:
        return None
    tokens, costs = [0] * 4, [Decimal(0)] * 4
    for usage in requests:
        for kind, (count, rate) in enumerate(_billed(usage, price)):
            tokens[kind] += count
            costs[kind] += count * rate
    paid = dict(zip(("input_cost", "output_cost", "cache_read_cost", "cache_write_cost"), costs, strict=True))
    used = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens")
    return Costs.model_validate({**paid, "total_cost": sum(costs), **dict(zip(used, tokens, strict=True))})


def _billed(usage: Usage, price: Price) -> tuple[tuple[int, Decimal], ...]:
    """Return count and rate of input, output, cache-read and cache-write tokens."""
    rates = price.at(usage.input / max(1, usage.requests))
    # Some providers count cached tokens in addition to the prompt: avoid a negative number.
    fresh = max(0, usage.input - usage.cache_read - usage.cache_write)
    return (
        (fresh, rates.input),
        (usage.output, rates.output),
        (usage.cache_read, rates.input if rates.cache_read is None else rates.cache_read),
        (usage.cache_write, rates.input if rates.cache_write is None else rates.cache_write),
    )


def format_cost(dollars: float) -> str:
    """Format a cost in USD, with more digits for smaller amounts."""
    size = abs(dollars)
    return _dollars(dollars, 2 if size == 0 or size >= 1 else 4 if size >= 0.01 else 6)


def format_mtok_cost(dollars: float) -> str:
    """Format a price per million tokens in USD."""
    return "$0" if dollars == 0 else _dollars(dollars, 2 if dollars >= 0.01 else 4)


def _dollars(amount: float, digits: int) -> str:
    # Round half up like JavaScript's toFixed, so that old and new reports of one run agree.
    with localcontext(rounding=ROUND_HALF_UP):
        return f"{'-' if amount < 0 else ''}${Decimal(abs(amount)):.{digits}f}"


# The field names of the AI SDK, then those of the REST API.
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
    """Return a model's price from the gateway's data; None if input or output has none."""
    if raw is None:
        return None
    if not isinstance(raw, Mapping):
        raise _no_price(model_id, "pricing", raw, "is not an object")
    rates: dict[str, Decimal | None] = dict.fromkeys(_FIELDS)
    for rate, names in _FIELDS.items():
        given = next((name for name in names if raw.get(name) is not None), None)
        rates[rate] = None if given is None else _amount(model_id, given, raw[given])
    if rates["input"] is None or rates["output"] is None:
        return None
    brackets = {rate: _brackets(model_id, name, raw.get(name)) for rate, name in _TIERS.items()}
    return _price(rates, brackets, key=model_id, source=GATEWAY, date=date)


def _amount(model_id: str, field: str, value: object) -> Decimal:
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    if not _NUMBER.fullmatch(text):
        raise _no_price(model_id, field, value, "is not a number of 0 or more")
    amount = Decimal(text)
    if amount > 1:
        raise _no_price(model_id, field, value, "is more than a dollar per token; is it per million?")
    return amount


def _brackets(model_id: str, field: str, raw: object) -> dict[int, Decimal]:
    """Return prices by prompt length. A price applies to prompts with more tokens than its key."""
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


def _price(base: Mapping[str, Decimal | None], brackets: Mapping[str, Mapping[int, Decimal]], **about: Any) -> Price:
    """Return a price with tiers. Each rate has its own brackets; each bracket starts a tier."""
    tiers = []
    for start in sorted({above for rate in brackets.values() for above in rate if above >= 0}):
        begun = {rate: [above for above in brackets[rate] if above <= start] for rate in base}
        rates = {rate: brackets[rate][max(begun[rate])] if begun[rate] else base[rate] for rate in base}
        tiers.append({**rates, "above": start})
    return Price.model_validate({**base, **about, "tiers": tuple(tiers)})


def _no_price(model_id: str, field: str, value: object, problem: str) -> UsageError:
    return UsageError(
        f"the gateway's price for {model_id!r:.120} is unusable: {field} {value!r:.80} {problem}; "
        "give the subject one of its own with its option `price`"
    )


# Provider names that differ in genai-prices. Match only whole names, because genai-prices
# takes every name that contains `openai`, such as `openai-compatible`, for OpenAI.
_GENAI_NAMES = {
    "amazon": "aws",
    "bedrock": "aws",
    "gemini": "google",
    "openai-responses": "openai",
    "xai": "x-ai",
}


def price_from_genai(provider: str, model: str, when: datetime.datetime | None = None) -> Price | None:
    """Return the standard price at a time (default: now) from the list in genai-prices.

    Return None if the model is unknown, or if its price is not only per token.
    """
    known = _genai()
    name = _GENAI_NAMES.get(provider.lower(), provider.lower())
    offered = next((one for one in known.providers if one.id == name), None)
    found = offered.find_model(model, all_providers=known.providers) if offered else None
    if offered is None or found is None:
        return None
    return _genai_price(f"{offered.id}/{found.id}", found.get_prices(when or datetime.datetime.now(datetime.UTC)))


def genai_provider_of(model: str) -> str | None:
    """Guess the provider of a model from the model's name."""
    try:
        return _genai().find_provider(model.lower(), None, None).id
    except LookupError:
        return None


def models_of_genai() -> "Iterator[tuple[str, ModelInfo, Price | None]]":
    """Yield provider, model and current price for all models in genai-prices."""
    now = datetime.datetime.now(datetime.UTC)
    for provider in _genai().providers:
        for model in provider.models:
            yield provider.id, model, _genai_price(f"{provider.id}/{model.id}", model.get_prices(now))


@cache
def _genai() -> "DataSnapshot":
    """Return the shipped list, not a list fetched by an updater, which has another date."""
    from genai_prices.data import providers
    from genai_prices.data_snapshot import DataSnapshot

    return DataSnapshot(providers=providers, from_auto_update=False)


@cache
def genai_date() -> datetime.date | None:
    """Return the day of the newest price in the shipped list, since the list has no date.

    Only OpenRouter's prices count, because makers announce prices in advance.
    """
    from genai_prices.types import StartDateConstraint

    models = (model for provider in _genai().providers if provider.id == "openrouter" for model in provider.models)
    limits = (price.constraint for model in models if isinstance(model.prices, list) for price in model.prices)
    return max((limit.start_date for limit in limits if isinstance(limit, StartDateConstraint)), default=None)


def _genai_price(key: str, prices: "ModelPrice") -> Price | None:
    if prices.input_mtok is None or prices.output_mtok is None or prices.requests_kcount is not None:
        return None
    rates: dict[str, Decimal | None] = dict.fromkeys(_FIELDS)
    brackets: dict[str, dict[int, Decimal]] = {rate: {} for rate in _FIELDS}
    for rate in _FIELDS:
        listed: Decimal | TieredPrices | None = getattr(prices, f"{rate}_mtok")
        if isinstance(listed, Decimal):
            rates[rate] = listed / MILLION
        elif listed is not None:
            rates[rate] = listed.base / MILLION  # below the first tier
            brackets[rate] = {tier.start: tier.price / MILLION for tier in listed.tiers}
    return _price(rates, brackets, key=key, source=GENAI, date=genai_date())

"""List the models that runs can use, with their prices."""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bakeoff.errors import UsageError
from bakeoff.models.embedded.weights import KNOWN, check_name, is_here
from bakeoff.models.gateway import LOCAL, GatewayModels, known_price
from bakeoff.models.prices import GENAI, Price, genai_date, genai_provider_of, models_of_genai
from bakeoff.models.providers import GATEWAY, ModelName, known_providers, parse_model_name

_OUR_NAMES = {"x-ai": "xai"}  # providers with another name in genai-prices


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model with the source that lists it, and facts about it."""

    provider: str
    model: str
    source: str
    context: int | None = None
    price: Price | None = None
    date: datetime.date | None = None
    note: str = ""

    @property
    def name(self) -> str:
        """Return the full name, as users type it."""
        return str(ModelName(self.provider, self.model))

    def as_json(self) -> dict[str, Any]:
        """Return the entry for `bakeoff models list --json`, with USD per million tokens."""
        return {
            "name": self.name,
            "provider": self.provider,
            "model": self.model,
            "context": self.context,
            "pricingKey": self.price.key if self.price else None,
            "pricing": self.price.per_mtok() if self.price else None,
            "tiers": [{"above": tier.above, **tier.per_mtok()} for tier in self.price.tiers] if self.price else [],
            "source": self.source,
            "date": str(self.date) if self.date else None,
            "note": self.note,
        }


def listed_models(gateway: GatewayModels | None) -> Iterator[ListedModel]:
    """Yield all usable models: embedded ones, those of the gateway, those in genai-prices."""
    for name, weights in KNOWN.items():
        note = "" if is_here(name) else f"`bakeoff models pull {name}` downloads its {weights.bytes / 1e6:.0f} MB"
        yield ListedModel(LOCAL, name, LOCAL, weights.context, known_price(None, LOCAL, name), note=note)
    yield from _gateway_rows(gateway)
    providers = known_providers()
    for theirs, model, price in models_of_genai():
        provider = _OUR_NAMES.get(theirs, theirs)
        if provider in providers:  # otherwise no run could use it
            yield ListedModel(provider, model.id, GENAI, model.context_window, price, genai_date())


def _gateway_rows(gateway: GatewayModels | None) -> Iterator[ListedModel]:
    if gateway is None:
        return
    for model in gateway.models:
        if model.kind not in (None, "language"):
            continue
        try:
            yield ListedModel(GATEWAY, model.id, GATEWAY, model.context, gateway.price(model.id), gateway.date)
        except UsageError as error:
            yield ListedModel(GATEWAY, model.id, GATEWAY, model.context, date=gateway.date, note=str(error))


def priced_model(name: str, gateway: GatewayModels | None) -> ListedModel | None:
    """Return the model with its price as a run would use it, without using the network."""
    chosen = _meant(name)
    if chosen is not None and chosen.provider == LOCAL:
        check_name(chosen.model)
    price = known_price(gateway, chosen.provider, chosen.model) if chosen else None
    if chosen is None or price is None:
        return None
    return ListedModel(chosen.provider, chosen.model, price.source, price=price, date=price.date)


def _meant(name: str) -> ModelName | None:
    """Return the model that a name means. An unambiguous name needs no provider."""
    if ":" in name or "/" in name:
        return parse_model_name(name)
    provider = genai_provider_of(name)
    return ModelName(_OUR_NAMES.get(provider, provider), name) if provider else None

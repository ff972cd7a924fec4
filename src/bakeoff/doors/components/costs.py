"""What a subject's suites cost together, and would have cost with a prompt cache, in a result file's terms."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from pydantic import ValidationError

from bakeoff.models.cache_simulation import CacheSimulation, simulate_suites
from bakeoff.models.prices import Costs, Price, format_cost, format_mtok_cost, split_costs
from bakeoff.record import Record, Usage

__all__ = ["Bill", "bill_of", "calculate_cost", "format_cost", "format_mtok_cost", "price_of"]

Sums = TypeVar("Sums", Costs, CacheSimulation)


@dataclass(frozen=True, slots=True)
class Bill:
    """The money side of one subject in one round. `price` is the last that was asked."""

    price: Price
    costs: Costs
    cached: CacheSimulation


def calculate_cost(requests: Iterable[Usage], price: Price | None) -> Costs | None:
    """What requests cost, by kind of token; None where no price is known."""
    return split_costs(requests, price)


def price_of(record: Record) -> Price | None:
    """What the model's tokens cost when the trial ran."""
    found = record.transcript.metadata.get("price") if record.transcript else None
    if found is None:
        return None
    try:
        return Price.model_validate(found)
    except ValidationError:  # a subject of the user's own may put anything there
        return None


def bill_of(records: Iterable[Record]) -> Bill | None:
    """All suites together; None where nothing has a price. A run that was resumed may have met several prices."""
    suites: dict[str, tuple[Price, list[list[Usage]]]] = {}
    for record in records:
        price = price_of(record)
        if price is None or record.transcript is None:
            continue
        _, steps = suites.setdefault(price.model_dump_json(), (price, []))
        steps.append([step.usage for step in record.transcript.steps])
    if not suites:
        return None
    return Bill(
        price=next(reversed(suites.values()))[0],
        costs=_added(Costs, [costs for price, steps in suites.values() if (costs := _costs(steps, price))]),
        cached=_added(CacheSimulation, [simulate_suites(steps, price) for price, steps in suites.values()]),
    )


def _costs(suites: list[list[Usage]], price: Price) -> Costs | None:
    return calculate_cost((usage for steps in suites for usage in steps), price)


def _added(kind: type[Sums], parts: Sequence[Sums]) -> Sums:
    """Field by field, in decimals, so that adding invents no digit."""
    sums = {name: sum(Decimal(str(getattr(part, name))) for part in parts) for name in kind.model_fields}
    return kind.model_validate(sums)

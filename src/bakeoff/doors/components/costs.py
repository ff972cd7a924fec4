"""Add up what a subject's suites cost, and would have cost with a prompt cache."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from pydantic import ValidationError

from bakeoff.models.cache_simulation import CacheSimulation, simulate_suites
from bakeoff.models.prices import Costs, Price, split_costs
from bakeoff.record import Record, Usage

Sums = TypeVar("Sums", Costs, CacheSimulation)


@dataclass(frozen=True, slots=True)
class SuiteCosts:
    """The cost of one subject in one round. `price` is the last one that applied."""

    price: Price
    costs: Costs
    cached: CacheSimulation


def _price_of(record: Record) -> Price | None:
    """Return the price of the model's tokens when the trial ran."""
    found = record.transcript.metadata.get("price") if record.transcript else None
    if found is None:
        return None
    try:
        return Price.model_validate(found)
    except ValidationError:  # a subject of the user may put anything there
        return None


def bill_of(records: Iterable[Record]) -> SuiteCosts | None:
    """Return the bill of all suites, or None if nothing has a price. A resumed run may have several prices."""
    suites: dict[str, tuple[Price, list[list[Usage]]]] = {}
    for record in records:
        price = _price_of(record)
        used = [step.usage for step in record.transcript.steps] if record.transcript else []
        if price is None or not any(usage.tokens for usage in used):
            continue  # a provider that counts nothing leaves the cost unknown
        _, steps = suites.setdefault(price.model_dump_json(), (price, []))
        steps.append(used)
    if not suites:
        return None
    return SuiteCosts(
        price=next(reversed(suites.values()))[0],
        costs=_added(
            Costs,
            [
                costs
                for price, steps in suites.values()
                if (costs := split_costs((usage for suite in steps for usage in suite), price))
            ],
        ),
        cached=_added(CacheSimulation, [simulate_suites(steps, price) for price, steps in suites.values()]),
    )


def _added(kind: type[Sums], parts: Sequence[Sums]) -> Sums:
    """Add field by field, in decimals, so that the sum has no invented digits."""
    sums = {name: sum(Decimal(str(getattr(part, name))) for part in parts) for name in kind.model_fields}
    return kind.model_validate(sums)

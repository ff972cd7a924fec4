"""What a run would have cost with prompt caching, by the model of a prefix that only grows.

    prefix = in₁; cost = in₁·W
    for k ≥ 2: new = max(0, inₖ − prefix); cost += prefix·R + new·W; hits += prefix; writes += new; prefix += new

W is the price of writing a token to the cache, R of reading one from it. Output costs what it always does.
"""

from collections.abc import Iterable
from decimal import Decimal

from bakeoff._kernel.model import FrozenModel
from bakeoff.models.prices import Price, Rates, exact_cost
from bakeoff.record import Usage

# Of the input price, where a model has no prices for its cache: what most providers ask.
READ_SHARE = Decimal("0.1")
WRITE_SHARE = Decimal("1.25")


class CacheSimulation(FrozenModel):
    """Tokens, and USD where a price is known. `actual_cost` is what was paid, with whatever cache there was."""

    simulated_cost: float | None
    actual_cost: float | None
    saving: float | None  # negative where caching would have cost more than it saved
    hits: int
    writes: int
    output: int

    def as_cache_simulation(self) -> dict[str, float]:
        """The `cacheSimulation` of a result file, which is there only where costs are known."""
        if self.simulated_cost is None:
            return {}
        return {
            "simulatedCostWithCache": self.simulated_cost,
            "cacheHits": self.hits,
            "cacheWriteTokens": self.writes,
        }


class TokenCache:
    """A cache that holds the prompt of one conversation, which each step makes longer."""

    def __init__(self, price: Price | None) -> None:
        self._price = price
        self.prefix = 0
        self.hits = 0
        self.writes = 0
        self.output = 0
        self.cost = Decimal(0)  # stays 0 where no price is known

    def add(self, prompt_tokens: int, output_tokens: int) -> None:
        """One step: the prefix is read, and what goes beyond it written."""
        new = max(0, prompt_tokens - self.prefix)
        if self._price is not None:
            rates = self._price.at(prompt_tokens)
            self.cost += self.prefix * _read(rates) + new * _write(rates) + output_tokens * rates.output
        self.hits += self.prefix
        self.writes += new
        self.output += output_tokens
        self.prefix += new


def _read(rates: Rates) -> Decimal:
    return READ_SHARE * rates.input if rates.cache_read is None else rates.cache_read


def _write(rates: Rates) -> Decimal:
    return WRITE_SHARE * rates.input if rates.cache_write is None else rates.cache_write


def simulate(steps: Iterable[Usage], price: Price | None) -> CacheSimulation:
    """One suite: the requests of one conversation, in their order."""
    return simulate_suites([steps], price)


def simulate_suites(suites: Iterable[Iterable[Usage]], price: Price | None) -> CacheSimulation:
    """Several suites together. Each is a conversation of its own and begins with an empty cache."""
    caches: list[TokenCache] = []
    actual = Decimal(0)
    for steps in suites:
        caches.append(TokenCache(price))
        for usage in steps:
            caches[-1].add(usage.input, usage.output)
            actual += exact_cost(usage, price) if price else 0
    simulated = sum((cache.cost for cache in caches), start=Decimal(0))
    return CacheSimulation(
        simulated_cost=float(simulated) if price else None,
        actual_cost=float(actual) if price else None,
        saving=float(actual - simulated) if price else None,
        hits=sum(cache.hits for cache in caches),
        writes=sum(cache.writes for cache in caches),
        output=sum(cache.output for cache in caches),
    )

"""Simulate what a run would have cost with prompt caching, if each request extends the prefix of the one before.

    prefix = in₁; cost = in₁·W
    for k ≥ 2: new = max(0, inₖ − prefix); cost += prefix·R + new·W; hits += prefix; writes += new; prefix += new

W is the price of writing a token to the cache, R of reading one from it. The price of output is unchanged.
"""

from collections.abc import Iterable
from decimal import Decimal

from bakeoff._kernel.model import FrozenModel
from bakeoff.models.prices import Price, exact_cost
from bakeoff.record import Usage

# Shares of the input price that most providers ask, for models without cache prices.
READ_SHARE = Decimal("0.1")
WRITE_SHARE = Decimal("1.25")


class CacheSimulation(FrozenModel):
    """Tokens, and USD if the price is known. `actual_cost` is the real cost, with the real use of caches."""

    simulated_cost: float | None
    simulated_output_cost: float | None = None
    actual_cost: float | None
    saving: float | None  # negative if caching costs more than it saves
    hits: int
    writes: int
    output: int

    def as_cache_simulation(self) -> dict[str, float]:
        """Return the `cacheSimulation` of a result file, which is empty if costs are unknown."""
        if self.simulated_cost is None:
            return {}
        tokens = {"cacheHits": self.hits, "cacheWriteTokens": self.writes, "outputTokens": self.output}
        written = Decimal(str(self.simulated_output_cost or 0.0))
        return {
            "simulatedCostWithCache": self.simulated_cost,
            "simulatedInputCost": float(Decimal(str(self.simulated_cost)) - written),
            "simulatedOutputCost": float(written),
            **tokens,
        }


def simulate(steps: Iterable[Usage], price: Price | None) -> CacheSimulation:
    """Simulate one suite: the requests of one conversation, in their order."""
    return simulate_suites([steps], price)


def simulate_suites(suites: Iterable[Iterable[Usage]], price: Price | None) -> CacheSimulation:
    """Simulate several suites. Each is a conversation of its own and begins with an empty cache."""
    hits = writes = output = 0
    simulated = written = actual = Decimal(0)
    for steps in suites:
        prefix = 0
        for usage in steps:
            new = max(0, usage.input - prefix)
            if price is not None:
                rates = price.at(usage.input)
                read = READ_SHARE * rates.input if rates.cache_read is None else rates.cache_read
                write = WRITE_SHARE * rates.input if rates.cache_write is None else rates.cache_write
                simulated += prefix * read + new * write + usage.output * rates.output
                written += usage.output * rates.output
                actual += exact_cost(usage, price)
            hits, writes, output = hits + prefix, writes + new, output + usage.output
            prefix += new
    return CacheSimulation(
        simulated_cost=float(simulated) if price else None,
        simulated_output_cost=float(written) if price else None,
        actual_cost=float(actual) if price else None,
        saving=float(actual - simulated) if price else None,
        hits=hits,
        writes=writes,
        output=output,
    )

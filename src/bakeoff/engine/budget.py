"""Keep a run within its limits on money, tokens and time."""

import time
from dataclasses import dataclass, field

from bakeoff.options import RunOptions
from bakeoff.record import NO_USAGE, Usage


@dataclass(slots=True)
class Budget:
    """Compare the spending of a run, including that of earlier processes, with its limits."""

    options: RunOptions
    spent: Usage = NO_USAGE
    unpriced: bool = False  # some of the spending has an unknown cost
    started: float = field(default_factory=time.monotonic)

    def add(self, usage: Usage) -> None:
        """Count usage against the limits."""
        self.spent += usage
        self.unpriced = self.unpriced or (usage.cost is None and bool(usage.requests or usage.tokens))

    def exceeded(self) -> str | None:
        """Return a sentence about the limit that has been reached, or None."""
        options, spent = self.options, self.spent
        if options.max_cost is not None and spent.cost is not None and spent.cost >= options.max_cost:
            return f"max_cost ${options.max_cost:g} is reached: ${spent.cost:g} spent"
        if options.max_cost is not None and self.unpriced:
            return "max_cost cannot be enforced: the cost of a call is unknown; set its model's price or drop the limit"
        if options.max_total_tokens is not None and spent.tokens >= options.max_total_tokens:
            return f"max_total_tokens {options.max_total_tokens} is reached: {spent.tokens} used"
        if options.max_seconds is not None and time.monotonic() - self.started >= options.max_seconds:
            return f"max_seconds {options.max_seconds:g} is reached"
        return None

    def fits(self, more: Usage) -> bool:
        """Return whether this much more stays within the limits. A usage of unknown cost never fits a cost limit."""
        options, spent = self.options, self.spent
        if options.max_cost is not None and (more.cost is None or (spent.cost or 0.0) + more.cost > options.max_cost):
            return False
        return options.max_total_tokens is None or spent.tokens + more.tokens <= options.max_total_tokens

"""The run-wide limits on money, tokens and time."""

import time
from dataclasses import dataclass, field

from bakeoff.options import RunOptions
from bakeoff.record import NO_USAGE, Usage


@dataclass(slots=True)
class Budget:
    """What has been spent, by earlier processes of the same run too, against what may be."""

    options: RunOptions
    spent: Usage = NO_USAGE
    unpriced: bool = False  # something was spent whose cost nobody knows
    started: float = field(default_factory=time.monotonic)

    def add(self, usage: Usage) -> None:
        self.spent += usage
        self.unpriced = self.unpriced or (usage.cost is None and bool(usage.requests or usage.tokens))

    def exceeded(self) -> str | None:
        """Which limit has been reached, as a sentence; None while there is room."""
        options, spent = self.options, self.spent
        if options.max_cost is not None and spent.cost is not None and spent.cost >= options.max_cost:
            return f"max_cost ${options.max_cost:g} is reached: ${spent.cost:g} spent"
        if options.max_cost is not None and self.unpriced:
            return "max_cost cannot be kept: what a call cost is not known; give its model a price, or drop the limit"
        if options.max_tokens is not None and spent.tokens >= options.max_tokens:
            return f"max_tokens {options.max_tokens} is reached: {spent.tokens} used"
        seconds = time.monotonic() - self.started
        if options.max_seconds is not None and seconds >= options.max_seconds:
            return f"max_seconds {options.max_seconds:g} is reached"
        return None

    def fits(self, more: Usage) -> bool:
        """Whether this much more stays within the limits; what costs nobody knows how much does not."""
        options, spent = self.options, self.spent
        if options.max_cost is not None and (more.cost is None or (spent.cost or 0.0) + more.cost > options.max_cost):
            return False
        return options.max_tokens is None or spent.tokens + more.tokens <= options.max_tokens

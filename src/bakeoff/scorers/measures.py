"""Score the time and the cost of an answer: `latency` and `cost`."""

from dataclasses import dataclass

from pydantic import JsonValue, NonNegativeFloat, PositiveFloat

from bakeoff.protocols import ScoreInput
from bakeoff.record import Score
from bakeoff.scorers.configurable import ConfigurableScorer
from bakeoff.scorers.registry import scorer


@scorer("latency", main="max_ms")
@dataclass(frozen=True, slots=True, kw_only=True)
class Latency(ConfigurableScorer):
    """Scores 1 when the attempt took at most `max_ms` milliseconds, without waiting for a provider's queue."""

    max_ms: PositiveFloat
    name: str = "latency"

    async def __call__(self, given: ScoreInput) -> Score:
        if given.seconds is None:
            return Score(name=self.name, reason="the duration of the answer was not measured")
        took = 1000 * given.seconds
        reason = f"took {took:.4g} ms; at most {self.max_ms:.4g} ms are allowed"
        return _within(self.name, reason, within=took <= self.max_ms, measured={"ms": took})


@scorer("cost", main="max_usd")
@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(ConfigurableScorer):
    """Scores 1 when the attempt cost at most `max_usd`; unscored where the cost is unknown."""

    max_usd: NonNegativeFloat
    name: str = "cost"

    async def __call__(self, given: ScoreInput) -> Score:
        cost = given.transcript.usage.cost
        if cost is None:
            return Score(name=self.name, reason="the cost of the answer is unknown: its usage has no `cost`")
        reason = f"cost {cost:.4g} USD; at most {self.max_usd:.4g} USD are allowed"
        return _within(self.name, reason, within=cost <= self.max_usd, measured={"usd": cost})


def _within(name: str, reason: str, *, within: bool, measured: dict[str, JsonValue]) -> Score:
    metadata = {"rationale": reason, **measured}
    return Score(name=name, value=float(within), reason="" if within else reason, metadata=metadata)

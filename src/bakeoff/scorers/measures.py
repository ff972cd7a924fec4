"""Score the time and the cost of an answer: `latency` and `cost`."""

from dataclasses import dataclass
from typing import Self

from pydantic import Field, JsonValue, PositiveFloat

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import UsageError
from bakeoff.plan import ScorerSpec, read_options
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score


class LatencyOptions(FrozenModel):
    max_ms: PositiveFloat


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Scores 1 when the attempt took at most `max_ms` milliseconds, without waiting for a provider's queue."""

    max_ms: float
    name: str = "latency"

    def __post_init__(self) -> None:
        if not self.max_ms > 0:
            raise UsageError(f"scorer {self.name!r}: max_ms is {self.max_ms!r}: give milliseconds, more than 0")

    @classmethod
    def from_spec(cls, spec: ScorerSpec) -> Self:
        return cls(**dict(read_options(spec, LatencyOptions)))

    async def __call__(self, given: ScoreInput) -> Score:
        if given.seconds is None:
            return Score(name=self.name, reason="the duration of the answer was not measured")
        took = 1000 * given.seconds
        reason = f"took {took:.4g} ms; at most {self.max_ms:.4g} ms are allowed"
        return _within(self.name, reason, within=took <= self.max_ms, measured={"ms": took})


class CostOptions(FrozenModel):
    max_usd: float = Field(ge=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Scores 1 when the attempt cost at most `max_usd`; unscored where the cost is unknown."""

    max_usd: float
    name: str = "cost"

    def __post_init__(self) -> None:
        if not self.max_usd >= 0:
            raise UsageError(f"scorer {self.name!r}: max_usd is {self.max_usd!r}: give dollars, not less than 0")

    @classmethod
    def from_spec(cls, spec: ScorerSpec) -> Self:
        return cls(**dict(read_options(spec, CostOptions)))

    async def __call__(self, given: ScoreInput) -> Score:
        cost = given.transcript.usage.cost
        if cost is None:
            return Score(name=self.name, reason="the cost of the answer is unknown: its usage has no `cost`")
        reason = f"cost {cost:.4g} USD; at most {self.max_usd:.4g} USD are allowed"
        return _within(self.name, reason, within=cost <= self.max_usd, measured={"usd": cost})


def _within(name: str, reason: str, *, within: bool, measured: dict[str, JsonValue]) -> Score:
    metadata = {"rationale": reason, **measured}
    return Score(name=name, value=float(within), reason="" if within else reason, metadata=metadata)

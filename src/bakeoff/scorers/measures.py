"""Score what was measured during an attempt: `latency`, `cost`, and the OpenTelemetry `spans` of an application."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from pydantic import Field, JsonValue, NonNegativeFloat, NonNegativeInt, PositiveFloat

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.tracing import SPANS, SpanCollection, can_collect
from bakeoff.errors import GraderError, UsageError
from bakeoff.protocols import Needs, ScoreInput
from bakeoff.record import Score
from bakeoff.scorers.configurable import ConfigurableScorer
from bakeoff.scorers.registry import scorer
from bakeoff.scorers.values import a_few


@scorer("latency", main="max_ms")
@dataclass(frozen=True, slots=True, kw_only=True)
class Latency(ConfigurableScorer):
    """Scores 1 when the attempt took at most `max_ms` milliseconds; waits for a provider's queue do not count."""

    max_ms: PositiveFloat
    name: str = "latency"
    reads_answers: ClassVar[bool] = False

    async def __call__(self, given: ScoreInput) -> Score:
        if given.seconds is None:
            return self.scored(None, "the duration of the answer was not measured")
        took = 1000 * given.seconds
        reason = f"took {took:.4g} ms; at most {self.max_ms:.4g} ms are allowed"
        within = took <= self.max_ms
        return self.scored(float(within), "" if within else reason, rationale=reason, ms=took)


@scorer("cost", main="max_usd")
@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(ConfigurableScorer):
    """Scores 1 when the attempt cost at most `max_usd`. An unknown cost is a `grader` error: the trial is undecided."""

    max_usd: NonNegativeFloat
    name: str = "cost"
    reads_answers: ClassVar[bool] = False

    async def __call__(self, given: ScoreInput) -> Score:
        usage, cost = given.transcript.usage, given.transcript.usage.cost
        if cost is None or (usage.unpriced and cost <= self.max_usd):
            used = f" ({usage.tokens_without_price:,} tokens without a price)" if usage.tokens_without_price else ""
            raise GraderError(f"the cost of the answer is unknown{used}: give its model a `price`, or its usage a cost")
        reason = f"cost {cost:.4g} USD; at most {self.max_usd:.4g} USD are allowed"
        within = cost <= self.max_usd
        return self.scored(float(within), "" if within else reason, rationale=reason, usd=cost)


class Span(FrozenModel):
    """One finished span of an application."""

    name: str
    id: str
    parent: str | None = None
    started: float = Field(description="seconds since the epoch")
    ms: float
    error: str | None = None
    attributes: dict[str, JsonValue] = {}


def spans_of(given: ScoreInput, pattern: str = "*", *, failed: bool | None = None) -> tuple[Span, ...]:
    """Return the spans that the application made for a case, in the order of their starts.

    They are collected for suites with a scorer `Spans`. Raises GraderError if they were not collected.

    Args:
        given: The input of the scorer.
        pattern: A pattern of names, such as `execute_tool *` for the calls of tools.
        failed: True for only the spans with an error, False for only those without.
    """
    spans = (Span.model_validate(span) for span in _collected(given)["spans"])
    named = (span for span in spans if fnmatchcase(span.name, pattern))
    return tuple(span for span in named if failed in (None, span.error is not None))


def _collected(given: ScoreInput) -> dict[str, Any]:
    found: Any = given.transcript.metadata.get(SPANS)
    if not isinstance(found, dict):
        raise GraderError(f"case {given.case.id!r}: no spans were collected: add a scorer `Spans` to the suite")
    return found


@scorer("spans")
@dataclass(frozen=True, slots=True, kw_only=True)
class Spans(ConfigurableScorer):
    """Scores 1 when the spans that the application made for a case meet the requirements.

    `calls_of` maps names or patterns, such as `execute_tool *`, to the number of spans, or to a
    minimum and a maximum. A case without any span is a `grader` error, unless `max_spans` is 0.
    """

    calls_of: Mapping[str, NonNegativeInt | tuple[NonNegativeInt, NonNegativeInt]] | None = None
    max_spans: NonNegativeInt | None = None
    no_error_spans: bool = True
    name: str = "spans"
    needs: ClassVar[Needs] = Needs(resources=(SpanCollection(),))

    def __post_init__(self) -> None:
        ConfigurableScorer.__post_init__(self)
        for pattern, wanted in (self.calls_of or {}).items():
            if not isinstance(wanted, int) and wanted[0] > wanted[1]:
                raise UsageError(f"scorer {self.name!r}: calls_of {pattern!r}: {wanted[0]} to {wanted[1]} is no range")
        if not can_collect():
            raise UsageError(f"scorer {self.name!r}: OpenTelemetry is not installed: pip install 'bakeoff[otel]'")

    async def __call__(self, given: ScoreInput) -> Score:
        count = int(_collected(given)["count"])
        if not count and self.max_spans != 0:
            raise GraderError(
                f"case {given.case.id!r}: the application made no spans: instrument it with OpenTelemetry; spans of "
                "other processes are not seen"
            )
        too_many = self.max_spans is not None and count > self.max_spans
        problems = [f"{count} spans, at most {self.max_spans} allowed"] if too_many else []
        for pattern, wanted in (self.calls_of or {}).items():
            least, most = (wanted, wanted) if isinstance(wanted, int) else wanted
            made = len(spans_of(given, pattern))
            if not least <= made <= most:
                problems.append(f"{made} spans {pattern!r}, not {least if least == most else f'{least} to {most}'}")
        failed = [f"{span.name} ({span.error})" for span in spans_of(given, failed=True)]
        problems += [f"failed: {a_few(failed)}"] if failed and self.no_error_spans else []
        reason = "; ".join(problems) or f"{count} spans"
        return self.scored(float(not problems), reason, rationale=reason, spans=count)

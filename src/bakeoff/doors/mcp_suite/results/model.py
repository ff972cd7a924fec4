"""The report of one suite as data: what `test-report-….json` holds."""

from typing import Any

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from bakeoff._kernel.model import FrozenModel
from bakeoff.record import Usage


class RoundDetail(FrozenModel):
    """One round. `error` says why it did not pass; what is not there was not asked for."""

    round: int
    passed: bool
    error: str | None = None
    response: str = ""
    toolExecutionResult: JsonValue = None
    gradingResult: JsonValue = None

    @model_serializer(mode="wrap")
    def _without_what_was_not_done(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        optional = ("toolExecutionResult", "gradingResult")
        return {name: value for name, value in written.items() if name not in optional or value is not None}


class ModelResult(FrozenModel):
    model: str
    passRate: float | None = Field(description="of the rounds that say something about the model; null if none does")
    details: tuple[RoundDetail, ...] = ()


class CaseResult(FrozenModel):
    prompt: str
    expectedOutput: JsonValue = None
    modelResults: tuple[ModelResult, ...] = ()


class ReportSummary(FrozenModel):
    """A test is a cell: one case with one model."""

    allPass: bool
    totalTests: int
    passedTests: int
    failedTests: int
    undecidedTests: int = 0
    passThreshold: float
    suiteRule: str


class Latency(FrozenModel):
    """Seconds that answers took, without waiting for a provider's queue."""

    answers: int
    p50: float
    p90: float
    p99: float
    longest: float


class Bounds(FrozenModel):
    low: float
    high: float
    method: str


class ModelNumbers(FrozenModel):
    """What else is known of one model over the whole suite."""

    model: str
    score: float | None
    interval: Bounds | None = Field(default=None, description="95 %, over cases")
    scoredRounds: int
    lostRounds: int = Field(description="infra, budget and grader: counted for nobody")
    usage: Usage = Field(description="of all tries, a judge's included")
    cost: float | None
    latency: Latency | None = None
    replies: dict[str, int] = Field(default={}, description="bare, fenced, surrounded, prose or native")
    constrainedReplies: bool = Field(default=False, description="held to the JSON Schema of a reply")


class ConfusionEntry(FrozenModel):
    wanted: str
    called: str
    rounds: int


class ModelConfusion(FrozenModel):
    model: str
    calls: tuple[ConfusionEntry, ...]


class ConfusedTools(FrozenModel):
    wanted: str
    called: str
    rounds: int
    models: tuple[str, ...]
    wantedDescription: str = ""
    calledDescription: str = ""


class Additions(FrozenModel):
    """What Bakeoff adds."""

    version: str
    suite: str
    run: str
    mode: str
    toolsHash: str
    warnings: tuple[str, ...] = ()
    cases: tuple[str, ...]
    models: tuple[ModelNumbers, ...]
    confusion: tuple[ModelConfusion, ...]
    mostConfused: tuple[ConfusedTools, ...]


class Report(FrozenModel):
    """One suite."""

    timestamp: str
    config: dict[str, JsonValue]
    results: tuple[CaseResult, ...]
    summary: ReportSummary
    bakeoff: Additions

    @property
    def passed(self) -> bool:
        return self.summary.allPass

    def to_json(self) -> bytes:
        return (self.model_dump_json(indent=2) + "\n").encode()

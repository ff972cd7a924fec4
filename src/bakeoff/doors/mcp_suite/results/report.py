"""The report of one suite as data: what `test-report-….json` holds."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from bakeoff._kernel.model import FrozenModel
from bakeoff._version import __version__
from bakeoff.doors.mcp_suite.calls import Expected
from bakeoff.doors.mcp_suite.config import ExpectedCall
from bakeoff.doors.mcp_suite.confusion import confused_pairs, confusions, descriptions
from bakeoff.doors.mcp_suite.outcome import CellOutcome, Outcome, outcome_of
from bakeoff.doors.mcp_suite.plan import Evaluation, evaluation_of
from bakeoff.plan import Case, Plan
from bakeoff.record import Record, Usage, Verdict
from bakeoff.report import summarise
from bakeoff.report.summary import SubjectSummary


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


_LEFT_OUT = ("env", "headers")  # of servers: what they are told in confidence is nobody else's business


@dataclass(frozen=True, slots=True)
class Built:
    report: Report
    outcome: Outcome


def build_report(plan: Plan, records: Iterable[Record], run: str, started: float) -> Built:
    """Give each trial's latest record once."""
    evaluation = evaluation_of(plan)
    records = list(records)
    outcome = outcome_of(plan, records, evaluation.config.suiteRule, evaluation.config.threshold, keep=True)
    cells = dict(outcome.by_case())
    report = Report(
        timestamp=iso(started),
        config=_config(evaluation),
        results=tuple(_case_result(case, cells[case.id]) for case in plan.cases),
        summary=_summary(outcome),
        bakeoff=_additions(plan, evaluation, records, run),
    )
    return Built(report, outcome)


def iso(seconds: float) -> str:
    """As JavaScript writes it: UTC, with milliseconds and a Z."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def expected_output(case: Case) -> JsonValue:
    return _as_written(Expected.model_validate(case.expected).calls)


def _as_written(calls: Sequence[ExpectedCall] | None) -> JsonValue:
    """As a configuration spells it: one call by itself, several as a list, none as null."""
    if calls is None:
        return None
    written: list[JsonValue] = [call.model_dump(mode="json") for call in calls]
    return written[0] if len(written) == 1 else written


def response_of(record: Record) -> str:
    """What the model said; in function calling, what it called, as JSON."""
    transcript = record.transcript
    if transcript is None:
        return ""
    said = transcript.output if isinstance(transcript.output, str) else ""
    called = [score.metadata.get("called") for score in record.scores]
    if said or not called or not called[0]:
        return said
    return json.dumps(called[0], ensure_ascii=False)


def why(record: Record) -> str | None:
    """Why a round did not pass; None where it did."""
    if record.verdict is Verdict.PASS:
        return None
    failure = record.failure
    if failure is not None:
        prefix = "" if record.verdict.counts else f"not counted ({record.verdict}): "
        return f"{prefix}{failure.message}"
    return "; ".join(score.reason for score in record.scores if score.reason) or "it did not pass"


def _config(evaluation: Evaluation) -> dict[str, JsonValue]:
    """As a file would say it, without what is as usual; but what decides is there in any case."""
    config = evaluation.config
    written: dict[str, JsonValue] = config.model_dump(mode="json", exclude_defaults=True, exclude={"modelSettingsOf"})
    settings = config.modelSettings.model_dump(mode="json", exclude_defaults=True)
    for model, own in config.modelSettingsOf.items():  # the file has both under one key
        settings[model] = own.model_dump(mode="json", exclude_defaults=True)
    servers: list[JsonValue] = [
        server.model_dump(mode="json", exclude_defaults=True, exclude=set(_LEFT_OUT)) for server in config.mcpServers
    ]
    cases: list[JsonValue] = [
        {
            **case.model_dump(mode="json", exclude_defaults=True),
            "expectedOutput": _as_written(case.expectedOutput),
        }
        for case in config.testCases
    ]
    return {
        **written,
        **({"modelSettings": settings} if settings else {}),
        "testRound": config.testRound,
        "passThreshold": config.threshold,
        "concurrencyLimit": config.concurrencyLimit,
        "modelsToTest": [*config.modelsToTest],
        "testCases": cases,
        "mcpServers": servers,
    }


def _case_result(case: Case, cells: Sequence[CellOutcome]) -> CaseResult:
    return CaseResult(
        prompt=case.prompt, expectedOutput=expected_output(case), modelResults=tuple(map(_model_result, cells))
    )


def _model_result(cell: CellOutcome) -> ModelResult:
    return ModelResult(model=cell.model, passRate=cell.pass_rate, details=tuple(map(_detail, cell.records)))


def _detail(record: Record) -> RoundDetail:
    metadata = record.scores[0].metadata if record.scores else {}
    executed = metadata.get("executed")
    results = [_result(each) for each in executed] if isinstance(executed, list) else []
    return RoundDetail(
        round=record.round + 1,
        passed=record.verdict is Verdict.PASS,
        error=why(record),
        response=response_of(record),
        toolExecutionResult=None if not results else results[0] if len(results) == 1 else results,
        gradingResult=metadata.get("grading"),
    )


def _result(executed: JsonValue) -> JsonValue:
    if not isinstance(executed, dict):
        return executed
    value = executed.get("structured")
    told = executed.get("text") if value is None else value
    return {"error": told} if executed.get("is_error") else told


def _summary(outcome: Outcome) -> ReportSummary:
    return ReportSummary(
        allPass=outcome.state == "passed",
        totalTests=len(outcome.cells),
        passedTests=outcome.passed,
        failedTests=outcome.failed,
        undecidedTests=len(outcome.cells) - outcome.passed - outcome.failed,
        passThreshold=outcome.threshold,
        suiteRule=outcome.rule,
    )


def _additions(plan: Plan, evaluation: Evaluation, records: Sequence[Record], run: str) -> Additions:
    found = confusions(plan, records)
    words = descriptions(evaluation.tools)
    return Additions(
        version=__version__,
        suite=evaluation.file,
        run=run,
        mode=evaluation.config.mode,
        toolsHash=evaluation.tools_hash,
        warnings=evaluation.warnings,
        cases=tuple(case.id for case in plan.cases),
        models=tuple(_numbers(subject, records) for subject in summarise(plan, records).subjects),
        confusion=tuple(
            ModelConfusion(
                model=one.model,
                calls=tuple(
                    ConfusionEntry(wanted=wanted, called=called, rounds=count)
                    for (wanted, called), count in one.counts.items()
                ),
            )
            for one in found
        ),
        mostConfused=tuple(
            ConfusedTools(
                wanted=pair.wanted,
                called=pair.called,
                rounds=pair.rounds,
                models=pair.models,
                wantedDescription=words.get(pair.wanted, ""),
                calledDescription=words.get(pair.called, ""),
            )
            for pair in confused_pairs(found)
        ),
    )


def _numbers(subject: SubjectSummary, records: Sequence[Record]) -> ModelNumbers:
    own = [record for record in records if record.subject == subject.subject]
    transcripts = [record.transcript for record in own if record.transcript is not None]
    manners = Counter(str(record.scores[0].metadata.get("manner")) for record in own if record.scores)
    bounds = subject.interval
    return ModelNumbers(
        model=subject.subject,
        score=subject.score,
        interval=Bounds(low=bounds.low, high=bounds.high, method=bounds.method) if bounds else None,
        scoredRounds=subject.scored,
        lostRounds=sum(subject.lost.values()),
        usage=subject.spent,
        cost=subject.spent.cost,
        latency=latency_of([step.seconds for each in transcripts for step in each.steps if step.seconds is not None]),
        replies={manner: count for manner, count in manners.items() if manner != "None"},
        constrainedReplies=any(each.metadata.get("constrained") is True for each in transcripts),
    )


def latency_of(seconds: Sequence[float]) -> Latency | None:
    """Percentiles by nearest rank: each of them is the time that some answer really took."""
    if not seconds:
        return None
    ordered = sorted(seconds)

    def at(share: float) -> float:
        rank = max(1, -int(-share * len(ordered) // 1))
        return ordered[min(rank, len(ordered)) - 1]

    return Latency(answers=len(ordered), p50=at(0.5), p90=at(0.9), p99=at(0.99), longest=ordered[-1])

"""Build the report of one suite from the records of its run: the data of `test-report-….json`."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import Field, JsonValue

from bakeoff._kernel.model import FrozenModel, sparse_field
from bakeoff._kernel.text import count_of
from bakeoff._version import __version__
from bakeoff.doors.mcp.coverage import Coverage
from bakeoff.doors.mcp.outcome import CallOutcome, CellOutcome, ConfusedTools, Confusion, most_confused
from bakeoff.doors.mcp.plan import McpPlanSettings, mode_of
from bakeoff.doors.result_files import timestamp_of
from bakeoff.plan import Case, Plan
from bakeoff.record import Record, Usage
from bakeoff.report.formatting import UNKNOWN, cost
from bakeoff.report.gates import GateState
from bakeoff.report.summary import Comparisons, Interval, PassK, SubjectSummary, Summary, UnequalLosses
from bakeoff.scorers.mcp.calls import CaseExpectation, ExpectedTurn, Mode, turns_in, written_calls
from bakeoff.scorers.mcp.execution import EndResult, end_results_in
from bakeoff.verdict import Verdict


class TurnDetail(FrozenModel):
    """One turn of a round."""

    turn: int
    passed: bool
    error: str | None = None
    response: JsonValue = None
    toolExecutionResult: JsonValue = sparse_field(None)


class RoundDetail(FrozenModel):
    """One round. `error` says why it did not pass. Results that were not asked for are absent."""

    round: int
    passed: bool
    error: str | None = None
    response: JsonValue = Field(default=None, description="the calls that were read, or else the text of the model")
    toolExecutionResult: JsonValue = sparse_field(None)
    gradingResult: JsonValue = sparse_field(None)
    turns: tuple[TurnDetail, ...] = sparse_field((), "those that were asked: a turn that fails ends the case")
    failedTurn: int | None = sparse_field(None)
    endState: tuple[EndResult, ...] = sparse_field((), "each check after the case")


class ModelResult(FrozenModel):
    """The rounds of one case with one model."""

    model: str
    passRate: float | None = Field(description="of the scored rounds; null if there are none")
    details: tuple[RoundDetail, ...] = ()


class ExpectedTurnResult(FrozenModel):
    """One turn of a case as the configuration has it: the prompt and the expected calls."""

    prompt: str
    expectedOutput: JsonValue = None


class McpCaseResult(FrozenModel):
    """One case with the results of all models."""

    prompt: str
    expectedOutput: JsonValue = None
    turns: tuple[ExpectedTurnResult, ...] = sparse_field(())
    modelResults: tuple[ModelResult, ...] = ()


class ReportSummary(FrozenModel):
    """Counts of tests. A test is a cell: one case with one model."""

    allPass: bool
    totalTests: int
    passedTests: int
    failedTests: int
    undecidedTests: int = 0
    passThreshold: float
    suiteRule: str


class LatencyPercentiles(FrozenModel):
    """Seconds per answer, without the time in a provider's queue."""

    answers: int
    p50: float
    p90: float
    p99: float
    longest: float


class ModelNumbers(FrozenModel):
    """The statistics of one model over the whole suite."""

    model: str
    score: float | None
    interval: Interval | None = Field(default=None, description="95 %, over cases")
    passAtK: PassK | None = sparse_field(None, "one of all rounds of a case passes")
    passHatK: PassK | None = sparse_field(None, "all rounds of a case pass")
    scoredRounds: int
    lostRounds: int = Field(description="infra, budget and grader: they count neither way")
    usage: Usage = Field(description="of all attempts, including the judge")
    cost: float | None = Field(description="null if it is unknown")
    latency: LatencyPercentiles | None = None
    replies: dict[str, int] = Field(default={}, description="bare, fenced, surrounded, prose or native")
    constrainedReplies: bool = Field(default=False, description="the reply had to follow a JSON Schema")


class ConfusionEntry(FrozenModel):
    """The number of rounds in which one tool was expected and another, or the same, was called."""

    wanted: str
    called: str
    rounds: int


class ModelConfusion(FrozenModel):
    """The tools that one model called, against the expected ones."""

    model: str
    calls: tuple[ConfusionEntry, ...]


class McpAdditions(FrozenModel):
    """The keys that Bakeoff adds to the format of mcp-testing-framework."""

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
    coverage: Coverage | None = sparse_field(None)
    comparisons: Comparisons | None = sparse_field(None, "of a run that ends when they are decided")
    unequalLosses: tuple[UnequalLosses, ...] = sparse_field(
        (), "pairs of models that lost unequal shares of their rounds: the comparison may be biased"
    )


class McpReport(FrozenModel):
    """One suite."""

    timestamp: str
    config: dict[str, JsonValue]
    results: tuple[McpCaseResult, ...]
    summary: ReportSummary
    bakeoff: McpAdditions

    @property
    def passed(self) -> bool:
        """Return True if the suite passed and its cases exercise enough of the tools."""
        coverage = self.bakeoff.coverage
        return self.summary.allPass and (coverage is None or coverage.passed)

    def to_json(self) -> str:
        """Return the content of `test-report-….json`."""
        return self.model_dump_json(indent=2) + "\n"


def build_report(
    plan: Plan,
    settings: McpPlanSettings,
    outcome: CallOutcome,
    found: Sequence[Confusion],
    summary: Summary,
    *,
    run: str,
    started: float,
) -> McpReport:
    """Build the report of a run from the outcome of its cells, its confusion matrices (`found`) and its summary."""
    cells = dict(outcome.by_case())
    return McpReport(
        timestamp=timestamp_of(started),
        config={"testRound": plan.rounds, "passThreshold": settings.threshold, **settings.configuration},
        results=tuple(
            McpCaseResult(
                prompt=case.prompt,
                expectedOutput=expected_output(case),
                turns=tuple(
                    ExpectedTurnResult(prompt=turn.prompt, expectedOutput=written_calls(turn.calls))
                    for turn in expected_turns(case)
                ),
                modelResults=tuple(
                    ModelResult(
                        model=cell.model,
                        passRate=cell.pass_rate,
                        details=tuple(_detail(record, mode_of(plan)) for record in cell.records),
                    )
                    for cell in cells.get(case.id, ())
                ),
            )
            for case in plan.cases
        ),
        summary=ReportSummary(
            allPass=outcome.state is GateState.PASSED,
            totalTests=len(outcome.cells),
            passedTests=outcome.passed,
            failedTests=outcome.failed,
            undecidedTests=len(outcome.cells) - outcome.passed - outcome.failed,
            passThreshold=outcome.threshold,
            suiteRule=outcome.rule,
        ),
        bakeoff=_additions(plan, settings, outcome.cells, found, summary, run),
    )


def expected_output(case: Case, turn: int | None = None) -> JsonValue:
    """Return the expected calls of a case, or of one turn (counted from 1), as a configuration writes them."""
    expected = CaseExpectation.model_validate(case.expected)
    return written_calls((expected if turn is None else expected.turns[turn - 1]).calls)


def expected_turns(case: Case) -> tuple[ExpectedTurn, ...]:
    """Return the turns of a case with several."""
    turns = CaseExpectation.model_validate(case.expected).turns
    return turns if len(turns) > 1 else ()


def failed_turn(record: Record) -> int | None:
    """Return the number, from 1, of the turn that ended a round; None if no turn did."""
    return next((number for number, turn in enumerate(turns_in(record), 1) if turn.reason), None)


def response_of(record: Record) -> str:
    """Return the text of the model or, in function calling, its calls as JSON."""
    transcript = record.transcript
    if transcript is None:
        return ""
    text = transcript.output if isinstance(transcript.output, str) else ""
    called = [score.metadata.get("called") for score in record.scores]
    if text or not called or not called[0]:
        return text
    return json.dumps(called[0], ensure_ascii=False)


def failure_reason(record: Record) -> str | None:
    """Return why a round did not pass, or None if it passed."""
    if record.verdict is Verdict.PASS:
        return None
    failure = record.failure
    if failure is not None:
        prefix = "" if record.verdict.counts else f"not counted ({record.verdict}): "
        return f"{prefix}{failure.message}"
    return "; ".join(score.reason for score in record.scores if score.reason) or "it did not pass"


def _detail(record: Record, mode: Mode) -> RoundDetail:
    """Return one round in the form of the report."""
    metadata = record.scores[0].metadata if record.scores else {}
    executed, called = metadata.get("executed"), metadata.get("called")
    if isinstance(called, list) and len(called) == 1:
        called = called[0]
    return RoundDetail(
        round=record.round + 1,
        passed=record.verdict is Verdict.PASS,
        error=failure_reason(record),
        response=(called if mode != "agent" else None) or response_of(record),
        toolExecutionResult=_results(executed if isinstance(executed, list) else []),
        gradingResult=_grade(metadata.get("grading")),
        turns=tuple(
            TurnDetail(
                turn=number,
                passed=not turn.reason,
                error=turn.reason or None,
                response=written_calls(turn.called or None),
                toolExecutionResult=_results([each.model_dump(mode="json") for each in turn.executed]),
            )
            for number, turn in enumerate(turns_in(record), 1)
        ),
        failedTurn=failed_turn(record),
        endState=tuple(end_results_in(record)),
    )


def _results(executed: Sequence[JsonValue]) -> JsonValue:
    """Return the results of calls as mcp-testing-framework writes them: one alone, several as a list, none as null."""
    results: list[JsonValue] = []
    for each in executed:
        if isinstance(each, dict):
            value = each.get("text") if each.get("structured") is None else each["structured"]
            good = not each.get("is_error")
            each = {"success": good, ("content" if good else "error"): value}
        results.append(each)
    return None if not results else results[0] if len(results) == 1 else results


def _grade(grading: JsonValue) -> JsonValue:
    """Return a judge's grade in the form of mcp-testing-framework, or None if nothing was graded."""
    if not isinstance(grading, dict):
        return None
    grade = {"grade": "PASS" if grading.get("passed") else "FAIL", "reasoning": grading.get("reason", "")}
    final = {"finalMessage": grading["final"]} if grading.get("final") is not None else {}
    return {**grade, **final, "judge": grading.get("judge", "")}


def _additions(
    plan: Plan,
    settings: McpPlanSettings,
    cells: Iterable[CellOutcome],
    found: Sequence[Confusion],
    summary: Summary,
    run: str,
) -> McpAdditions:
    """Return the statistics that only Bakeoff reports, such as those of models and confused tools."""
    records = [record for cell in cells for record in cell.records]
    return McpAdditions(
        version=__version__,
        suite=settings.file,
        run=run,
        mode=mode_of(plan),
        toolsHash=settings.tools_hash,
        warnings=settings.warnings,
        coverage=settings.coverage,
        cases=tuple(case.id for case in plan.cases),
        models=tuple(_numbers(subject, records) for subject in summary.subjects),
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
        mostConfused=most_confused(found, settings.tools),
        comparisons=summary.comparisons,
        unequalLosses=summary.unequal_losses,
    )


def _numbers(subject: SubjectSummary, records: Sequence[Record]) -> ModelNumbers:
    """Return the statistics of one model: those that every report has, and the forms of its replies."""
    own = [record for record in records if record.subject == subject.subject]
    transcripts = [record.transcript for record in own if record.transcript is not None]
    forms = Counter(str(record.scores[0].metadata.get("manner")) for record in own if record.scores)
    return ModelNumbers(
        model=subject.subject,
        score=subject.score,
        interval=subject.interval,
        passAtK=subject.pass_at_k,
        passHatK=subject.pass_hat_k,
        scoredRounds=subject.scored,
        lostRounds=sum(subject.lost.values()),
        usage=subject.spent,
        cost=subject.spent.cost,
        latency=latency_of([step.seconds for each in transcripts for step in each.steps if step.seconds is not None]),
        replies={form: count for form, count in forms.items() if form != "None"},
        constrainedReplies=any(each.metadata.get("constrained") is True for each in transcripts),
    )


def cost_of(models: Sequence[ModelNumbers]) -> str:
    """Return the cost of models together. An unknown cost is shown as unknown, and is not part of the sum."""
    known = [one.cost for one in models if one.cost is not None]
    unknown = [one for one in models if one.cost is None and one.usage.requests]
    if not known:
        return "unknown" if unknown else UNKNOWN
    without = f" and unknown for {count_of(len(unknown), 'model')}" if unknown else ""
    return f"{cost(sum(known))}{without}"


def latency_of(seconds: Sequence[float]) -> LatencyPercentiles | None:
    """Return percentiles by nearest rank: each is the time of a real answer."""
    if not seconds:
        return None
    ordered = sorted(seconds)
    p50, p90, p99 = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.9, 0.99))
    return LatencyPercentiles(answers=len(ordered), p50=p50, p90=p90, p99=p99, longest=ordered[-1])

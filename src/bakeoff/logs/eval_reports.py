"""Read the reports of evaluation libraries, which hold all their cases in one JSON file.

DeepEval writes test runs, `test_run_*.json` and `.latest_run_full.json`; pydantic-evals writes reports with
`EvaluationReportAdapter.dump_json`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bakeoff._kernel.json import as_json
from bakeoff.logs.trials import (
    Amount,
    Count,
    ForeignLog,
    LoggedObject,
    LoggedTrial,
    LoggedUsage,
    broken,
    broken_score,
    check,
    check_items,
    name_of,
    read_json,
    score_of,
    subject_of,
    tags_of,
    text_of,
    text_steps,
)
from bakeoff.plan import Case, SubjectSpec
from bakeoff.record import NO_USAGE, Failure, Part, Score, Step, Text, ToolCall, Transcript, Usage

WRAPPER = "testRunData"
"""The key under which some files of DeepEval hold the test run."""


class _DeepevalMetric(LoggedUsage):
    name: str
    threshold: Amount = None
    success: bool | None = None
    score: Any = None
    reason: str | None = None
    flaky: bool = False
    evaluationModel: str | None = None
    error: str | None = None


class _DeepevalTool(LoggedObject):
    name: str
    inputParameters: Any = None
    output: Any = None


class _Turn(LoggedObject):
    role: str
    content: Any = ""
    toolsCalled: list[_DeepevalTool] | None = None


class _DeepevalTest(LoggedObject):
    """A test case with one answer, or a conversation with `turns`."""

    name: str
    input: Any = None
    actualOutput: Any = None
    expectedOutput: Any = None
    expectedOutcome: Any = None
    scenario: Any = None
    turns: list[_Turn] | None = None
    toolsCalled: list[_DeepevalTool] | None = None
    tokenCost: Amount = None
    inputTokenCount: Count | None = None
    outputTokenCount: Count | None = None
    completionTime: Amount = None
    runDuration: Amount = None
    metricsData: list[_DeepevalMetric] | None = None
    metadata: Any = None
    tags: list[str] | None = None


class _Run(LoggedObject):
    testFile: str | None = None
    identifier: str | None = None
    hyperparameters: dict[str, Any] | None = None
    datasetAlias: str | None = None
    testCases: list[Any] = []
    conversationalTestCases: list[Any] = []


def read_test_run(path: Path) -> ForeignLog:
    """Read a whole test run."""
    data = read_json(path)
    run = check(_Run, data[WRAPPER] if isinstance(data, dict) and WRAPPER in data else data, path)
    model = (run.hyperparameters or {}).get("model")
    subject = subject_of(model if isinstance(model, str) else run.identifier or "deepeval", run.hyperparameters)
    lists = {"testCases": run.testCases, "conversationalTestCases": run.conversationalTestCases}
    return ForeignLog(
        tool="DeepEval",
        format="DeepEval test run (.json)",
        name=name_of(run.datasetAlias or run.testFile or run.identifier or path.stem),
        trials=lambda: (_trial(test, subject) for test in check_items(_DeepevalTest, lists, path)),
    )


def _trial(test: _DeepevalTest, subject: SubjectSpec) -> LoggedTrial:
    metrics = test.metricsData or []
    turns = test.turns or []
    flat = tags_of(test.metadata)
    asked = test.input if test.input is not None else test.scenario
    if asked is None:
        asked = next((turn.content for turn in turns if turn.role == "user"), "")
    return LoggedTrial(
        case=Case(
            id=name_of(test.name),
            prompt=text_of(asked),
            expected=as_json(test.expectedOutput if test.expectedOutput is not None else test.expectedOutcome),
            tags={**{name_of(tag): "yes" for tag in (test.tags or ())[:50]}, **flat},
        ),
        subject=subject,
        attempt_seconds=test.completionTime,
        score_seconds=test.runDuration,
        transcript=_transcript(test, turns),
        scores=tuple(_score(each) for each in metrics if not each.flaky),
        asides=tuple(_score(each) for each in metrics if each.flaky),  # DeepEval does not judge by these
        judging=sum((each.usage() for each in metrics), NO_USAGE),
    )


def _transcript(test: _DeepevalTest, turns: list[_Turn]) -> Transcript:
    said = [(turn.content, turn.toolsCalled) for turn in turns if turn.role == "assistant"]
    steps = said or [(test.actualOutput, test.toolsCalled)]
    return Transcript(
        output=as_json(test.actualOutput if not said else said[-1][0]),
        steps=tuple(Step(parts=tuple(_parts(content, tools))) for content, tools in steps),
        usage=Usage(input=test.inputTokenCount or 0, output=test.outputTokenCount or 0, cost=test.tokenCost),
    )


def _parts(content: Any, tools: list[_DeepevalTool] | None) -> Iterator[Part]:
    for tool in tools or ():
        yield ToolCall(name=name_of(tool.name), arguments=as_json(tool.inputParameters), result=as_json(tool.output))
    if content is not None:
        yield Text(text=text_of(content))


def _score(metric: _DeepevalMetric) -> Score:
    """Return a score of 1 if the metric reached its threshold. A metric that raised an exception is a grader error."""
    if metric.error is not None:
        return broken_score(metric.name, broken(metric.error, otherwise="MetricError"))
    about = {"score": metric.score, "threshold": metric.threshold, "judge": metric.evaluationModel}
    return score_of(metric.name, metric.success, metric.reason or "", **about)


class _EvaluationResult(LoggedObject):
    value: Any = None
    reason: str | None = None


class _EvaluatorFailure(LoggedObject):
    name: str
    error_message: str = ""
    error_stacktrace: str = ""
    error_type: str | None = None

    def failure(self) -> Failure:
        """Return the exception of the evaluator."""
        return broken(self.error_message, self.error_stacktrace, self.error_type or "", otherwise="EvaluatorError")


class _EvaluatedCase(LoggedObject):
    """A case with its results or, if its task raised an exception, with the error message."""

    name: str
    inputs: Any = None
    metadata: Any = None
    expected_output: Any = None
    output: Any = None
    metrics: dict[str, Any] = {}
    scores: dict[str, _EvaluationResult] = {}
    labels: dict[str, _EvaluationResult] = {}
    assertions: dict[str, _EvaluationResult] = {}
    task_duration: Amount = None
    total_duration: Amount = None
    source_case_name: str | None = None
    evaluator_failures: list[_EvaluatorFailure] = []
    error_message: str | None = None
    error_stacktrace: str = ""


class _EvaluationReport(LoggedObject):
    name: str
    dataset_name: str | None = None
    experiment_metadata: dict[str, Any] | None = None
    cases: list[Any] = []
    failures: list[Any] = []


def read_report(path: Path) -> ForeignLog:
    """Read a whole report."""
    report = check(_EvaluationReport, read_json(path), path)
    subject = subject_of(report.name, report.experiment_metadata)
    lists = {"cases": report.cases, "failures": report.failures}
    return ForeignLog(
        tool="pydantic-evals",
        format="pydantic-evals report (.json)",
        name=name_of(report.dataset_name or report.name),
        trials=lambda: (_evaluated_trial(case, subject) for case in check_items(_EvaluatedCase, lists, path)),
    )


def _evaluated_trial(case: _EvaluatedCase, subject: SubjectSpec) -> LoggedTrial:
    """Return a trial. Assertions decide its score; numbers are only shown beside them, or count if there are none."""
    assertions = [score_of(name, each.value, each.reason or "") for name, each in case.assertions.items()]
    numbers = [score_of(name, each.value, each.reason or "") for name, each in case.scores.items()]
    labels = [score_of(name, each.value, each.reason or each.value) for name, each in case.labels.items()]
    lost = [broken_score(each.name, each.failure()) for each in case.evaluator_failures]
    done, total, output = case.task_duration, case.total_duration, as_json(case.output)
    # The metrics of a user may have these names too, and any value.
    known = {name: each for name, each in case.metrics.items() if isinstance(each, int | float) and 0 <= each < 10**15}
    used = LoggedUsage.model_validate({name: each if name == "cost" else int(each) for name, each in known.items()})
    about = {"metrics": as_json(case.metrics)} if case.metrics else {}
    answered = Transcript(output=output, steps=text_steps(output), usage=used.usage(), metadata=about)
    message = case.error_message
    failure = None if message is None else broken(message, case.error_stacktrace, otherwise="TaskError")
    return LoggedTrial(
        case=Case(
            id=name_of(case.source_case_name or case.name),
            prompt=text_of(case.inputs),
            expected=as_json(case.expected_output),
            tags=tags_of(case.metadata),
        ),
        subject=subject,
        attempt_seconds=done,
        score_seconds=max(0.0, total - done) if total is not None and done is not None else None,
        failure=failure,
        transcript=None if failure else answered,
        scores=(*(assertions or numbers), *lost),
        asides=(*(numbers if assertions else ()), *labels),
    )

"""Read test runs of DeepEval: the files `test_run_*.json` and `.latest_run_full.json` that it writes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bakeoff._kernel.json import as_json
from bakeoff.logs.trials import (
    RECORDED,
    Amount,
    Count,
    ForeignLog,
    LoggedObject,
    LoggedTrial,
    LoggedUsage,
    broken,
    check,
    name_of,
    read_json,
    score_of,
    tags_of,
    text_of,
)
from bakeoff.plan import Case, SubjectSpec
from bakeoff.record import NO_USAGE, Part, Score, Step, Text, ToolCall, Transcript, Usage

WRAPPER = "testRunData"
"""The key under which some of its files hold the test run."""


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
    options = {str(key): as_json(value) for key, value in (run.hyperparameters or {}).items()}
    model = options.get("model")
    name = model if isinstance(model, str) else run.identifier or "deepeval"
    subject = SubjectSpec(kind=RECORDED, name=name_of(name), options=options)

    def trials() -> Iterator[LoggedTrial]:
        for key, listed in (("testCases", run.testCases), ("conversationalTestCases", run.conversationalTestCases)):
            for place, each in enumerate(listed):
                yield _trial(check(_DeepevalTest, each, path, f"{key}[{place}]"), subject)

    return ForeignLog(
        tool="DeepEval",
        format="DeepEval test run (.json)",
        name=name_of(run.datasetAlias or run.testFile or run.identifier or path.stem),
        trials=trials,
    )


def _trial(test: _DeepevalTest, subject: SubjectSpec) -> LoggedTrial:
    metrics = test.metricsData or []
    turns = test.turns or []
    flat = tags_of(test.metadata if isinstance(test.metadata, dict) else {})
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
    """Return 1 where the metric reached its own threshold. A metric that raised an exception broke as a grader."""
    if metric.error is not None:
        failure = broken(metric.error, otherwise="MetricError").model_copy(update={"kind": "grader"})
        return Score(name=name_of(metric.name), failure=failure)
    about = {"score": metric.score, "threshold": metric.threshold, "judge": metric.evaluationModel}
    return score_of(metric.name, metric.success, metric.reason or "", **about)

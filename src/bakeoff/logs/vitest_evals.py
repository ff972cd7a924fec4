"""Read reports of vitest-evals, which Vitest's JSON reporter writes."""

from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from pydantic import AliasPath

from bakeoff._kernel.json import as_json
from bakeoff.logs.trials import (
    END_OF_TIME,
    Amount,
    ForeignLog,
    LoggedObject,
    LoggedTrial,
    LoggedUsage,
    broken,
    check,
    check_items,
    name_of,
    named,
    read_json,
    score_of,
    subject_of,
    text_of,
    text_steps,
)
from bakeoff.plan import Case
from bakeoff.record import NO_USAGE, Failure, Step, ToolCall, Transcript

PASSED = "vitest"
"""The scorer of an imported test, which scores 1 if Vitest counts it as passed."""
_EXPECTATIONS = ("AssertionError", "Error:")
"""How the messages of expectations begin; other exceptions are those of judges and of the test itself."""


class _JudgeScore(LoggedObject):
    name: str | None = None
    score: Any = None
    metadata: dict[str, Any] = {}


class _VitestTool(LoggedObject):
    name: str
    arguments: Any = None
    result: Any = None


class _VitestTest(LoggedObject):
    fullName: str
    status: str
    duration: Amount = None
    failureMessages: list[str] | None = None
    scores: list[_JudgeScore] = named(AliasPath("meta", "eval", "scores"), default=[])
    average: Any = named(AliasPath("meta", "eval", "avgScore"))
    tools: list[_VitestTool] = named(AliasPath("meta", "eval", "toolCalls"), default=[])
    harness: str | None = named(AliasPath("meta", "harness", "name"))
    run: dict[str, Any] | None = named(AliasPath("meta", "harness", "run"))
    errors: list[dict[str, Any]] = named(AliasPath("meta", "harness", "run", "errors"), default=[])
    events: list[dict[str, Any]] = named(AliasPath("meta", "harness", "run", "session", "events"), default=[])
    usage: LoggedUsage | None = named(AliasPath("meta", "harness", "run", "usage"))
    model: str | None = named(AliasPath("meta", "harness", "run", "usage", "model"))


class _VitestFile(LoggedObject):
    name: str
    assertionResults: list[Any] = []


class _VitestReport(LoggedObject):
    startTime: float | None = named("startTime", ge=0, lt=1000 * END_OF_TIME)
    testResults: list[_VitestFile]


def read_report(path: Path) -> ForeignLog:
    """Read a whole report."""
    report = check(_VitestReport, read_json(path), path)
    files = {PurePath(file.name).name: file.assertionResults for file in report.testResults}
    tests = [(file, test) for file, each in files.items() for test in check_items(_VitestTest, {file: each}, path)]
    # A test that ended before its harness answered names no model, or not even the harness.
    harness = next((test.harness for _, test in tests if test.harness), PASSED)
    models = {test.harness or harness: test.model for _, test in reversed(tests) if test.model}

    def trials() -> Iterator[LoggedTrial]:
        for file, test in tests:
            if test.status in ("passed", "failed"):
                name = test.harness or harness
                yield _trial(file, test).model_copy(update={"subject": subject_of(name, {"model": models.get(name)})})

    return ForeignLog(
        tool="vitest-evals",
        format="vitest-evals report (.json)",
        name=name_of(", ".join(files) or path.stem),
        trials=trials,
        created=None if report.startTime is None else report.startTime / 1000,
        content_known=False,  # a test that ended early does not have its input
    )


def _trial(file: str, test: _VitestTest) -> LoggedTrial:
    asked = next((event.get("content") for event in test.events if event.get("role") == "user"), "")
    output = as_json((test.run or {}).get("output"))
    calls = tuple(
        ToolCall(name=name_of(tool.name), arguments=as_json(tool.arguments), result=as_json(tool.result))
        for tool in test.tools
    )
    judged = [
        score_of(each.name or "score", each.score, each.metadata.get("rationale") or "", **each.metadata)
        for each in test.scores
    ]
    average = [score_of("avgScore", test.average)] if len(judged) > 1 else []
    reason = (test.failureMessages or [""])[0]
    return LoggedTrial(
        case=Case(id=name_of(f"{file} > {test.fullName}"), prompt=text_of(asked)),
        subject=subject_of(PASSED),
        attempt_seconds=None if test.duration is None else test.duration / 1000,
        failure=_failure(test, reason),
        transcript=Transcript(
            output=output,
            steps=(*([Step(parts=calls)] if calls else []), *text_steps(output)),
            usage=test.usage.usage() if test.usage else NO_USAGE,
        ),
        scores=(score_of(PASSED, test.status == "passed", reason.split("\n    at ")[0]),),
        asides=(*judged, *average),
    )


def _failure(test: _VitestTest, message: str) -> Failure | None:
    """Return the error of the harness, of a judge or of the test itself; None if an expectation was not met."""
    if test.status == "passed":
        return None
    if test.errors:
        first = test.errors[0]
        return broken(first.get("message"), kind=text_of(first.get("type")), otherwise="HarnessError")
    if test.scores or message.startswith("AssertionError") or (test.run and message.startswith(_EXPECTATIONS)):
        return None
    found = broken(message.split("\n    at ")[0], message, otherwise="TestError")
    return found.model_copy(update={"kind": "grader"}) if test.run else found

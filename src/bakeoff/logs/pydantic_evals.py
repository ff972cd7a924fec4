"""Read reports of pydantic-evals, as `EvaluationReportAdapter.dump_json` writes them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bakeoff._kernel.json import as_json
from bakeoff.logs.trials import (
    RECORDED,
    Amount,
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
from bakeoff.record import Score, Step, Text, Transcript


class _EvaluationResult(LoggedObject):
    value: Any = None
    reason: str | None = None


class _EvaluatorFailure(LoggedObject):
    name: str
    error_message: str = ""
    error_stacktrace: str = ""
    error_type: str | None = None


class _Case(LoggedObject):
    """A case, or one whose task raised an exception and has a message instead of results."""

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
    options = {str(key): as_json(value) for key, value in (report.experiment_metadata or {}).items()}
    subject = SubjectSpec(kind=RECORDED, name=name_of(report.name), options=options)

    def trials() -> Iterator[LoggedTrial]:
        for key, listed in (("cases", report.cases), ("failures", report.failures)):
            for place, each in enumerate(listed):
                yield _trial(check(_Case, each, path, f"{key}[{place}]"), subject)

    return ForeignLog(
        tool="pydantic-evals",
        format="pydantic-evals report (.json)",
        name=name_of(report.dataset_name or report.name),
        trials=trials,
    )


def _trial(case: _Case, subject: SubjectSpec) -> LoggedTrial:
    """Return a trial. Assertions decide it, and numbers are shown beside them; without assertions, numbers count."""
    assertions = [score_of(name, each.value, each.reason or "") for name, each in case.assertions.items()]
    numbers = [score_of(name, each.value, each.reason or "") for name, each in case.scores.items()]
    labels = [score_of(name, each.value, each.reason or each.value) for name, each in case.labels.items()]
    lost = [
        Score(
            name=name_of(each.name),
            failure=broken(
                each.error_message, each.error_stacktrace, each.error_type or "", otherwise="EvaluatorError"
            ).model_copy(update={"kind": "grader"}),
        )
        for each in case.evaluator_failures
    ]
    done, total, output = case.task_duration, case.total_duration, as_json(case.output)
    # The metrics of a user may have these names too, and any value.
    known = {name: each for name, each in case.metrics.items() if isinstance(each, int | float) and 0 <= each < 10**15}
    used = LoggedUsage.model_validate({name: each if name == "cost" else int(each) for name, each in known.items()})
    return LoggedTrial(
        case=Case(
            id=name_of(case.source_case_name or case.name),
            prompt=text_of(case.inputs),
            expected=as_json(case.expected_output),
            tags=tags_of(case.metadata if isinstance(case.metadata, dict) else {}),
        ),
        subject=subject,
        attempt_seconds=done,
        score_seconds=max(0.0, total - done) if total is not None and done is not None else None,
        failure=None
        if case.error_message is None
        else broken(case.error_message, case.error_stacktrace, otherwise="TaskError"),
        transcript=None
        if case.error_message is not None
        else Transcript(
            output=output,
            steps=(Step(parts=(Text(text=text_of(output)),)),) if output is not None else (),
            usage=used.usage(),
            metadata={"metrics": as_json(case.metrics)} if case.metrics else {},
        ),
        scores=(*(assertions or numbers), *lost),
        asides=(*(numbers if assertions else ()), *labels),
    )

"""Read the output of `promptfoo eval -o`: JSON, or JSON Lines with one result in each line."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasPath, Field

from bakeoff._kernel.json import as_json
from bakeoff._kernel.text import visible
from bakeoff.errors import RunFolderError
from bakeoff.logs.trials import (
    Amount,
    ForeignLog,
    LoggedObject,
    LoggedTrial,
    LoggedUsage,
    broken,
    check,
    json_lines,
    name_of,
    named,
    read_json,
    score_of,
    seconds_of,
    subject_of,
    tags_of,
    text_of,
    text_steps,
)
from bakeoff.plan import Case
from bakeoff.record import TESTS, Failure, Transcript

PASSED = "promptfoo"
"""The scorer of an imported result, which scores 1 if promptfoo counts it as a success."""
_EXPECTED = {"equals", "contains", "icontains", "regex", "starts-with", "similar"}
"""The types of assertions whose value describes the expected answer."""

Rows = Callable[[], Iterator[tuple[str, Any]]]


class _Provider(LoggedObject):
    id: str = ""
    label: str | None = None


class _Prompt(LoggedObject):
    raw: str = ""
    label: str = ""


class _Response(LoggedObject):
    output: Any = None
    error: Any = None
    tokenUsage: LoggedUsage | None = None
    cost: Amount = None
    cached: bool | None = None
    finishReason: str | None = None


class _Assertion(LoggedObject):
    passed: bool = Field(default=False, alias="pass")
    score: Any = None
    reason: str | None = None
    assertion: dict[str, Any] | None = None

    def as_test(self) -> dict[str, Any]:
        """Return the assertion as one test of an answer."""
        about = self.assertion or {}
        words = [str(about.get("metric") or about.get("type") or "assertion")]
        if isinstance(about.get("value"), str | int | float):
            words.append(str(about["value"]))
        return {"name": visible(" ".join(words), 120), "passed": self.passed, "message": self.reason or ""}


class _PromptfooGrading(LoggedObject):
    reason: str | None = None
    componentResults: list[_Assertion] | None = None
    tokensUsed: LoggedUsage | None = None


class _PromptfooTest(LoggedObject):
    description: str | None = None
    vars: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    asserts: list[Any] | None = Field(default=None, alias="assert")


class _PromptfooResult(LoggedObject):
    provider: _Provider | str
    prompt: _Prompt = _Prompt()
    vars: dict[str, Any] | None = None
    testCase: _PromptfooTest = _PromptfooTest()
    success: bool
    score: Any = None
    namedScores: dict[str, Any] | None = None
    failureReason: Literal[0, 1, 2] | None = None
    error: str | None = None
    latencyMs: Amount = None
    response: _Response | None = None
    gradingResult: _PromptfooGrading | None = None


class _File(LoggedObject):
    description: Any = named(AliasPath("config", "description"))
    version: str | None = named(AliasPath("metadata", "promptfooVersion"))
    created: str | None = named(AliasPath("metadata", "evaluationCreatedAt"))
    results: dict[str, Any]


def read_output(path: Path) -> ForeignLog:
    """Read a whole `.json` output."""
    file = check(_File, read_json(path), path)
    listed = file.results.get("results")
    if not isinstance(listed, list):
        raise RunFolderError(f"{path}: results.results: a list is expected; outputs of promptfoo 0.90 or newer have it")
    return _log(
        path,
        lambda: ((f"results.results[{place}]", each) for place, each in enumerate(listed)),
        "promptfoo output (.json)",
        name=name_of(file.description or path.stem),
        version=name_of(file.version) if file.version else None,
        created=seconds_of(file.created or file.results.get("timestamp")),
    )


def read_lines(path: Path) -> ForeignLog:
    """Read a `.jsonl` output, line by line."""
    return _log(path, lambda: json_lines(path), "promptfoo output (.jsonl)", name=name_of(path.stem))


def _log(path: Path, rows: Rows, format_: str, *, name: str, **known: Any) -> ForeignLog:
    def results() -> Iterator[_PromptfooResult]:
        return (check(_PromptfooResult, row, path, place) for place, row in rows())

    several = len({result.prompt.label for result in results()}) > 1
    return ForeignLog(
        tool="promptfoo",
        format=format_,
        name=name,
        trials=lambda: (_trial(result, several_prompts=several) for result in results()),
        **known,
    )


def _trial(result: _PromptfooResult, *, several_prompts: bool) -> LoggedTrial:
    """Return a trial. The prompt belongs to the subject, and names it if there are several; the case has variables."""
    grading, response = result.gradingResult or _PromptfooGrading(), result.response or _Response()
    given = result.provider
    provider = name_of(given if isinstance(given, str) else given.label or given.id, "provider")
    options = {"provider": provider, "prompt": result.prompt.label}
    name = f"{provider} · {visible(result.prompt.label, 80)}" if several_prompts else provider
    used = (response.tokenUsage or LoggedUsage()).usage()
    output = as_json(response.output)
    metadata = {"prompt": result.prompt.raw or None, "replayed": response.cached or None}
    # Promptfoo may weight its assertions, so its own verdict counts, and assertions are only shown.
    tests = [each.as_test() for each in grading.componentResults or ()]
    return LoggedTrial(
        case=_case(result),
        subject=subject_of(name, options),
        attempt_seconds=None if result.latencyMs is None else result.latencyMs / 1000,
        failure=_failure(result),
        transcript=Transcript(
            output=output,
            steps=text_steps(output, response.finishReason),
            usage=used.model_copy(update={"cost": response.cost}),
            metadata={key: as_json(value) for key, value in metadata.items() if value is not None},
        ),
        scores=(score_of(PASSED, result.success, grading.reason or "", score=result.score, **{TESTS: tests or None}),),
        asides=tuple(score_of(metric, value) for metric, value in (result.namedScores or {}).items()),
        judging=(grading.tokensUsed or LoggedUsage()).usage(),
    )


def _case(result: _PromptfooResult) -> Case:
    """Return a test as a case. Tests with the same variables and other assertions are different cases."""
    test = result.testCase
    variables = {key: as_json(value) for key, value in (test.vars or result.vars or {}).items()}
    told = ", ".join(f"{key}={visible(text_of(value), 60)}" for key, value in variables.items())
    asserts = [each for each in test.asserts or () if isinstance(each, dict) and str(each.get("type")) in _EXPECTED]
    expected = [as_json(each["value"]) for each in asserts if each.get("value") is not None]
    return Case(
        id=name_of(test.description or told, "test"),
        prompt=json.dumps(variables, indent=1, ensure_ascii=False),
        expected=expected[0] if len(expected) == 1 else (expected or None),
        hidden={"assertions.json": json.dumps(as_json(test.asserts), indent=1)} if test.asserts else {},
        tags=tags_of(test.metadata or {}),
    )


def _failure(result: _PromptfooResult) -> Failure | None:
    """Return the error of a provider, which promptfoo tells apart from an assertion that failed."""
    response_error = result.response.error if result.response else None
    if result.failureReason == 2 or (result.failureReason is None and response_error):
        return broken(result.error or response_error, otherwise="ProviderError")
    return None

"""Read the output of `promptfoo eval -o`: JSON, or JSON Lines with one result in each line."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from bakeoff._kernel.files import in_megabytes, open_file
from bakeoff._kernel.json import as_json, parse_json
from bakeoff._kernel.text import visible
from bakeoff.errors import RunFolderError
from bakeoff.logs.trials import (
    MAX_LOG_SIZE,
    RECORDED,
    Amount,
    Count,
    ForeignLog,
    LoggedObject,
    LoggedTrial,
    broken,
    check,
    name_of,
    read_json,
    score_of,
    seconds_of,
    tags_of,
    text_of,
)
from bakeoff.plan import Case, SubjectSpec
from bakeoff.record import TESTS, Failure, Score, Step, Text, Transcript, Usage

PASSED = "promptfoo"
"""The scorer of an imported result: 1 where promptfoo calls it a success."""
_EXPECTED = {"equals", "contains", "icontains", "regex", "starts-with", "similar"}
"""The assertions whose value is what an answer is expected to be like."""

Rows = Callable[[], Iterator[tuple[str, Any]]]


class _Provider(LoggedObject):
    id: str = ""
    label: str | None = None

    @property
    def name(self) -> str:
        return name_of(self.label or self.id, "provider")


class _Prompt(LoggedObject):
    raw: str = ""
    label: str = ""


class _Details(LoggedObject):
    reasoning: Count | None = None
    cacheReadInputTokens: Count | None = None
    cacheCreationInputTokens: Count | None = None


class _Tokens(LoggedObject):
    prompt: Count | None = None
    completion: Count | None = None
    numRequests: Count | None = None
    completionDetails: _Details | None = None

    def usage(self, cost: float | None = None) -> Usage:
        """Return the counts as usage. Counts that are not known are 0."""
        more = self.completionDetails or _Details()
        return Usage(
            requests=self.numRequests or 0,
            input=self.prompt or 0,
            output=self.completion or 0,
            cache_read=more.cacheReadInputTokens or 0,
            cache_write=more.cacheCreationInputTokens or 0,
            reasoning=more.reasoning or 0,
            cost=cost,
        )


class _Response(LoggedObject):
    output: Any = None
    error: Any = None
    tokenUsage: _Tokens | None = None
    cost: Amount = None
    cached: bool | None = None
    finishReason: str | None = None


class _Assertion(LoggedObject):
    passed: bool = Field(default=False, alias="pass")
    score: Any = None
    reason: str | None = None
    assertion: dict[str, Any] | None = None

    def told(self) -> dict[str, Any]:
        """Return it as one test of an answer."""
        about = self.assertion or {}
        words = [str(about.get("metric") or about.get("type") or "assertion")]
        if isinstance(about.get("value"), str | int | float):
            words.append(str(about["value"]))
        return {"name": visible(" ".join(words), 120), "passed": self.passed, "message": self.reason or ""}


class _PromptfooGrading(LoggedObject):
    reason: str | None = None
    componentResults: list[_Assertion] | None = None
    tokensUsed: _Tokens | None = None


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

    @property
    def subject(self) -> str:
        return name_of(self.provider, "provider") if isinstance(self.provider, str) else self.provider.name


class _Metadata(LoggedObject):
    promptfooVersion: str | None = None
    evaluationCreatedAt: str | None = None


class _PromptfooConfig(LoggedObject):
    description: Any = None


class _File(LoggedObject):
    config: _PromptfooConfig | None = None
    metadata: _Metadata | None = None
    results: dict[str, Any]


def read_output(path: Path) -> ForeignLog:
    """Read a whole `.json` output."""
    file = check(_File, read_json(path), path)
    listed = file.results.get("results")
    if not isinstance(listed, list):
        raise RunFolderError(f"{path}: results.results: a list is expected; outputs of promptfoo 0.90 or newer have it")
    about, config = file.metadata or _Metadata(), file.config or _PromptfooConfig()
    return _log(
        path,
        lambda: ((f"results.results[{place}]", each) for place, each in enumerate(listed)),
        "promptfoo output (.json)",
        name=name_of(config.description or path.stem),
        version=name_of(about.promptfooVersion) if about.promptfooVersion else None,
        created=seconds_of(about.evaluationCreatedAt or file.results.get("timestamp")),
    )


def read_lines(path: Path) -> ForeignLog:
    """Read a `.jsonl` output, line by line."""

    def rows() -> Iterator[tuple[str, Any]]:
        with open_file(path) as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LOG_SIZE + 1), b""), 1):
                if len(line) > MAX_LOG_SIZE:
                    raise RunFolderError(f"{path}:{number} is longer than {in_megabytes(MAX_LOG_SIZE)}")
                if line.strip():
                    yield f"line {number}", _parse(path, number, line)

    return _log(path, rows, "promptfoo output (.jsonl)", name=name_of(path.stem))


def _parse(path: Path, number: int, line: bytes) -> Any:
    try:
        return parse_json(line)
    except ValueError as error:
        raise RunFolderError(f"{path}:{number} is not readable JSON: {visible(str(error), 200)}") from error


def _log(path: Path, rows: Rows, format_: str, *, name: str, **known: Any) -> ForeignLog:
    def results() -> Iterator[_PromptfooResult]:
        return (check(_PromptfooResult, row, path, place) for place, row in rows())

    templates: dict[str, None] = {}
    for result in results():
        templates.setdefault(result.prompt.label)
    several = len(templates) > 1
    return ForeignLog(
        tool="promptfoo",
        format=format_,
        name=name,
        trials=lambda: (_trial(result, several_prompts=several) for result in results()),
        **known,
    )


def _trial(result: _PromptfooResult, *, several_prompts: bool) -> LoggedTrial:
    """Return a trial. With several prompts, the prompt belongs to the subject, and the case has only variables."""
    grading, response = result.gradingResult or _PromptfooGrading(), result.response or _Response()
    provider = result.subject
    options = {"provider": provider, **({"prompt": result.prompt.label} if several_prompts else {})}
    name = f"{provider} · {visible(result.prompt.label, 80)}" if several_prompts else provider
    usage = (response.tokenUsage or _Tokens()).usage(response.cost)
    output = as_json(response.output)
    metadata = {"prompt": result.prompt.raw} if several_prompts else {}
    if response.cached:
        metadata["replayed"] = as_json(True)  # type: ignore[assignment]
    said = (Text(text=text_of(output)),) if output is not None else ()
    return LoggedTrial(
        case=_case(result, several_prompts=several_prompts),
        subject=SubjectSpec(kind=RECORDED, name=name_of(name), options={k: as_json(v) for k, v in options.items()}),
        attempt_seconds=None if result.latencyMs is None else result.latencyMs / 1000,
        failure=_failure(result),
        transcript=Transcript(
            output=output,
            steps=(Step(parts=said, finish_reason=response.finishReason),) if said else (),
            usage=usage,
            metadata={key: as_json(value) for key, value in metadata.items()},
        ),
        scores=(_score(result, grading),),
        asides=tuple(score_of(metric, value) for metric, value in (result.namedScores or {}).items()),
        judging=(grading.tokensUsed or _Tokens()).usage(),
    )


def _case(result: _PromptfooResult, *, several_prompts: bool) -> Case:
    test = result.testCase
    variables = {key: as_json(value) for key, value in (test.vars or result.vars or {}).items()}
    told = ", ".join(f"{key}={visible(text_of(value), 60)}" for key, value in variables.items())
    asserts = [each for each in test.asserts or () if isinstance(each, dict) and str(each.get("type")) in _EXPECTED]
    expected = [as_json(each["value"]) for each in asserts if each.get("value") is not None]
    prompt = json.dumps(variables, indent=1, ensure_ascii=False) if several_prompts else text_of(result.prompt.raw)
    return Case(
        id=name_of(test.description or told, "test"),
        prompt=prompt,
        expected=expected[0] if len(expected) == 1 else (expected or None),
        tags=tags_of(test.metadata or {}),
    )


def _score(result: _PromptfooResult, grading: _PromptfooGrading) -> Score:
    """Return the verdict of promptfoo, which may weigh its assertions, with each assertion beside it."""
    return score_of(
        PASSED,
        result.success,
        grading.reason or "",
        score=result.score,
        **{TESTS: [each.told() for each in grading.componentResults or ()] or None},
    )


def _failure(result: _PromptfooResult) -> Failure | None:
    """Return the error of a provider, which promptfoo tells apart from an assertion that failed."""
    response_error = result.response.error if result.response else None
    if result.failureReason == 2 or (result.failureReason is None and response_error):
        return broken(result.error or response_error, otherwise="ProviderError")
    return None

"""Scorers of other packages as they are: pydantic-evals and autoevals by their own classes, DeepEval by its shape."""

import asyncio
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest
from autoevals import Levenshtein
from pydantic_evals.evaluators import Contains as PydanticContains
from pydantic_evals.evaluators import EqualsExpected, EvaluationReason, Evaluator, EvaluatorContext, HasMatchingSpan

from bakeoff._kernel.threads import call
from bakeoff.errors import GraderError, UsageError
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score, ToolCall, Usage
from bakeoff.scorers import Contains
from bakeoff.scorers.adapters import as_scorer


async def score(scorer: Any, given: ScoreInput) -> Any:
    return await call(as_scorer(scorer), given)


PARIS = ScoreInput.of("It is Paris.", input="Capital?", expected="Paris", region="Europe", seconds=0.5)


@pytest.mark.parametrize(
    ("evaluator", "value", "name"),
    [
        (EqualsExpected(), 0.0, "EqualsExpected"),
        (PydanticContains("Paris"), 1.0, "Contains"),
        (PydanticContains("Rome", evaluation_name="rome"), 0.0, "rome"),
    ],
)
async def test_evaluators_of_pydantic_evals_score_under_their_own_name(evaluator: Any, value: float, name: str) -> None:
    scored = await score(evaluator, PARIS)
    assert (scored.value, scored.name) == (value, name)


async def test_the_reason_of_a_pydantic_evaluator_is_carried() -> None:
    scored = await score(PydanticContains("Rome"), PARIS)
    assert "Rome" in scored.reason


@dataclass
class Told(Evaluator[Any, Any, Any]):  # type: ignore[misc]
    """Returns what it was made with, or what came of a question to its context."""

    answer: Any

    def evaluate(self, ctx: EvaluatorContext[Any, Any, Any]) -> Any:
        return self.answer(ctx) if callable(self.answer) else self.answer


@dataclass
class ToldLater(Told):
    async def evaluate(self, ctx: EvaluatorContext[Any, Any, Any]) -> Any:
        await asyncio.sleep(0)
        return super().evaluate(ctx)


@pytest.mark.parametrize("kind", [Told, ToldLater])
@pytest.mark.parametrize(
    ("answer", "value", "reason"),
    [
        (True, 1.0, ""),
        (0.25, 0.25, ""),
        ("vague", None, "vague"),
        (EvaluationReason(value=0.5, reason="half of it"), 0.5, "half of it"),
        ({}, None, ""),
        ({"a": True, "b": EvaluationReason(value=0.5, reason="so-so"), "c": "red"}, 0.75, "b: so-so; a: True; c: red"),
    ],
)
async def test_each_answer_of_a_pydantic_evaluator_has_its_meaning(
    kind: type[Told], answer: Any, value: float | None, reason: str
) -> None:
    scored = await score(kind(answer), PARIS)
    assert (scored.value, scored.reason) == (value, reason)


async def test_several_results_of_a_pydantic_evaluator_are_all_kept() -> None:
    scored = await score(Told({"a": True, "b": 0.5, "c": "red"}), PARIS)
    assert scored.metadata == {"a": True, "b": 0.5, "c": "red"}


async def test_a_pydantic_evaluator_sees_the_case() -> None:
    seen: list[EvaluatorContext[Any, Any, Any]] = []

    def look(ctx: EvaluatorContext[Any, Any, Any]) -> bool:
        seen.append(ctx)
        return True

    await score(Told(look), PARIS)
    [ctx] = seen
    assert (ctx.inputs, ctx.output, ctx.expected_output) == ("Capital?", "It is Paris.", "Paris")
    assert (ctx.metadata, ctx.duration) == ({"region": "Europe"}, 0.5)


@pytest.mark.parametrize("answer", [7, -0.1, float("nan"), lambda ctx: 1 / 0])
async def test_a_pydantic_evaluator_that_breaks_or_gives_nonsense_is_the_graders_failure(answer: Any) -> None:
    with pytest.raises((GraderError, ZeroDivisionError)):
        await score(Told(answer), PARIS)


async def test_an_evaluator_of_spans_says_that_there_are_none() -> None:
    with pytest.raises(Exception, match="not recorded here"):
        await score(HasMatchingSpan(query={"name_equals": "x"}), PARIS)


@dataclass
class _ToolCall:
    name: str
    input_parameters: Any = None
    output: Any = None


@dataclass
class _TestCase:
    input: str
    actual_output: str
    expected_output: str | None = None
    tools_called: list[_ToolCall] = field(default_factory=list)
    expected_tools: list[_ToolCall] | None = None
    context: list[str] | None = None
    retrieval_context: list[str] | None = None
    metadata: dict[str, Any] | None = None


@pytest.fixture
def metric(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A metric of the shape that DeepEval's have; `measure` is what it does with a test case."""
    package = ModuleType("deepeval.test_case")
    vars(package).update(LLMTestCase=_TestCase, ToolCall=_ToolCall)
    monkeypatch.setitem(sys.modules, "deepeval", ModuleType("deepeval"))
    monkeypatch.setitem(sys.modules, "deepeval.test_case", package)
    state = {"score": None, "reason": None, "error": None, "threshold": 0.5, "success": None, "skipped": False}
    base = type("BaseMetric", (), {"__module__": "deepeval.metrics.base_metric", **state})

    def make(measure: Callable[..., Any], **more: Any) -> Any:
        async def not_implemented(self: Any, test_case: Any) -> Any:
            raise NotImplementedError

        own = {"measure": measure, "a_measure": not_implemented, "__name__": property(lambda self: "My Metric")}
        return type("MyMetric", (base,), {**own, **more})()

    return make


async def test_a_deepeval_metric_gives_its_score_and_reason(metric: Callable[..., Any]) -> None:
    def measure(self: Any, test_case: _TestCase) -> float:
        self.score, self.reason, self.success = 0.75, f"{test_case.actual_output} / {test_case.expected_output}", True
        return 0.75

    scored = await score(metric(measure), PARIS)
    assert scored == Score(
        name="My Metric", value=0.75, reason="It is Paris. / Paris", metadata={"threshold": 0.5, "success": True}
    )


async def test_a_deepeval_metric_measures_the_async_way_where_it_can_and_without_its_progress_bar(
    metric: Callable[..., Any],
) -> None:
    async def a_measure(self: Any, test_case: _TestCase, _show_indicator: bool = True) -> float:
        self.score = 0.0 if _show_indicator else 1.0
        return float(self.score)

    def measure(self: Any, test_case: _TestCase) -> float:
        raise AssertionError("there was a better way")

    assert (await score(metric(measure, a_measure=a_measure), PARIS)).value == 1.0


async def test_a_deepeval_metric_sees_tools_and_context(metric: Callable[..., Any]) -> None:
    seen: list[_TestCase] = []

    def measure(self: Any, test_case: _TestCase) -> float:
        seen.append(test_case)
        return 1.0

    calls = [ToolCall(name="add", arguments={"a": 2}, result=4), ToolCall(name="sub", error="no")]
    row: Any = {"expected_tools": ["add", {"name": "sub", "arguments": {}}], "context": ["c"], "colour": "red"}
    await score(metric(measure), ScoreInput.of({"sum": 4}, tool_calls=calls, input={"q": 1}, **row))
    [case] = seen
    assert (case.input, case.actual_output, case.expected_output) == ('{"q":1}', '{"sum":4}', None)
    assert case.tools_called == [_ToolCall("add", {"a": 2}, 4), _ToolCall("sub", None, "no")]
    assert case.expected_tools == [_ToolCall("add"), _ToolCall("sub", {})]
    assert case.context == ["c"]


async def test_cases_at_the_same_time_do_not_share_what_a_deepeval_metric_found(metric: Callable[..., Any]) -> None:
    together = threading.Barrier(2)

    def measure(self: Any, test_case: _TestCase) -> None:
        self.score, self.reason = float(test_case.input), test_case.input
        together.wait(30)

    one = metric(measure)
    scored = await asyncio.gather(*(score(one, ScoreInput.of("x", input=number)) for number in ("0", "1")))
    assert [(each.value, each.reason) for each in scored] == [(0.0, "0"), (1.0, "1")]


async def test_a_deepeval_metric_that_reports_an_error_is_the_graders_failure(metric: Callable[..., Any]) -> None:
    def measure(self: Any, test_case: _TestCase) -> None:
        self.error = "no judge"

    with pytest.raises(GraderError, match="My Metric: no judge"):
        await score(metric(measure), PARIS)


@pytest.mark.parametrize(("skipped", "reason"), [(True, "skipped by the metric"), (False, "")])
async def test_a_deepeval_metric_without_a_score_is_unscored(
    metric: Callable[..., Any], skipped: bool, reason: str
) -> None:
    def measure(self: Any, test_case: _TestCase) -> None:
        self.skipped = skipped

    scored = await score(metric(measure), PARIS)
    assert (scored.value, scored.reason) == (None, reason)


async def test_what_a_deepeval_metric_spends_is_charged(metric: Callable[..., Any]) -> None:
    def measure(self: Any, test_case: _TestCase) -> float:
        self.evaluation_cost, self.input_tokens, self.output_tokens = 0.25, 10, 5
        return 1.0

    spent: list[Usage] = []
    await score(metric(measure), PARIS.__class__(**{**_fields(PARIS), "spend": spent.append}))
    assert spent == [Usage(input=10, output=5, cost=0.25)]


def _fields(given: ScoreInput) -> dict[str, Any]:
    return {name: getattr(given, name) for name in given.__dataclass_fields__}


@dataclass
class _AutoScore:
    name: str
    score: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    error: Exception | None = None


@pytest.mark.parametrize(("output", "value"), [("Paris", 1.0), ("Parks", 0.8), ("", 0.0)])
@pytest.mark.parametrize("scorer", [Levenshtein, Levenshtein()])
async def test_scorers_of_autoevals_score_under_their_own_name(scorer: Any, output: str, value: float) -> None:
    scored = await score(scorer, ScoreInput.of(output, input="Capital?", expected="Paris"))
    assert (scored.name, scored.value) == ("Levenshtein", pytest.approx(value))


def autoevals(run: Callable[..., Any], **more: Any) -> type:
    """A class of the shape that autoevals' scorers have; `run` is what it does with output and expectation."""

    async def inherited(self: Any, output: Any, expected: Any = None, **rest: Any) -> Any:
        raise AssertionError("this way blocks the loop")

    inherited.__module__ = "autoevals.score"

    async def eval_async(self: Any, output: Any, expected: Any = None, **rest: Any) -> Any:
        return await self._run_eval_async(output, expected, **rest)

    body = {
        "__module__": "autoevals.score",
        "eval": lambda self, output, expected=None, **rest: run(output, expected, **rest),
        "eval_async": eval_async,
        "_run_eval_async": inherited,
        "_name": lambda self: type(self).__name__,
    }
    return type("Near", (type("Scorer", (), body),), more)


@pytest.mark.parametrize("make", [lambda kind: kind, lambda kind: kind()], ids=["class", "object"])
async def test_an_autoevals_scorer_gives_score_rationale_and_metadata(make: Callable[[type], Any]) -> None:
    def run(output: Any, expected: Any, **rest: Any) -> _AutoScore:
        assert rest == {"input": "Capital?", "region": "Europe"}
        return _AutoScore("Near", 0.5, {"rationale": f"{output} / {expected}", "choice": "B"})

    scored = await score(make(autoevals(run)), PARIS)
    assert (scored.name, scored.value, scored.reason) == ("Near", 0.5, "It is Paris. / Paris")
    assert scored.metadata["choice"] == "B"


async def test_an_autoevals_scorer_with_an_async_way_of_its_own_is_asked_that_way() -> None:
    async def own(self: Any, output: Any, expected: Any = None, **rest: Any) -> _AutoScore:
        return _AutoScore("Near", 1.0)

    assert (await score(autoevals(lambda *_, **__: None, _run_eval_async=own), PARIS)).value == 1.0


async def test_an_autoevals_score_of_none_is_unscored() -> None:
    assert (await score(autoevals(lambda *_, **__: _AutoScore("Near")), PARIS)).value is None


@pytest.mark.parametrize(
    "found", [_AutoScore("Near", 1.0, error=ValueError("no")), _AutoScore("Near", 2.0)], ids=["error", "beyond"]
)
async def test_an_autoevals_scorer_that_breaks_is_the_graders_failure(found: _AutoScore) -> None:
    with pytest.raises(GraderError, match="Near"):
        await score(autoevals(lambda *_, **__: found), PARIS)


def test_scorers_of_our_own_and_functions_stay_as_they_are() -> None:
    def short(given: ScoreInput) -> bool:
        return len(str(given.output)) < 20

    contains = Contains()
    assert as_scorer(short) is short
    assert as_scorer(contains) is contains


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (Contains, r"scorer Contains is a class: make an object of it, `Contains\(...\)`"),
        (EqualsExpected, "EqualsExpected is a class"),
        ("contains", "'contains' cannot be called"),
        (None, "None cannot be called"),
    ],
)
def test_what_cannot_score_is_a_usage_error_with_a_way_out(given: Any, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        as_scorer(given)

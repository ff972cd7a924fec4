"""Score with other code: a function of the user, or the evaluators of other packages.

Evaluators of pydantic-evals, metrics of DeepEval and scorers of autoevals are recognised by the names of their classes,
and their packages are imported only when one is used. An error that they raise is recorded as the grader's failure.
"""

import asyncio
import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType
from typing import Any, ClassVar, Protocol, Self, TypeAlias

from pydantic import JsonValue
from pydantic_core import to_json

from bakeoff._kernel.imports import import_target, revision_of, target_of
from bakeoff._kernel.json import as_json
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.threads import call
from bakeoff.errors import GraderError, UsageError
from bakeoff.plan import Case, ScorerSpec, describe, read_options
from bakeoff.protocols import Needs, Scored, ScoreInput
from bakeoff.record import LABEL, Score, Usage
from bakeoff.scorers.configurable import ConfigurableScorer
from bakeoff.scorers.registry import scorer

_Function = Callable[[ScoreInput], Any]
_OURS = "bakeoff.scorers."  # modules of scorers that need no adapter


class _Evaluator(Protocol):
    """An evaluator of pydantic-evals."""

    @property
    def evaluate(self) -> Callable[..., Any]: ...


class _AdaptedMetric(Protocol):
    """A metric of DeepEval."""

    @property
    def measure(self) -> Callable[..., Any]: ...


class _AutoevalsScorer(Protocol):
    """A scorer of autoevals."""

    @property
    def eval(self) -> Callable[..., Any]: ...


ScorerLike: TypeAlias = (
    Callable[[ScoreInput], Any] | _Evaluator | _AdaptedMetric | _AutoevalsScorer | type[_AutoevalsScorer]
)
"""One item of `scorers=[…]`: a function of a `ScoreInput`, or the scorer of another package."""


def as_scorer(given: Any) -> _Function:
    """Return the scorer for an object of another library: autoevals, pydantic-evals or DeepEval.

    Our scorers, functions and other callables are returned unchanged. Raises `UsageError` for a class instead of an
    object, a metric of conversations, and anything that cannot be called.
    """
    if type(given).__module__.startswith(_OURS) or isinstance(given, FunctionType):
        return given  # type: ignore[no-any-return]
    from bakeoff.sdk_results.plain_data import classes_of, named_in

    bases = classes_of(given)
    if named_in(bases, "autoevals", "Scorer"):
        return AutoevalsScorer(given() if isinstance(given, type) else given)
    if isinstance(given, type):
        raise UsageError(f"scorer {given.__name__} is a class: make an object of it, `{given.__name__}(...)`")
    if named_in(bases, "pydantic_evals", "Evaluator"):
        return PydanticEvaluator(given)
    if named_in(bases, "deepeval", "BaseMetric"):
        return DeepEvalMetric(given)
    if named_in(bases, "deepeval", "BaseConversationalMetric", "BaseArenaMetric"):
        raise UsageError(
            f"scorer {type(given).__name__} judges conversations or comparisons: only metrics of one answer can be used"
        )
    if not callable(given):
        raise UsageError(
            f"scorer {as_json(given)!r} cannot be called: give a function, a scorer of bakeoff.scorers, "
            "a pydantic-evals evaluator, a DeepEval metric or an autoevals scorer"
        )
    function: _Function = given
    return function


@dataclass(frozen=True, slots=True)
class PydanticEvaluator:
    """Wraps a pydantic-evals evaluator. Booleans count as 0 or 1, labels do not count; several results are averaged."""

    evaluator: Any

    @property
    def name(self) -> str:
        """Return the name that pydantic-evals gives to the evaluation."""
        return str(self.evaluator.get_default_evaluation_name())

    async def __call__(self, given: ScoreInput) -> Scored:
        returned = await call(self.evaluator.evaluate, _evaluator_context(given))
        named = returned if isinstance(returned, Mapping) else {self.name: returned}
        results = {str(name): _value_and_reason(result) for name, result in named.items()}
        numbers = {name: _share(name, value) for name, (value, _) in results.items() if isinstance(value, int | float)}
        told = [
            f"{name}: {reason or value}" if len(results) > 1 else reason or (value if isinstance(value, str) else "")
            for name, (value, reason) in sorted(results.items(), key=lambda item: numbers.get(item[0], 1.0))
        ]
        kept = {name: as_json(value) for name, (value, _) in results.items()} if len(results) > 1 else {}
        kept |= {} if numbers else {LABEL: ", ".join(str(value) for value, _ in results.values())}
        mean = sum(numbers.values()) / len(numbers) if numbers else None
        return Score(name=self.name, value=mean, reason="; ".join(filter(None, told)), metadata=kept)


def _evaluator_context(given: ScoreInput) -> Any:
    package = import_module("pydantic_evals.evaluators")
    spans = import_module("pydantic_evals.otel")
    used, rest = given.transcript.usage, _rest(given)
    metrics = {"requests": used.requests, "input_tokens": used.input, "output_tokens": used.output, "cost": used.cost}
    return package.EvaluatorContext(
        name=given.case.id,
        inputs=given.input,
        metadata=rest.get("metadata", rest or None),
        expected_output=given.expected,
        output=given.output,
        duration=given.seconds or 0.0,
        _span_tree=spans.SpanTreeRecordingError("spans of the task are not recorded here"),
        attributes={},
        metrics={name: count for name, count in metrics.items() if count},
    )


def _value_and_reason(result: Any) -> tuple[Any, str]:
    from bakeoff.sdk_results.plain_data import classes_of, named_in

    if named_in(classes_of(result), "pydantic_evals", "EvaluationReason"):
        return result.value, result.reason or ""
    return result, ""


@dataclass(frozen=True, slots=True)
class DeepEvalMetric:
    """Wraps a DeepEval metric. A metric stores its result in itself, so each answer is scored by a copy."""

    metric: Any

    @property
    def name(self) -> str:
        """Return the metric's own name, or else the name of its class."""
        name = getattr(self.metric, "__name__", None)
        return name if isinstance(name, str) else type(self.metric).__name__

    async def __call__(self, given: ScoreInput) -> Scored:
        metric = copy.copy(self.metric)
        returned = await _measured(metric, _test_case(given))
        if error := getattr(metric, "error", None):
            raise GraderError(f"{self.name}: {error}")
        _charge(metric, given)
        if getattr(metric, "skipped", False) is True:
            return Score(name=self.name, reason="skipped by the metric")
        value = returned if isinstance(returned, int | float) else metric.score
        noted = {name: as_json(getattr(metric, name, None)) for name in ("threshold", "success", "score_breakdown")}
        return Score(
            name=self.name,
            value=None if value is None else _share(self.name, value),
            reason=str(metric.reason or ""),
            metadata={name: note for name, note in noted.items() if note is not None},
        )


async def _measured(metric: Any, test_case: Any) -> Any:
    """Measure asynchronously if the metric supports it, or else in a thread."""
    if getattr(metric, "async_mode", True):
        try:
            return await metric.a_measure(test_case, **_quiet(metric.a_measure))
        except NotImplementedError:
            pass
    options = _quiet(metric.measure)
    return await call(lambda: metric.measure(test_case, **options))


def _quiet(method: Callable[..., Any]) -> dict[str, bool]:
    """Return the options that turn off the metric's progress bar, which would disturb our progress display."""
    return {"_show_indicator": False} if "_show_indicator" in inspect.signature(method).parameters else {}


def _charge(metric: Any, given: ScoreInput) -> None:
    cost = getattr(metric, "evaluation_cost", None)
    counts = [getattr(metric, name, None) for name in ("input_tokens", "output_tokens")]
    known = [count if type(count) is int and count > 0 else 0 for count in counts]
    if isinstance(cost, int | float) or any(known):
        given.spend(Usage(input=known[0], output=known[1], cost=cost if isinstance(cost, int | float) else None))


def _test_case(given: ScoreInput) -> Any:
    package = import_module("deepeval.test_case")
    rest = _rest(given)
    expected = rest.get("expected_tools")
    return package.LLMTestCase(
        input=_text(given.input),
        actual_output=_text(given.output),
        expected_output=None if given.expected is None else _text(given.expected),
        tools_called=[
            package.ToolCall(
                name=made.name,
                input_parameters=made.arguments if isinstance(made.arguments, dict) else None,
                output=made.result if made.error is None else made.error,
            )
            for made in given.tool_calls
        ],
        expected_tools=[_tool(package.ToolCall, tool) for tool in expected] if isinstance(expected, Sequence) else None,
        **{name: rest[name] for name in ("context", "retrieval_context", "metadata") if name in rest},
    )


def _tool(made_as: Any, wanted: Any) -> Any:
    wanted = {"name": wanted} if isinstance(wanted, str) else wanted
    if not isinstance(wanted, Mapping):
        return wanted
    return made_as(name=wanted["name"], input_parameters=wanted.get("arguments"))


@dataclass(frozen=True, slots=True)
class AutoevalsScorer:
    """Wraps an autoevals scorer, which gets the output, the expected value and the rest of the row."""

    scorer: Any

    @property
    def name(self) -> str:
        """Return the name that autoevals gives to the scorer."""
        return str(self.scorer._name())

    async def __call__(self, given: ScoreInput) -> Scored:
        arguments = {"input": given.input, **_rest(given)}
        asked = getattr(type(self.scorer), "_run_eval_async", None)
        if getattr(asked, "__module__", "") == "autoevals.score":  # the method of the base class blocks the loop
            found = await call(lambda: self.scorer.eval(given.output, given.expected, **arguments))
        else:
            found = await self.scorer.eval_async(given.output, given.expected, **arguments)
        if error := getattr(found, "error", None):
            raise GraderError(f"{self.name}: {error}")
        noted = as_json(found.metadata or {})
        metadata: dict[str, JsonValue] = noted if isinstance(noted, dict) else {}
        return Score(
            name=self.name,
            value=None if found.score is None else _share(self.name, found.score),
            reason=str(metadata.get("rationale") or ""),
            metadata=metadata,
        )


def _rest(given: ScoreInput) -> dict[str, Any]:
    return {name: value for name, value in given.row.items() if name not in ("input", "expected", "output", "name")}


def _share(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise GraderError(f"{name} gave {value!r}, which is not between 0 and 1")
    return float(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else to_json(as_json(value)).decode()


class FunctionScorerOptions(FrozenModel):
    """The options of the kind `function` in a plan: the function as `module:function`."""

    target: str


@scorer("function", main="target")
@dataclass(frozen=True, slots=True)
class Function(ConfigurableScorer):
    """A callable `(ScoreInput) -> Score | float | bool | None`, sync or async."""

    function: Callable[[ScoreInput], Scored | Awaitable[Scored]]
    name: str
    needs: ClassVar[Needs] = Needs()  # it may ask a judge, whose usage is counted apart

    @classmethod
    def from_spec(cls, spec: ScorerSpec) -> Self:
        """Import the function that a plan names. Raise UsageError if that fails."""
        target = read_options(spec, FunctionScorerOptions).target
        return cls(import_target(target, describe(spec)), target.rpartition(":")[2])

    @classmethod
    def options_model(cls) -> type[FrozenModel]:
        return FunctionScorerOptions

    def __post_init__(self) -> None:
        """Check nothing, because in Python a function replaces the options of a plan."""

    def accepts_reference(self, case: Case) -> bool:
        """Return True if the case has reference files: an expected answer may be a part of what a function wants."""
        return bool(case.reference)

    async def __call__(self, given: ScoreInput) -> Scored:
        # In a task of its own: a function may cancel its task, and this one has a trial to finish.
        async def scored() -> Scored:
            try:
                found: Scored = await call(self.function, given)
            except SystemExit as error:
                raise GraderError(f"called sys.exit({error.code!r})") from error
            return found

        return await asyncio.create_task(scored())


def function_scorer(function: Callable[[ScoreInput], Scored | Awaitable[Scored]]) -> ScorerSpec:
    """Return the spec of a function that can be imported by name."""
    return ScorerSpec(kind="function", options={"target": target_of(function)}, revision=revision_of(function))

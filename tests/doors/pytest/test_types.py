"""The types of evals as users see them. mypy checks these lines: `assert_type`, and that each wrong use is an error."""

from collections.abc import Callable, Coroutine
from typing import Any, assert_type

import pytest
from pydantic_evals.evaluators import Contains as PydanticContains

from bakeoff import EvalCase, EvalOutcome, ScoreInput, ToEval, UsageError, describe_eval, eval_suite, replayable
from bakeoff.doors.pytest.suite import EvalSuite
from bakeoff.scorers import Exact, ToolCalls


@replayable
def population(city: str, *, year: int = 2020) -> int:
    return len(city) + year


@replayable(version=2)
async def weather(city: str) -> str:
    return f"sunny in {city}"


def test_a_replayable_function_keeps_its_signature() -> None:
    assert_type(population("Rome", year=1), int)
    kept: Callable[[str], Coroutine[Any, Any, str]] = weather
    assert kept is weather
    with pytest.raises(TypeError):
        population(town="Rome")  # type: ignore[call-arg]


def test_functions_and_scorers_of_other_packages_are_scorers() -> None:
    def mine(given: ScoreInput) -> float:
        return float(given.output == given.expected)

    scorers = [mine, lambda given: given.output == "x", Exact(), ToolCalls(params="fuzzy"), PydanticContains("x")]
    suite = describe_eval("typed", data=[{"input": "x"}], task=str, scorers=scorers, gate="pass@k")
    assert_type(suite, EvalSuite)
    assert len(suite._bakeoff.scorers) == len(scorers)


def test_a_gate_or_scorer_that_does_not_exist_is_an_error_of_types_too() -> None:
    with pytest.raises(UsageError, match="gate 'best'"):
        eval_suite(data=[], scorers=[Exact()], gate="best")(lambda case: case)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="cannot be called"):
        eval_suite(data=[], scorers=[3])(lambda case: case)  # type: ignore[list-item]


def test_the_types_of_cases_and_outcomes_are_public() -> None:
    async def typed(case: EvalCase, to_eval: ToEval) -> float | None:
        outcome = await to_eval(case.input, output="x", scorer=Exact(), gate="mean")
        assert_type(outcome, EvalOutcome)
        assert_type(case.name, str)
        return outcome.score

    assert typed.__annotations__["case"] is EvalCase

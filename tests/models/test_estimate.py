"""Test what a plan is thought to cost before anything is spent."""

from decimal import Decimal

from bakeoff.models.estimate import estimate_plan
from bakeoff.models.prices import Price
from bakeoff.models.providers import ModelName
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Usage

PRICE = Price(input=Decimal("0.000003"), output=Decimal("0.000015"), key="m", source="config")


def plan_with(*subjects: SubjectSpec) -> Plan:
    return Plan(
        name="p",
        cases=tuple(Case(id=str(n), prompt="x" * 399) for n in range(10)),
        subjects=subjects,
        scorers=(ScorerSpec(kind="exact"),),
        rounds=3,
    )


def test_a_single_call_is_its_prompt_and_one_answer() -> None:
    plan = plan_with(SubjectSpec(kind="model", name="m", options={"model": "openai:m", "max_tokens": 100}))
    (estimate,) = estimate_plan(plan, lambda _: PRICE)
    assert (estimate.trials, estimate.usage.requests) == (30, 30)
    assert (estimate.usage.input, estimate.usage.output) == (3000, 3000)
    assert estimate.usage.cost == 0.054
    assert estimate.basis == "4 characters a token, 100 tokens an answer, 1 step"


def test_an_agent_sends_all_that_was_said_again_with_every_step() -> None:
    plan = plan_with(SubjectSpec(kind="agent", name="a", options={"model": "openai:m"}))
    (estimate,) = estimate_plan(plan, lambda _: PRICE)
    # four steps send 100, 600, 1100 and 1600 tokens, thirty times
    assert (estimate.usage.input, estimate.usage.output) == (30 * 3400, 30 * 2000)


def test_an_agent_that_may_take_fewer_steps_is_thought_to_take_no_more() -> None:
    plan = plan_with(SubjectSpec(kind="agent", name="a", options={"model": "openai:m", "max_steps": 2}))
    (estimate,) = estimate_plan(plan, lambda _: PRICE)
    assert (estimate.usage.requests, estimate.usage.input) == (60, 30 * 700)
    assert estimate.basis.endswith("2 steps")


def test_a_subjects_own_price_comes_before_any_list() -> None:
    options = {"model": "openai:m", "max_tokens": 100, "price": {"input": 1, "output": 0.5, "cache_read": None}}
    plan = plan_with(SubjectSpec.model_validate({"kind": "model", "name": "m", "options": options}))
    (estimate,) = estimate_plan(plan, lambda _: PRICE)
    assert estimate.usage.cost == 0.0045


def test_what_earlier_trials_used_is_believed_over_any_assumption() -> None:
    plan = plan_with(SubjectSpec(kind="agent", name="a", options={"model": "openai:m"}))
    (estimate,) = estimate_plan(plan, lambda _: PRICE, {"a": Usage(requests=2, input=1000, output=100)})
    assert (estimate.usage.input, estimate.usage.output, estimate.basis) == (
        30_000,
        3_000,
        "the mean of earlier trials",
    )


def test_an_unknown_price_gives_no_cost_and_other_kinds_of_subjects_are_left_out() -> None:
    plan = plan_with(SubjectSpec(kind="nop", name="nop"), SubjectSpec(kind="model", name="m", options={"model": "x:y"}))
    asked: list[ModelName] = []
    (estimate,) = estimate_plan(plan, lambda name: asked.append(name))
    assert (estimate.subject, estimate.usage.cost, asked) == ("m", None, [ModelName("x", "y")])

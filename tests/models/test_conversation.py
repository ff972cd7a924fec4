"""The tool loop: what a model may call, what it is told, when it is over, and what is kept of it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from pydantic import JsonValue

from bakeoff.engine.registry import Registry, default_registry
from bakeoff.errors import InfraError, ToolError
from bakeoff.plan import Limits, SubjectSpec
from bakeoff.protocols import Tool
from bakeoff.record import Reasoning, Record, Text, ToolCall, Usage
from bakeoff.verdict import Verdict

from .loopback import Act, Loopback, failure, plan_of

Ask = Callable[..., Awaitable[Record]]
ANYTHING: dict[str, JsonValue] = {"type": "object", "properties": {}}


def offering(**calls: Callable[[Mapping[str, JsonValue]], Any]) -> Registry:
    """A registry in which each subject may call these; one called `finish` ends the attempt."""

    def tool(name: str, function: Callable[[Mapping[str, JsonValue]], Any]) -> Tool:
        async def call(given: Mapping[str, JsonValue]) -> JsonValue:
            result: JsonValue = function(given)
            return result

        return Tool(name, f"does {name}", ANYTHING, call, ends=name == "finish")

    tools = tuple(tool(name, function) for name, function in calls.items())
    return default_registry().with_tools(lambda *_: tools)


def add(given: Mapping[str, JsonValue]) -> JsonValue:
    a, b = given["a"], given["b"]
    if not isinstance(a, int) or not isinstance(b, int):
        raise ToolError("a and b must be whole numbers")
    return a + b


def broken(given: Mapping[str, JsonValue]) -> JsonValue:
    raise InfraError("the server behind this tool is down")


def buggy(given: Mapping[str, JsonValue]) -> JsonValue:
    raise ZeroDivisionError


def calls_of(record: Record) -> list[ToolCall]:
    assert record.transcript is not None, record.failure
    return list(record.transcript.tool_calls)


def told(provider: Loopback, request: int = -1) -> list[Any]:
    """Return what the model was told of its tool calls."""
    return [message["content"] for message in provider.bodies[request]["messages"] if message["role"] == "tool"]


async def test_results_are_told_in_order_and_every_step_has_its_usage(provider: Loopback, ask: Ask) -> None:
    provider.then(
        Act(
            think="add them",
            calls=(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})),
            usage={"input": 20, "output": 9},
        ),
        Act(say="yes", usage={"input": 40, "output": 1}),
    )
    record = await ask(kind="agent", registry=offering(add=add))
    assert record.verdict is Verdict.PASS
    assert [call.result for call in calls_of(record)] == [3, 7]
    assert told(provider) == ["3", "7"]
    assert record.transcript is not None
    first, second = record.transcript.steps
    assert isinstance(first.parts[0], Reasoning)
    assert first.parts[0].text == "add them"
    assert first.usage == Usage(requests=1, input=20, output=9, cost=0.0038)
    assert second.usage == Usage(requests=1, input=40, output=1, cost=0.0042)
    assert second.parts == (Text(text="yes"),)
    assert record.transcript.usage == record.spent == Usage(requests=2, input=60, output=10, cost=0.008)
    assert all(call.duration_ms is not None and call.started for call in calls_of(record))
    assert len({call.id for call in calls_of(record)}) == 2
    assert "out_of_steps" not in record.transcript.metadata


async def test_a_tools_word_that_it_was_called_wrongly_is_told_and_the_model_goes_on(
    provider: Loopback, ask: Ask
) -> None:
    provider.then(Act(calls=(("add", {"a": 1, "b": "two"}),)), Act(calls=(("add", {"a": 1, "b": 2}),)))
    record = await ask(kind="agent", registry=offering(add=add))
    assert record.verdict is Verdict.PASS
    assert [(call.result, call.error) for call in calls_of(record)] == [
        (None, "a and b must be whole numbers"),
        (3, None),
    ]
    assert "whole numbers" in told(provider, 1)[0]


async def test_a_tool_that_there_is_not_is_told_with_those_there_are(provider: Loopback, ask: Ask) -> None:
    provider.then(Act(calls=(("subtract", {}),)))
    record = await ask(kind="agent", registry=offering(add=add, finish=add))
    assert record.verdict is Verdict.PASS
    assert calls_of(record)[0].error == "there is no such tool; there are add, finish"
    assert "there are add, finish" in told(provider)[0]


@pytest.mark.parametrize("arguments", ['{"a": 1, "b"', "[1, 2]", '"text"', "5", "null", "", "NaN", "{'a': 1}"])
async def test_arguments_that_are_no_object_are_told_and_the_model_goes_on(
    provider: Loopback, ask: Ask, arguments: str
) -> None:
    provider.then(Act(calls=(("add", arguments),)))
    record = await ask(kind="agent", registry=offering(add=lambda given: dict(given)))
    assert record.verdict is Verdict.PASS
    [call] = calls_of(record)
    assert (call.error == "the arguments are not a JSON object") != (call.arguments == {})
    assert len(provider.received) == 2


@pytest.mark.parametrize("arguments", ['{"a": 1e999}', '{"a": [NaN]}', '{"a": {"b": -Infinity}}'])
async def test_numbers_that_json_does_not_know_are_told_and_the_model_goes_on(
    provider: Loopback, ask: Ask, arguments: str
) -> None:
    provider.then(Act(calls=(("add", arguments),)))
    record = await ask(kind="agent", registry=offering(add=add))
    assert record.verdict is Verdict.PASS, record.failure
    [call] = calls_of(record)
    assert call.error == "the arguments are not JSON, which has no NaN and no infinity"
    assert call.arguments == arguments
    assert "the arguments are not JSON" in told(provider)[0]


async def test_half_a_surrogate_pair_is_mended_where_it_comes_in_and_the_model_goes_on(
    provider: Loopback, ask: Ask
) -> None:
    provider.then(Act(say="a \ud83d b", calls=(("echo", '{"a\\ud83d": ["\\ud83d"]}'),)), Act(say="yes \ude00"))
    heard: list[Mapping[str, JsonValue]] = []

    def echo(given: Mapping[str, JsonValue]) -> JsonValue:
        heard.append(given)
        return "of a tool \ud83d"

    record = await ask(kind="agent", registry=offering(echo=echo))
    assert record.failure is None
    assert record.transcript is not None
    assert record.transcript.output == r"yes \ude00"
    assert heard == [{r"a\ud83d": [r"\ud83d"]}]
    assert told(provider) == [r"of a tool \ud83d"]
    assert len(provider.received) == 2


async def test_the_first_call_of_a_tool_that_ends_the_attempt_ends_it(provider: Loopback, ask: Ask) -> None:
    handed_in: list[Any] = []
    provider.then(
        Act(
            say="here",
            calls=(("add", {"a": 1, "b": 1}), ("finish", {"n": 1}), ("finish", {"n": 2}), ("add", {"a": 2, "b": 2})),
        )
    )
    record = await ask(kind="agent", registry=offering(add=add, finish=lambda given: handed_in.append(dict(given))))
    assert handed_in == [{"n": 1}]
    assert [call.error for call in calls_of(record)] == [None, None, "the attempt was over", "the attempt was over"]
    assert len(provider.received) == 1
    assert record.transcript is not None
    assert record.transcript.output == "here"


async def test_a_tool_that_would_end_the_attempt_but_was_called_wrongly_does_not(provider: Loopback, ask: Ask) -> None:
    def finish(given: Mapping[str, JsonValue]) -> JsonValue:
        if "answer" not in given:
            raise ToolError("answer is missing")
        return None

    provider.then(Act(calls=(("finish", {}),)), Act(calls=(("finish", {"answer": 1}),)))
    record = await ask(kind="agent", registry=offering(finish=finish))
    assert [call.error for call in calls_of(record)] == ["answer is missing", None]
    assert len(provider.received) == 2


async def test_steps_have_a_limit_and_reaching_it_is_said(provider: Loopback, ask: Ask) -> None:
    provider.plan = lambda _: Act(calls=(("add", {"a": 1, "b": 1}),))
    record = await ask(kind="agent", max_steps=3, registry=offering(add=add))
    assert len(provider.received) == 3
    assert record.transcript is not None
    assert len(record.transcript.steps) == 3
    assert record.transcript.metadata["out_of_steps"] is True
    assert record.verdict is Verdict.FAIL
    assert record.spent.requests == 3


async def test_an_agent_with_one_step_has_its_tools(provider: Loopback, ask: Ask) -> None:
    provider.then(Act(calls=(("finish", {}),)))
    record = await ask(kind="agent", max_steps=1, registry=offering(finish=lambda given: "done"))
    assert [call.result for call in calls_of(record)] == ["done"]


async def test_a_tool_may_be_required(provider: Loopback, ask: Ask) -> None:
    for choice in ("auto", "required"):
        await ask(kind="agent", tool_choice=choice, registry=offering(add=add))
    assert [body.get("tool_choice") for body in provider.bodies] == ["auto", "required"]


async def test_a_single_call_is_offered_no_tools(provider: Loopback, ask: Ask) -> None:
    record = await ask(kind="model", registry=offering(add=add))
    assert "tools" not in provider.bodies[0]
    assert record.verdict is Verdict.PASS


async def test_a_tool_that_breaks_on_our_side_is_infra(provider: Loopback, ask: Ask) -> None:
    for tool, kind in ((broken, "InfraError"), (buggy, "ZeroDivisionError")):
        provider.then(Act(calls=(("tool", {}),)))
        record = await ask(kind="agent", registry=offering(tool=tool))
        assert record.verdict is Verdict.INFRA
        assert record.failure is not None
        assert record.failure.type == kind
        assert record.spent.requests == 1
        assert record.spent.cost == 0.002


async def test_a_conversation_that_outgrows_the_context_fails_and_what_was_spent_is_booked(
    provider: Loopback, ask: Ask
) -> None:
    provider.then(Act(calls=(("add", {"a": 1, "b": 1}),)), failure(400, "too long", code="context_length_exceeded"))
    record = await ask(kind="agent", registry=offering(add=add))
    assert record.verdict is Verdict.FAIL
    assert record.failure is not None
    assert record.failure.type == "ContextOverflow"
    assert record.spent.cost == 0.002


async def test_a_refusal_in_the_middle_is_the_answer(provider: Loopback, ask: Ask) -> None:
    provider.then(Act(calls=(("add", {"a": 1, "b": 1}),)), Act(refuse="no more of this"))
    record = await ask(kind="agent", registry=offering(add=add))
    assert record.failure is None
    assert record.verdict is Verdict.FAIL
    assert record.transcript is not None
    assert record.transcript.output == "no more of this"


async def test_a_conversation_stops_at_the_next_question_once_the_budget_is_used_up(
    provider: Loopback, ask: Ask
) -> None:
    provider.plan = lambda _: Act(calls=(("add", {"a": 1, "b": 1}),))
    record = await ask(kind="agent", max_steps=50, registry=offering(add=add), run={"max_cost": 0.005})
    assert record.verdict is Verdict.BUDGET
    assert len(provider.received) == 3


async def test_conversations_side_by_side_are_at_most_one_call_each_over_the_budget(
    provider: Loopback, carry_out: Callable[..., Awaitable[list[Record]]], model_spec: Callable[..., SubjectSpec]
) -> None:
    provider.plan = lambda _: Act(calls=(("add", {"a": 1, "b": 1}),))
    plan = plan_of(model_spec(kind="agent", max_steps=50), cases=12)
    records = await carry_out(plan, registry=offering(add=add), jobs=4, max_cost=0.05)
    assert 25 <= len(provider.received) <= 25 + 4
    assert {record.verdict for record in records} == {Verdict.BUDGET}
    assert sum(record.spent.requests for record in records) == len(provider.received)


async def test_an_answer_that_uses_up_the_budget_still_counts(provider: Loopback, ask: Ask) -> None:
    record = await ask(run={"max_cost": 0.001})
    assert record.verdict is Verdict.PASS


async def test_a_slow_tool_is_stopped_by_the_time_of_the_attempt(provider: Loopback, ask: Ask) -> None:
    import asyncio

    async def slow(given: Mapping[str, JsonValue]) -> JsonValue:
        await asyncio.sleep(30)
        return None

    tool = Tool("slow", "is slow", ANYTHING, slow)
    registry = default_registry().with_tools(lambda *_: (tool,))
    provider.then(Act(calls=(("slow", {}),)))
    record = await ask(kind="agent", registry=registry, limits=Limits(attempt_seconds=0.6))
    assert record.verdict is Verdict.TIMEOUT


@pytest.mark.parametrize("result", [None, "text", "", 5, [1, {"a": None}], {"k": "v"}, True], ids=str)
async def test_any_json_may_be_a_tools_result(provider: Loopback, ask: Ask, result: JsonValue) -> None:
    provider.then(Act(calls=(("tool", {}),)))
    record = await ask(kind="agent", registry=offering(tool=lambda _: result))
    assert record.verdict is Verdict.PASS
    assert calls_of(record)[0].result == result


async def test_two_calls_with_one_id_are_both_answered(provider: Loopback, ask: Ask) -> None:
    call = {"id": "same", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 1}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call, call]}
    provider.then(
        Act(
            body={
                "id": "x",
                "object": "chat.completion",
                "created": 1,
                "model": "tiny",
                "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            }
        )
    )
    record = await ask(kind="agent", registry=offering(add=add))
    assert [call.result for call in calls_of(record)] == [2, 2]


async def test_agents_of_one_provider_share_its_gate(
    provider: Loopback, carry_out: Callable[..., Awaitable[list[Record]]], model_spec: Callable[..., SubjectSpec]
) -> None:
    provider.plan = lambda _: Act(first_byte=0.02)
    subjects = [model_spec(f"s{n}", kind=kind, most_in_flight=2) for n, kind in enumerate(["model", "agent", "model"])]
    records = await carry_out(plan_of(*subjects, cases=4), jobs=12)
    assert len(records) == 12
    assert provider.most_in_flight == 2

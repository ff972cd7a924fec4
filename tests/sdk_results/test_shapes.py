"""Test what is recognised by its shape or its class's name alone: LangChain, Vercel's AI SDK, and plain values."""

import dataclasses
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, ConfigDict, computed_field

from bakeoff.record import ToolCall, Usage
from bakeoff.sdk_results import recognise
from bakeoff.sdk_results.plain_data import TaskResult

Made = Mapping[str, Any]


class _Message(BaseModel):
    """As LangChain's messages are: pydantic models that allow more."""

    model_config = ConfigDict(extra="allow")
    content: Any = ""
    type: str = ""


def langchain(name: str, **fields: Any) -> Any:
    """An object of a class with LangChain's name and module."""
    kinds = {"AIMessage": "ai", "HumanMessage": "human", "ToolMessage": "tool", "AIMessageChunk": "AIMessageChunk"}
    module = "langchain_core.messages.ai"
    bases: tuple[type, ...] = (_Message,)
    if name == "AIMessageChunk":
        bases = (type("AIMessage", (_Message,), {"__module__": module}),)
    return type(name, bases, {"__module__": module})(**{"type": kinds[name], **fields})


USED = {
    "input_tokens": 10,
    "output_tokens": 5,
    "total_tokens": 15,
    "input_token_details": {"cache_read": 4, "cache_creation": 1},
    "output_token_details": {"reasoning": 2},
}
CALL = {"name": "add", "args": {"a": 2}, "id": "1", "type": "tool_call"}


def found_in(value: Any) -> TaskResult:
    found = recognise(value)
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["AIMessage", "AIMessageChunk"])
def test_a_langchain_message_gives_words_calls_and_usage(name: str) -> None:
    facts = {"model_name": "gpt-x", "finish_reason": "stop"}
    content = [{"type": "text", "text": "It is "}, {"type": "reasoning", "reasoning": "hm"}, "4."]
    found = found_in(langchain(name, content=content, tool_calls=[CALL], usage_metadata=USED, response_metadata=facts))
    assert found.result == "It is 4."
    assert found.tool_calls == (ToolCall(name="add", arguments={"a": 2}, id="1"),)
    assert found.usage == Usage(requests=1, input=10, output=5, cache_read=4, cache_write=1, reasoning=2)
    assert found.metadata == {"model": "gpt-x", "finish_reason": "stop"}


def conversation() -> list[Any]:
    return [
        langchain("HumanMessage", content="2+2?"),
        langchain("AIMessage", tool_calls=[CALL, {**CALL, "id": "2"}], usage_metadata=USED),
        langchain("ToolMessage", content="no", tool_call_id="2", status="error"),
        langchain("ToolMessage", content="4", tool_call_id="1", status="success"),
        langchain("AIMessage", content="It is 4.", usage_metadata=USED),
    ]


@pytest.mark.parametrize("wrap", [list, tuple, lambda messages: {"messages": messages, "remaining_steps": 3}])
def test_langchain_messages_and_a_langgraph_state_join_calls_with_what_came_back(wrap: Any) -> None:
    found = found_in(wrap(conversation()))
    assert found.result == "It is 4."
    assert found.tool_calls == (
        ToolCall(name="add", arguments={"a": 2}, id="1", result="4", status="completed"),
        ToolCall(name="add", arguments={"a": 2}, id="2", error="no", status="failed"),
    )
    assert found.usage.requests == 2


def test_a_langgraph_state_with_a_structured_response_answers_with_that() -> None:
    assert found_in({"messages": conversation(), "structured_response": {"sum": 4}}).result == {"sum": 4}


V4 = {
    "text": "It is 4.",
    "toolCalls": [],
    "toolResults": [],
    "steps": [
        {
            "text": "",
            "toolCalls": [{"type": "tool-call", "toolCallId": "1", "toolName": "add", "args": {"a": 2}}],
            "toolResults": [
                {"type": "tool-result", "toolCallId": "1", "toolName": "add", "args": {"a": 2}, "result": 4}
            ],
        },
        {"text": "It is 4.", "toolCalls": [], "toolResults": []},
    ],
    "usage": {"promptTokens": 10, "completionTokens": 5, "totalTokens": 15},
    "finishReason": "stop",
    "response": {"modelId": "gpt-x"},
}
V5 = {
    "text": "It is 4.",
    "steps": [
        {
            "content": [
                {"type": "tool-call", "toolCallId": "1", "toolName": "add", "input": {"a": 2}},
                {"type": "tool-result", "toolCallId": "1", "toolName": "add", "input": {"a": 2}, "output": 4},
            ],
            "usage": {"inputTokens": 4, "outputTokens": 2},
        },
        {"content": [{"type": "text", "text": "It is 4."}], "usage": {"inputTokens": 6, "outputTokens": 3}},
    ],
    "usage": {"inputTokens": 6, "outputTokens": 3},
    "totalUsage": {"inputTokens": 10, "outputTokens": 5, "cachedInputTokens": 4, "reasoningTokens": 2},
    "finishReason": "stop",
}


@pytest.mark.parametrize(
    ("output", "usage"),
    [
        (V4, Usage(requests=2, input=10, output=5)),
        (V5, Usage(requests=2, input=10, output=5, cache_read=4, reasoning=2)),
        ({"steps": V5["steps"]}, Usage(requests=2, input=10, output=5)),
    ],
    ids=["v4", "v5", "steps alone"],
)
def test_vercel_outputs_give_words_calls_with_results_and_usage(output: Made, usage: Usage) -> None:
    found = found_in(output)
    assert found.result == "It is 4."
    assert found.tool_calls == (ToolCall(name="add", arguments={"a": 2}, id="1", result=4, status="completed"),)
    assert found.usage == usage


def test_a_vercel_step_that_failed_carries_the_tools_error() -> None:
    called = {"toolCallId": "1", "toolName": "add", "input": {}}
    failed = {"type": "tool-error", "toolCallId": "1", "toolName": "add", "error": {"message": "too big"}}
    found = found_in({"text": "", "toolCalls": [called], "content": [failed]})
    assert (found.result, found.tool_calls[0].status) == ("", "failed")
    assert "too big" in str(found.tool_calls[0].error)


@pytest.mark.parametrize("words", ["text", "content"])
def test_a_recipe_with_steps_is_data_and_no_output_of_an_sdk(words: str) -> None:
    recipe = {"text": "Pancakes", "steps": [{words: "Mix it."}, {words: "Bake it."}]}
    assert found_in(recipe).result == recipe


def test_a_vercel_object_is_the_answer() -> None:
    output = {"object": {"sum": 4}, "usage": {"inputTokens": 1, "outputTokens": 1}, "finishReason": "stop"}
    assert found_in(output).result == {"sum": 4}


@dataclasses.dataclass
class Point:
    x: int


@dataclasses.dataclass(slots=True)
class Slotted:
    x: int


class Model(BaseModel):
    x: int = 1


class Pair(NamedTuple):
    x: int


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("Paris", "Paris"),
        (None, None),
        (4, 4),
        (0.5, 0.5),
        (False, False),
        (float("nan"), "NaN"),
        (Decimal("1.50"), "1.50"),
        (date(2024, 1, 2), "2024-01-02"),
        ({"text": "a", "usage": "high"}, {"text": "a", "usage": "high"}),
        ({"text": "a", "steps": ["first"]}, {"text": "a", "steps": ["first"]}),
        ({"messages": ["hello"]}, {"messages": ["hello"]}),
        ({"messages": []}, {"messages": []}),
        ([{"role": "user", "content": "?"}], [{"role": "user", "content": "?"}]),
        ([], []),
        ({"object": "chat.completion"}, {"object": "chat.completion"}),
        ({"candidates": ["Ann"]}, {"candidates": ["Ann"]}),
        ({"result": 1, "toolCalls": ["add"]}, {"result": 1, "toolCalls": ["add"]}),
        (Point(1), {"x": 1}),
        (Slotted(1), {"x": 1}),
        (Model(), {"x": 1}),
        (Pair(1), [1]),
        ({"when": date(2024, 1, 2), "set": {1}}, {"when": "2024-01-02", "set": [1]}),
    ],
    ids=repr,
)
def test_a_plain_value_is_its_own_answer(value: Any, written: Any) -> None:
    found = found_in(value)
    assert found.result is value
    assert found.tool_calls == ()
    assert found.transcript().output == written


def test_a_task_result_is_left_as_it_is() -> None:
    made = TaskResult(result="4")
    assert recognise(made) is made


@pytest.mark.parametrize("name", ["tool_calls", "toolCalls"])
def test_a_dict_in_the_shape_of_a_task_result_is_one(name: str) -> None:
    call = {"name": "add", "arguments": {"a": 2}, "type": "function", "parentId": "0", "timestamp": 1.7e12}
    found = found_in({"result": "4", name: [call]})
    assert found.result == "4"
    assert found.tool_calls == (
        ToolCall(name="add", arguments={"a": 2}, kind="function", parent_id="0", started=1.7e9),
    )


async def _coroutine() -> None: ...


@pytest.mark.parametrize("value", [object(), lambda: 1, type, Point, (n for n in [1]), {1, 2}, iter([])])
def test_an_object_that_nobody_knows_is_not_guessed_at(value: Any) -> None:
    assert recognise(value) is None


class Hostile:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("do not touch")

    def __repr__(self) -> str:
        raise RuntimeError("do not look")


class HostileModel(BaseModel):
    @computed_field  # type: ignore[prop-decorator]
    @property
    def text(self) -> str:
        raise KeyError("do not read")


def _around(levels: int) -> Any:
    value: Any = "inside"
    for _ in range(levels):
        value = [value, value]
    return value


def test_an_object_whose_every_attribute_raises_is_unknown_and_does_no_harm() -> None:
    assert recognise(Hostile()) is None


@pytest.mark.parametrize(
    "module", ["openai.types.chat.chat_completion", "anthropic.types.message", "google.genai.types"]
)
def test_an_object_that_only_claims_to_be_an_sdks_does_no_harm(module: str) -> None:
    names = {"openai": "ChatCompletion", "anthropic": "Message", "google": "GenerateContentResponse"}
    liar = type(names[module.partition(".")[0]], (Hostile,), {"__module__": module})()
    found = recognise(liar)
    assert found is None or found == TaskResult(result=None)


@pytest.mark.parametrize("value", [[Hostile()], {"x": Hostile()}, {Hostile(): 1}], ids=["list", "dict", "key"])
def test_data_with_an_unknown_object_inside_are_unknown(value: Any) -> None:
    assert recognise(value) is None


def test_a_model_that_cannot_be_written_says_so_in_its_record() -> None:
    written = found_in(HostileModel()).transcript().output
    assert isinstance(written, str)
    assert "that JSON cannot hold" in written


def test_a_value_that_holds_itself_is_unknown() -> None:
    value: list[Any] = []
    value.append(value)
    assert recognise(value) is None


def test_a_message_that_holds_itself_many_times_is_read_in_the_end() -> None:
    message: dict[str, Any] = {"role": "assistant", "content": "hi", "type": "message"}
    message["again"] = [message] * 5
    assert found_in([message]).result == "hi"


def test_a_tool_result_that_unfolds_without_end_is_cut() -> None:
    call = {"id": "1", "name": "a", "args": {"x": _around(60)}, "type": "tool_call"}
    found = found_in(langchain("AIMessage", tool_calls=[call], content="hi"))
    assert found.result == "hi"


@pytest.mark.parametrize("count", [-1, "many", 10**30, 1.5, True, None])
def test_a_count_that_nobody_counted_is_no_usage(count: Any) -> None:
    assert found_in(langchain("AIMessage", usage_metadata={"input_tokens": count})).usage == Usage()

"""Result objects of the SDKs that are installed here, built from their own classes."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from anthropic.types import Message
from google.genai.types import GenerateContentResponse
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.responses import Response
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from bakeoff.record import ToolCall, Usage
from bakeoff.sdk_results import recognise
from bakeoff.sdk_results.plain_data import TaskResult
from bakeoff.sdk_results.readers import is_agents_run


def found_in(value: Any) -> TaskResult:
    found = recognise(value)
    assert found is not None
    return found


def completion(message: dict[str, Any], **more: Any) -> ChatCompletion:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-x", "choices": [choice]}
    return ChatCompletion.model_validate({**head, **more})


CHAT_CALL = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}
CHAT_USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "total_tokens": 15,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}


def test_an_openai_completion_gives_words_usage_and_model() -> None:
    found = found_in(completion({"content": "Paris"}, usage=CHAT_USAGE))
    assert found.result == "Paris"
    assert found.usage == Usage(requests=1, input=10, output=5, cache_read=4, reasoning=2)
    assert found.metadata == {"model": "gpt-x", "finish_reason": "stop"}


def test_an_openai_completion_gives_the_calls_it_asks_for() -> None:
    found = found_in(completion({"content": None, "tool_calls": [CHAT_CALL]}))
    assert found.result is None
    assert found.tool_calls == (ToolCall(name="add", arguments={"a": 2}, id="1"),)
    assert found.usage == Usage()


@pytest.mark.parametrize(
    ("written", "read"), [("", {}), ("{", "{"), ("[1]", [1]), ('{"x": NaN}', {"x": "NaN"}), ("[" * 5000, "[" * 5000)]
)
def test_arguments_that_are_no_json_are_kept_as_they_were_written(written: str, read: Any) -> None:
    call = {**CHAT_CALL, "function": {"name": "add", "arguments": written}}
    assert found_in(completion({"content": "", "tool_calls": [call]})).tool_calls[0].arguments == read


def test_a_refusal_is_no_answer_and_is_noted() -> None:
    found = found_in(completion({"content": None, "refusal": "I will not"}))
    assert (found.result, found.metadata["refusal"]) == (None, "I will not")


def test_a_list_of_openai_messages_joins_calls_with_what_came_back() -> None:
    asked = ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]})
    told = ChatCompletionMessage(role="assistant", content="It is 4.")
    found = found_in(
        [{"role": "user", "content": "?"}, asked, {"role": "tool", "tool_call_id": "1", "content": "4"}, told]
    )
    assert found.result == "It is 4."
    assert found.tool_calls == (ToolCall(name="add", arguments={"a": 2}, id="1", result="4", status="completed"),)


def test_calls_are_kept_whose_ids_begin_anew_with_each_turn() -> None:
    turns: list[dict[str, Any]] = [{"role": "user", "content": "?"}]
    for number in (2, 3, 3):
        function = {"name": "add", "arguments": f'{{"a": {number}}}'}
        turns.append({"role": "assistant", "content": None, "tool_calls": [{**CHAT_CALL, "function": function}]})
        turns.append({"role": "tool", "tool_call_id": "1", "content": str(number * 2)})
    found = found_in([*turns, {"role": "assistant", "content": "Done."}])
    assert [(call.arguments, call.result) for call in found.tool_calls] == [
        ({"a": 2}, "4"),
        ({"a": 3}, "6"),
        ({"a": 3}, "6"),  # asked again, and answered again
    ]


NO_NOSE = {"type": "http_error", "code": 500, "message": "no nose"}
RESPONSE = {
    "id": "r",
    "object": "response",
    "created_at": 1,
    "model": "gpt-x",
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {"type": "reasoning", "id": "rs", "summary": []},
        {"type": "function_call", "id": "f", "call_id": "1", "name": "add", "arguments": '{"a": 2}'},
        {"type": "mcp_call", "id": "m", "name": "look", "arguments": "{}", "server_label": "s", "output": "seen"},
        {"type": "mcp_call", "id": "n", "name": "smell", "arguments": "{}", "server_label": "s", "error": NO_NOSE},
        {
            "type": "web_search_call",
            "id": "w",
            "status": "completed",
            "action": {"type": "search", "query": "q", "queries": ["q"]},
        },
        {
            "type": "message",
            "id": "x",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": "It is ", "annotations": []},
                {"type": "output_text", "text": "4.", "annotations": []},
            ],
        },
    ],
    "usage": {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 15,
    },
}


@pytest.mark.parametrize("make", [Response.model_validate, lambda data: Response.model_construct(**data), dict])
def test_an_openai_response_gives_words_calls_and_usage_as_an_object_and_as_json(make: Any) -> None:
    found = found_in(make(RESPONSE))
    assert found.result == "It is 4."
    assert found.tool_calls[:3] == (
        ToolCall(name="add", arguments={"a": 2}, id="1"),
        ToolCall(name="look", arguments={}, id="m", result="seen", status="completed"),
        ToolCall(name="smell", arguments={}, id="n", error="no nose", status="failed"),
    )
    assert found.tool_calls[3].name == "web_search"
    assert found.usage == Usage(requests=1, input=10, output=5, cache_read=4, reasoning=2)


def anthropic_message(*content: dict[str, Any]) -> Message:
    usage = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 1}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": "end_turn"}
    return Message.model_validate({**head, "stop_sequence": None, "content": list(content), "usage": usage})


def test_an_anthropic_message_gives_words_calls_and_the_whole_prompt_as_input() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    use = {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 2}}
    found = found_in(anthropic_message(thought, {"type": "text", "text": "I add."}, use))
    assert found.result == "I add."
    assert found.tool_calls == (ToolCall(name="add", arguments={"a": 2}, id="1"),)
    assert found.usage == Usage(requests=1, input=11, output=5, cache_read=7, cache_write=1)
    assert found.metadata == {"model": "claude-x", "finish_reason": "end_turn"}


def test_a_list_of_anthropic_messages_joins_calls_with_what_came_back() -> None:
    uses = [{"type": "tool_use", "id": id_, "name": "add", "input": {}} for id_ in "12"]
    results = [
        {"type": "tool_result", "tool_use_id": "2", "content": "too big", "is_error": True},
        {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": '{"sum": 4}'}]},
    ]
    said = {"type": "text", "text": "4"}
    found = found_in([anthropic_message(*uses), {"role": "user", "content": results}, anthropic_message(said)])
    assert found.result == "4"
    assert found.tool_calls == (
        ToolCall(name="add", arguments={}, id="1", result={"sum": 4}, status="completed"),
        ToolCall(name="add", arguments={}, id="2", error="too big", status="failed"),
    )
    assert found.usage.requests == 2


def test_a_google_response_gives_words_calls_and_thoughts_as_output() -> None:
    parts = [
        {"text": "hm", "thought": True},
        {"functionCall": {"name": "add", "args": {"a": 2}}},
        {"functionCall": {"name": "add", "args": {"a": 3}}},
        {"text": "It is 4."},
    ]
    asked = {"role": "model", "parts": [parts[1]]}
    back = {"role": "user", "parts": [{"functionResponse": {"name": "add", "response": {"result": 4}}}]}
    counted = {"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 2, "cachedContentTokenCount": 4}
    response = GenerateContentResponse.model_validate(
        {
            "candidates": [
                {"content": {"role": "model", "parts": [parts[0], parts[2], parts[3]]}, "finishReason": "STOP"}
            ],
            "usageMetadata": counted,
            "modelVersion": "gemini-x",
            "automaticFunctionCallingHistory": [asked, back],
        }
    )
    found = found_in(response)
    assert found.result == "It is 4."
    assert found.tool_calls == (
        ToolCall(name="add", arguments={"a": 2}, result={"result": 4}, status="completed"),
        ToolCall(name="add", arguments={"a": 3}),
    )
    assert found.usage == Usage(requests=1, input=10, output=7, cache_read=4, reasoning=2)
    assert found.metadata == {"model": "gemini-x", "finish_reason": "STOP"}


class City(BaseModel):
    name: str


def _speak(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Calls a tool wrongly, then rightly, then answers."""
    turn = sum(isinstance(message, ModelResponse) for message in messages)
    if turn < 2:
        return ModelResponse(parts=[ToolCallPart("size", {"city": ["?", "Paris"][turn]}, tool_call_id=str(turn))])
    if info.output_tools:
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"name": "Paris"})])
    return ModelResponse(parts=[TextPart("Paris, with 2 million")])


def agent(**options: Any) -> Agent[None, Any]:
    made: Agent[None, Any] = Agent(FunctionModel(_speak), **options)

    @made.tool_plain
    def size(city: str) -> int:
        if city == "?":
            raise ModelRetry("say which")
        return 2_000_000

    return made


async def test_a_pydantic_ai_run_gives_its_answer_and_each_call_with_what_came_back() -> None:
    run = await agent().run("Which city?")
    found = found_in(run)
    assert found.result == "Paris, with 2 million"
    wrong, right = found.tool_calls
    assert (wrong.arguments, wrong.error, wrong.status) == ({"city": "?"}, "say which", "failed")
    assert (right.arguments, right.result, right.status) == ({"city": "Paris"}, 2_000_000, "completed")
    assert (found.usage.requests, found.usage.input) == (3, run.usage.input_tokens)


async def test_a_pydantic_ai_run_with_typed_output_keeps_the_object_and_hides_how_it_was_handed_in() -> None:
    found = found_in(await agent(output_type=City).run("Which city?"))
    assert found.result == City(name="Paris")
    assert [call.name for call in found.tool_calls] == ["size", "size"]
    assert found.transcript().output == {"name": "Paris"}


async def test_a_pydantic_ai_run_that_goes_on_gives_only_what_is_new() -> None:
    earlier = await agent().run("Which city?")
    later = await agent().run("And?", message_history=earlier.all_messages())
    assert found_in(later).tool_calls == ()
    assert found_in(later).usage.requests == 1


# The Agents SDK is not installed with bakeoff. These have the fields of its classes (openai-agents 0.24).
@dataclass
class RunResultBase:
    input: Any
    new_items: list[Any]
    raw_responses: list[Any]
    final_output: Any


@dataclass
class RunResult(RunResultBase):
    _last_agent: Any = None


@dataclass
class RunResultStreaming(RunResultBase):
    is_complete: bool = False


@dataclass
class RunItem:
    agent: Any
    raw_item: Any
    type: str = ""


@dataclass
class AgentsUsage:
    requests: int = 1
    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_details: Any = field(default_factory=lambda: {"cached_tokens": 4})
    output_tokens_details: Any = field(default_factory=lambda: {"reasoning_tokens": 2})


@dataclass
class AgentsResponse:
    output: list[Any]
    usage: AgentsUsage


for _class in (RunResultBase, RunResult, RunResultStreaming):
    _class.__module__ = "agents.result"

AGENT_ITEMS: list[dict[str, Any]] = [
    {"type": "reasoning", "id": "rs", "summary": []},
    {"type": "function_call", "call_id": "1", "name": "add", "arguments": '{"a": 2}'},
    {"type": "function_call_output", "call_id": "1", "output": "4"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 4."}]},
]


def agents_run(kind: type[RunResultBase], final: Any, **more: Any) -> RunResultBase:
    agent = {"instructions": "Always say Paris."}
    items = [RunItem(agent, item) for item in AGENT_ITEMS]
    responses = [AgentsResponse([], AgentsUsage(1, 10, 5)), AgentsResponse([], AgentsUsage(1, 20, 3))]
    return kind("What is 2 + 2?", items, responses, final, **more)


def test_a_run_of_the_agents_sdk_gives_output_calls_and_usage_and_no_instructions() -> None:
    found = found_in(agents_run(RunResult, "It is 4."))
    assert found.result == "It is 4."
    assert found.tool_calls == (ToolCall(name="add", arguments={"a": 2}, id="1", result="4", status="completed"),)
    assert found.usage == Usage(requests=2, input=30, output=8, cache_read=8, reasoning=4)
    assert "Paris" not in found.model_dump_json()
    assert found_in(agents_run(RunResult, None)).result == "It is 4."
    assert found_in(agents_run(RunResultStreaming, {"sum": 4}, is_complete=True)).result == {"sum": 4}


def test_a_stream_of_the_agents_sdk_that_was_not_read_is_no_result() -> None:
    unread = agents_run(RunResultStreaming, None)
    assert not is_agents_run(unread)


def test_the_input_list_of_the_agents_sdk_gives_the_last_text_and_the_calls() -> None:
    before = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"}]
    found = found_in([*before, {"role": "user", "content": "What is 2 + 2?"}, *AGENT_ITEMS])
    assert found.result == "It is 4."
    assert found.tool_calls == (ToolCall(name="add", arguments={"a": 2}, id="1", result="4", status="completed"),)
    assert found_in([{"type": "phone_call", "name": "x"}, {"kind": "other"}]).tool_calls == ()  # data of one's own

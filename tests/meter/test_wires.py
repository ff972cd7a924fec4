"""Each wire format through the meter, with the SDKs that agents use: what they get, and what is booked."""

import asyncio
import gzip
import json
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from anthropic.types import ToolParam
from google import genai
from google.genai.types import HttpOptions
from openai import AsyncOpenAI

from bakeoff.meter.wire_formats import RESPONSES, ModelAnswer
from bakeoff.record import Reasoning, Text, ToolCall

from ..models.loopback import Act, Loopback
from .conftest import CANARY, Opening, Visit

WEATHER: dict[str, object] = {"type": "object", "properties": {"city": {"type": "string"}}}


def openai_at(visit: Visit) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{visit.origin}/openai/v1", api_key=visit.trial.token, max_retries=0)


def anthropic_at(visit: Visit) -> AsyncAnthropic:
    return AsyncAnthropic(base_url=f"{visit.origin}/anthropic", api_key=visit.trial.token, max_retries=0)


def ask_google(visit: Visit) -> tuple[str | None, list[str | None]]:
    """Once whole and once streamed."""
    options = HttpOptions(base_url=f"{visit.origin}/google")
    with genai.Client(api_key=visit.trial.token, http_options=options) as sdk:
        whole = sdk.models.generate_content(model="gemini-x", contents="hello")
        stream = sdk.models.generate_content_stream(model="gemini-x", contents="hello")
        return whole.text, [chunk.text for chunk in stream]


def events(*given: Any) -> bytes:
    """A stream as the responses API sends it."""
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in given)


def response(status: str = "completed", **more: Any) -> dict[str, Any]:
    head = {"id": "resp-1", "object": "response", "created_at": 1700000000, "status": status, "model": "tiny"}
    return {**head, "output": [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], **more}


async def test_a_chat_answer_reaches_the_sdk_and_is_booked_with_its_price(provider: Loopback, visit: Opening) -> None:
    async with visit() as at, openai_at(at) as sdk:
        answer = await sdk.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "hello"}])
    assert answer.choices[0].message.content == "yes"
    assert (at.books.spent.input, at.books.spent.output, at.books.spent.cost) == (10, 5, 0.002)
    assert provider.received[0].headers["authorization"] == f"Bearer {CANARY}"


async def test_a_chat_stream_is_counted_though_the_agent_did_not_ask_for_counts(
    provider: Loopback, visit: Opening
) -> None:
    provider.then(Act(say="one two three"))
    async with visit() as at, openai_at(at) as sdk:
        stream = await sdk.chat.completions.create(
            model="tiny", messages=[{"role": "user", "content": "hello"}], stream=True
        )
        chunks = [chunk async for chunk in stream]
    assert [chunk.choices[0].delta.content for chunk in chunks] == ["", "one", "two", "three", None]
    assert provider.bodies[0]["stream_options"] == {"include_usage": True}
    assert (at.books.spent.input, at.books.spent.output) == (10, 5)
    [step] = at.trial.transcript().steps
    assert step.parts == (Text(text="onetwothree"),)
    assert step.finish_reason == "stop"


async def test_a_chat_stream_keeps_its_counts_for_the_agent_that_asked_for_them(
    provider: Loopback, visit: Opening
) -> None:
    async with visit() as at, openai_at(at) as sdk:
        stream = await sdk.chat.completions.create(
            model="tiny",
            messages=[{"role": "user", "content": "hello"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        *_, last = [chunk async for chunk in stream]
    assert last.usage is not None
    assert last.usage.prompt_tokens == 10


async def test_a_provider_that_refuses_to_be_asked_for_counts_is_asked_without(
    provider: Loopback, visit: Opening
) -> None:
    provider.plan = lambda asked: (
        Act(status=422, body={"error": {"message": "extra field stream_options"}})
        if "stream_options" in asked.body
        else Act(usage=None)
    )
    async with visit() as at:
        first, second = await at.chat(stream=True), await at.chat(stream=True)
    assert (first.status_code, second.status_code) == (200, 200)
    assert len(provider.received) == 3, "the second request is not made to fail first"
    assert at.trial.transcript().metadata["meter"]["estimated"] == 2  # type: ignore[index,call-overload]


async def test_cached_and_reasoning_tokens_of_a_chat_are_booked(provider: Loopback, visit: Opening) -> None:
    usage = {"input": 100, "output": 7, "cached": 60, "completion_tokens_details": {"reasoning_tokens": 3}}
    provider.then(Act(think="hm", usage=usage))
    async with visit() as at:
        await at.chat()
    assert (at.books.spent.input, at.books.spent.cache_read, at.books.spent.reasoning) == (100, 60, 3)
    assert at.trial.transcript().steps[0].parts == (Reasoning(text="hm"), Text(text="yes"))


async def test_calls_that_the_model_asks_for_are_in_the_transcript(provider: Loopback, visit: Opening) -> None:
    provider.then(Act(calls=(("weather", {"city": "Oslo"}), ("weather", "no json"))))
    async with visit() as at:
        await at.chat()
    first, second = at.trial.transcript().tool_calls
    assert first == ToolCall(name="weather", arguments={"city": "Oslo"}, id="call-0-0")
    assert second.arguments == "no json"


@pytest.mark.parametrize(
    ("path", "told", "expected"),
    [
        (
            "/openai/v1/chat/completions",
            {"messages": [{"role": "tool", "tool_call_id": "call-0-0", "content": "rain"}]},
            {"result": "rain"},
        ),
        (
            "/anthropic/v1/messages",
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {
                                "type": "tool_result",
                                "tool_use_id": "toolu-0-0",
                                "content": [{"type": "text", "text": "no such city"}],
                                "is_error": True,
                            }
                        ],
                    }
                ]
            },
            {"error": "no such city"},
        ),
    ],
)
async def test_what_a_call_came_to_stands_beside_it(
    path: str, told: dict[str, Any], expected: dict[str, str], provider: Loopback, visit: Opening
) -> None:
    provider.then(Act(calls=(("weather", {"city": "Oslo"}),)), Act())
    async with visit() as at:
        await at.post(path, {"model": "tiny", "messages": []})
        await at.post(path, {"model": "tiny", **told})
    [call] = at.trial.transcript().tool_calls
    assert {"result": call.result, "error": call.error} == {"result": None, "error": None, **expected}


async def test_a_responses_stream_reaches_the_sdk_and_is_booked(provider: Loopback, visit: Opening) -> None:
    usage = {
        "input_tokens": 40,
        "output_tokens": 9,
        "total_tokens": 49,
        "input_tokens_details": {"cached_tokens": 30},
        "output_tokens_details": {"reasoning_tokens": 4},
    }
    call = {"type": "function_call", "id": "fc", "call_id": "call-1", "name": "shell", "arguments": ""}
    about = {"item_id": "m", "content_index": 0, "logprobs": []}
    body = events(
        {"type": "response.created", "sequence_number": 0, "response": response("in_progress")},
        {"type": "response.output_text.delta", "sequence_number": 1, "output_index": 0, "delta": "I ", **about},
        {"type": "response.output_text.delta", "sequence_number": 2, "output_index": 0, "delta": "look", **about},
        {"type": "response.output_item.added", "sequence_number": 3, "output_index": 1, "item": call},
        {
            "type": "response.function_call_arguments.delta",
            "sequence_number": 4,
            "output_index": 1,
            "item_id": "fc",
            "delta": '{"cmd": "ls"}',
        },
        {"type": "response.completed", "sequence_number": 5, "response": response(usage=usage)},
    )
    provider.then(Act(body=body, headers={"content-type": "text/event-stream; charset=utf-8"}))
    async with visit() as at, openai_at(at) as sdk:
        stream = await sdk.responses.create(model="tiny", input="hello", stream=True)
        kinds = [event.type async for event in stream]
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    spent = at.books.spent
    assert (spent.input, spent.output, spent.cache_read, spent.reasoning) == (40, 9, 30, 4)
    [step] = at.trial.transcript().steps
    assert step.parts == (Text(text="I look"), ToolCall(name="shell", arguments={"cmd": "ls"}, id="call-1"))


async def test_a_response_in_one_piece_is_booked(provider: Loopback, visit: Opening) -> None:
    async with visit() as at, openai_at(at) as sdk:
        answer = await sdk.responses.create(model="tiny", input="hello")
    assert answer.output_text == "yes"
    assert (at.books.spent.input, at.books.spent.output) == (10, 5)
    assert at.trial.transcript().output == "yes"


async def test_a_message_counts_what_was_read_from_and_written_to_the_cache_as_input(
    provider: Loopback, visit: Opening
) -> None:
    cached = {"cache_read_input_tokens": 70, "cache_creation_input_tokens": 20}
    provider.then(Act(think="hm", usage={"input": 10, "output": 5, **cached}))
    async with visit() as at, anthropic_at(at) as sdk:
        answer = await sdk.messages.create(model="tiny", max_tokens=9, messages=[{"role": "user", "content": "hello"}])
    assert answer.content[-1].type == "text"
    spent = at.books.spent
    assert (spent.input, spent.cache_read, spent.cache_write, spent.output) == (100, 70, 20, 5)
    assert provider.received[0].headers["x-api-key"] == CANARY


async def test_a_message_stream_reaches_the_sdk_and_is_booked(provider: Loopback, visit: Opening) -> None:
    cached = {"cache_read_input_tokens": 70, "cache_creation_input_tokens": 20}
    provider.then(Act(calls=(("weather", {"city": "Oslo"}),), usage={"input": 10, "output": 5, **cached}))
    offered: list[ToolParam] = [{"name": name, "input_schema": WEATHER} for name in ("weather", "mcp__map__route")]
    async with (
        visit() as at,
        anthropic_at(at) as sdk,
        sdk.messages.stream(
            model="tiny", max_tokens=9, messages=[{"role": "user", "content": "hello"}], tools=offered
        ) as stream,
    ):
        final = await stream.get_final_message()
    assert final.content[0].type == "tool_use"
    assert (at.books.spent.input, at.books.spent.output, at.books.spent.cache_read) == (100, 5, 70)
    transcript = at.trial.transcript()
    assert transcript.tool_calls[0].arguments == {"city": "Oslo"}
    assert list(transcript.metadata["meter"]["tools"]) == ["weather", "mcp__map__route"]  # type: ignore[index,call-overload,arg-type]


async def test_counting_tokens_is_passed_on_and_costs_nothing(provider: Loopback, visit: Opening) -> None:
    provider.then(Act(body={"input_tokens": 12}))
    async with visit() as at, anthropic_at(at) as sdk:
        counted = await sdk.messages.count_tokens(model="tiny", messages=[{"role": "user", "content": "hello"}])
    assert counted.input_tokens == 12
    assert at.books.told == []
    assert at.trial.transcript().steps == ()


async def test_gemini_is_booked_whole_and_streamed(provider: Loopback, visit: Opening) -> None:
    provider.then(Act(say="one"), Act(say="one two", usage={"input": 10, "output": 5, "thoughtsTokenCount": 4}))
    async with visit() as at:
        whole, texts = await asyncio.to_thread(ask_google, at)
    assert whole == "one"
    assert texts == ["one", "two"]
    first, second = at.books.told
    assert (first.input, first.output) == (10, 5)
    assert (second.output, second.reasoning) == (9, 4), "thoughts are paid for as output"
    assert provider.received[0].headers["x-goog-api-key"] == CANARY
    assert at.trial.token not in str(provider.received)


async def test_gemini_that_streams_a_list_instead_of_events_is_booked(provider: Loopback, visit: Opening) -> None:
    pieces = [
        {"candidates": [{"content": {"parts": [{"text": "one "}]}}], "usageMetadata": {"promptTokenCount": 7}},
        {
            "candidates": [{"content": {"parts": [{"text": "two"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 4, "cachedContentTokenCount": 2},
        },
    ]
    provider.then(Act(body=json.dumps(pieces).encode()))
    async with visit() as at:
        answer = await at.post("/google/v1beta/models/gemini-x:streamGenerateContent", {"contents": []})
    assert answer.json() == pieces
    assert (at.books.spent.input, at.books.spent.output, at.books.spent.cache_read) == (7, 4, 2)
    assert at.trial.transcript().output == "one two"


async def test_an_answer_that_nobody_can_read_is_booked_by_its_length(provider: Loopback, visit: Opening) -> None:
    provider.then(Act(body=b"x" * 400, headers={"content-encoding": "br"}))
    async with (
        visit() as at,
        at.client.stream("POST", f"{at.origin}/openai/v1/chat/completions", json={"model": "tiny"}) as answer,
    ):
        raw = [chunk async for chunk in answer.aiter_raw()]
    assert b"".join(raw) == b"x" * 400
    assert answer.headers["content-encoding"] == "br"
    assert at.books.spent.output == 100


async def test_lists_of_models_are_passed_on(provider: Loopback, visit: Opening) -> None:
    async with visit() as at, openai_at(at) as sdk:
        listed = [model.id async for model in sdk.models.list()]
    assert listed == ["openai/gpt-5"]
    assert at.books.told == []


async def test_an_answer_that_is_compressed_all_the_same_is_read_and_given_plain(
    provider: Loopback, visit: Opening
) -> None:
    whole = {"choices": [{"index": 0, "message": {"content": "packed"}, "finish_reason": "stop"}]}
    usage = {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    packed = gzip.compress(json.dumps({**whole, **usage}).encode())
    provider.then(Act(body=packed, headers={"content-encoding": "gzip"}))
    async with visit() as at:
        answer = await at.chat()
    assert provider.received[0].headers["accept-encoding"] == "identity"
    assert answer.json()["choices"][0]["message"]["content"] == "packed"
    assert at.books.spent.tokens == 5


async def test_a_request_that_is_compressed_is_unpacked_for_the_provider(provider: Loopback, visit: Opening) -> None:
    body = json.dumps({"model": "tiny", "messages": []}).encode()
    async with visit() as at:
        answer = await at.client.post(
            f"{at.origin}/openai/v1/chat/completions",
            content=gzip.compress(body),
            headers={"content-encoding": "gzip", "content-type": "application/json"},
        )
    assert answer.status_code == 200
    assert provider.bodies == [{"model": "tiny", "messages": []}]


async def test_what_the_provider_streams_arrives_byte_for_byte(provider: Loopback, visit: Opening) -> None:
    body = b': hi\r\n\r\nevent: odd\r\nid: 7\r\ndata: {"type": "ping"}\r\n\r\ndata: [DONE]\n\ndata: unfinished'
    provider.then(Act(body=body, headers={"content-type": "text/event-stream"}))
    async with visit() as at:
        answer = await at.messages(stream=True)
    assert answer.content == body


async def test_without_a_known_price_the_cost_is_unknown_and_not_nothing(provider: Loopback, visit: Opening) -> None:
    async with visit(price=None) as at:
        await at.chat(model="nobody-knows-this")
    assert at.books.spent.tokens == 15
    assert at.books.spent.cost is None


async def test_a_model_that_the_price_list_knows_is_priced_by_its_name(provider: Loopback, visit: Opening) -> None:
    async with visit(price=None) as at:
        await at.chat(model="gpt-4o")
    assert at.books.spent.cost is not None
    assert at.books.spent.cost > 0


async def test_an_alias_is_priced_by_the_name_that_the_answer_bears(provider: Loopback, visit: Opening) -> None:
    whole = {"model": "gpt-4o-2024-08-06", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    provider.then(Act(body=whole))
    async with visit(price=None) as at:
        await at.chat(model="our-alias")
    assert at.books.spent.cost is not None


async def test_counts_that_cannot_be_true_are_estimated_instead(provider: Loopback, visit: Opening) -> None:
    provider.then(Act(say="x" * 400, usage={"input": -5, "output": 10**12}))
    async with visit() as at:
        await at.chat()
    assert at.books.spent.output == 100
    assert 0 < at.books.spent.input < 50


def test_tools_that_a_request_adds_to_its_input_are_offered_too() -> None:
    inner = [{"type": "custom", "name": "exec"}, {"type": "function", "name": "wait"}]
    added = [
        {"type": "namespace", "name": "functions", "tools": inner},
        {"type": "namespace", "name": "mcp__map", "tools": [{"type": "function", "name": "route"}]},
    ]
    body = {
        "tools": [{"type": "function", "name": "plain"}],
        "input": [{"type": "additional_tools", "role": "developer", "tools": added}, {"type": "message"}, "text"],
    }
    assert [name for name, _ in RESPONSES.tools(body)] == ["plain", "exec", "wait", "mcp__map.route"]
    assert [name for name, _ in RESPONSES.tools({"input": "hello"})] == []


@pytest.mark.parametrize("kind", [["response.completed"], {"a": 1}, 3, None])
def test_an_event_whose_type_is_no_text_is_ignored(kind: object) -> None:
    answer = ModelAnswer()
    RESPONSES.event(answer, {"type": kind, "delta": "x"})
    assert answer == ModelAnswer()

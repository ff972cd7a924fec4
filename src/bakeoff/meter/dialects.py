"""The wire formats: how each says text, thought, calls, counts and the end of an answer, and how it lists tools."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bakeoff.meter.heard import Heard, Kind
from bakeoff.models.usage import reported_counts

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One wire format. `event` takes one event of a stream, `whole` a whole answer; `tools` and `results` a request."""

    name: str
    event: Callable[[Heard, Data], None]
    whole: Callable[[Heard, Data], None]
    tools: Callable[[Data], Iterator[tuple[str, Any]]]
    results: Callable[[Data], Iterator["ToolResult"]]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the agent says a call came to."""

    id: object
    content: object
    failed: bool = False


def data_in(value: object) -> Data:
    """The object that should be here; an empty one where something else is."""
    return value if isinstance(value, dict) else {}


def objects_in(value: object) -> list[Data]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _named(value: object) -> str | None:
    return value[:200] if isinstance(value, str) and value else None


# --- OpenAI chat completions --------------------------------------------------------------------------------------


def _chat_event(heard: Heard, event: Data) -> None:
    _chat(heard, event, "delta")


def _chat_whole(heard: Heard, body: Data) -> None:
    heard.whole = True
    _chat(heard, body, "message")


def _chat(heard: Heard, data: Data, message: str) -> None:
    heard.model = _named(data.get("model")) or heard.model
    for choice in objects_in(data.get("choices")):
        index = choice.get("index", 0)
        _chat_message(heard, str(index), data_in(choice.get(message)))
        if finish := _named(choice.get("finish_reason")):
            heard.finish, heard.whole = finish, True
    if usage := data_in(data.get("usage")):
        _chat_usage(heard, usage)


def _chat_message(heard: Heard, choice: str, message: Data) -> None:
    thought = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(thought, str) and thought:
        heard.say((choice, "reasoning"), "reasoning", thought)
    for name in ("content", "refusal"):
        if isinstance(message.get(name), str) and message[name]:
            heard.say((choice, "text"), "text", message[name])
    for place, call in enumerate(objects_in(message.get("tool_calls"))):
        function = data_in(call.get("function"))
        key = (choice, "tool", str(call.get("index", place)))
        heard.say(key, "tool", function.get("arguments"), name=function.get("name"), id=call.get("id"))


def _chat_usage(heard: Heard, usage: Data) -> None:
    counts = reported_counts(usage, "chat")
    if counts is not None and "cache_read" not in counts and isinstance(usage.get("prompt_cache_hit_tokens"), int):
        counts["cache_read"] = usage["prompt_cache_hit_tokens"]  # as DeepSeek names it
    heard.count(counts, final=heard.whole)  # some providers repeat them in every event
    cost = usage.get("cost")
    if isinstance(cost, int | float) and 0 <= cost < 1e6:
        heard.reported_cost = max(float(cost), heard.reported_cost or 0.0)


def _chat_tools(body: Data) -> Iterator[tuple[str, Any]]:
    for tool in [*objects_in(body.get("tools")), *objects_in(body.get("functions"))]:
        inner = data_in(tool.get("function")) or data_in(tool.get("custom")) or tool
        yield _named(inner.get("name")) or _named(tool.get("type")) or "?", tool


def _chat_results(body: Data) -> Iterator[ToolResult]:
    for message in objects_in(body.get("messages")):
        if message.get("role") == "tool":
            yield ToolResult(message.get("tool_call_id"), message.get("content"))


# --- OpenAI responses ---------------------------------------------------------------------------------------------

_RESPONSE_TEXT = {"response.output_text.delta": "text", "response.refusal.delta": "text"}
_RESPONSE_THOUGHT = {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}
_RESPONSE_CALL = {"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"}
_RESPONSE_END = {"response.completed", "response.incomplete", "response.failed"}


def _responses_event(heard: Heard, event: Data) -> None:
    kind, key = event.get("type"), str(event.get("output_index", 0))
    if kind in _RESPONSE_TEXT:
        heard.say((key, "text"), "text", event.get("delta"))
    elif kind in _RESPONSE_THOUGHT:
        heard.say((key, "reasoning"), "reasoning", event.get("delta"))
    elif kind in _RESPONSE_CALL:
        heard.say((key, "tool"), "tool", event.get("delta"))
    elif kind == "response.output_item.added":
        item = data_in(event.get("item"))
        if "call" in str(item.get("type")):
            heard.say((key, "tool"), "tool", None, name=item.get("name") or item.get("type"), id=item.get("call_id"))
    elif kind in _RESPONSE_END:
        _responses_end(heard, data_in(event.get("response")))


def _responses_end(heard: Heard, response: Data) -> None:
    if not heard.pieces:  # a server that sends no deltas, only the end
        _responses_output(heard, response)
    _responses_about(heard, response)
    heard.whole = True


def _responses_whole(heard: Heard, body: Data) -> None:
    _responses_output(heard, body)
    _responses_about(heard, body)
    heard.whole = True


def _responses_about(heard: Heard, response: Data) -> None:
    heard.model = _named(response.get("model")) or heard.model
    reason = data_in(response.get("incomplete_details")).get("reason")
    heard.finish = _named(reason) or _named(response.get("status")) or heard.finish
    if usage := data_in(response.get("usage")):
        heard.count(reported_counts(usage, "responses"), final=True)


def _responses_output(heard: Heard, response: Data) -> None:
    for place, item in enumerate(objects_in(response.get("output"))):
        kind = str(item.get("type"))
        if kind == "message":
            for content in objects_in(item.get("content")):
                heard.say((place, "text"), "text", content.get("text") or content.get("refusal"))
        elif kind == "reasoning":
            for thought in [*objects_in(item.get("summary")), *objects_in(item.get("content"))]:
                heard.say((place, "reasoning"), "reasoning", thought.get("text"))
        elif "call" in kind:
            given = item.get("arguments") or item.get("input")
            heard.say((place, "tool"), "tool", given, name=item.get("name") or kind, id=item.get("call_id"))


def _responses_tools(body: Data) -> Iterator[tuple[str, Any]]:
    for tool in objects_in(body.get("tools")):
        label = tool.get("name") or tool.get("server_label")  # a server that the provider itself calls
        yield _named(label) or _named(tool.get("type")) or "?", tool


def _responses_results(body: Data) -> Iterator[ToolResult]:
    for item in objects_in(body.get("input")):
        if str(item.get("type")).endswith("call_output"):
            yield ToolResult(item.get("call_id"), item.get("output"))


# --- Anthropic messages -------------------------------------------------------------------------------------------


def _messages_event(heard: Heard, event: Data) -> None:
    match event.get("type"):
        case "message_start":
            message = data_in(event.get("message"))
            heard.model = _named(message.get("model")) or heard.model
            _messages_usage(heard, data_in(message.get("usage")), final=False)
        case "content_block_start":
            _messages_block(heard, event.get("index"), data_in(event.get("content_block")))
        case "content_block_delta":
            _messages_delta(heard, event.get("index"), data_in(event.get("delta")))
        case "message_delta":
            heard.finish = _named(data_in(event.get("delta")).get("stop_reason")) or heard.finish
            _messages_usage(heard, data_in(event.get("usage")), final=True)
        case "message_stop":
            heard.whole = True


def _messages_block(heard: Heard, index: object, block: Data) -> None:
    match block.get("type"):
        case "text":
            heard.say(str(index), "text", block.get("text"))
        case "thinking":
            heard.say(str(index), "reasoning", block.get("thinking"))
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            heard.say(str(index), "tool", None, name=block.get("name"), id=block.get("id"))


def _messages_delta(heard: Heard, index: object, delta: Data) -> None:
    match delta.get("type"):
        case "text_delta":
            heard.say(str(index), "text", delta.get("text"))
        case "thinking_delta":
            heard.say(str(index), "reasoning", delta.get("thinking"))
        case "input_json_delta":
            heard.say(str(index), "tool", delta.get("partial_json"))


def _messages_whole(heard: Heard, body: Data) -> None:
    heard.model = _named(body.get("model")) or heard.model
    for place, block in enumerate(objects_in(body.get("content"))):
        _messages_block(heard, place, block)
        if "tool_use" in str(block.get("type")):
            heard.say(str(place), "tool", json.dumps(block.get("input") or {}))
    heard.finish = _named(body.get("stop_reason"))
    _messages_usage(heard, data_in(body.get("usage")), final=True)
    heard.whole = True


def _messages_usage(heard: Heard, usage: Data, *, final: bool) -> None:
    """Take over the counts of an event. A `message_delta` repeats only some of those in `message_start`."""
    if usage:
        heard.usage_so_far.update({name: value for name, value in usage.items() if value is not None})
        heard.count(reported_counts(heard.usage_so_far, "anthropic"), final=final)


def _messages_tools(body: Data) -> Iterator[tuple[str, Any]]:
    for tool in objects_in(body.get("tools")):
        yield _named(tool.get("name")) or _named(tool.get("type")) or "?", tool
    for server in objects_in(body.get("mcp_servers")):
        yield f"mcp server {_named(server.get('name')) or '?'}", _named(server.get("name"))


def _messages_results(body: Data) -> Iterator[ToolResult]:
    for message in objects_in(body.get("messages")):
        for block in objects_in(message.get("content")):
            if block.get("type") == "tool_result":
                yield ToolResult(block.get("tool_use_id"), block.get("content"), block.get("is_error") is True)


# --- Gemini -------------------------------------------------------------------------------------------------------


def _gemini_event(heard: Heard, data: Data) -> None:
    heard.model = _named(data.get("modelVersion")) or heard.model
    for candidate in objects_in(data.get("candidates")):
        for part in objects_in(data_in(candidate.get("content")).get("parts")):
            _gemini_part(heard, part)
        if finish := _named(candidate.get("finishReason")):
            heard.finish, heard.whole = finish, True
    if refused := _named(data_in(data.get("promptFeedback")).get("blockReason")):
        heard.finish, heard.whole = refused, True
    if usage := data_in(data.get("usageMetadata")):
        heard.count(reported_counts(usage, "google"), final=heard.whole)


def _gemini_part(heard: Heard, part: Data) -> None:
    if call := data_in(part.get("functionCall")):
        given = json.dumps(call.get("args") or {})
        heard.say(len(heard.pieces), "tool", given, name=call.get("name"), id=call.get("id"))
    elif part.get("text"):
        kind: Kind = "reasoning" if part.get("thought") else "text"
        last = next(reversed(heard.pieces), None)
        grows = last is not None and heard.pieces[last].kind == kind
        heard.say(last if grows else len(heard.pieces), kind, part["text"])


def _gemini_whole(heard: Heard, body: Data) -> None:
    _gemini_event(heard, body)
    heard.whole = True
    heard.final = bool(heard.counts)


def _gemini_tools(body: Data) -> Iterator[tuple[str, Any]]:
    for tool in objects_in(body.get("tools")):
        declared = objects_in(tool.get("functionDeclarations")) or objects_in(tool.get("function_declarations"))
        for function in declared:
            yield _named(function.get("name")) or "?", function
        if not declared:
            yield from ((name[:200], value) for name, value in tool.items())


def _gemini_results(body: Data) -> Iterator[ToolResult]:
    """Only of calls with an identity, which not every model gives them."""
    for content in objects_in(body.get("contents")):
        for part in objects_in(content.get("parts")):
            if result := data_in(part.get("functionResponse")):
                yield ToolResult(result.get("id"), result.get("response"))


CHAT = Dialect("chat", _chat_event, _chat_whole, _chat_tools, _chat_results)
RESPONSES = Dialect("responses", _responses_event, _responses_whole, _responses_tools, _responses_results)
MESSAGES = Dialect("messages", _messages_event, _messages_whole, _messages_tools, _messages_results)
GEMINI = Dialect("gemini", _gemini_event, _gemini_whole, _gemini_tools, _gemini_results)

"""Read the API formats of OpenAI, Anthropic and Google: text, reasoning, tool calls and counts.

Streams are split into server-sent events without changing any bytes. Implausible values are
ignored, and long texts are cut.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil, isfinite
from typing import Any, Literal, NoReturn

from pydantic import JsonValue

from bakeoff.errors import InfraError
from bakeoff.models.estimate import CHARS_PER_TOKEN
from bakeoff.models.prices import Price, cost_of
from bakeoff.models.replies import reported_counts
from bakeoff.record import Part, Reasoning, Text, ToolCall, Usage
from bakeoff.storage.redaction import CUT

Kind = Literal["text", "reasoning", "tool"]

MAX_CHARACTERS = 200_000  # kept per part
MAX_PARTS = 256  # kept per answer
_MAX_DEPTH = 50  # of a call's arguments
MAX_TOKENS = 100_000_000
# Text without a space that is longer is a file such as an image, not billed by characters.
_MAX_WORD_LENGTH = 20_000


@dataclass(slots=True)
class AnswerPiece:
    """A part of an answer that is still arriving."""

    kind: Kind
    name: str = ""
    id: str | None = None
    texts: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, text: str) -> None:
        """Add text, up to the limit for one part."""
        room = MAX_CHARACTERS - self.size
        self.size += len(text)
        if room > 0:
            self.texts.append(text if len(text) <= room else text[:room] + CUT)

    def part(self) -> Part:
        """Return the piece as a part of a transcript. Long names and ids are cut."""
        text = "".join(self.texts)
        match self.kind:
            case "tool":
                return ToolCall(name=self.name[:200], arguments=arguments_of(text), id=self.id and self.id[:200])
            case "reasoning":
                return Reasoning(text=text)
            case _:
                return Text(text=text)


@dataclass(slots=True)
class ModelAnswer:
    """An answer as far as it has arrived."""

    pieces: dict[Any, AnswerPiece] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    # The raw counts, if the provider spreads them over several events.
    reported: dict[str, Any] = field(default_factory=dict)
    final: bool = False  # the counts are those of the complete answer
    whole: bool = False  # the answer is complete
    reported_cost: float | None = None
    finish: str | None = None
    model: str | None = None
    characters: int = 0

    def add(self, key: Any, kind: Kind, text: object, *, name: object = "", id: object = None) -> None:
        """Add text to the part with this key. Other types are ignored."""
        piece = self.pieces.get(key)
        if piece is None:
            piece = AnswerPiece(kind)
            if len(self.pieces) < MAX_PARTS:
                self.pieces[key] = piece
        if isinstance(name, str) and name:
            piece.name = name
        if isinstance(id, str) and id:
            piece.id = id
        if isinstance(text, str) and text:
            self.characters += len(text)
            piece.add(text)

    def count(self, counted: Mapping[str, int] | None, *, final: bool) -> None:
        """Update counts, which can only grow. If they are impossible, usage is estimated."""
        wrong = counted is None or any(count > MAX_TOKENS for count in counted.values())
        self.counts.update({name: max(value, self.counts.get(name, 0)) for name, value in (counted or {}).items()})
        cached = self.counts.get("cache_read", 0) + self.counts.get("cache_write", 0)
        wrong = wrong or cached > self.counts.get("input", 0)
        if wrong or not (self.counts.get("input") or self.counts.get("output")):
            self.counts.clear()
            self.final = False
        else:
            self.final = self.final or final

    def usage(self, price: Price | None, asked_characters: int) -> tuple[Usage, bool]:
        """Return tokens and cost, and True if part of them is estimated.

        Missing counts are estimated from characters; `asked_characters` is the length of the
        request. Without a price, the cost is the reported one, or None.
        """
        counts = dict(self.counts)
        estimated = not self.final or "input" not in counts
        counts.setdefault("input", ceil(asked_characters / CHARS_PER_TOKEN))
        if not self.final:
            counts["output"] = max(counts.get("output", 0), ceil(self.characters / CHARS_PER_TOKEN))
        usage = Usage(requests=1, **counts)
        cost = cost_of(usage, price) if price else self.reported_cost
        return usage.model_copy(update={"cost": cost}), estimated

    def parts(self) -> tuple[Part, ...]:
        """Return the answer so far as parts of a transcript, without empty texts."""
        return tuple(piece.part() for piece in self.pieces.values() if piece.size or piece.kind == "tool")

    def text(self) -> str:
        """Return all text for the user, without reasoning and tool calls."""
        return "".join("".join(piece.texts) for piece in self.pieces.values() if piece.kind == "text")


def arguments_of(text: str) -> JsonValue:
    """Return a call's arguments as data, or the original text if it is not usable JSON."""
    try:
        arguments: JsonValue = json.loads(text, parse_constant=_refuse, parse_float=_finite) if text else {}
    except (ValueError, RecursionError):
        return text
    return arguments if depth_of(arguments) <= _MAX_DEPTH else text


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(number: str) -> float:
    """Refuse numbers such as `1e999`, which JSON permits but which become infinite."""
    return value if isfinite(value := float(number)) else _refuse(number)


def depth_of(value: object) -> int:
    """Return the nesting depth of data, without recursion, since it may be deep on purpose."""
    deepest, queue = 0, [(value, 1)]
    while queue:
        item, depth = queue.pop()
        deepest = max(deepest, depth)
        children = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        queue.extend((child, depth + 1) for child in children)
    return deepest


def characters_in(value: object) -> int:
    """Count the characters of all texts in data that are billed as tokens, without files."""
    total, queue = 0, [value]
    while queue:
        item = queue.pop()
        if isinstance(item, dict):
            queue.extend(item.keys())
            queue.extend(item.values())
        elif isinstance(item, list):
            queue.extend(item)
        elif isinstance(item, str) and (len(item) < _MAX_WORD_LENGTH or " " in item[:_MAX_WORD_LENGTH]):
            total += len(item)
    return total


_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINES = re.compile(rb"\r\n|\n|\r")
_MAX_END_LENGTH = 4

Data = Mapping[str, Any]
_RESPONSE_TEXT = {"response.output_text.delta", "response.refusal.delta"}
_RESPONSE_THOUGHT = {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}
_RESPONSE_CALL = {"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"}
_RESPONSE_END = {"response.completed", "response.incomplete", "response.failed"}


class EventSplitter:
    """Splits a stream into complete events. Joining them restores the stream exactly."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._pending = bytearray()
        self._looked = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the events that this chunk completes. Raise `InfraError` if one is too long."""
        self._pending += chunk
        while found := _END.search(self._pending, max(0, self._looked - _MAX_END_LENGTH)):
            event = bytes(self._pending[: found.end()])
            del self._pending[: found.end()]
            self._looked = 0
            yield event
        self._looked = len(self._pending)
        if self._looked > self._most_bytes:
            raise InfraError(f"the provider sent an event of more than {self._most_bytes >> 20} MiB")

    def rest(self) -> bytes:
        """Return the bytes after the last complete event."""
        rest = bytes(self._pending)
        self._pending.clear()
        return rest


def data_of(event: bytes) -> Mapping[str, Any] | None:
    """Return the JSON object of an event; None for comments, `[DONE]` and other data."""
    lines = [line[5:].removeprefix(b" ") for line in _LINES.split(event) if line.startswith(b"data:")]
    found = objects_of(b"\n".join(lines))
    return found[0] if len(found) == 1 else None


def objects_of(body: bytes) -> list[dict[str, Any]]:
    """Return the JSON object of a body, or the objects of a list, which Gemini sends."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return []
    return [item for item in (data if isinstance(data, list) else [data]) if isinstance(item, dict)]


@dataclass(frozen=True, slots=True)
class WireFormat:
    """One API format: functions that read stream events, full answers, tools and results."""

    name: str
    event: Callable[[ModelAnswer, Data], None]
    whole: Callable[[ModelAnswer, Data], None]
    tools: Callable[[Data], Iterator[tuple[str, Any]]]
    results: Callable[[Data], Iterator["WireToolResult"]]


@dataclass(frozen=True, slots=True)
class WireToolResult:
    """The result of a call, as sent by the agent."""

    id: object
    content: object
    failed: bool = False


def data_in(value: object) -> Data:
    """Return the value if it is an object, or else an empty object."""
    return value if isinstance(value, dict) else {}


def objects_in(value: object) -> list[Data]:
    """Return the objects in a list; empty for other values, which untrusted parties may send."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _named(value: object) -> str | None:
    return value[:200] if isinstance(value, str) and value else None


def _tools(body: Data) -> Iterator[tuple[str, Any]]:
    """Yield the tools of a request to OpenAI or Anthropic, including servers of the provider."""
    added = [item for item in objects_in(body.get("input")) if item.get("type") == "additional_tools"]
    for tools in (body.get("tools"), body.get("functions"), *(item.get("tools") for item in added)):
        yield from _named_tools(objects_in(tools))
    for server in objects_in(body.get("mcp_servers")):
        yield f"mcp server {_named(server.get('name')) or '?'}", _named(server.get("name"))


def _named_tools(tools: list[Data]) -> Iterator[tuple[str, Any]]:
    """Yield tools with their names. The tools of a namespace are yielded one by one."""
    for tool in tools:
        if tool.get("type") == "namespace" and isinstance(tool.get("tools"), list):
            space = _named(tool.get("name"))
            for name, inside in _named_tools(objects_in(tool["tools"])):
                yield name if space in (None, "functions") else f"{space}.{name}", inside
            continue
        inner = data_in(tool.get("function")) or data_in(tool.get("custom")) or tool
        label = inner.get("name") or tool.get("server_label")
        yield _named(label) or _named(tool.get("type")) or "?", tool


# --- OpenAI chat completions --------------------------------------------------------------------------------------


def _chat_whole(answer: ModelAnswer, body: Data) -> None:
    answer.whole = True
    _chat_event(answer, body, "message")


def _chat_event(answer: ModelAnswer, data: Data, message: str = "delta") -> None:
    answer.model = _named(data.get("model")) or answer.model
    for choice in objects_in(data.get("choices")):
        index = choice.get("index", 0)
        _chat_message(answer, str(index), data_in(choice.get(message)))
        if finish := _named(choice.get("finish_reason")):
            answer.finish, answer.whole = finish, True
    if usage := data_in(data.get("usage")):
        _chat_usage(answer, usage)


def _chat_message(answer: ModelAnswer, choice: str, message: Data) -> None:
    thought = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(thought, str) and thought:
        answer.add((choice, "reasoning"), "reasoning", thought)
    for name in ("content", "refusal"):
        if isinstance(message.get(name), str) and message[name]:
            answer.add((choice, "text"), "text", message[name])
    for place, call in enumerate(objects_in(message.get("tool_calls"))):
        function = data_in(call.get("function"))
        key = (choice, "tool", str(call.get("index", place)))
        answer.add(key, "tool", function.get("arguments"), name=function.get("name"), id=call.get("id"))


def _chat_usage(answer: ModelAnswer, usage: Data) -> None:
    counts = reported_counts(usage, "chat")
    if counts is not None and "cache_read" not in counts and isinstance(usage.get("prompt_cache_hit_tokens"), int):
        counts["cache_read"] = usage["prompt_cache_hit_tokens"]  # DeepSeek's name
    answer.count(counts, final=answer.whole)  # some providers repeat them in every event
    cost = usage.get("cost")
    if isinstance(cost, int | float) and 0 <= cost < 1e6:
        answer.reported_cost = max(float(cost), answer.reported_cost or 0.0)


def _chat_results(body: Data) -> Iterator[WireToolResult]:
    for message in objects_in(body.get("messages")):
        if message.get("role") == "tool":
            yield WireToolResult(message.get("tool_call_id"), message.get("content"))


# --- OpenAI responses ---------------------------------------------------------------------------------------------


def _responses_event(answer: ModelAnswer, event: Data) -> None:
    kind, key = _named(event.get("type")), str(event.get("output_index", 0))
    if kind in _RESPONSE_TEXT:
        answer.add((key, "text"), "text", event.get("delta"))
    elif kind in _RESPONSE_THOUGHT:
        answer.add((key, "reasoning"), "reasoning", event.get("delta"))
    elif kind in _RESPONSE_CALL:
        answer.add((key, "tool"), "tool", event.get("delta"))
    elif kind == "response.output_item.added":
        item = data_in(event.get("item"))
        if "call" in str(item.get("type")):
            answer.add((key, "tool"), "tool", None, name=item.get("name") or item.get("type"), id=item.get("call_id"))
    elif kind in _RESPONSE_END:
        _responses_whole(answer, data_in(event.get("response")))


def _responses_whole(answer: ModelAnswer, response: Data) -> None:
    if not answer.pieces:  # not streamed, or streamed without deltas
        for place, item in enumerate(objects_in(response.get("output"))):
            kind = str(item.get("type"))
            if kind == "message":
                for content in objects_in(item.get("content")):
                    answer.add((place, "text"), "text", content.get("text") or content.get("refusal"))
            elif kind == "reasoning":
                for thought in [*objects_in(item.get("summary")), *objects_in(item.get("content"))]:
                    answer.add((place, "reasoning"), "reasoning", thought.get("text"))
            elif "call" in kind:
                given = item.get("arguments") or item.get("input")
                answer.add((place, "tool"), "tool", given, name=item.get("name") or kind, id=item.get("call_id"))
    answer.whole = True
    answer.model = _named(response.get("model")) or answer.model
    reason = data_in(response.get("incomplete_details")).get("reason")
    answer.finish = _named(reason) or _named(response.get("status")) or answer.finish
    if usage := data_in(response.get("usage")):
        answer.count(reported_counts(usage, "responses"), final=True)


def _responses_results(body: Data) -> Iterator[WireToolResult]:
    for item in objects_in(body.get("input")):
        if str(item.get("type")).endswith("call_output"):
            yield WireToolResult(item.get("call_id"), item.get("output"))


# --- Anthropic messages -------------------------------------------------------------------------------------------


def _messages_event(answer: ModelAnswer, event: Data) -> None:
    match event.get("type"):
        case "message_start":
            message = data_in(event.get("message"))
            answer.model = _named(message.get("model")) or answer.model
            _messages_usage(answer, data_in(message.get("usage")), final=False)
        case "content_block_start":
            _messages_block(answer, event.get("index"), data_in(event.get("content_block")))
        case "content_block_delta":
            _messages_block(answer, event.get("index"), data_in(event.get("delta")))
        case "message_delta":
            answer.finish = _named(data_in(event.get("delta")).get("stop_reason")) or answer.finish
            _messages_usage(answer, data_in(event.get("usage")), final=True)
        case "message_stop":
            answer.whole = True


def _messages_block(answer: ModelAnswer, index: object, block: Data) -> None:
    """Read a block, or a change to a block."""
    match block.get("type"):
        case "text" | "text_delta":
            answer.add(str(index), "text", block.get("text"))
        case "thinking" | "thinking_delta":
            answer.add(str(index), "reasoning", block.get("thinking"))
        case "input_json_delta":
            answer.add(str(index), "tool", block.get("partial_json"))
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            answer.add(str(index), "tool", None, name=block.get("name"), id=block.get("id"))


def _messages_whole(answer: ModelAnswer, body: Data) -> None:
    answer.model = _named(body.get("model")) or answer.model
    for place, block in enumerate(objects_in(body.get("content"))):
        _messages_block(answer, place, block)
        if "tool_use" in str(block.get("type")):
            answer.add(str(place), "tool", json.dumps(block.get("input") or {}))
    answer.finish = _named(body.get("stop_reason"))
    _messages_usage(answer, data_in(body.get("usage")), final=True)
    answer.whole = True


def _messages_usage(answer: ModelAnswer, usage: Data, *, final: bool) -> None:
    """Read the counts of an event. A `message_delta` repeats only some of the first counts."""
    if usage:
        answer.reported.update({name: value for name, value in usage.items() if value is not None})
        answer.count(reported_counts(answer.reported, "anthropic"), final=final)


def _messages_results(body: Data) -> Iterator[WireToolResult]:
    for message in objects_in(body.get("messages")):
        for block in objects_in(message.get("content")):
            if block.get("type") == "tool_result":
                yield WireToolResult(block.get("tool_use_id"), block.get("content"), block.get("is_error") is True)


# --- Gemini -------------------------------------------------------------------------------------------------------


def _gemini_event(answer: ModelAnswer, data: Data) -> None:
    answer.model = _named(data.get("modelVersion")) or answer.model
    for candidate in objects_in(data.get("candidates")):
        for part in objects_in(data_in(candidate.get("content")).get("parts")):
            if call := data_in(part.get("functionCall")):
                given = json.dumps(call.get("args") or {})
                answer.add(len(answer.pieces), "tool", given, name=call.get("name"), id=call.get("id"))
            elif part.get("text"):
                kind: Kind = "reasoning" if part.get("thought") else "text"
                last = next(reversed(answer.pieces), None)
                grows = last is not None and answer.pieces[last].kind == kind
                answer.add(last if grows else len(answer.pieces), kind, part["text"])
        if finish := _named(candidate.get("finishReason")):
            answer.finish, answer.whole = finish, True
    if refused := _named(data_in(data.get("promptFeedback")).get("blockReason")):
        answer.finish, answer.whole = refused, True
    if usage := data_in(data.get("usageMetadata")):
        answer.count(reported_counts(usage, "google"), final=answer.whole)


def _gemini_whole(answer: ModelAnswer, body: Data) -> None:
    _gemini_event(answer, body)
    answer.whole = True
    answer.final = bool(answer.counts)


def _gemini_tools(body: Data) -> Iterator[tuple[str, Any]]:
    for tool in objects_in(body.get("tools")):
        declared = objects_in(tool.get("functionDeclarations")) or objects_in(tool.get("function_declarations"))
        for function in declared:
            yield _named(function.get("name")) or "?", function
        if not declared:
            yield from ((name[:200], value) for name, value in tool.items())


def _gemini_results(body: Data) -> Iterator[WireToolResult]:
    """Yield the results of calls that have an id, which some models leave out."""
    for content in objects_in(body.get("contents")):
        for part in objects_in(content.get("parts")):
            if result := data_in(part.get("functionResponse")):
                yield WireToolResult(result.get("id"), result.get("response"))


CHAT = WireFormat("chat", _chat_event, _chat_whole, _tools, _chat_results)
RESPONSES = WireFormat("responses", _responses_event, _responses_whole, _tools, _responses_results)
MESSAGES = WireFormat("messages", _messages_event, _messages_whole, _tools, _messages_results)
GEMINI = WireFormat("gemini", _gemini_event, _gemini_whole, _gemini_tools, _gemini_results)

"""A provider on loopback that real agents accept: four wire formats, streamed or not, with calls of tools."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
INPUT, OUTPUT = 10, 5
"""Tokens of every answer."""


@dataclass(frozen=True)
class Turn:
    """One answer: a text, or a call of a tool with arguments, or with a text of its own where it is a custom tool."""

    say: str = "Done."
    tool: str | None = None
    arguments: Json = field(default_factory=dict)
    custom: str | None = None


@dataclass
class SpeakingProvider:
    """Takes its turns in order, calls only where tools are offered, and says `Done.` otherwise."""

    turns: list[Turn] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    models: list[str] = field(default_factory=list)  # that were asked for, one for each answer
    received: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                names = ("x-api-key", "x-goog-api-key", "authorization")
                provider.keys.add(next((self.headers[name] for name in names if name in self.headers), ""))
                provider.received.append(asked)
                kind, body = provider.answer(self.path.partition("?")[0], asked)
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                body = json.dumps({"object": "list", "data": []}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> "SpeakingProvider":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, path: str, asked: Json) -> tuple[str, bytes]:
        if path.endswith("count_tokens"):
            return "application/json", json.dumps({"input_tokens": INPUT}).encode()
        if path.endswith(":countTokens"):
            return "application/json", json.dumps({"totalTokens": INPUT}).encode()
        model = path.rpartition("/")[2].partition(":")[0] if "enerateContent" in path else asked.get("model", "?")
        self.models.append(model)
        wanted = bool(self.turns) and (_offers_tools(asked) or self.turns[0].tool is None)
        turn = self.turns.pop(0) if wanted else Turn(_json_asked_for(asked) or "Done.")
        speak = {"chat/completions": _chat, "responses": _responses, "messages": _messages}
        speak |= {":generateContent": _gemini, ":streamGenerateContent": _gemini}
        wire = next(wire for end, wire in speak.items() if path.endswith(end))
        whole, events = wire(turn, model)
        if not asked.get("stream") and ":stream" not in path:
            return "application/json", json.dumps(whole).encode()
        return "text/event-stream", b"".join(events)


def _offers_tools(asked: Json) -> bool:
    items = asked.get("input")
    kinds = [item.get("type") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return bool(asked.get("tools")) or "additional_tools" in kinds


def _json_asked_for(asked: Json) -> str | None:
    """Gemini asks a model how difficult a task is, before it chooses one for the task."""
    schema = asked.get("generationConfig", {}).get("responseJsonSchema")
    kinds = {"INTEGER": 50, "NUMBER": 0.5, "STRING": "flash"}
    return schema and json.dumps({name: kinds[about["type"]] for name, about in schema["properties"].items()})


def _event(data: Json, *, named: bool = False) -> bytes:
    head = f"event: {data['type']}\n" if named else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def _chat(turn: Turn, model: str) -> tuple[Json, Iterator[bytes]]:
    usage = {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
    head = {"id": "chat-1", "created": 1, "model": model}
    finish = "tool_calls" if turn.tool else "stop"
    called = {"name": turn.tool, "arguments": json.dumps(turn.arguments)}
    calls = [{"index": 0, "id": "call_1", "type": "function", "function": called}]
    said: Json = {"role": "assistant", "content": None if turn.tool else turn.say}
    message = {**said, "tool_calls": calls} if turn.tool else said
    whole = {**head, "object": "chat.completion", "usage": usage}
    whole["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]

    def events() -> Iterator[bytes]:
        chunk = {**head, "object": "chat.completion.chunk"}
        yield _event({**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]})
        yield _event({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        yield _event({**chunk, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    return whole, events()


def _responses(turn: Turn, model: str) -> tuple[Json, Iterator[bytes]]:
    item: Json = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    item["content"] = [{"type": "output_text", "text": turn.say, "annotations": []}]
    if turn.tool:
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": turn.tool, "status": "completed"}
        item["arguments"] = json.dumps(turn.arguments)
    if turn.custom is not None:
        item = {**item, "type": "custom_tool_call", "input": turn.custom}
    usage = {"input_tokens": INPUT, "output_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}  # type: ignore[dict-item]
    begun: Json = {"id": "resp_1", "object": "response", "created_at": 1, "model": model, "output": []}
    whole = {**begun, "status": "completed", "output": [item], "usage": usage}

    def events() -> Iterator[bytes]:
        yield _event({"type": "response.created", "response": {**begun, "status": "in_progress"}}, named=True)
        place = {"output_index": 0}
        yield _event({"type": "response.output_item.added", **place, "item": item}, named=True)
        if turn.tool and turn.custom is None:
            done = {"item_id": "fc_1", "arguments": item["arguments"]}
            yield _event({"type": "response.function_call_arguments.done", **place, **done}, named=True)
        elif not turn.tool:
            delta = {"item_id": "msg_1", "content_index": 0, "delta": turn.say, "logprobs": []}
            yield _event({"type": "response.output_text.delta", **place, **delta}, named=True)
        yield _event({"type": "response.output_item.done", **place, "item": item}, named=True)
        yield _event({"type": "response.completed", "response": whole}, named=True)

    return whole, events()


def _messages(turn: Turn, model: str) -> tuple[Json, Iterator[bytes]]:
    block: Json = {"type": "text", "text": turn.say}
    if turn.tool:
        block = {"type": "tool_use", "id": "toolu_1", "name": turn.tool, "input": turn.arguments}
    reason = "tool_use" if turn.tool else "end_turn"
    head: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_sequence": None}
    usage = {"input_tokens": INPUT, "output_tokens": OUTPUT}
    whole = {**head, "content": [block], "stop_reason": reason, "usage": usage}

    def events() -> Iterator[bytes]:
        begun = {**head, "content": [], "stop_reason": None, "usage": {"input_tokens": INPUT, "output_tokens": 1}}
        yield _event({"type": "message_start", "message": begun}, named=True)
        start = {**block, "input": {}} if turn.tool else {**block, "text": ""}
        yield _event({"type": "content_block_start", "index": 0, "content_block": start}, named=True)
        delta: Json = {"type": "text_delta", "text": turn.say}
        if turn.tool:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(turn.arguments)}
        yield _event({"type": "content_block_delta", "index": 0, "delta": delta}, named=True)
        yield _event({"type": "content_block_stop", "index": 0}, named=True)
        ended = {"stop_reason": reason, "stop_sequence": None}
        yield _event({"type": "message_delta", "delta": ended, "usage": {"output_tokens": OUTPUT}}, named=True)
        yield _event({"type": "message_stop"}, named=True)

    return whole, events()


def _gemini(turn: Turn, model: str) -> tuple[Json, Iterator[bytes]]:
    part: Json = {"text": turn.say}
    if turn.tool:
        part = {"functionCall": {"name": turn.tool, "args": turn.arguments}}
    usage = {"promptTokenCount": INPUT, "candidatesTokenCount": OUTPUT, "totalTokenCount": INPUT + OUTPUT}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    whole: Json = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": "r-1"}
    return whole, iter([_event(whole)])

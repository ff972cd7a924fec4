"""A provider on loopback that real agents accept: three wire formats, streamed or not, with calls of tools."""

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
    """One answer: a text, or a call of a tool."""

    say: str = "Done."
    tool: str | None = None
    arguments: Json = field(default_factory=dict)


@dataclass
class SpeakingProvider:
    """Takes its turns in order, calls only where tools are offered, and says `Done.` otherwise."""

    turns: list[Turn] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    models: list[str] = field(default_factory=list)  # that were asked for, one for each answer

    def __post_init__(self) -> None:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                provider.keys.add(self.headers.get("x-api-key") or self.headers.get("authorization") or "")
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
        self.models.append(asked.get("model", "?"))
        wanted = bool(self.turns) and (bool(asked.get("tools")) or self.turns[0].tool is None)
        turn = self.turns.pop(0) if wanted else Turn()
        speak = {"chat/completions": _chat, "responses": _responses, "messages": _messages}
        wire = next(wire for end, wire in speak.items() if path.endswith(end))
        whole, events = wire(turn, asked.get("model", "?"))
        if not asked.get("stream"):
            return "application/json", json.dumps(whole).encode()
        return "text/event-stream", b"".join(events)


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
    usage = {"input_tokens": INPUT, "output_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}  # type: ignore[dict-item]
    begun: Json = {"id": "resp_1", "object": "response", "created_at": 1, "model": model, "output": []}
    whole = {**begun, "status": "completed", "output": [item], "usage": usage}

    def events() -> Iterator[bytes]:
        yield _event({"type": "response.created", "response": {**begun, "status": "in_progress"}}, named=True)
        place = {"output_index": 0}
        yield _event({"type": "response.output_item.added", **place, "item": item}, named=True)
        if turn.tool:
            done = {"item_id": "fc_1", "arguments": item["arguments"]}
            yield _event({"type": "response.function_call_arguments.done", **place, **done}, named=True)
        else:
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

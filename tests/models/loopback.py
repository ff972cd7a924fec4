"""A real provider on loopback that speaks four APIs, remembers what it was asked, and misbehaves when told to."""

import asyncio
import contextlib
import json
import ssl
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec

KEY = "sk-loopback-0123456789abcdef"
"""What opens the door of the loopback provider; must never be found in a file."""

PRICE = {"input": 100, "output": 200}
"""USD per million tokens: a usual answer (10 in, 5 out) costs 0.002."""

USUAL = {"input": 10, "output": 5}


@dataclass(frozen=True, slots=True)
class Received:
    """One request, as it came over the wire."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: Any
    number: int

    @property
    def path(self) -> str:
        """Without scheme and host, which only a proxy is sent, and without the query."""
        target = self.target.partition("?")[0]
        return "/" + target.split("/", 3)[3] if target.startswith("http") else target

    @property
    def streams(self) -> bool:
        return ":stream" in self.path or (isinstance(self.body, dict) and bool(self.body.get("stream")))


@dataclass(frozen=True, slots=True)
class Act:
    """The reaction to one request. By default it answers `yes` and counts 10 tokens in and 5 out."""

    say: str = "yes"
    think: str = ""
    calls: tuple[tuple[str, Any], ...] = ()  # name and arguments; a text goes out as it is
    refuse: str = ""
    finish: str | None = "stop"
    usage: Any = field(
        default_factory=lambda: USUAL
    )  # input, output, cached; None leaves it out; other keys go out raw
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None  # sent instead of an answer: bytes as they are, data as JSON
    first_byte: float = 0.0  # seconds before anything is sent
    pause: float = 0.0  # seconds between the pieces of a stream
    cut: int | None = None  # pieces of the body after which the connection breaks
    stop: int | None = None  # pieces of a stream after which it ends as if all had been said
    hold: threading.Event | None = None  # answered only when this is set


def failure(status: int, message: str = "no", code: str | None = None, **headers: str) -> Act:
    """An error as OpenAI words it."""
    error = {"message": message, "type": "test_error", "param": None, "code": code}
    return Act(status=status, headers={k.replace("_", "-"): v for k, v in headers.items()}, body={"error": error})


class Loopback:
    """The server, in a thread with a loop of its own, so that a blocked test does not block it."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.received: list[Received] = []
        self.most_in_flight = 0
        self.port = 0
        self.plan: Callable[[Received], Act] = lambda _: Act()
        self._queue: deque[Act] = deque()
        self._in_flight = 0
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="loopback")

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def bodies(self) -> list[Any]:
        return [request.body for request in self.received]

    def then(self, *acts: Act) -> None:
        """Do this next, then continue with the plan."""
        self._queue.extend(acts)

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    def stop(self) -> None:
        """Nobody is there any more."""
        if self._server is not None:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        self._server = None
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                request = await self._read(reader)
                if request.headers.get("user-agent") == "bakeoff":  # the look before a run; no test counts it
                    await self._act(Act(), request, writer)
                    continue
                self.received.append(request)
                act = self._queue.popleft() if self._queue else self.plan(request)
                self._in_flight += 1
                self.most_in_flight = max(self.most_in_flight, self._in_flight)
                try:
                    await self._act(act, request, writer)
                finally:
                    self._in_flight -= 1
        writer.transport.abort()

    async def _read(self, reader: asyncio.StreamReader) -> Received:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        body = json.loads(raw) if headers.get("content-type") == "application/json" else raw or None
        return Received(method, target, headers, body, len(self.received))

    async def _act(self, act: Act, request: Received, writer: asyncio.StreamWriter) -> None:
        if act.hold is not None:
            await asyncio.to_thread(act.hold.wait, 30)
        await asyncio.sleep(act.first_byte)
        streams = request.streams and act.body is None and act.status == 200
        kind = "text/event-stream" if streams else "application/json"
        headers = {"content-type": kind, "transfer-encoding": "chunked", **act.headers}
        lines = [f"HTTP/1.1 {act.status} Whatever", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        number = 0
        async for piece in _pieces(act, request, streams=streams):
            if number == act.cut:
                await writer.drain()
                raise ConnectionResetError
            if number == act.stop:
                break
            number += 1
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()


async def _pieces(act: Act, request: Received, *, streams: bool) -> AsyncIterator[bytes]:
    if streams:
        for event in _events(act, request):
            yield event
            await asyncio.sleep(act.pause)
        return
    body = act.body if isinstance(act.body, bytes) else json.dumps(_whole(act, request)).encode()
    half = len(body) // 2
    for piece in filter(None, (body[:half], body[half:])):  # an empty piece would end the body
        yield piece
        await asyncio.sleep(act.pause)


def _whole(act: Act, request: Received) -> Any:
    if act.body is not None:
        return act.body
    if request.path.endswith("/chat/completions"):
        return _chat(act, request)
    if request.path.endswith("/responses"):
        return _responses(act, request)
    if request.path.endswith("/messages"):
        return _anthropic(act, request)
    if "generateContent" in request.path:
        return _google(act)
    if request.path.endswith("/models"):
        return {"object": "list", "data": [{"id": "openai/gpt-5", "type": "language"}]}
    return {"error": {"message": f"there is nothing at {request.path}"}}


def _events(act: Act, request: Received) -> Iterator[bytes]:
    if request.path.endswith("/chat/completions"):
        return _chat_events(act, request)
    if request.path.endswith("/messages"):
        return _anthropic_events(act, request)
    return _google_events(act)


def _arguments(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(given)


def _counted(act: Act, names: Mapping[str, str]) -> dict[str, Any]:
    """The usage in an API's own words."""
    return {names.get(name, name): count for name, count in act.usage.items() if name != "cached"}


def _chat_usage(act: Act) -> dict[str, Any]:
    if act.usage is None:
        return {}
    counted = _counted(act, {"input": "prompt_tokens", "output": "completion_tokens"})
    if "cached" in act.usage:
        counted["prompt_tokens_details"] = {"cached_tokens": act.usage["cached"]}
    return {"usage": counted}


def _chat(act: Act, request: Received) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None if act.refuse or act.calls else act.say}
    if act.refuse:
        message["refusal"] = act.refuse
    if act.think:
        message["reasoning_content"] = act.think
    if act.calls:
        message["content"] = act.say if act.say != "yes" else None
        message["tool_calls"] = [
            {
                "id": f"call-{request.number}-{place}",
                "type": "function",
                "function": {"name": name, "arguments": _arguments(arguments)},
            }
            for place, (name, arguments) in enumerate(act.calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if act.calls else act.finish}
    head = {"id": f"chatcmpl-{request.number}", "object": "chat.completion", "created": 1700000000}
    return {**head, "model": request.body["model"], "choices": [choice], **_chat_usage(act)}


def _chat_events(act: Act, request: Received) -> Iterator[bytes]:
    head = {"id": f"chatcmpl-{request.number}", "object": "chat.completion.chunk", "created": 1700000000}
    head["model"] = request.body["model"]

    def event(**more: Any) -> bytes:
        return b"data: " + json.dumps({**head, **more}).encode() + b"\n\n"

    def choice(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return event(choices=[{"index": 0, "delta": delta, "finish_reason": finish}])

    yield choice({"role": "assistant", "content": ""})
    for word in act.say.split(" "):
        yield choice({"content": word})
    yield choice({}, act.finish)
    if act.usage is not None:
        yield event(choices=[], **_chat_usage(act))
    yield b"data: [DONE]\n\n"


def _responses(act: Act, request: Received) -> dict[str, Any]:
    content = [{"type": "output_text", "text": act.say, "annotations": []}]
    output = [{"type": "message", "id": "msg-1", "role": "assistant", "status": "completed", "content": content}]
    usage = {
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
        **_counted(act, {"input": "input_tokens", "output": "output_tokens"}),
    }
    head = {"id": "resp-1", "object": "response", "created_at": 1700000000, "status": "completed"}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**head, **rest, "model": request.body["model"], "output": output, "usage": usage}


def _anthropic(act: Act, request: Received) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if act.think:
        content.append({"type": "thinking", "thinking": act.think, "signature": "c2lnbmVk"})
    if act.say and not act.calls:
        content.append({"type": "text", "text": act.say})
    content += [
        {"type": "tool_use", "id": f"toolu-{request.number}-{place}", "name": name, "input": arguments}
        for place, (name, arguments) in enumerate(act.calls)
    ]
    stop = "tool_use" if act.calls else {"stop": "end_turn", "content_filter": "refusal"}.get(act.finish or "stop")
    usage = _counted(act, {"input": "input_tokens", "output": "output_tokens"})
    head = {"id": "msg-1", "type": "message", "role": "assistant", "model": request.body["model"]}
    return {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _anthropic_events(act: Act, request: Received) -> Iterator[bytes]:
    def event(kind: str, **data: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()

    usage = _counted(act, {"input": "input_tokens", "output": "output_tokens"})
    begun = {**_anthropic(act, request), "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield event("message_start", message=begun)
    whole = _anthropic(act, request)
    for index, block in enumerate(whole["content"]):
        empty, deltas = _anthropic_deltas(block)
        yield event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    yield event("message_delta", delta={"stop_reason": whole["stop_reason"], "stop_sequence": None}, usage=usage)
    yield event("message_stop")


def _anthropic_deltas(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "thinking":
            thought = {"type": "thinking_delta", "thinking": block["thinking"]}
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [thought, signed]
        case "tool_use":
            given = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            return {**block, "input": {}}, [given]
        case _:
            words = block["text"].split(" ")
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": word} for word in words]


def _google(act: Act) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": act.say}] if not act.calls else []
    parts += [{"functionCall": {"name": name, "args": arguments}} for name, arguments in act.calls]
    finish = {"stop": "STOP", "content_filter": "SAFETY", "length": "MAX_TOKENS"}.get(act.finish or "")
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": finish}
    usage = _counted(act, {"input": "promptTokenCount", "output": "candidatesTokenCount"})
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-x", "responseId": "r-1"}


def _google_events(act: Act) -> Iterator[bytes]:
    *begun, last = act.say.split(" ") if not act.calls else [""]
    for word in begun:
        piece = {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": word}]}}]}
        yield b"data: " + json.dumps(piece).encode() + b"\r\n\r\n"
    yield b"data: " + json.dumps(_google(replace(act, say=last))).encode() + b"\r\n\r\n"


def plan_of(*subjects: SubjectSpec, cases: int = 1, limits: Limits | None = None, **more: Any) -> Plan:
    asked = tuple(
        Case(id=f"c{number}", prompt=f"question {number}", expected="yes", limits=limits or Limits())
        for number in range(cases)
    )
    usual: dict[str, Any] = {"name": "p", "cases": asked, "scorers": (ScorerSpec(kind="exact"),)}
    return Plan(subjects=subjects, **{**usual, **more})

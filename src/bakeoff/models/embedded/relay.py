"""A relay in front of llama.cpp that makes `tool_choice` work as the OpenAI API specifies.

llama.cpp lets the model write text before a required call, and a small model writes until its tokens are used up. The
relay starts the model's message with the beginning of a call, after which the grammar allows nothing but the call.
Everything else passes unchanged, including the key, which llama.cpp checks.
"""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from socket import socket
from typing import Any

import httpx2
import uvicorn

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

CALL_BEGINS = "<tool_call>\n"
"""The beginning of a call in the chat templates of this package."""

_CHAT = "/chat/completions"
# Headers of one connection, which do not belong to the message.
_NOT_PASSED_ON = frozenset({b"host", b"connection", b"keep-alive", b"transfer-encoding", b"content-length"})


def with_forced_call(body: bytes) -> bytes:
    """Return the request body changed so that llama.cpp makes a required call."""
    try:
        request = json.loads(body)
    except ValueError:
        return body  # llama.cpp reports the error
    if not isinstance(request, dict) or not request.get("tools"):
        return body
    # A small model would call again and again. Clients that want several calls at once say so.
    request.setdefault("parallel_tool_calls", False)
    choice = request.get("tool_choice")
    if isinstance(choice, dict):
        name = choice.get("function", {}).get("name")
        request["tools"] = [tool for tool in request["tools"] if tool.get("function", {}).get("name") == name]
        choice = request["tool_choice"] = "required"
    messages = request.get("messages")
    if choice == "required" and isinstance(messages, list) and messages and messages[-1].get("role") != "assistant":
        request["messages"] = [*messages, {"role": "assistant", "content": CALL_BEGINS}]
    return json.dumps(request).encode()


class Relay:
    """The ASGI application of the relay."""

    def __init__(self, upstream: str) -> None:
        # No proxies and no limits: the caller sets time limits and concurrency.
        unlimited = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        self._client = httpx2.AsyncClient(base_url=upstream, timeout=None, limits=unlimited, trust_env=False)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            body = await _whole_body(receive)
            await _until_disconnect(self._pass_on(scope, body, send), receive)

    async def _pass_on(self, scope: Message, body: bytes, send: Send) -> None:
        if scope["path"].endswith(_CHAT):
            body = with_forced_call(body)
        headers = [(name, value) for name, value in scope["headers"] if name not in _NOT_PASSED_ON]
        async with self._client.stream(scope["method"], scope["path"], headers=headers, content=body) as got:
            kept = [(name.lower(), value) for name, value in got.headers.raw if name.lower() not in _NOT_PASSED_ON]
            await send({"type": "http.response.start", "status": got.status_code, "headers": kept})
            async for chunk in got.aiter_raw():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _whole_body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def _until_disconnect(answering: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Answer until done or until the client disconnects, so that llama.cpp stops generating."""
    answer = asyncio.create_task(answering)
    disconnect = asyncio.ensure_future(receive())
    try:
        await asyncio.wait({answer, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            answer.result()
    finally:
        answer.cancel()
        disconnect.cancel()


def start_relay(upstream: str, listening: socket) -> None:
    """Serve on the socket in a daemon thread."""
    config = uvicorn.Config(Relay(upstream), log_level="warning", access_log=False, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True, name="relay").start()

"""A relay in front of llama.cpp that makes `tool_choice` work as the OpenAI API specifies.

llama.cpp lets the model write text before a required call, and a small model writes until its tokens are used up. The
relay starts the model's message with the beginning of a call, after which the grammar allows nothing but the call.
Everything else passes unchanged, including the key, which llama.cpp checks.
"""

import json
import threading
from contextlib import suppress
from socket import socket
from urllib.parse import quote

import httpx2
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from bakeoff._kernel.clock import run_until
from bakeoff._kernel.http_server import ServerLimits, server_config

CALL_BEGINS = "<tool_call>\n"
"""The beginning of a call in the chat templates of this package."""

_CHAT = "/chat/completions"
# Headers of one connection, which do not belong to the message.
_NOT_PASSED_ON = frozenset({b"host", b"connection", b"keep-alive", b"transfer-encoding", b"content-length"})


def with_forced_call(body: bytes) -> bytes:
    """Return the request body changed so that llama.cpp makes a required call."""
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return body  # llama.cpp reports the error
    if not isinstance(request, dict) or not request.get("tools"):
        return body
    # A small model would call again and again. Clients that want several calls at once say so.
    request.setdefault("parallel_tool_calls", False)
    choice = request.get("tool_choice")
    try:
        if isinstance(choice, dict):
            name = choice.get("function", {}).get("name")
            request["tools"] = [tool for tool in request["tools"] if tool.get("function", {}).get("name") == name]
            choice = request["tool_choice"] = "required"
        messages = request.get("messages")
        if choice == "required" and messages and messages[-1].get("role") != "assistant":
            request["messages"] = [*messages, {"role": "assistant", "content": CALL_BEGINS}]
    except (AttributeError, KeyError, TypeError):
        return body  # not of the API's form: llama.cpp reports that too
    return json.dumps(request).encode()


class Relay:
    """The ASGI application of the relay."""

    def __init__(self, upstream: str) -> None:
        # No proxies and no limits: the caller sets time limits and concurrency.
        unlimited = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        self._client = httpx2.AsyncClient(base_url=upstream, timeout=None, limits=unlimited, trust_env=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            with suppress(ClientDisconnect):
                body = await Request(scope, receive).body()
                # When the client disconnects, llama.cpp must stop generating.
                await run_until(self._pass_on(scope, body, send), receive())

    async def _pass_on(self, scope: Scope, body: bytes, send: Send) -> None:
        if scope["path"].endswith(_CHAT):
            body = with_forced_call(body)
        headers = [(name, value) for name, value in scope["headers"] if name not in _NOT_PASSED_ON]
        # Taken as an address, a path may be that of another server.
        address = self._client.base_url.copy_with(raw_path=quote(scope["path"]).encode())
        async with self._client.stream(scope["method"], address, headers=headers, content=body) as got:
            kept = [(name.lower(), value) for name, value in got.headers.raw if name.lower() not in _NOT_PASSED_ON]
            await send({"type": "http.response.start", "status": got.status_code, "headers": kept})
            async for chunk in got.aiter_raw():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def start_relay(upstream: str, listening: socket) -> None:
    """Serve on the socket in a daemon thread."""
    config = server_config(Relay(upstream), ServerLimits(connections=512), log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True, name="relay").start()

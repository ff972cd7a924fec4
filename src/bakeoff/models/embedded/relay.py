"""A relay in front of llama.cpp that refuses web pages, and makes `tool_choice` work.

Only requests to the relay's own address pass. Requests from web pages of other origins are refused,
across sites or by DNS rebinding. llama.cpp checks the key.

llama.cpp lets a model write text before a required call, and small models then write until their
tokens are used up. With the chat templates of this package, the relay begins the model's message
with the start of a call, so that the grammar allows only the call. All else passes unchanged.
"""

import asyncio
import json
import threading
from contextlib import suppress
from socket import socket
from typing import Any
from urllib.parse import quote

import httpx2
import uvicorn
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from bakeoff._kernel.clock import run_until
from bakeoff._kernel.http_server import ServerLimits, no_proxy, server_config

CALL_BEGINS = "<tool_call>\n"
"""The beginning of a call in the chat templates of this package."""

_CHAT = "/chat/completions"
# Headers of a connection, not of a message.
_NOT_PASSED_ON = frozenset({b"host", b"connection", b"keep-alive", b"transfer-encoding", b"content-length"})
_CORS = b"access-control-"  # llama.cpp permits every origin


def with_forced_call(body: bytes) -> bytes:
    """Return the request body, changed so that llama.cpp makes a required tool call."""
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return body  # llama.cpp reports the error
    if not isinstance(request, dict) or not request.get("tools"):
        return body
    # Small models would repeat calls endlessly. Clients that want several calls ask for them.
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
        return body  # not in the API's format, which llama.cpp reports
    return json.dumps(request).encode()


class Relay:
    """The ASGI application of the relay."""

    def __init__(self, upstream: str, port: int, *, forced_calls: bool) -> None:
        # No proxies and no limits: the caller sets time limits and concurrency.
        unlimited = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        transport = httpx2.AsyncHTTPTransport(uds=upstream, limits=unlimited)
        self._client = httpx2.AsyncClient(transport=transport, base_url="http://llama", timeout=None, trust_env=False)
        self._hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost")]
        self._forced_calls = forced_calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        if problem := self._problem(request.headers):
            await PlainTextResponse(problem, status_code=403)(scope, receive, send)
            return
        with suppress(ClientDisconnect):
            body = await request.body()
            # When the client disconnects, llama.cpp must stop generating.
            await run_until(self._pass_on(scope, body, send), receive())

    def _problem(self, headers: Headers) -> str | None:
        """Return why a request is refused; None if it is accepted."""
        if headers.getlist("host") not in [[name] for name in self._hosts]:
            return f"this server is only http://{self._hosts[0]}"
        if any(origin not in [f"http://{name}" for name in self._hosts] for origin in headers.getlist("origin")):
            return "pages of other origins are not served"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "pages of other sites are not served"
        return None

    async def _pass_on(self, scope: Scope, body: bytes, send: Send) -> None:
        if self._forced_calls and scope["path"].endswith(_CHAT):
            body = with_forced_call(body)
        headers = [(name, value) for name, value in scope["headers"] if name not in _NOT_PASSED_ON]
        # Read as a URL, a path could name another server.
        address = self._client.base_url.copy_with(raw_path=quote(scope["path"]).encode())
        async with self._client.stream(scope["method"], address, headers=headers, content=body) as got:
            named = [(name.lower(), value) for name, value in got.headers.raw]
            kept = [pair for pair in named if pair[0] not in _NOT_PASSED_ON and not pair[0].startswith(_CORS)]
            await send({"type": "http.response.start", "status": got.status_code, "headers": kept})
            async for chunk in got.aiter_raw():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def start_relay(upstream: str, listening: socket, *, forced_calls: bool) -> None:
    """Serve on the socket in a daemon thread. `upstream` is the path of llama.cpp's socket."""
    relay = Relay(upstream, listening.getsockname()[1], forced_calls=forced_calls)
    config = server_config(no_proxy(relay), ServerLimits(connections=512), log_level="error", lifespan="off")
    serving = _serve(uvicorn.Server(config), listening)
    threading.Thread(target=asyncio.run, args=(serving,), daemon=True, name="relay").start()


async def _serve(server: uvicorn.Server, listening: socket) -> None:
    asyncio.get_running_loop().set_exception_handler(_report)
    await server.serve(sockets=[listening])


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report an exception, unless anyio raised it for a cancelled read, which is harmless."""
    if not isinstance(context.get("exception"), asyncio.InvalidStateError):
        loop.default_exception_handler(context)

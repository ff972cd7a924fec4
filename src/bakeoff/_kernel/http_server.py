"""Serve HTTP on loopback to untrusted clients, with a time limit for each step of a connection.

uvicorn's own protocol waits forever for requests that never complete and clients that never read.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple

import h11
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

HOST = "127.0.0.1"
MAX_PATH_LENGTH = 8000  # bytes
_QUIET = logging.Logger("bakeoff.http_server", logging.CRITICAL + 1)
"""A logger that prints nothing: clients get the errors, and must not fill the screen."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits for one client. All times are in seconds, and apply to a single step."""

    connections: int = 256
    head_seconds: float = 15.0  # from the connection or first byte to the end of the headers
    body_seconds: float = 75.0  # from the headers to the end of the body
    taking_seconds: float = 60.0  # for the client to read the answer that we hold in memory
    idle_seconds: int = 120  # between two requests


_REFUSED = b"HTTP/1.1 400 Bad Request\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"
_STEPS = ("head", "idle", "body", "taking")  # connections at the earliest step are closed first


class _RequestStep(NamedTuple):
    """A step that the client must take. `mark` changes when it is done; `seconds` is its limit."""

    name: str
    mark: int
    seconds: float


class LimitedProtocol(H11Protocol):
    """One connection, which is closed if its client is too slow.

    If there are too many connections, a waiting one is closed to make room.
    """

    def __init__(self, limits: ServerLimits, logger: logging.Logger | None = None, **given: Any) -> None:
        super().__init__(**given)
        self.logger = logger or self.logger
        self.timeout_keep_alive = limits.idle_seconds
        self._limits = limits
        self._pause = min(1.0, min(limits.head_seconds, limits.body_seconds, limits.taking_seconds) / 4)
        self._taken = 0  # how often the client has read the whole buffer
        self._requests = 0  # how many requests were answered
        self._step: _RequestStep | None = None
        self._since = self.loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base
        super().connection_made(transport)
        accepted = transport.get_extra_info("socket")
        if accepted.family == socket.AF_INET:
            # asyncio does this only for sockets of its own. Without it, the second part of an answer waits 40 ms for
            # the client to acknowledge the first.
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > self._limits.connections:
            # Of those at the earliest step, close the one that we have waited for longest.
            found = [(each, each._awaited()) for each in self.connections if isinstance(each, LimitedProtocol)]
            waiting = [
                (_STEPS.index(step.name), each._since, each) for each, step in found if step and each is not self
            ]
            *_, closed = min(waiting, key=lambda each: each[:2], default=(0, 0, self))
            self.connections.discard(closed)
            closed.transport.abort()
        self._timer = self.loop.call_later(self._pause, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        self._taken += 1
        super().resume_writing()

    def on_response_complete(self) -> None:
        self._requests += 1
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse data that is not HTTP: send an error, or close a half-answered connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_REFUSED % (len(msg), msg.encode()))  # not through h11, which has rules for HEAD
            self.transport.close()
        else:
            self.transport.abort()
        if (cycle := self._cycle) is not None:
            cycle.disconnected = True
            cycle.message_event.set()

    @property
    def _cycle(self) -> RequestResponseCycle | None:
        return self.cycle  # None before the first request, although not declared so

    def _awaited(self) -> _RequestStep | None:
        """Return the step that the client must take now; None if it is the server's turn."""
        limits, cycle, theirs = self._limits, self._cycle, self.conn.their_state
        if self.transport.get_write_buffer_size() or self.transport.is_closing():
            return _RequestStep("taking", self._taken, limits.taking_seconds)
        if theirs is h11.SEND_BODY:
            return _RequestStep("body", self._requests, limits.body_seconds)
        if theirs is h11.IDLE and (cycle is None or cycle.response_complete):
            if cycle is None or self.conn.trailing_data[0]:
                return _RequestStep("head", self._requests, limits.head_seconds)
            return _RequestStep("idle", self._requests, limits.idle_seconds)
        return None

    def _check(self) -> None:
        step, now = self._awaited(), self.loop.time()
        if step != self._step:
            self._step, self._since = step, now - self._pause  # the step may have begun a pause ago
        elif step and now - self._since >= step.seconds:
            self.transport.abort()
            return
        self._timer = self.loop.call_later(self._pause, self._check)


def no_proxy(app: ASGIApp) -> ASGIApp:
    """Wrap the application to refuse proxy requests and paths that are too long."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        asked = app
        if scope["type"] == "http" and (scope["method"] == "CONNECT" or not scope["raw_path"].startswith(b"/")):
            asked = PlainTextResponse("refused: this is no proxy\n", HTTPStatus.BAD_REQUEST)
        elif scope["type"] == "http" and len(scope["raw_path"]) > MAX_PATH_LENGTH:
            asked = PlainTextResponse("refused: the path is too long\n", HTTPStatus.REQUEST_URI_TOO_LONG)
        await asked(scope, receive, send)

    return answer


def server_config(app: ASGIApp, limits: ServerLimits, **given: Any) -> uvicorn.Config:
    """Return settings for `uvicorn.Server` with these limits, without websockets."""
    settings = {"access_log": False, "server_header": False, "proxy_headers": False, "ws": "none"}
    return uvicorn.Config(app, http=partial(LimitedProtocol, limits), **settings, **given)  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def serving(app: ASGIApp, sockets: Sequence[socket.socket], limits: ServerLimits) -> AsyncIterator[None]:
    """Serve on listening sockets until the block ends, then close all connections silently."""
    config = server_config(app, limits, log_config=None, lifespan="off")
    config.load()
    state, loop = ServerState(), asyncio.get_running_loop()
    connect = partial(LimitedProtocol, limits, _QUIET, config=config, server_state=state, app_state={})
    servers: list[asyncio.Server] = []
    try:
        for listening in sockets:
            servers.append(await loop.create_server(connect, sock=listening, backlog=limits.connections))  # noqa: PERF401 - closed one by one
        yield
    finally:
        for server in servers:
            server.close()
        for connection in list(state.connections):
            connection.transport.abort()
        for task in list(state.tasks):
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)

"""Serve the meter of one trial: check each request before it is passed on. All callers are untrusted."""

import asyncio
import json
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode

from bakeoff.errors import InfraError
from bakeoff.meter.answer import depth_of
from bakeoff.meter.exchange import Asked, Exchange, Message, Responder, Send, StreamCut, unpacked
from bakeoff.meter.trial import TrialMeter
from bakeoff.meter.upstreams import (
    Route,
    Upstream,
    asking_headers,
    budget_message,
    find_route,
    inner_path,
    model_in,
    refusal,
)
from bakeoff.meter.wire_formats import RESPONSES

Receive = Callable[[], Awaitable[Message]]

MOST_BODY_BYTES = 32 << 20
MOST_HELD_BYTES = 64 << 20  # of all requests of a trial together
MOST_EXCHANGES = 24  # at one time
BODY_SECONDS = 60.0  # for a complete request
DEEPEST = 200
LONGEST_PATH = 2000  # characters; names of models are shorter, and clients fail at longer addresses

_QUERY = re.compile(r"[\w.~%=&+:,/-]{0,2000}", re.ASCII)
_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\]|host\.docker\.internal)(:\d{1,5})?", re.IGNORECASE)


class Refused(Exception):
    """A request that is refused, with the message for the agent."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class RequestSize:
    """The bytes that one request holds of the trial's limit, from its first byte until it is answered."""

    def __init__(self, trial: TrialMeter) -> None:
        self._trial = trial
        self._bytes = 0

    def add(self, count: int) -> None:
        self._bytes += count
        self._trial.held_bytes += count
        if self._bytes > MOST_BODY_BYTES or self._trial.held_bytes > MOST_HELD_BYTES:
            raise Refused(
                413, f"a request may have {MOST_BODY_BYTES >> 20} MiB, all together {MOST_HELD_BYTES >> 20} MiB"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._trial.held_bytes -= self._bytes


class MeterApp:
    """The ASGI application."""

    def __init__(self, trial: TrialMeter) -> None:
        self._trial = trial

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        responder, upstream = Responder(send), self._upstream(scope["path"])
        try:
            if len(self._trial.exchanges) >= MOST_EXCHANGES:
                raise Refused(429, f"more than {MOST_EXCHANGES} requests at a time")
            await self._serve(scope, receive, responder)
        except Refused as refused:
            self._trial.log.notes["refused"] += 1
            if not responder.begun:
                family = upstream.family if upstream else "openai"
                await responder.whole(refusal(family, refused.status, str(refused)))
        except StreamCut:
            return  # an incomplete answer: the server breaks the connection

    def _upstream(self, path: str) -> Upstream | None:
        return self._trial.upstreams.get(path.lstrip("/").partition("/")[0])

    async def _serve(self, scope: Message, receive: Receive, responder: Responder) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self._check_caller(headers, scope)
        upstream, route, inner = self._route(scope)
        if (spent := self._trial.out_of_budget) is not None:
            raise Refused(402, budget_message(spent))
        with RequestSize(self._trial) as load:
            body = await self._body(receive, headers, load)
            asked = _asked(scope, upstream, route, inner, body)
            await self._exchange(Exchange(self._trial, asked, responder), receive)

    def _check_caller(self, headers: Mapping[str, str], scope: Message) -> None:
        if not _HOST.fullmatch(headers.get("host", "")) or "origin" in headers:
            raise Refused(403, "the meter only serves programs on this machine")
        token = self._trial.token.encode()
        offered = [*_tokens(headers, scope["query_string"].decode("latin-1"))]
        if not any(secrets.compare_digest(one.encode(), token) for one in offered):
            raise Refused(401, "this is not the trial's token")

    def _route(self, scope: Message) -> tuple[Upstream, Route, str]:
        path: str = scope["path"]
        if len(path) > LONGEST_PATH:
            raise Refused(404, f"the meter accepts no path of more than {LONGEST_PATH} characters")
        upstream = self._upstream(path)
        if upstream is None:
            known = ", ".join(one.base_path for one in self._trial.upstreams.values())
            raise Refused(404, f"the meter has no such path; it has {known}")
        inner = inner_path(upstream, path)
        routes = find_route(upstream, inner)
        if not routes:
            raise Refused(404, f"the meter does not pass on {path[:200]!r}")
        route = next((one for one in routes if one.method == scope["method"]), None)
        if route is None:
            raise Refused(405, f"{scope['method']} is not allowed for {path[:200]!r}")
        return upstream, route, inner

    async def _body(self, receive: Receive, headers: Mapping[str, str], load: "RequestSize") -> bytes:
        """Return the complete request body, decompressed."""
        raw = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise StreamCut("the agent hung up")
                    piece = message.get("body", b"")
                    raw += piece
                    load.add(len(piece))
                    more = message.get("more_body", False)
        except TimeoutError:
            raise Refused(408, f"the request did not arrive in {BODY_SECONDS:g} seconds") from None
        body = unpacked(bytes(raw), headers.get("content-encoding", "").strip().lower(), MOST_BODY_BYTES)
        if body is None:
            raise Refused(415, "send requests uncompressed, or as gzip or deflate")
        load.add(len(body) - len(raw))
        return body

    async def _exchange(self, exchange: Exchange, receive: Receive) -> None:
        """Answer the request, but stop when the agent disconnects, so that the rest costs nothing."""
        if self._trial.closed:
            raise Refused(401, "the trial is over")
        answer = asyncio.create_task(exchange.run())
        self._trial.exchanges.add(answer)
        hang_up = asyncio.ensure_future(receive())
        try:
            await asyncio.wait({answer, hang_up}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                answer.cancel()
                await asyncio.wait({answer})
            if not answer.cancelled():
                error = answer.exception()
                if error is not None and not isinstance(error, StreamCut):  # our fault, never the agent's
                    self._trial.stop(InfraError(f"the meter broke: {type(error).__name__}: {error}", permanent=True))
                answer.result()
        finally:
            hang_up.cancel()
            answer.cancel()
            self._trial.exchanges.discard(answer)


def _tokens(headers: Mapping[str, str], query: str) -> Iterator[str]:
    """Yield the tokens from all places where SDKs put a key."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        yield bearer.strip()
    for name in ("x-api-key", "x-goog-api-key"):
        if name in headers:
            yield headers[name]
    yield from (value for name, value in _query(query) if name == "key")


def _query(query: str) -> list[tuple[str, str]]:
    if not _QUERY.fullmatch(query):
        raise Refused(400, "the query contains characters that no provider uses")
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=20)
    except ValueError:
        raise Refused(400, "the query has too many fields") from None


def _asked(scope: Message, upstream: Upstream, route: Route, inner: str, body: bytes) -> Asked:
    data: dict[str, Any] = {}
    if route.method == "POST":
        data = _data(body)
    query = [(name, value) for name, value in _query(scope["query_string"].decode("latin-1")) if name != "key"]
    if route.format is RESPONSES and data.get("background") not in (None, False):
        raise Refused(400, "`background` is not supported, because such an answer is not counted: ask without it")
    model = model_in(route, inner) or data.get("model")
    streams = ":stream" in inner or data.get("stream") is True
    return Asked(
        upstream=upstream,
        route=route,
        inner=inner,
        query=urlencode(query),
        headers=asking_headers(scope["headers"]),
        body=body,
        data=data,
        model=model[:200] if isinstance(model, str) else "",
        streams=streams,
    )


def _data(body: bytes) -> dict[str, Any]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "the request is not JSON") from None
    if not isinstance(data, dict):
        raise Refused(400, "the request is not a JSON object")
    if depth_of(data) > DEEPEST:
        raise Refused(400, f"the request nests deeper than {DEEPEST}")
    return data

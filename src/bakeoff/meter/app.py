"""Provide the meter as a resource of a run, which serves a gateway for each trial.

The gateway checks each request before passing it on. All callers are untrusted.
"""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlencode

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from bakeoff.errors import InfraError, UsageError
from bakeoff.meter.exchange import Exchange, Responder, StreamCut, unpacked
from bakeoff.meter.trial import MeterLimits, SharedMeter, TrialMeter, listen, sweep
from bakeoff.meter.upstreams import ROUTES, Route, Upstream, UpstreamRequest, asking_headers, inner_path, refusal
from bakeoff.meter.wire_formats import RESPONSES, depth_of
from bakeoff.models.rate_limit import DEFAULT_MAX_IN_FLIGHT, RetryPolicy
from bakeoff.protocols import Place, Task
from bakeoff.replay.store import recordings_of

MAX_DEPTH = 200
MAX_PATH_LENGTH = 2000  # characters; no model's name is longer

_QUERY = re.compile(r"[\w.~%=&+:,/-]{0,2000}", re.ASCII)
_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\]|host\.docker\.internal)(:\d{1,5})?", re.IGNORECASE)

METER = "meter"
"""The key of the meter among the resources of a trial."""


class RequestRefused(Exception):
    """A refused request, with the message for the agent."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@contextmanager
def _held(trial: TrialMeter) -> Iterator[Callable[[int], None]]:
    """Yield a function that counts the bytes of a request in memory, until it is answered."""
    limits, held = trial.meter.limits, 0

    def hold(count: int) -> None:
        nonlocal held
        held += count
        trial.held_bytes += count
        if held > limits.body_bytes or trial.held_bytes > limits.held_bytes:
            most, together = limits.body_bytes >> 20, limits.held_bytes >> 20
            raise RequestRefused(413, f"a request may have {most} MiB, all together {together} MiB")

    try:
        yield hold
    finally:
        trial.held_bytes -= held


class MeterApp:
    """The ASGI application."""

    def __init__(self, trial: TrialMeter) -> None:
        self._trial = trial

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        limits = self._trial.meter.limits
        responder, upstream = Responder(send, limits.taking_seconds), self._upstream(scope["path"])
        try:
            if len(self._trial.exchanges) >= limits.exchanges:
                raise RequestRefused(429, f"more than {limits.exchanges} requests at a time")
            await self._serve(Request(scope, receive), responder)
        except RequestRefused as refused:
            self._trial.log.notes["refused"] += 1
            if not responder.begun:
                family = upstream.family if upstream else "openai"
                await responder.whole(refusal(family, refused.status, str(refused)))
        except (StreamCut, ClientDisconnect):
            return  # an incomplete answer: the server breaks the connection

    def _upstream(self, path: str) -> Upstream | None:
        return self._trial.upstreams.get(path.lstrip("/").partition("/")[0])

    async def _serve(self, request: Request, responder: Responder) -> None:
        if not _HOST.fullmatch(request.headers.get("host", "")) or "origin" in request.headers:
            raise RequestRefused(403, "the meter only serves programs on this machine")
        token = self._trial.token.encode()
        offered = list(_tokens(request))
        if not any(secrets.compare_digest(one.encode(), token) for one in offered):
            raise RequestRefused(401, "this is not the trial's token")
        upstream, route, inner, model = self._route(request.method, request.scope["path"])
        if (spent := self._trial.out_of_budget) is not None:
            raise RequestRefused(402, spent)
        with _held(self._trial) as hold:
            # The complete, decompressed request body is in memory.
            raw, limits = bytearray(), self._trial.meter.limits
            try:
                async with asyncio.timeout(limits.body_seconds):
                    async for piece in request.stream():
                        raw += piece
                        hold(len(piece))
            except TimeoutError:
                raise RequestRefused(408, f"the request did not arrive in {limits.body_seconds:g} seconds") from None
            encoding = request.headers.get("content-encoding", "").strip().lower()
            body = unpacked(bytes(raw), encoding, limits.body_bytes)
            if body is None:
                raise RequestRefused(415, "send requests uncompressed, or as gzip or deflate")
            hold(len(body) - len(raw))
            data = _data(body) if route.method == "POST" else {}
            if route.format is RESPONSES and data.get("background") not in (None, False):
                raise RequestRefused(
                    400, "`background` is not supported, because such an answer is not counted: ask without it"
                )
            asked_model = model or data.get("model")
            asked = UpstreamRequest(
                upstream=upstream,
                route=route,
                inner=inner,
                query=urlencode([(name, value) for name, value in _query(request) if name != "key"]),
                headers=asking_headers(request.headers.raw),
                body=body,
                data=data,
                model=asked_model[:200] if isinstance(asked_model, str) else "",
                streams=":stream" in inner or data.get("stream") is True,
            )
            await self._exchange(Exchange(self._trial, asked, responder), request.receive)

    def _route(self, method: str, path: str) -> tuple[Upstream, Route, str, str]:
        """Return the provider, the route, the inner path, and the model if the path names it."""
        if len(path) > MAX_PATH_LENGTH:
            raise RequestRefused(404, f"the meter accepts no path of more than {MAX_PATH_LENGTH} characters")
        upstream = self._upstream(path)
        if upstream is None:
            known = ", ".join(one.base_path for one in self._trial.upstreams.values())
            raise RequestRefused(404, f"the meter has no such path; it has {known}")
        inner = inner_path(upstream, path)
        found = [(route, match) for route in ROUTES[upstream.family] if (match := re.fullmatch(route.path, inner))]
        if not found:
            raise RequestRefused(404, f"the meter does not pass on {path[:200]!r}")
        for route, match in found:
            if route.method == method:
                return upstream, route, inner, match.groupdict().get("model", "").removeprefix("models/")
        raise RequestRefused(405, f"{method} is not allowed for {path[:200]!r}")

    async def _exchange(self, exchange: Exchange, receive: Receive) -> None:
        """Answer the request. Stop if the agent disconnects, so that the rest costs nothing."""
        if self._trial.closed:
            raise RequestRefused(401, "the trial is over")
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
                if error is not None and not isinstance(error, StreamCut):  # not the agent's fault
                    self._trial.stop(InfraError(f"the meter broke: {type(error).__name__}: {error}", permanent=True))
                answer.result()
        finally:
            hang_up.cancel()
            answer.cancel()
            self._trial.exchanges.discard(answer)


def _tokens(request: Request) -> Iterator[str]:
    """Yield the tokens from all places where SDKs send a key."""
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        yield bearer.strip()
    yield from (request.headers[name] for name in ("x-api-key", "x-goog-api-key") if name in request.headers)
    yield from (value for name, value in _query(request) if name == "key")


def _query(request: Request) -> list[tuple[str, str]]:
    query = request.scope["query_string"].decode("latin-1")
    if not _QUERY.fullmatch(query):
        raise RequestRefused(400, "the query contains characters that no provider uses")
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=20)
    except ValueError:
        raise RequestRefused(400, "the query has too many fields") from None


def _data(body: bytes) -> dict[str, Any]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise RequestRefused(400, "the request is not JSON") from None
    if not isinstance(data, dict):
        raise RequestRefused(400, "the request is not a JSON object")
    if depth_of(data) > MAX_DEPTH:
        raise RequestRefused(400, f"the request nests deeper than {MAX_DEPTH}")
    return data


@dataclass(frozen=True, slots=True)
class Meter:
    """The resource: a gateway for command-line agents that counts what each trial uses."""

    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    most_in_flight: int = DEFAULT_MAX_IN_FLIGHT  # requests to one provider, over all trials
    limits: MeterLimits = field(default_factory=MeterLimits)
    key: ClassVar = METER

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenMeter"]:
        """Remove the remains of killed processes, and yield the meter."""
        await asyncio.to_thread(sweep)
        async with AsyncExitStack() as stack:
            yield OpenMeter(self.limits, self.retry_policy, self.most_in_flight, stack)


class OpenMeter(SharedMeter):
    """Opens a meter for each trial."""

    @asynccontextmanager
    async def open_trial(
        self,
        task: Task,
        upstreams: Iterable[Upstream],
        *,
        place: Place | None = None,
        worked: set[str] | None = None,
    ) -> AsyncIterator[TrialMeter]:
        """Open the meter of one trial. After the block, close connections and record all usage.

        Args:
            task: The trial.
            upstreams: The providers that the agent may use, with their keys.
            place: The place where the agent will run. Its user may use the socket.
            worked: The models that have answered this subject. New ones are added.
        """
        named = {upstream.name: upstream for upstream in upstreams}
        if not named:
            raise UsageError("a meter needs at least one provider")
        for upstream in named.values():
            await self.prepare(upstream)
        trial = TrialMeter(self, task, named, recordings_of(task.resources), set() if worked is None else worked)
        uid = place.uid if place else None
        async with listen(MeterApp(trial), uid, self.limits.of_server) as (trial.port, trial.folder):
            try:
                yield trial
            finally:
                await trial.end_exchanges()

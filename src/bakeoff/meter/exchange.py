"""Handle one request of an agent: replay it, or ask the provider, pass the answer on, and record the usage."""

import asyncio
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import httpx2
from starlette.types import Message, Send

from bakeoff.errors import BudgetError, InfraError, RequestTooLarge
from bakeoff.meter.trial import TrialMeter, most_of
from bakeoff.meter.upstreams import UpstreamReply, UpstreamRequest, address_of, answering_headers, key_headers, refusal
from bakeoff.meter.wire_formats import EventSplitter, ModelAnswer, characters_in, data_in, data_of, objects_of
from bakeoff.models.prices import Price, price_from_genai
from bakeoff.models.rate_limit import ProviderBusy
from bakeoff.models.replies import UNREACHED, is_refused_for_size
from bakeoff.record import Step, Usage
from bakeoff.replay.http import HttpAnswer
from bakeoff.replay.metered import RecordedExchange
from bakeoff.replay.store import MAX_RECORDED_BYTES, Key

MAX_ANSWER_BYTES = 64 << 20  # limit for answers that are not streamed
_MAY_PASS = {408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529}
_TOO_MUCH = {429, 503, 529}
_NO_MONEY = (b"insufficient_quota", b"billing_hard_limit", b"exceeded your current quota")
_NO_CREDIT = "Your credit balance is too low"
_BUSY_EVENTS = {"overloaded_error": 529, "rate_limit_error": 429, "api_error": 500, "server_error": 500}
_MAX_WORDS = 4000  # characters of an error
_MAX_BROKEN = 3  # incomplete answers per request, each of which costs money
_DECODED = ("", "identity", "gzip", "deflate")  # decoded by the client; others are passed on


class StreamCut(Exception):
    """The stream broke after the agent got the beginning, so its connection is closed too."""


class Responder:
    """Sends the answer to the agent over ASGI. Raises `StreamCut` if the agent stops reading."""

    def __init__(self, send: Send, taking_seconds: float) -> None:
        self._send = send
        self._taking_seconds = taking_seconds
        self.begun = False  # the agent has received something

    async def whole(self, answer: UpstreamReply) -> None:
        """Send a complete answer."""
        await self.start(answer.status, {**answer.headers, "content-length": str(len(answer.body))})
        await self.more(answer.body, last=True)

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the beginning of an answer. Afterwards, the request cannot be retried."""
        self.begun = True
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await self._take({"type": "http.response.start", "status": status, "headers": raw})

    async def more(self, body: bytes, *, last: bool = False) -> None:
        """Send more of the body, after `start`. `last` ends the answer."""
        await self._take({"type": "http.response.body", "body": body, "more_body": not last})

    async def _take(self, message: Message) -> None:
        try:
            async with asyncio.timeout(self._taking_seconds):
                await self._send(message)
        except (TimeoutError, OSError) as error:
            raise StreamCut("the agent does not read its answer") from error


@dataclass(slots=True)
class Exchange:
    """One request and its answer."""

    trial: TrialMeter
    asked: UpstreamRequest
    responder: Responder
    question: Key | None = None  # None for requests that are free
    price: Price | None = None
    answer: ModelAnswer = field(default_factory=ModelAnswer)
    counting_asked: bool = False  # only we, not the agent, asked for counts
    sent: bool = False  # the provider may have started to work
    broken: int = 0  # answers that broke off before the agent received anything
    started: float = field(default_factory=perf_counter)
    kept: bytearray = field(default_factory=bytearray)
    last: UpstreamReply | None = None  # the provider's reply to the last failed try
    status: int = 0
    passed_headers: dict[str, str] = field(default_factory=dict)

    async def run(self) -> None:
        """Answer the request. Record its usage even if cancelled, since it still costs money."""
        asked, trial, complete = self.asked, self.trial, False
        if asked.route.format is None:  # a free request
            await self._ask()
            return
        trial.log.offer(asked.route.format.tools(asked.data))
        trial.log.resolve(asked.route.format.results(asked.data))
        self.question = trial.question(asked)
        if await self._replayed(self.question):
            return
        prices, named = trial.meter.prices, asked.upstream.provider.price_name
        self.price = asked.upstream.price or await prices.lookup(named, asked.model, trial.clock)
        try:
            async with trial.reserve(most_of(asked.data, self.price)):
                try:
                    await self._ask()
                    complete = True
                finally:
                    if self.sent:
                        self._book(complete=complete)
        except BudgetError as spent:  # spent by other requests during the wait
            trial.stop(spent)
            await self._refuse(402, trial.out_of_budget or str(spent))

    async def _refuse(self, status: int, message: str) -> None:
        await self.responder.whole(refusal(self.asked.upstream.family, status, message))

    # --- replaying ------------------------------------------------------------------------------------------------

    async def _replayed(self, question: Key) -> bool:
        try:
            recorded = self.trial.store.find(question, RecordedExchange)
        except InfraError as error:
            self.trial.stop(error)
            await self._refuse(400, str(error))
            return True
        if recorded is None:
            return False
        self._read(recorded.content, stream="event-stream" in recorded.headers.get("content-type", ""))
        self._log(recorded.usage, recorded.seconds, estimated=recorded.estimated, replayed=True)
        self.trial.task.count(recorded.usage)
        await self.responder.whole(UpstreamReply(recorded.status, recorded.content, recorded.headers))
        return True

    def _read(self, content: bytes, *, stream: bool) -> None:
        format = self.asked.route.format
        assert format is not None, "free requests are not read"
        if stream:
            for event in EventSplitter(self.trial.meter.limits.event_bytes).feed(content):
                if (data := data_of(event)) is not None:
                    format.event(self.answer, data)
            return
        found = objects_of(content)
        for data in found[:-1]:
            format.event(self.answer, data)
        for data in found[-1:]:
            format.whole(self.answer, data)
        if not found:
            self.answer.characters += len(content)  # unreadable, but paid for

    def _log(self, usage: Usage, seconds: float, **how: bool) -> None:
        step = Step(parts=self.answer.parts(), usage=usage, finish_reason=self.answer.finish, seconds=seconds)
        model = f"{self.asked.upstream.provider.name}:{self.asked.model or self.answer.model or '?'}"
        self.trial.worked.add(self.asked.model)
        self.trial.log.add(step, model, self.answer, **how)

    # --- asking ---------------------------------------------------------------------------------------------------

    async def _ask(self) -> None:
        trial = self.trial
        try:
            limiter = trial.meter.rate_limiters[self.asked.upstream.base_url]
            await limiter.run(self._try, trial.clock, size=len(self.asked.body))
            if self.question is None:
                trial.free_failure = None
        except RequestTooLarge:
            trial.log.too_large += 1
            await self._give_last_reply("the request is too large")
        except InfraError as error:
            if self.question is None:  # a key may permit answers but not lists of models
                trial.free_failure = error
            else:
                trial.stop(error)
            if self.responder.begun:
                raise StreamCut from error
            await self._give_last_reply(str(error))

    async def _give_last_reply(self, otherwise: str) -> None:
        await self.responder.whole(self.last or refusal(self.asked.upstream.family, 502, otherwise))

    async def _try(self) -> None:
        if (spent := self.trial.out_of_budget) is not None:  # spent by other requests during the wait
            await self._refuse(402, spent)
            return
        self.last, self.answer, self.status = None, ModelAnswer(), 0
        body = self._body()
        try:
            got = await self._send(body)
            try:
                if (
                    self.counting_asked
                    and got.status_code in (400, 422)
                    and b"stream_options" in await self._whole_body(got)
                ):
                    self.trial.uncounted.add(self.asked.upstream.name)
                    self.counting_asked, self.last = False, None
                    await got.aclose()
                    got = await self._send(self.asked.body)
                await self._pass_on(got)
            finally:
                await got.aclose()
        except httpx2.HTTPError as error:
            if self.responder.begun:
                raise StreamCut from error
            raise self._lost(error) from error

    def _lost(self, error: httpx2.HTTPError) -> ProviderBusy | InfraError:
        """Return the error for a lost connection. After a partial answer, retries cost money."""
        name, what = self.asked.upstream.name, type(error).__name__
        if not 200 <= self.status < 300:
            self.sent = False
            return self._busy(f"{name} cannot be reached: {what}", unreached=isinstance(error, UNREACHED))
        if self.question is not None:
            self._book(complete=False)
        self.sent = False
        self.broken += 1
        message = f"{name} answered {self.status} and broke off: {what}"
        return self._busy(message) if self.broken < _MAX_BROKEN else InfraError(message)

    def _busy(self, message: str, **how: Any) -> ProviderBusy | InfraError:
        """Return a retryable error, unless the trial already waited in vain for this provider."""
        patient = self.trial.failure is None and (self.question is not None or self.trial.free_failure is None)
        return ProviderBusy(message, **how) if patient else InfraError(message)

    def _body(self) -> bytes:
        """Return the request body, changed to request usage counts in chat streams."""
        asked = self.asked
        options = asked.data.get("stream_options")
        counted = isinstance(options, dict) and options.get("include_usage")
        is_chat = asked.route.format is not None and asked.route.format.name == "chat"
        self.counting_asked = (
            is_chat and asked.streams and not counted and asked.upstream.name not in self.trial.uncounted
        )
        if not self.counting_asked:
            return asked.body
        more = {**(options if isinstance(options, dict) else {}), "include_usage": True}
        return json.dumps({**asked.data, "stream_options": more}, separators=(",", ":")).encode()

    async def _send(self, body: bytes) -> httpx2.Response:
        asked = self.asked
        headers = {**asked.headers, **key_headers(asked.upstream), "accept-encoding": "identity"}
        client = self.trial.meter.clients[asked.upstream.base_url]
        address = address_of(asked.upstream, asked.inner, asked.query)
        request = client.build_request(asked.route.method, address, headers=headers, content=body)
        self.sent, self.started = True, perf_counter()
        # A redirect would send the key to another address.
        return await client.send(request, stream=True, follow_redirects=False)

    # --- passing on -----------------------------------------------------------------------------------------------

    async def _pass_on(self, got: httpx2.Response) -> None:
        self.status = got.status_code
        headers = answering_headers(got.headers.multi_items())
        if not _is_readable(got):
            headers["content-encoding"] = got.headers["content-encoding"]
        self.passed_headers = {
            name: self.trial.meter.redactor(value.encode("latin-1")).decode("latin-1")
            for name, value in headers.items()
        }
        if got.status_code >= 300:
            await self._refused(got)
        elif "text/event-stream" in got.headers.get("content-type", "") and _is_readable(got):
            await self._stream(got)
        else:
            body = await self._whole_body(got)
            if "text/html" in got.headers.get("content-type", "") and self.asked.route.format is not None:
                self.sent = False
                said = f"{self.asked.upstream.name} answered {self.status} with HTML, not JSON: {_title(body)!r}"
                raise self._busy(said, most_tries=_MAX_BROKEN)
            if self.asked.route.format is not None:
                self._read(body, stream=False)
            self._keep(body)
            await self.responder.whole(UpstreamReply(got.status_code, body, self.passed_headers))

    async def _refused(self, got: httpx2.Response) -> None:
        """Handle an error status, which costs nothing. Temporary errors are retried first."""
        body = await self._whole_body(got)
        status = got.status_code
        self.sent = False
        self.last = UpstreamReply(status, body, self.passed_headers)
        hopeless = _is_about_money(status, body)
        name = self.asked.upstream.name
        said, headers = (
            body[:_MAX_WORDS].decode(errors="replace"),
            {key.lower(): got.headers[key] for key in got.headers},
        )
        if is_refused_for_size(status, said, headers, len(self.asked.body)):
            # The agent's request is wrong: pass the error on at once.
            self.trial.log.too_large += 1
        elif status in _MAY_PASS and not hopeless and got.headers.get("x-should-retry") != "false":
            wait = retry_after(got.headers)
            raise self._busy(
                f"{name} answered {status}", retry_after=wait, overloaded=status in _TOO_MUCH, refused=True
            )
        self.trial.log.statuses[status] += 1
        if self._is_about_key(status, hopeless=hopeless):
            said = f"{name} answered {status}: {body[:300].decode(errors='replace')!r}"
            raise InfraError(said, permanent=True, stops_subject=status in (401, 403))
        if status < 400:
            raise InfraError(
                f"{name} answered {status}: redirects are not followed; configure the final address", permanent=True
            )
        await self.responder.whole(self.last)

    def _is_about_key(self, status: int, *, hopeless: bool) -> bool:
        """Return True if a refusal is about the key or its credit, not about the request.

        Once a model has answered this subject, the key works. From then on, errors about other
        models, free requests or forbidden actions are the agent's fault.
        """
        if not (hopeless or status in (401, 403)):
            return False
        if not self.trial.worked:
            return True
        return self.asked.route.format is not None and status != 403 and self.asked.model in self.trial.worked

    async def _whole_body(self, got: httpx2.Response) -> bytes:
        if got.is_stream_consumed:
            return self.last.body if self.last else b""
        body = bytearray()
        try:
            async for chunk in got.aiter_bytes() if _is_readable(got) else got.aiter_raw():
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    raise InfraError(f"{self.asked.upstream.name} answered with more than {MAX_ANSWER_BYTES >> 20} MiB")
        except httpx2.HTTPError:
            self.answer.characters = max(len(body), got.num_bytes_downloaded)  # unreadable, but paid for
            raise
        redacted = self.trial.meter.redactor(bytes(body))
        self.last = UpstreamReply(got.status_code, redacted, self.passed_headers)
        return redacted

    async def _stream(self, got: httpx2.Response) -> None:
        splitter = EventSplitter(self.trial.meter.limits.event_bytes)
        async for chunk in got.aiter_bytes():
            if passing := b"".join(self._read_event(event) for event in splitter.feed(chunk)):
                await self._more(passing)
        if rest := self._read_event(splitter.rest()):
            await self._more(rest)
        if not self.responder.begun:
            await self._more(b"")
        await self.responder.more(b"", last=True)

    async def _more(self, passing: bytes) -> None:
        if not self.responder.begun:
            await self.responder.start(self.status, self.passed_headers)
        self._keep(passing)
        await self.responder.more(passing)

    def _read_event(self, event: bytes) -> bytes:
        """Read an event and return it, or empty bytes for counts that the agent did not request."""
        event = self.trial.meter.redactor(event)
        data, format = data_of(event), self.asked.route.format
        if data is not None and format is not None:
            # If the first event says that the provider is overloaded, raise.
            error = data_in(data.get("error"))
            kind = str(error.get("type") or error.get("code"))
            if kind in _BUSY_EVENTS and not self.responder.begun and not self.answer.pieces:
                self.sent = False
                self.last = UpstreamReply(
                    _BUSY_EVENTS[kind], json.dumps(data).encode(), {"content-type": "application/json"}
                )
                raise self._busy(f"{self.asked.upstream.name} answered {kind}", overloaded=True)
            format.event(self.answer, data)
            if self.counting_asked and data.get("choices") == [] and data.get("usage"):
                return b""
        return event

    def _keep(self, passing: bytes) -> None:
        if self.trial.store.writes and len(self.kept) <= MAX_RECORDED_BYTES:
            self.kept += passing

    # --- exchange --------------------------------------------------------------------------------------------------

    def _book(self, *, complete: bool) -> None:
        """Report the usage first, then record the exchange, which may fail."""
        assert self.question is not None, "free requests have no usage"
        trial, answer, price = self.trial, self.answer, self.price
        seconds = perf_counter() - self.started
        cut = not (complete and answer.whole)
        if price is None and answer.model:  # the request may use an alias that no price list has
            price = price_from_genai(self.asked.upstream.provider.price_name, answer.model)
        usage, estimated = answer.usage(price, characters_in(self.asked.data))
        trial.spend(usage, cut=cut)
        self._log(usage, seconds, estimated=estimated, cut=cut)
        if cut or not trial.store.writes or len(self.kept) > MAX_RECORDED_BYTES:
            return
        recording = RecordedExchange(
            asked=dict(self.question.asked),
            case=trial.task.case_id,
            usage=usage,
            estimated=estimated,
            seconds=seconds,
            status=self.status,
            headers=self.passed_headers,
            **HttpAnswer.body_fields(bytes(self.kept)),
        )
        try:
            trial.store.keep(self.question, recording)
            trial.log.notes["recorded"] += 1
        except InfraError as error:
            trial.stop(error)


def _title(body: bytes) -> str:
    """Return the title of an HTML page, or else its beginning."""
    text = body[:4000].decode(errors="replace")
    found = re.search(r"<title[^>]*>(.*?)</title", text, re.IGNORECASE | re.DOTALL)
    return " ".join((found.group(1) if found else text).split())[:100]


def _is_readable(got: httpx2.Response) -> bool:
    return got.headers.get("content-encoding", "").strip().lower() in _DECODED


def _is_about_money(status: int, body: bytes) -> bool:
    """Return True if the account has no credit. Parts that quote the request are ignored."""
    if status == 400:
        found = objects_of(body)
        message = data_in(found[0].get("error")).get("message") if len(found) == 1 else None
        return isinstance(message, str) and message.startswith(_NO_CREDIT)
    return status == 402 or (status == 429 and any(word in body for word in _NO_MONEY))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds that the provider asks for. Dates are rare and ignored."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if 0 <= seconds < 86_400:
            return seconds
    return None


def unpacked(body: bytes, encoding: str, most: int) -> bytes | None:
    """Decompress a request body. Return None if it is invalid or exceeds the limit."""
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "deflate"):
        return None
    inflate = zlib.decompressobj(47)  # accepts either header
    try:
        data = inflate.decompress(body, most)
    except zlib.error:
        return None
    return data if inflate.eof and not inflate.unconsumed_tail else None

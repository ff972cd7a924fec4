"""A server at an address: streamable HTTP, or the older SSE transport, with what it sends bounded."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from mcp.client import Transport
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from bakeoff.mcp.servers import HubLimits, ServerSpec, shown_url

CONNECT_SECONDS = 30.0
FIRST_EVENT_BYTES = 1 << 16  # the first event of an SSE stream is one short path


class TooMuch(httpx2.StreamError):
    """An answer grew beyond what one message may have."""


class HttpServer:
    """One connection to a server: make it with `connect`, and ask `explain` what HTTP had to say."""

    def __init__(self, spec: ServerSpec, limits: HubLimits) -> None:
        self._spec, self._limits = spec, limits
        self._last_refusal = ""

    def connect(self) -> Transport:
        assert self._spec.url is not None
        if self._spec.transport == "sse":
            return sse_client(self._spec.url, httpx_client_factory=self._client)
        return self._streamable(self._spec.url)

    def explain(self) -> str:
        return self._last_refusal

    async def settled(self) -> None:
        """There is nothing to wait for: what HTTP had to say has been said."""

    @contextlib.asynccontextmanager
    async def _streamable(self, url: str) -> AsyncIterator[Any]:
        async with (
            self._client() as client,
            streamable_http_client(url, http_client=client, max_sse_event_size=self._limits.message_bytes) as streams,
        ):
            yield streams

    def _client(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,  # noqa: ARG002 - the SDK's; calls have limits of their own
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        """The signature is the SDK's factory's. Unpacked answers are asked for, so that their size is what arrives."""
        return httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **(headers or {}), **self._spec.headers},
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=None),
            auth=auth,
            event_hooks={"response": [self._guard]},
        )

    async def _guard(self, response: httpx2.Response) -> None:
        # Streamable HTTP may well refuse to be listened to (GET) or to be told of our leaving (DELETE).
        if response.is_error and (response.request.method == "POST" or self._spec.transport == "sse"):
            where = f"{response.request.method} {shown_url(str(response.request.url))}"
            self._last_refusal = f"{where} was answered with {response.status_code} {response.reason_phrase}".rstrip()
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise httpx2.DecodingError("its answer is compressed, though plain data was asked for")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = Bounded(response.stream, self._limits.message_bytes)
        elif self._spec.transport == "sse" and response.request.method == "GET":
            response.stream = NamedEndpoint(response.stream)


class Bounded(httpx2.AsyncByteStream):
    """A body that ends in an error when it is too long."""

    def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
        self._stream, self._most = stream, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._most:
                raise TooMuch(f"the answer has more than {self._most:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class NamedEndpoint(httpx2.AsyncByteStream):
    """Gives the first event of an SSE stream its name where a server leaves out `event:` lines.

    A nameless event is a message, and the SDK takes it as one. But the first event says where to post to, and the SDK
    waits for ever for one that is called `endpoint`. An address is told from a message by not being JSON.
    """

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = b""
        decided = False
        async for chunk in self._stream:
            if decided:
                yield chunk
                continue
            seen += chunk
            decided, named = name_first_event(seen)
            if decided:
                yield named
        if not decided:
            yield seen

    async def aclose(self) -> None:
        await self._stream.aclose()


def name_first_event(seen: bytes) -> tuple[bool, bytes]:
    """Whether the first event can be judged yet, and if so the bytes to pass on."""
    position = 0
    for line in seen.splitlines(keepends=True):
        if not line.endswith((b"\n", b"\r")):
            break
        if line.startswith(b"event:"):
            return True, seen
        value = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and value:
            is_message = value.startswith((b"{", b"["))
            return True, seen if is_message else seen[:position] + b"event: endpoint\n" + seen[position:]
        position += len(line)
    return len(seen) > FIRST_EVENT_BYTES, seen

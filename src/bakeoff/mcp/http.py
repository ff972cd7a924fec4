"""Connect to a server at an address over streamable HTTP or the older SSE transport, with limits on what it sends."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from bakeoff._kernel.text import visible
from bakeoff.mcp.oauth import secrets_of_auth
from bakeoff.mcp.servers import HubLimits, ServerSpec, shown_url

CONNECT_SECONDS = 30.0
ERROR_BYTES = 2000  # of the body of an error that are shown
_ADVICE = "if it uses OAuth, log in with `bakeoff mcp login`; else give a token with --header or `headers`"
FIRST_EVENT_BYTES = 1 << 16  # the first event of an SSE stream is one short path


class TooLarge(httpx2.StreamError):
    """Raised when an answer exceeds the limit for one message."""


class HttpServer:
    """One connection to a server. `connect` opens it, and `explain` returns the last HTTP error."""

    def __init__(self, spec: ServerSpec, limits: HubLimits, auth: httpx2.Auth | None = None) -> None:
        self._spec, self._limits, self._auth = spec, limits, auth
        self._last_error = ""

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[Any]:
        assert self._spec.url is not None
        if self._spec.transport == "sse":
            async with sse_client(self._spec.url, httpx_client_factory=self._client) as streams:
                yield streams
            return
        most = self._limits.message_bytes
        async with (
            self._client() as client,
            streamable_http_client(self._spec.url, http_client=client, max_sse_event_size=most) as streams,
        ):
            yield streams

    def explain(self) -> str:
        return self._last_error

    def secrets(self) -> dict[str, str]:
        """Return the tokens in use, which must not be shown or written."""
        return secrets_of_auth(self._auth)

    def remark(self) -> str:
        """Return nothing: over HTTP there is no place for text between messages."""
        return ""

    def _client(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,  # noqa: ARG002 - the SDK passes it; calls have limits of their own
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        """Make a client with the signature that the SDK expects. Compression is off, so that sizes can be limited."""
        return httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **(headers or {}), **self._spec.headers},
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=None),
            auth=auth or self._auth,
            event_hooks={"response": [self._check_response]},
        )

    async def _check_response(self, response: httpx2.Response) -> None:
        # A server of streamable HTTP may refuse GET (listening) and DELETE (closing) without harm.
        if response.is_error and (response.request.method == "POST" or self._spec.transport == "sse"):
            where = f"{response.request.method} {shown_url(str(response.request.url))}"
            self._last_error = f"{where} was answered with {response.status_code} {response.reason_phrase}".rstrip()
            self._last_error += await _said(response)
            if response.status_code == httpx2.codes.UNAUTHORIZED and self._auth is None:
                self._last_error += f"\n    {_ADVICE}"
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise httpx2.DecodingError("its answer is compressed, although plain data was requested")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            chunks = limited(response.stream, self._limits.message_bytes)
            response.stream = FilteredStream(response.stream, chunks)
        elif self._spec.transport == "sse" and response.request.method == "GET":
            response.stream = FilteredStream(response.stream, with_named_endpoint(response.stream))


async def _said(response: httpx2.Response) -> str:
    """Return what an error says: how to authenticate, and the beginning of the body, which can be read again."""
    wanted = response.headers.get("www-authenticate", "")
    body = ""
    if response.headers.get("content-encoding", "identity").lower() == "identity":
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = FilteredStream(response.stream, beginning(response.stream, ERROR_BYTES))
        with contextlib.suppress(httpx2.HTTPError, httpx2.StreamError):
            body = (await response.aread()).decode("utf-8", "replace")
    texts = (f"WWW-Authenticate: {wanted}" if wanted else "", body)
    return "".join(f"\n    {visible(line)}" for text in texts for line in text.splitlines() if line.strip())


async def beginning(stream: httpx2.AsyncByteStream, most: int) -> AsyncIterator[bytes]:
    """Yield the first bytes of a body, and leave out the rest."""
    size = 0
    async for chunk in stream:
        yield chunk[: most - size]
        size += len(chunk)
        if size >= most:
            return


class FilteredStream(httpx2.AsyncByteStream):
    """A body whose chunks pass through a filter."""

    def __init__(self, stream: httpx2.AsyncByteStream, chunks: AsyncIterator[bytes]) -> None:
        self._stream, self._chunks = stream, chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        await self._stream.aclose()


async def limited(stream: httpx2.AsyncByteStream, most: int) -> AsyncIterator[bytes]:
    """Raise an error when a body is too long."""
    size = 0
    async for chunk in stream:
        size += len(chunk)
        if size > most:
            raise TooLarge(f"the answer has more than {most:,} bytes")
        yield chunk


async def with_named_endpoint(stream: httpx2.AsyncByteStream) -> AsyncIterator[bytes]:
    """Name the first event of an SSE stream `endpoint` if the server sends no `event:` lines.

    The SDK reads an event without a name as a message. The first event contains the address to post to, and the SDK
    waits forever for one that is called `endpoint`. An address differs from a message in not being JSON.
    """
    seen = b""
    decided = False
    async for chunk in stream:
        if decided:
            yield chunk
            continue
        seen += chunk
        decided, named = name_first_event(seen)
        if decided:
            yield named
    if not decided:
        yield seen


def name_first_event(seen: bytes) -> tuple[bool, bytes]:
    """Return whether the first event is complete enough to decide, and the bytes to pass on."""
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

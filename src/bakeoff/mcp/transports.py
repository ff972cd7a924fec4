"""Connect to an MCP server at an address, or run it as a program.

The SDK's own stdio client kills a server's children only if the server does not exit in time, and
reads lines of any length. Here, the sandbox's supervisor runs the process tree, and kills it when
we close the control socket or die.
"""

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from bakeoff._kernel.json import json_object
from bakeoff._kernel.text import LINE_LENGTH, quoted, visible
from bakeoff.errors import BakeoffError
from bakeoff.mcp.oauth import secrets_of_auth
from bakeoff.mcp.servers import HubLimits, ServerSpec, shown_url
from bakeoff.mcp.tools import ToolRefused
from bakeoff.sandbox.confinement import FOREVER_SECONDS, ConfinedProgram, confined, unconfined_command
from bakeoff.sandbox.programs import inherited, search_path
from bakeoff.sandbox.supervisor_client import SupervisedProcess, supervised_process
from bakeoff.storage.redaction import Redactor

CONNECT_SECONDS = 30.0
ERROR_BYTES = 2000  # how much of an error's body is shown
_ADVICE = "give a token with --header or `headers`, or let `oauth` get one"
FIRST_EVENT_BYTES = 1 << 16  # the first event of an SSE stream is one short path


class TooLarge(httpx2.StreamError):
    """Raised when an answer exceeds the limit for one message."""


class HttpServer:
    """One connection to a server. `connect` opens it, `explain` returns the last HTTP error."""

    def __init__(self, spec: ServerSpec, limits: HubLimits, auth: httpx2.Auth | None = None) -> None:
        self._spec, self._limits, self._auth = spec, limits, auth
        self._last_error = ""

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[Any]:
        """Open the connection, and yield its incoming and outgoing streams of messages."""
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
        """Return the last HTTP error and the start of its body; empty if there was none."""
        return self._last_error

    def secrets(self) -> dict[str, str]:
        """Return the current tokens, which must not be shown or written."""
        return secrets_of_auth(self._auth)

    def remark(self) -> str:
        """Return an empty string, because HTTP has no text between messages."""
        return ""

    def _client(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,  # noqa: ARG002 - the SDK passes it; calls have limits of their own
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        """Make a client for the SDK, without compression, so that sizes can be limited."""
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
    """Return an error's text: how to authenticate, and the beginning of the body."""
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
    """Yield the first bytes of a body and skip the rest."""
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
    """Yield a body, and raise `TooLarge` once it has more than `most` bytes."""
    size = 0
    async for chunk in stream:
        size += len(chunk)
        if size > most:
            raise TooLarge(f"the answer has more than {most:,} bytes")
        yield chunk


async def with_named_endpoint(stream: httpx2.AsyncByteStream) -> AsyncIterator[bytes]:
    """Call the first event of an SSE stream `endpoint` if the server sends no `event:` lines.

    The first event contains the address to post to. The SDK takes nameless events for messages, and
    would wait forever for the event `endpoint`. Unlike a message, an address is not JSON.
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
    """Return True once enough has arrived to name the first event, and the bytes to pass on."""
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


# The user, download folders of npx and uvx, and trusted certificates: none of them secret.
ALSO_PASSED_ON = ("HOME", "LOGNAME", "USER", "SHELL", "TMPDIR", "NODE_EXTRA_CA_CERTS")
CHUNK = 1 << 16
REPORT_SECONDS = 1.0  # from the end of a server's output to the report of how it ended
NOISE_LINES = 10_000  # a program that prints more lines without messages is not a server
LINES_KEPT = 20
UNREADABLE = "Failed to parse"  # beginning of the SDK's error for an unreadable answer


Wire = SessionMessage | Exception
Outgoing = MemoryObjectSendStream[SessionMessage]


def server_environment(spec: ServerSpec) -> dict[str, str]:
    """Return the variables for a server without a sandbox: its own and those of an allow-list.

    A deny-list could miss an API key.
    """
    passed = {name: os.environ[name] for name in ALSO_PASSED_ON if name in os.environ}
    return {**inherited(os.environ), **passed, "PATH": search_path(os.environ), **spec.env}


class LastLines:
    """Keeps the last lines of a stream of bytes. Streams and lines may have any length."""

    def __init__(self, redactor: Redactor) -> None:
        self._lines: deque[bytes] = deque(maxlen=LINES_KEPT)
        self._open = b""
        self._redactor = redactor

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes of the stream, which may end in the middle of a line."""
        *whole, rest = (self._open + chunk).split(b"\n")
        self._lines.extend(whole[-LINES_KEPT:])
        self._open = rest[: 16 * LINE_LENGTH]  # keep only the beginning of endless lines

    def shown(self) -> list[str]:
        """Return the last lines, without secrets, control characters and empty lines."""
        lines = [*self._lines, *([self._open] if self._open else [])]
        texts = [self._redactor(line).decode("utf-8", "replace").rstrip() for line in lines]
        return [visible(text) for text in texts if text][-LINES_KEPT:]


class StdioServer:
    """One process of a server. `connect` starts it, `explain` describes how it ended."""

    def __init__(self, spec: ServerSpec, limits: HubLimits) -> None:
        self._spec, self._limits = spec, limits
        self._stderr = LastLines(Redactor(spec.shown_to_nobody))
        self._noise = 0
        self._last_noise = b""
        self._fault: str | None = None
        self._report: dict[str, Any] = {}
        self._reporter: asyncio.Task[None] | None = None
        self._confined: ConfinedProgram | None = None

    def explain(self) -> str:
        """Describe how the server ended, as far as known, with its last lines of stderr."""
        facts = [fact for fact in (self._fault, self._ending()) if fact]
        if remark := self.remark():
            facts.append(remark)
        lines = self._stderr.shown()
        if lines:
            facts.append("its last lines on stderr:" + "".join(f"\n    {line}" for line in lines))
        else:
            facts.append("it wrote nothing to stderr")
        if self._confined and (about_sandbox := self._confined.explain("\n".join([*facts, *lines]))):
            facts.append(about_sandbox)
        return "; ".join(facts)

    def secrets(self) -> dict[str, str]:
        """Return no secrets, because a program's secrets are all in its settings."""
        return {}

    def remark(self) -> str:
        """Return a remark if a working server printed other text to stdout; otherwise empty."""
        if not self._noise:
            return ""
        one = self._noise == 1
        lines = (
            "1 line of its stdout was no message" if one else f"{self._noise:,} lines of its stdout were no messages"
        )
        return f"{lines}, such as {quoted(self._last_noise.decode('utf-8', 'replace').rstrip(), 100)}"

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple[MemoryObjectReceiveStream[Wire], Outgoing]]:
        """Start the server, and yield its incoming and outgoing streams of messages.

        At the end, close its stdin, which asks it to exit, and kill it after `close_seconds`.
        """
        sink, messages = anyio.create_memory_object_stream[Wire](0)
        outgoing, source = anyio.create_memory_object_stream[SessionMessage](0)
        with sink, messages, outgoing, source:
            async with contextlib.AsyncExitStack() as stack:
                # Cancelled last: a server cannot exit unless its output is read.
                pumps = await stack.enter_async_context(_cancelled_at_exit())
                process = await stack.enter_async_context(self._running())
                pumps.append(asyncio.create_task(self._read_messages(process.stdout, sink)))
                pumps.append(asyncio.create_task(self._write_messages(process.stdin, source, sink)))
                pumps.append(asyncio.create_task(self._keep_last_lines(process.stderr)))
                try:
                    yield messages, outgoing
                finally:
                    messages.close()
                    outgoing.close()
                    process.stdin.close()  # tells the server to exit
                    await self._wait_for_report(self._limits.close_seconds)

    @contextlib.asynccontextmanager
    async def _running(self) -> AsyncIterator[SupervisedProcess]:
        """Start the server. At the end, kill its process tree, even on cancellation."""
        async with contextlib.AsyncExitStack() as stack:
            if self._spec.sandbox == "none":
                env, folder = server_environment(self._spec), self._spec.cwd or Path.cwd()
                order = unconfined_command(self._spec.program.argv, env=env, cwd=folder, seconds=FOREVER_SECONDS)[0]
            else:
                try:
                    self._confined = await stack.enter_async_context(confined(self._spec.program, self._spec.sandbox))
                except BakeoffError as problem:
                    raise ToolRefused(str(problem)) from problem
                order = self._confined.order
            limit = self._limits.message_bytes
            process = await stack.enter_async_context(supervised_process(order, limit=limit))

            async def read_report() -> None:  # arrives when no process of the server is left
                self._report = await process.report() or {}

            self._reporter = asyncio.create_task(read_report())
            try:
                yield process
            finally:
                self._reporter.cancel()
                await asyncio.wait([self._reporter])

    async def _wait_for_report(self, seconds: float = REPORT_SECONDS) -> None:
        """Wait for the report on the server's end, so that an error can include it."""
        if self._reporter is not None:
            await asyncio.wait([self._reporter], timeout=seconds)

    async def _read_messages(self, stdout: asyncio.StreamReader, sink: MemoryObjectSendStream[Wire]) -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the reader is gone
            try:
                while self._noise <= NOISE_LINES and (line := await stdout.readline()).endswith(b"\n"):
                    if message := self._parse(line):
                        await sink.send(message)
            except ValueError:
                self._fault = f"it sent a message of more than {self._limits.message_bytes:,} bytes"
            if self._noise > NOISE_LINES:
                self._fault = f"it printed more than {NOISE_LINES:,} lines that are not messages"
            await self._wait_for_report()
            sink.close()
        while await stdout.read(CHUNK):
            pass

    def _parse(self, line: bytes) -> SessionMessage | None:
        """Return the message in a line, an error for an unreadable answer, or None."""
        if not line.strip():
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValidationError:
            request = _answered_request(line)
        if request is not None:  # tell the waiting caller that the answer is unreadable
            error = ErrorData(
                code=PARSE_ERROR, message=f"{UNREADABLE} its answer: {visible(line.decode(errors='replace'))}"
            )
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error))
        self._noise += 1
        self._last_noise = line[:1000]
        return None

    async def _write_messages(
        self,
        stdin: asyncio.StreamWriter,
        source: MemoryObjectReceiveStream[SessionMessage],
        sink: MemoryObjectSendStream[Wire],
    ) -> None:
        try:
            async for item in source:
                stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            # The server no longer reads. End the connection, so that no call waits in vain.
            await self._wait_for_report()
            sink.close()

    async def _keep_last_lines(self, stderr: asyncio.StreamReader) -> None:
        while chunk := await stderr.read(CHUNK):
            self._stderr.feed(chunk)

    def _ending(self) -> str | None:
        """Return how the program ended, or None if it did not end by itself."""
        if "problem" in self._report:
            return visible(str(self._report["problem"]))
        code = self._report.get("exit_code")
        if code is None or self._report.get("stop") != "exited":
            return None
        if self._confined and self._confined.sandbox == "bwrap" and 128 < code <= 128 + 64:  # as in a shell
            code = 128 - code
        return f"it was ended by signal {-code}" if code < 0 else f"it exited with code {code}"


@contextlib.asynccontextmanager
async def _cancelled_at_exit() -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks: list[asyncio.Task[None]] = []
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _answered_request(line: bytes) -> int | str | None:
    """Return the id of the request that an unreadable answer belongs to, or None."""
    data = json_object(line)
    if data is None or not ({"result", "error"} & data.keys()):
        return None
    request = data.get("id")
    return request if isinstance(request, int | str) and not isinstance(request, bool) else None

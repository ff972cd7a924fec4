"""A client that keeps the server waiting loses its connection, and others are served meanwhile."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from bakeoff._kernel.http_server import HOST, LimitedProtocol, ServerLimits, no_proxy, serving

QUICK = ServerLimits(connections=20, head_seconds=0.3, body_seconds=0.3, taking_seconds=0.3)
PATIENT = ServerLimits(connections=20)
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """`/` answers at once, `/body` when it has the body, `/much` with more than a socket holds, `/slow` never."""
    if scope["path"] == "/slow":
        await receive()
        assert (await receive())["type"] == "http.disconnect"
        return
    if scope["path"] == "/body":
        try:
            await Request(scope, receive).body()
        except ClientDisconnect:
            return
    text = "x" * 50_000_000 if scope["path"] == "/much" else "yes"
    await PlainTextResponse(text)(scope, receive, send)


Connect = Callable[[], AbstractAsyncContextManager[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@asynccontextmanager
async def served(limits: ServerLimits) -> AsyncIterator[Connect]:
    listening = socket.create_server((HOST, 0), backlog=512)
    port = listening.getsockname()[1]

    @asynccontextmanager
    async def connect() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection(HOST, port)
        yield reader, writer
        writer.transport.abort()

    async with serving(no_proxy(app), [listening], limits):
        yield connect


async def answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    assert (await reader.readexactly(3)) == b"yes"
    return head[9:12]


async def closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
        b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    ],
)
async def test_a_request_that_never_becomes_complete_loses_its_connection(sent: bytes) -> None:
    async with served(QUICK) as connect, connect() as (reader, writer):
        writer.write(sent)
        assert await closed(reader)


@pytest.mark.parametrize(
    "before",
    [
        b"",
        GET,  # the connection is kept for a second request
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n",  # answered before its body has come
        b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n",
    ],
)
async def test_sending_byte_by_byte_gains_no_time(before: bytes) -> None:
    async with served(QUICK) as connect, connect() as (reader, writer):
        writer.write(before)
        if before and b"/body" not in before:
            assert await answer(reader) == b"200"
        ended = asyncio.create_task(closed(reader))
        while not ended.done():
            writer.write(b"G")
            await asyncio.sleep(0.02)
        assert await ended


async def test_an_answer_that_nobody_reads_is_not_kept() -> None:
    async with served(QUICK) as connect, connect() as (_, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport for both directions
        writer.write(b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n")
        while not any(each.transport.get_write_buffer_size() for each in connections()):
            await asyncio.sleep(0.01)
        while connections():
            await asyncio.sleep(0.01)


def connections() -> list[LimitedProtocol]:
    """The connections that a server of this process has."""
    found = [each for each in gc.get_objects() if isinstance(each, LimitedProtocol)]
    return [each for each in found if each in each.connections]


async def test_an_answer_that_takes_long_to_make_is_waited_for() -> None:
    async with served(QUICK) as connect, connect() as (reader, writer):
        writer.write(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await reader.read()


@pytest.mark.parametrize("sent", [b"", GET, b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"])
async def test_others_are_served_beside_any_number_of_connections(sent: bytes) -> None:
    async with served(PATIENT) as connect:
        held = []
        for _ in range(300):
            one = connect()
            _, writer = await one.__aenter__()
            writer.write(sent)
            held.append(one)
        async with connect() as (reader, writer):
            writer.write(GET)
            assert await answer(reader) == b"200"
            assert len(connections()) <= PATIENT.connections
        for one in held:
            await one.__aexit__(None, None, None)


async def test_requests_that_are_being_answered_make_no_room() -> None:
    async with served(PATIENT) as connect:
        held = []
        for _ in range(PATIENT.connections):
            one = connect()
            _, writer = await one.__aenter__()
            writer.write(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            held.append(one)
        while sum(each.cycle is not None for each in connections()) < PATIENT.connections:
            await asyncio.sleep(0.01)
        async with connect() as (reader, writer):
            assert await closed(reader)
        for one in held:
            await one.__aexit__(None, None, None)


async def test_small_answers_are_sent_at_once() -> None:
    async with served(PATIENT) as connect, connect() as (reader, writer):
        writer.write(GET)
        assert await answer(reader) == b"200"
        [accepted] = [each.transport.get_extra_info("socket") for each in connections()]
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET http://example.com/ HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"CONNECT / HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % (b"a" * 9000), b"414"),
        (b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", b"200"),
    ],
)
async def test_what_no_browser_asks_is_refused_or_ignored(
    sent: bytes, status: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(PATIENT) as connect, connect() as (reader, writer):
        writer.write(sent)
        assert (await reader.readuntil(b"\r\n\r\n"))[9:12] == status
    assert caplog.records == []


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_more_than_the_last_request_of_a_connection_is_refused(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(PATIENT) as connect, connect() as (reader, writer):
        writer.write(f"{method} /slow HTTP/1.0\r\nHost: x\r\n\r\n".encode())
        while not any(each.cycle for each in connections()):
            await asyncio.sleep(0.01)
        writer.write(b"more")
        assert (await reader.read()).startswith(b"HTTP/1.1 400")
    assert caplog.records == []


async def test_a_body_that_breaks_off_after_the_answer_began_ends_the_connection_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with served(PATIENT) as connect, connect() as (reader, writer):
        writer.write(b"POST /much HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"no number\r\n")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await reader.readexactly(50_000_000)
    assert caplog.records == []

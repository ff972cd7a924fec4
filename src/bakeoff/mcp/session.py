"""Keeps one server alive: connects, lists its tools, and starts it again when it dies.

A connection of the SDK must be closed by the task that opened it, so each server has a task of its own. Calls need no
such care: they run in the tasks that make them, any number at a time, and are cancelled where they are made.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

import anyio
import httpx2
from mcp.client import Client, Transport
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import CallToolResult, Implementation, JSONRPCResponse
from pydantic import JsonValue, ValidationError

from bakeoff._version import __version__
from bakeoff.errors import InfraError
from bakeoff.mcp.http import HttpServer
from bakeoff.mcp.servers import HubLimits, ServerSpec
from bakeoff.mcp.stdio import UNREADABLE, StdioServer
from bakeoff.mcp.text import visible
from bakeoff.mcp.tools import (
    Refused,
    ServerTool,
    ToolResult,
    explain_unreadable,
    list_tools,
    result_from_wire,
    tools_fingerprint,
)
from bakeoff.storage.redaction import Redactor

# The SDK logs what servers send, and without a handler Python would print that to the terminal as it is.
logging.getLogger("mcp").addHandler(logging.NullHandler())

# The SDK's words where it made up an answer because the server gave none; all else was said by the server.
ENDED = ("Connection closed", "Session terminated")
UNANSWERED = (
    *ENDED,
    UNREADABLE,
    "SSE stream",
    "Server returned an error response",
    "Unexpected content type",
    "server answered a request with 202",
    "Redirect to",
)
BURIAL_SECONDS = 2.0  # beyond the time a server has to leave, for word of why it ended

Wire = SessionMessage | Exception
# All that a connection can fail with; they arrive in groups, for the SDK works with groups of tasks.
FAILURES = (
    Refused,
    MCPError,
    OSError,
    httpx2.HTTPError,
    ValueError,
    RuntimeError,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    anyio.EndOfStream,
)


class Peer(Protocol):
    """The other side of one connection."""

    def connect(self) -> Transport: ...

    def explain(self) -> str: ...

    async def settled(self) -> None: ...


class WatchedStream:
    """The incoming messages of a session; notices their end, and remembers what a tool list was made of."""

    def __init__(self, stream: Any, session: "Session") -> None:
        self._stream, self._session = stream, session

    @property
    def last_context(self) -> Any:
        """The SDK asks for it by name."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Wire:
        try:
            item: Wire = await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._session.ended.set()
            raise
        self._session.look_at(item)
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Wire:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Session:
    """One life of a server, from connecting to its end."""

    def __init__(self, spec: ServerSpec, limits: HubLimits) -> None:
        self._spec, self._limits = spec, limits
        self._peer: Peer = StdioServer(spec, limits) if spec.transport == "stdio" else HttpServer(spec, limits)
        self._stage = "answer the handshake"
        self._listed: list[Any] | None = None
        self.ended = asyncio.Event()
        self.buried = asyncio.Event()  # closed, and `reason` is all that will ever be known
        self.reason = ""
        self.welcome = False  # it was ready to be called
        self.tools: tuple[ServerTool, ...] = ()
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        assert self._client is not None
        return self._client

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        async with contextlib.AsyncExitStack() as stack:
            client = Client(
                self._watched(), cache=None, client_info=Implementation(name="bakeoff", version=__version__)
            )
            async with asyncio.timeout(self._limits.startup_seconds):
                self._client = await stack.enter_async_context(client)
                self._stage = "finish its tool list"
                self.tools = await list_tools(client, self._spec.name, self._limits)
            try:
                yield self
            finally:
                self.ended.set()

    @contextlib.asynccontextmanager
    async def _watched(self) -> AsyncIterator[tuple[WatchedStream, Any]]:
        async with self._peer.connect() as (incoming, outgoing):
            yield WatchedStream(incoming, self), outgoing

    def look_at(self, item: Wire) -> None:
        if not isinstance(item, Exception) and isinstance(item.message, JSONRPCResponse) and not self.welcome:
            listed = item.message.result.get("tools")
            self._listed = listed if isinstance(listed, list) else None

    def explain(self) -> str:
        return self._peer.explain()

    def bury(self, error: BaseException | None) -> None:
        """Write down why it ended. What is refused needs no further words."""
        causes = [self._words(leaf) for leaf in leaves(error)] if error else []
        cause = next(iter(causes), "it ended")
        refused = any(isinstance(leaf, Refused | ValidationError) for leaf in leaves(error))
        explained = "" if refused else self._peer.explain()
        self.reason = Redactor(self._spec.secrets).text("; ".join(part for part in (cause, explained) if part))
        self.ended.set()
        self.buried.set()

    def _words(self, error: BaseException) -> str:
        if isinstance(error, ValidationError):
            return explain_unreadable(error, self._listed)
        if isinstance(error, TimeoutError):
            return f"it did not {self._stage} within {self._limits.startup_seconds:g} s"
        if isinstance(error, MCPError) and error.message.startswith(ENDED):
            return f"it ended before it could {self._stage}"
        if isinstance(error, MCPError):
            return f"it did not {self._stage}: {visible(error.message)}"
        if isinstance(error, Refused):
            return str(error)
        if isinstance(error, httpx2.HTTPStatusError):  # its own words hold the whole URL
            return f"it did not {self._stage}"
        return visible(f"{type(error).__name__}: {error}")


class Keeper:
    """The task of one server, and the calls that are made to it."""

    def __init__(self, spec: ServerSpec, limits: HubLimits) -> None:
        self.spec = spec
        self.tools: tuple[ServerTool, ...] = ()
        self._limits = limits
        self._who = f"MCP server {spec.name!r} ({visible(spec.address)})"
        self._current = self._unknown_future()
        self._asked = asyncio.Event()
        self._deaths = 0
        self._was_ready = False
        self._given_up = False
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    # --- from outside ---

    async def start(self) -> str | None:
        """None once it is ready; else what is wrong with it."""
        self._task = asyncio.create_task(self._keep(), name=f"mcp-{self.spec.name}")
        waiting: list[asyncio.Future[Any]] = [self._task, self._current]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            self._task.result()
        outcome = self._current.result()
        return outcome if isinstance(outcome, str) else None

    async def stop(self) -> None:
        """Let the server leave, or end it; returns when nothing of it is left, however often we are cancelled."""
        if self._task is None:
            return
        self._stopping = True
        outcome = self._current.result() if self._current.done() else f"{self._who} was closed"
        if not self._current.done():
            self._current.set_result(outcome)
        try:
            if isinstance(outcome, Session):
                outcome.ended.set()
                await asyncio.wait([self._task], timeout=self._limits.close_seconds + BURIAL_SECONDS)
        finally:
            self._task.cancel()
            await until_done(self._task)

    async def call(self, tool: str, arguments: Mapping[str, JsonValue], seconds: float) -> ToolResult:
        unsendable = why_unsendable(arguments)
        if unsendable:
            return ToolResult(server=self.spec.name, tool=tool, text=unsendable, is_error=True)
        try:
            async with asyncio.timeout(seconds):
                session = await self._session()
                return await self._call(session, tool, dict(arguments))
        except TimeoutError as late:
            raise InfraError(f"{self._who} gave no answer to {tool!r} within {seconds:g} s") from late

    # --- calls ---

    async def _session(self) -> Session:
        """The living session; after a failed start, the outcome of another one."""
        if self._stopping:
            raise InfraError(f"{self._who} was closed")
        if self._current.done() and not self._given_up:
            outcome = self._current.result()
            if isinstance(outcome, str):
                self._asked.set()
            if isinstance(outcome, str) or outcome.ended.is_set():
                self._current = self._unknown_future()
        outcome = await asyncio.shield(self._current)
        if isinstance(outcome, str):
            raise InfraError(outcome, permanent=self._given_up)
        return outcome

    async def _call(self, session: Session, tool: str, arguments: dict[str, JsonValue]) -> ToolResult:
        try:
            wire = await session.client.call_tool(tool, arguments)
        except MCPError as error:
            return await self._judge(session, tool, error)
        except ValidationError as error:
            raise InfraError(f"{self._who}, tool {tool!r}: {explain_unreadable(error, None)}") from error
        except RuntimeError as error:
            if session.ended.is_set():
                raise InfraError(await self._obituary(session, tool)) from error
            # The SDK's way to say that the answer breaks the tool's own output schema. Asking again would not help.
            return self._answered(ToolResult(server=self.spec.name, tool=tool, text=visible(str(error)), is_error=True))
        return self._answered(self._result(tool, wire))

    def _result(self, tool: str, wire: CallToolResult) -> ToolResult:
        return result_from_wire(self.spec.name, tool, wire, self._limits.result_bytes)

    def _answered(self, result: ToolResult) -> ToolResult:
        self._deaths = 0
        return result

    async def _judge(self, session: Session, tool: str, error: MCPError) -> ToolResult:
        """The server's own errors are results; where it gave no answer, the call says nothing about its subject."""
        if error.message.startswith(ENDED):
            session.ended.set()
        if session.ended.is_set():
            raise InfraError(await self._obituary(session, tool)) from error
        if error.message.startswith(UNANSWERED):
            facts = "; ".join(part for part in (visible(error.message), session.explain()) if part)
            raise InfraError(f"{self._who} gave no answer to {tool!r}: {facts}") from error
        result = ToolResult(server=self.spec.name, tool=tool, text=error.message, is_error=True, code=error.code)
        return self._answered(result)

    async def _obituary(self, session: Session, tool: str) -> str:
        if self._stopping:
            return f"{self._who} was closed while {tool!r} was being called"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.close_seconds + BURIAL_SECONDS):
                await session.buried.wait()
        return f"{self._who} died while {tool!r} was being called: {session.reason}"

    # --- the task ---

    async def _keep(self) -> None:
        while True:
            session = Session(self.spec, self._limits)
            session.bury(await self._live(session))
            if self._stopping or not self._after_death(session):
                return
            if not session.welcome:
                await self._asked.wait()
                self._asked.clear()

    async def _live(self, session: Session) -> BaseException | None:
        """Until the session ends; with what it ended with."""
        problem: BaseException | None = None
        try:
            async with session.open():
                self._welcome(session)
                await session.ended.wait()
        except* FAILURES as group:
            problem = group
        return problem

    def _welcome(self, session: Session) -> None:
        if self._was_ready and tools_fingerprint(session.tools) != tools_fingerprint(self.tools):
            self._given_up = True
            raise Refused("it came back with other tools than before; results from before and after do not compare")
        self.tools = session.tools
        self._was_ready = session.welcome = True
        self._current.set_result(session)

    def _after_death(self, session: Session) -> bool:
        """Whether it may live again: one that was ready at once, one that did not start when it is asked for."""
        self._deaths += 1
        self._given_up |= not self._was_ready or self._deaths >= self._limits.deaths_in_a_row
        if self._current.done():
            self._current = self._unknown_future()
        if self._given_up or not session.welcome:
            self._current.set_result(self._epitaph(session))
        return not self._given_up

    def _epitaph(self, session: Session) -> str:
        if self._given_up and self._deaths > 1:
            return f"{self._who} died {self._deaths} times in a row and is not started again: {session.reason}"
        return f"{self._who}: {session.reason}"

    @staticmethod
    def _unknown_future() -> "asyncio.Future[Session | str]":
        """Of the session in use, or a sentence that says why there is none."""
        return asyncio.get_running_loop().create_future()


def leaves(error: BaseException | None) -> Iterator[BaseException]:
    """The errors in a group of groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    elif error is not None:
        yield error


async def until_done(task: asyncio.Task[None]) -> None:
    """Wait for a task that is on its way out, and pass a cancellation of our own on only after that."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    if not task.cancelled():
        task.result()


def why_unsendable(arguments: Mapping[str, JsonValue]) -> str | None:
    """A model may write what JSON cannot carry; sent as it is, it would break the connection for everybody."""
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as problem:
        return f"the arguments are no JSON and were not sent: {visible(str(problem))}"
    return None

"""Keep a server running: connect, list its tools, and restart it when it dies.

Each server has its own task, because the SDK requires that the same task opens and closes a
connection. Calls run in the tasks of their callers, any number at a time, and are cancelled there.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

import anyio
import httpx2
from anyio.abc import ObjectReceiveStream
from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]
from jsonschema.validators import Draft202012Validator  # type: ignore[import-untyped]
from mcp.client import Client
from mcp.client.auth import OAuthFlowError
from mcp.client.session import ElicitationFnT, SamplingFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    Implementation,
    JSONRPCResponse,
    TextContent,
)
from pydantic import JsonValue, ValidationError

from bakeoff._kernel.text import quoted, visible
from bakeoff._version import __version__
from bakeoff.errors import InfraError, ToolTimeout
from bakeoff.mcp.oauth import auth_for
from bakeoff.mcp.servers import ElicitationAnswer, HubLimits, SamplingAnswer, ServerSpec
from bakeoff.mcp.snapshot import ServerEntry, list_offers
from bakeoff.mcp.tools import (
    ServerTool,
    ToolCallResult,
    ToolRefused,
    explain_unreadable,
    list_tools,
    result_from_wire,
    tools_fingerprint,
)
from bakeoff.mcp.transports import UNREADABLE, HttpServer, StdioServer, Wire
from bakeoff.storage.redaction import Model, Redactor

Answer = TypeVar("Answer", ElicitationAnswer, SamplingAnswer)


def elicitation_of(answers: Sequence[ElicitationAnswer]) -> ElicitationFnT | None:
    """Return a function that answers questions to the user, or None if none is configured."""
    if not answers:
        return None

    async def answer(context: Any, params: ElicitRequestParams) -> ElicitResult | ErrorData:  # noqa: ARG001 - as the SDK calls it
        found = _matching(answers, params.message)
        if found is None:
            return _unanswered("elicitation", params.message)
        if found.action != "accept":
            return ElicitResult(action=found.action)
        if not isinstance(params, ElicitRequestFormParams):
            return ElicitResult(action="accept")  # an address for a person to visit, which is not opened
        problem = _problem(found.content, params.requested_schema)
        if problem is not None:
            return ErrorData(code=INVALID_PARAMS, message=f"the elicitation answer of the configuration: {problem}")
        return ElicitResult(action="accept", content=dict(found.content))

    return answer


def sampling_of(answers: Sequence[SamplingAnswer]) -> SamplingFnT | None:
    """Return a function that answers requests to the model, or None if none is configured."""
    if not answers:
        return None

    async def answer(context: Any, params: CreateMessageRequestParams) -> CreateMessageResult | ErrorData:  # noqa: ARG001 - as the SDK calls it
        parts = [part for message in params.messages for part in message.content_as_list]
        asked = "\n".join(part.text for part in parts if isinstance(part, TextContent))
        found = _matching(answers, asked)
        if found is None:
            return _unanswered("sampling", asked)
        text = TextContent(type="text", text=found.reply)
        return CreateMessageResult(role="assistant", content=text, model="bakeoff-configuration", stop_reason="endTurn")

    return answer


def _matching(answers: Sequence[Answer], asked: str) -> Answer | None:
    folded = asked.casefold()
    return next((answer for answer in answers if answer.match.casefold() in folded), None)


def _unanswered(what: str, asked: str) -> ErrorData:
    message = f"no {what} answer of the configuration matches {quoted(asked, 200)}"
    return ErrorData(code=INVALID_PARAMS, message=message)


def _problem(content: Any, schema: Any) -> str | None:
    """Return why an answer does not match the server's schema; None if it does."""
    try:
        error = next(iter(Draft202012Validator(dict(schema)).iter_errors(dict(content))), None)
    except (SchemaError, RecursionError, TypeError, ValueError, AttributeError):
        return None  # unusable schema: leave the check to the server
    return None if error is None else visible(error.message)


# The SDK logs messages of servers. Without a handler, Python would print them unescaped.
logging.getLogger("mcp").addHandler(logging.NullHandler())

# Beginnings of SDK errors without an answer. All other errors come from the server.
CLOSED = ("Connection closed", "Session terminated")
UNANSWERED = (
    *CLOSED,
    UNREADABLE,
    "SSE stream",
    "Server returned an error response",
    "Unexpected content type",
    "server answered a request with 202",
    "Redirect to",
)
END_SECONDS = 2.0  # for the report of how a server ended, after its time to exit

# All errors of a connection. The SDK raises them in exception groups.
FAILURES = (
    ToolRefused,
    MCPError,
    OSError,
    httpx2.HTTPError,
    ValueError,
    RuntimeError,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    anyio.EndOfStream,
    OAuthFlowError,
)


class WatchedStream(ObjectReceiveStream[Wire]):
    """The incoming messages of a connection. Reports their end and keeps the tool list."""

    def __init__(self, stream: Any, connection: "Connection") -> None:
        self._stream, self._connection = stream, connection

    @property
    def last_context(self) -> Any:
        """Return the wrapped stream's attribute of this name, which the SDK reads."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Wire:
        """Return the next message. At the end of the stream, set the connection's `ended` and raise as usual."""
        try:
            item: Wire = await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._connection.ended.set()
            raise
        self._connection.received(item)
        return item

    async def aclose(self) -> None:
        await self._stream.aclose()


class Connection:
    """One connection to a server, from start to end.

    Attributes:
        peer: the process or the HTTP connection.
        client: the SDK's client, which works only inside `open`.
        ended: set when the server is gone.
        explained: set when the connection is closed and `reason` is final.
        reason: why the connection ended, without secrets; empty before.
        ready: True once calls are possible.
        tools: the tools that the server listed at the start.
    """

    def __init__(self, spec: ServerSpec, limits: HubLimits) -> None:
        self._spec, self._limits = spec, limits
        self.peer = StdioServer(spec, limits) if spec.transport == "stdio" else HttpServer(spec, limits, auth_for(spec))
        info = Implementation(name="bakeoff", version=__version__)
        self.client = Client(
            self._watched(),
            cache=None,
            client_info=info,
            # Protocol 2026-07-28 forbids questions during a call, but most servers are older.
            mode="legacy" if spec.elicitation or spec.sampling else "auto",
            elicitation_callback=elicitation_of(spec.elicitation),
            sampling_callback=sampling_of(spec.sampling),
        )
        self._stage = "answer the handshake"
        self._listed: list[Any] | None = None
        self.ended = asyncio.Event()
        self.explained = asyncio.Event()
        self.reason = ""
        self.ready = False
        self.tools: tuple[ServerTool, ...] = ()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Start the server, shake hands and list its tools, all within `startup_seconds`.

        Errors of SDK and transport are raised unchanged. Pass them to `close_with` for a `reason`.
        """
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(self._limits.startup_seconds):
                await stack.enter_async_context(self.client)
                self._stage = "finish its tool list"
                self.tools = await list_tools(self.client, self._spec.name, self._limits)
            self.tools = tuple(map(self.redacted, self.tools))
            try:
                yield self
            finally:
                self.ended.set()

    @contextlib.asynccontextmanager
    async def _watched(self) -> AsyncIterator[tuple[WatchedStream, Any]]:
        async with self.peer.connect() as (incoming, outgoing):
            yield WatchedStream(incoming, self), outgoing

    def redacted(self, said: Model) -> Model:
        """Return a message of the server without its tokens.

        Only the connection knows the tokens, because they can change during a run.
        """
        secrets = self.peer.secrets()
        return Redactor(secrets).model(said) if secrets else said

    def received(self, item: Wire) -> None:
        """Keep the latest tool list until the server is ready, so that errors can name a tool."""
        if not isinstance(item, Exception) and isinstance(item.message, JSONRPCResponse) and not self.ready:
            listed = item.message.result.get("tools")
            self._listed = listed if isinstance(listed, list) else None

    def close_with(self, error: BaseException | None) -> None:
        """Record why the connection ended. Errors of the tool list need no explanation."""
        causes = list(leaves(error))
        reason = self._describe(causes[0]) if causes else "it ended"
        refused = any(isinstance(cause, ToolRefused | ValidationError) for cause in causes)
        details = "" if refused else self.peer.explain()
        self.reason = Redactor({**self._spec.shown_to_nobody, **self.peer.secrets()}).text(
            "; ".join(part for part in (reason, details) if part)
        )
        self.ended.set()
        self.explained.set()

    def _describe(self, error: BaseException) -> str:
        match error:
            case ValidationError():
                return explain_unreadable(error, self._listed)
            case TimeoutError():
                return f"it did not {self._stage} within {self._limits.startup_seconds:g} s"
            case MCPError() if error.message.startswith(CLOSED):
                return f"it ended before it could {self._stage}"
            case MCPError():
                return f"it did not {self._stage}: {visible(error.message)}"
            case ToolRefused():
                return str(error)
            case OAuthFlowError():
                return visible(str(error), 500)
            case httpx2.HTTPStatusError():  # its own message contains the whole URL
                return f"it did not {self._stage}"
        return visible(f"{type(error).__name__}: {error}")


class ServerSession:
    """Keeps one server running in a task, and calls its tools."""

    def __init__(self, spec: ServerSpec, limits: HubLimits) -> None:
        self.spec = spec
        self.tools: tuple[ServerTool, ...] = ()
        self._limits = limits
        self._server = f"MCP server {spec.name!r} ({visible(spec.address)})"
        self._current = self._new_future()
        self._retry = asyncio.Event()
        self._deaths = 0
        self._was_ready = False
        self._given_up = False
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> str | None:
        """Start the server. Return None when it is ready, or a sentence on why it cannot start."""
        self._task = asyncio.create_task(self._run(), name=f"mcp-{self.spec.name}")
        waiting: list[asyncio.Future[Any]] = [self._task, self._current]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            self._task.result()
        outcome = self._current.result()
        return outcome if isinstance(outcome, str) else None

    async def stop(self) -> None:
        """Let the server exit, or kill it, and wait for all its processes despite cancellation."""
        if self._task is None:
            return
        self._stopping = True
        outcome = self._current.result() if self._current.done() else f"{self._server} was closed"
        if not self._current.done():
            self._current.set_result(outcome)
        try:
            if isinstance(outcome, Connection):
                outcome.ended.set()
                await asyncio.wait([self._task], timeout=self._limits.close_seconds + END_SECONDS)
        finally:
            self._task.cancel()
            await wait_despite_cancellation(self._task)

    def remark(self) -> str:
        """Return a remark if the server works but breaks the protocol; otherwise empty."""
        outcome = self._current.result() if self._current.done() else None
        return outcome.peer.remark() if isinstance(outcome, Connection) else ""

    async def call(self, tool: str, arguments: Mapping[str, JsonValue], seconds: float) -> ToolCallResult:
        """Call a tool. If the server is restarting, wait for it.

        Raise `ToolTimeout` after `seconds`, and `InfraError` if the server fails.
        """
        try:
            # Models may write values that JSON cannot encode, which would break the connection.
            json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, TypeError, RecursionError) as problem:
            text = f"the arguments are not valid JSON and were not sent: {visible(str(problem))}"
            return ToolCallResult(server=self.spec.name, tool=tool, text=text, is_error=True)
        try:
            async with asyncio.timeout(seconds):
                connection = await self._connection()
                return await self._call(connection, tool, dict(arguments))
        except TimeoutError as late:
            raise ToolTimeout(f"{self._server} gave no answer to {tool!r} within {seconds:g} s") from late

    async def offers(self) -> ServerEntry:
        """List resources and prompts. Raise `InfraError` if the server fails or lists too much."""
        seconds = self._limits.startup_seconds
        try:
            async with asyncio.timeout(seconds):
                connection = await self._connection()
                return connection.redacted(await list_offers(connection.client, self._limits))
        except TimeoutError as late:
            raise InfraError(f"{self._server} did not list what it offers within {seconds:g} s") from late
        except ValidationError as error:
            raise InfraError(f"{self._server}: {explain_unreadable(error, None)}") from error
        except (ToolRefused, MCPError, RuntimeError) as error:
            raise InfraError(f"{self._server} did not list what it offers: {visible(str(error))}") from error

    async def _connection(self) -> Connection:
        """Return the open connection. After a failed start, start again and wait."""
        if self._stopping:
            raise InfraError(f"{self._server} was closed")
        if self._current.done() and not self._given_up:
            outcome = self._current.result()
            if isinstance(outcome, str):
                self._retry.set()
            if isinstance(outcome, str) or outcome.ended.is_set():
                self._current = self._new_future()
        outcome = await asyncio.shield(self._current)
        if isinstance(outcome, str):
            raise InfraError(outcome, permanent=self._given_up)
        return outcome

    async def _call(self, connection: Connection, tool: str, arguments: dict[str, JsonValue]) -> ToolCallResult:
        try:
            answer = await connection.client.call_tool(tool, arguments)
            result = result_from_wire(self.spec.name, tool, answer, self._limits.result_bytes)
        except MCPError as error:
            result = await self._error_result(connection, tool, error)
        except ValidationError as error:
            raise InfraError(f"{self._server}, tool {tool!r}: {explain_unreadable(error, None)}") from error
        except RuntimeError as error:
            if connection.ended.is_set():
                raise InfraError(await self._describe_death(connection, tool)) from error
            # So the SDK reports an answer that violates the output schema. Retrying is useless.
            result = ToolCallResult(server=self.spec.name, tool=tool, text=visible(str(error)), is_error=True)
        self._deaths = 0
        return connection.redacted(result)

    async def _error_result(self, connection: Connection, tool: str, error: MCPError) -> ToolCallResult:
        """Return the server's error as a result. Raise `InfraError` if there was no answer."""
        if error.message.startswith(CLOSED):
            connection.ended.set()
        if connection.ended.is_set():
            raise InfraError(await self._describe_death(connection, tool)) from error
        if error.message.startswith(UNANSWERED):
            facts = "; ".join(part for part in (visible(error.message), connection.peer.explain()) if part)
            facts = Redactor(connection.peer.secrets()).text(facts)
            raise InfraError(f"{self._server} gave no answer to {tool!r}: {facts}") from error
        return ToolCallResult(server=self.spec.name, tool=tool, text=error.message, is_error=True, code=error.code)

    async def _describe_death(self, connection: Connection, tool: str) -> str:
        """Return why the server ended during a call, once the reason is known."""
        if self._stopping:
            return f"{self._server} was closed while {tool!r} was being called"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.close_seconds + END_SECONDS):
                await connection.explained.wait()
        return f"{self._server} died while {tool!r} was being called: {connection.reason}"

    async def _run(self) -> None:
        """Connect, and reconnect until the session is stopped or the server is given up.

        A server that was ready is restarted at once. Otherwise, the next call restarts it.
        """
        while True:
            connection = Connection(self.spec, self._limits)
            problem: BaseException | None = None
            try:
                async with connection.open():
                    self._use(connection)
                    await connection.ended.wait()
            except* FAILURES as group:
                problem = group
            connection.close_with(problem)
            if self._stopping:
                return
            self._after_death(connection)
            if self._given_up:
                return
            if not connection.ready:
                await self._retry.wait()
                self._retry.clear()

    def _use(self, connection: Connection) -> None:
        if self._was_ready and tools_fingerprint(connection.tools) != tools_fingerprint(self.tools):
            self._given_up = True
            raise ToolRefused(
                "it came back with other tools than before: results from before and after cannot be compared"
            )
        self.tools = connection.tools
        self._was_ready = connection.ready = True
        self._current.set_result(connection)

    def _after_death(self, connection: Connection) -> None:
        """Count the crash. If the server is not restarted now, notify waiting calls."""
        self._deaths += 1
        self._given_up |= not self._was_ready or self._deaths >= self._limits.deaths_in_a_row
        if self._current.done():
            self._current = self._new_future()
        if self._given_up and self._deaths > 1:
            often = f"died {self._deaths} times in a row and is not started again"
            self._current.set_result(f"{self._server} {often}: {connection.reason}")
        elif self._given_up or not connection.ready:
            self._current.set_result(f"{self._server}: {connection.reason}")

    @staticmethod
    def _new_future() -> "asyncio.Future[Connection | str]":
        """Return a future for the open connection, or for the reason why there is none."""
        return asyncio.get_running_loop().create_future()


def leaves(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the errors inside nested exception groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    elif error is not None:
        yield error


async def wait_despite_cancellation(*tasks: asyncio.Task[None], pass_on: bool = False) -> None:
    """Wait until all tasks are done, then raise our own cancellation or their errors.

    With `pass_on`, a cancellation also cancels the tasks, but still waits for their clean-up.
    """
    cancelled = False
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            cancelled = True
            if pass_on:
                for task in tasks:
                    task.cancel()
    if cancelled:
        raise asyncio.CancelledError
    for task in tasks:
        if pass_on or not task.cancelled():
            task.result()

"""A server that is a program of ours to start: its whole process tree, its messages, and the end of its stderr.

The SDK's own stdio client ends a server's children only when the server itself does not leave in time, and reads
lines of any length. Here the tree stands below the sandbox's supervisor, which ends all of it when we let go of it or
die ourselves. To run servers on a rung of the sandbox, give `_order` that rung's confinement.
"""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client import Transport
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from bakeoff.mcp.servers import HubLimits, ServerSpec
from bakeoff.mcp.text import LastLines, quoted, visible
from bakeoff.plan import Limits
from bakeoff.protocols import Command, Place
from bakeoff.sandbox.environment import inherited, search_path
from bakeoff.sandbox.supervisor_client import end_of, make_order, supervisor_argv, supervisor_env
from bakeoff.storage.redaction import Redactor

# Where npx and uvx keep what they fetched, who runs, and whom to trust; no variable here holds a secret.
ALSO_PASSED_ON = ("HOME", "LOGNAME", "USER", "SHELL", "TMPDIR", "NODE_EXTRA_CA_CERTS")
CHUNK = 1 << 16
FOREVER_SECONDS = 10 * 365 * 24 * 3600.0
REPORT_SECONDS = 1.0  # from the end of a server's output to word of how it ended
NOISE_LINES = 10_000  # that are no messages; a program that prints more is no server
UNREADABLE = "Failed to parse"  # the SDK's words for an answer that it could not read


def server_environment(host: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """An allow-list, for a deny-list would forget some API key; then what the server's entry adds."""
    passed = {name: host[name] for name in ALSO_PASSED_ON if name in host}
    return {**inherited(host), **passed, "PATH": search_path(host), **added}


class TooLong(Exception):
    """A line grew beyond what one message may have."""


class Lines:
    """Cuts a stream of bytes into lines of bounded length."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        first, *more = chunk.split(b"\n")
        self._add(first)
        whole: list[bytes] = []
        for piece in more:
            whole.append(b"".join(self._parts))
            self._parts, self._size = [], 0
            self._add(piece)
        return whole

    def _add(self, piece: bytes) -> None:
        self._parts.append(piece)
        self._size += len(piece)
        if self._size > self._longest:
            raise TooLong


class StdioServer:
    """One life of a server: start it with `connect`, and ask `explain` why it ended."""

    def __init__(self, spec: ServerSpec, limits: HubLimits) -> None:
        self._spec, self._limits = spec, limits
        self._stderr = LastLines(Redactor(spec.secrets))
        self._noise = 0
        self._last_noise = b""
        self._fault: str | None = None
        self._report: dict[str, Any] = {}
        self._reporter: asyncio.Task[None] | None = None

    def connect(self) -> Transport:
        return self._connect()

    def explain(self) -> str:
        """How it ended as far as is known, and the last it said."""
        facts = [fact for fact in (self._fault, self._ending(), self._noise_note()) if fact]
        said = self._stderr.shown()
        if said:
            facts.append("its last lines on stderr:" + "".join(f"\n    {line}" for line in said))
        else:
            facts.append("it wrote nothing to stderr")
        return "; ".join(facts)

    @contextlib.asynccontextmanager
    async def _connect(
        self,
    ) -> AsyncIterator[
        tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
    ]:
        sink, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, source = anyio.create_memory_object_stream[SessionMessage](0)
        with sink, messages, outgoing, source:
            async with contextlib.AsyncExitStack() as stack:
                # Ended last: a pipe that nobody empties would keep a server from leaving.
                pumps = await stack.enter_async_context(cancelled_at_the_end())
                process = await stack.enter_async_context(self._running())
                assert process.stdin is not None
                assert process.stdout is not None
                assert process.stderr is not None
                pumps.append(asyncio.create_task(self._read_messages(process.stdout, sink)))
                pumps.append(asyncio.create_task(self._write_messages(process.stdin, source, sink)))
                pumps.append(asyncio.create_task(self._keep_last_lines(process.stderr)))
                try:
                    yield messages, outgoing
                finally:
                    messages.close()
                    outgoing.close()
                    process.stdin.close()  # a server's sign to leave
                    await self._heard_of_its_end(self._limits.close_seconds)

    @contextlib.asynccontextmanager
    async def _running(self) -> AsyncIterator[asyncio.subprocess.Process]:
        """Closing the control socket makes the supervisor end the tree; no cancellation comes between."""
        control, theirs = socket.socketpair()
        control.setblocking(False)
        process = None
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *supervisor_argv(theirs.fileno()),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    pass_fds=(theirs.fileno(),),
                    env=supervisor_env(),
                    cwd="/",
                    start_new_session=True,
                )
            order = json.dumps(self._order()).encode() + b"\n"
            await asyncio.get_running_loop().sock_sendall(control, order)
            self._reporter = asyncio.create_task(self._await_report(control))
            yield process
        finally:
            if self._reporter is not None:
                self._reporter.cancel()
            control.close()
            if process is not None:
                await end_of(process)

    def _order(self) -> dict[str, Any]:
        argv = (self._spec.command or "", *self._spec.args)
        here = Path(__file__).parent  # nothing is written there, so watching it costs nothing
        command = Command(argv, Place(here, here, here), seconds=FOREVER_SECONDS, limits=Limits(disk_mb=1 << 40))
        env = server_environment(os.environ, self._spec.env)
        return make_order(command, argv=argv, env=env, cwd=str(self._spec.cwd or Path.cwd()), confined=False)

    async def _await_report(self, control: socket.socket) -> None:
        """The supervisor's one line, sent when the server has ended and nothing of it is left."""
        loop = asyncio.get_running_loop()
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while not received.endswith(b"\n"):
                chunk = await loop.sock_recv(control, CHUNK)
                if not chunk:
                    return
                received += chunk
        if received:
            self._report = json.loads(received)

    async def settled(self) -> None:
        """Wait a moment for word of how it ended, so that an error can tell."""
        await self._heard_of_its_end(REPORT_SECONDS)

    async def _heard_of_its_end(self, seconds: float) -> None:
        if self._reporter is not None:
            await asyncio.wait([self._reporter], timeout=seconds)

    async def _read_messages(
        self, stdout: asyncio.StreamReader, sink: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        lines = Lines(self._limits.message_bytes)
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody listens any more
            with contextlib.suppress(TooLong):
                while chunk := await stdout.read(CHUNK):
                    for line in self._cut(lines, chunk):
                        message = self._parsed(line)
                        if message is not None:
                            await sink.send(message)
            await self.settled()
            sink.close()
        while await stdout.read(CHUNK):
            pass

    def _cut(self, lines: Lines, chunk: bytes) -> list[bytes]:
        try:
            return lines.feed(chunk)
        except TooLong:
            self._fault = f"it sent a message of more than {self._limits.message_bytes:,} bytes"
            raise

    def _parsed(self, line: bytes) -> SessionMessage | None:
        if not line.strip():
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValidationError:
            return self._unreadable(line)

    def _unreadable(self, line: bytes) -> SessionMessage | None:
        """Noise is passed over, but who waits for an answer is told that it came and could not be read."""
        request = answered_request(line)
        if request is not None:
            error = ErrorData(
                code=PARSE_ERROR, message=f"{UNREADABLE} its answer: {visible(line.decode(errors='replace'))}"
            )
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error))
        self._noise += 1
        self._last_noise = line[:1000]
        if self._noise > NOISE_LINES:
            self._fault = f"it printed more than {NOISE_LINES:,} lines that are no messages"
            raise TooLong
        return None

    async def _write_messages(
        self,
        stdin: asyncio.StreamWriter,
        source: MemoryObjectReceiveStream[SessionMessage],
        sink: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        try:
            async for item in source:
                stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            # It no longer reads: end the session rather than let a call wait for an answer that cannot come.
            await self.settled()
            sink.close()

    async def _keep_last_lines(self, stderr: asyncio.StreamReader) -> None:
        while chunk := await stderr.read(CHUNK):
            self._stderr.feed(chunk)

    def _ending(self) -> str | None:
        if "problem" in self._report:
            return visible(str(self._report["problem"]))
        code = self._report.get("exit_code")
        if code is None or self._report.get("stop") != "exited":
            return None
        return f"it was ended by signal {-code}" if code < 0 else f"it exited with code {code}"

    def _noise_note(self) -> str | None:
        if not self._noise:
            return None
        last = quoted(self._last_noise.decode("utf-8", "replace"), 100)
        return f"{self._noise:,} lines of its stdout were no messages, such as {last}"


@contextlib.asynccontextmanager
async def cancelled_at_the_end() -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks: list[asyncio.Task[None]] = []
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answered_request(line: bytes) -> int | str | None:
    """The request that an unreadable line was meant to answer, if it is that much of an answer."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not ({"result", "error"} & data.keys()):
        return None
    request = data.get("id")
    return request if isinstance(request, int | str) and not isinstance(request, bool) else None

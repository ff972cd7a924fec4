"""Run a server as a program: its process tree, its messages, and the last lines of its stderr.

The SDK's own stdio client kills a server's children only if the server itself does not exit in time, and it reads
lines of any length. Here the tree runs below the sandbox's supervisor, which kills all of it when we close the control
socket or die.
"""

import asyncio
import contextlib
import json
import os
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from bakeoff._kernel.text import LINE_LENGTH, quoted, visible
from bakeoff.errors import BakeoffError
from bakeoff.mcp.servers import HubLimits, ServerSpec
from bakeoff.mcp.tools import ToolRefused
from bakeoff.sandbox.confinement import FOREVER_SECONDS, ConfinedProgram, confined, unconfined_command
from bakeoff.sandbox.environment import inherited, search_path
from bakeoff.sandbox.supervisor_client import SupervisedProcess, supervised_process
from bakeoff.storage.redaction import Redactor

# Where npx and uvx keep their downloads, the user, and trusted certificates. None of these contains a secret.
ALSO_PASSED_ON = ("HOME", "LOGNAME", "USER", "SHELL", "TMPDIR", "NODE_EXTRA_CA_CERTS")
CHUNK = 1 << 16
REPORT_SECONDS = 1.0  # from the end of a server's output to the report of how it ended
NOISE_LINES = 10_000  # lines that are not messages; a program that prints more is not a server
LINES_KEPT = 20
UNREADABLE = "Failed to parse"  # how the SDK's message for an unreadable answer starts


Wire = SessionMessage | Exception
Outgoing = MemoryObjectSendStream[SessionMessage]


def server_environment(spec: ServerSpec) -> dict[str, str]:
    """Return the variables of a server without a sandbox: its own, and an allow-list.

    A deny-list would miss some API key.
    """
    passed = {name: os.environ[name] for name in ALSO_PASSED_ON if name in os.environ}
    return {**inherited(os.environ), **passed, "PATH": search_path(os.environ), **spec.env}


class LastLines:
    """Keep the last lines of a stream of bytes, of any length and with lines of any length."""

    def __init__(self, redactor: Redactor) -> None:
        self._lines: deque[bytes] = deque(maxlen=LINES_KEPT)
        self._open = b""
        self._redactor = redactor

    def feed(self, chunk: bytes) -> None:
        *whole, rest = (self._open + chunk).split(b"\n")
        self._lines.extend(whole[-LINES_KEPT:])
        self._open = rest[: 16 * LINE_LENGTH]  # keep only the beginning of a line that never ends

    def shown(self) -> list[str]:
        lines = [*self._lines, *([self._open] if self._open else [])]
        texts = [self._redactor(line).decode("utf-8", "replace").rstrip() for line in lines]
        return [visible(text) for text in texts if text][-LINES_KEPT:]


class StdioServer:
    """One process of a server. `connect` starts it, and `explain` says how it ended."""

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
        """Say how the server ended, as far as it is known, with its last lines on stderr."""
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
        """Return nothing: a program has only the secrets of its settings."""
        return {}

    def remark(self) -> str:
        """Say what is wrong with a server that works all the same: text on stdout that is no message."""
        if not self._noise:
            return ""
        lines = (
            "1 line of its stdout was no message"
            if self._noise == 1
            else f"{self._noise:,} lines of its stdout were no messages"
        )
        return f"{lines}, such as {quoted(self._last_noise.decode('utf-8', 'replace').rstrip(), 100)}"

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple[MemoryObjectReceiveStream[Wire], Outgoing]]:
        sink, messages = anyio.create_memory_object_stream[Wire](0)
        outgoing, source = anyio.create_memory_object_stream[SessionMessage](0)
        with sink, messages, outgoing, source:
            async with contextlib.AsyncExitStack() as stack:
                # Cancelled last: a server cannot exit while nobody reads its pipes.
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
        """Start the server. At the end its supervisor kills the tree, whatever is cancelled."""
        async with contextlib.AsyncExitStack() as stack:
            order = await self._order(stack)
            limit = self._limits.message_bytes
            process = await stack.enter_async_context(supervised_process(order, limit=limit))
            self._reporter = asyncio.create_task(self._read_report(process))
            try:
                yield process
            finally:
                self._reporter.cancel()
                await asyncio.wait([self._reporter])

    async def _order(self, stack: contextlib.AsyncExitStack) -> dict[str, Any]:
        if self._spec.sandbox != "none":
            try:
                self._confined = await stack.enter_async_context(confined(self._spec.program, self._spec.sandbox))
            except BakeoffError as problem:
                raise ToolRefused(str(problem)) from problem
            return self._confined.order
        env, folder = server_environment(self._spec), self._spec.cwd or Path.cwd()
        return unconfined_command(self._spec.program.argv, env=env, cwd=folder, seconds=FOREVER_SECONDS)[0]

    async def _read_report(self, process: SupervisedProcess) -> None:
        """Keep what the supervisor reports when no process of the server is left."""
        self._report = await process.report() or {}

    async def _wait_for_report(self, seconds: float = REPORT_SECONDS) -> None:
        """Wait for the report of how the server ended, so that an error can include it."""
        if self._reporter is not None:
            await asyncio.wait([self._reporter], timeout=seconds)

    async def _read_messages(self, stdout: asyncio.StreamReader, sink: MemoryObjectSendStream[Wire]) -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody reads any more
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
        if not line.strip():
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValidationError:
            request = _answered_request(line)
        if request is not None:  # the caller waits for this answer, so it must hear that it cannot be read
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
            # The server no longer reads. End the connection, so that no call waits for an answer in vain.
            await self._wait_for_report()
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
        if self._confined and self._confined.sandbox == "bwrap" and 128 < code <= 128 + 64:  # as a shell has it
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
    """Return the id of the request that an unreadable line answers, or None."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not ({"result", "error"} & data.keys()):
        return None
    request = data.get("id")
    return request if isinstance(request, int | str) and not isinstance(request, bool) else None

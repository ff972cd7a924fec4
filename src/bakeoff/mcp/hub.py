"""Open the MCP servers of a run together, and call their tools from any task.

`McpHub` is a resource: opening it starts the servers, and gives an `OpenHub` with a `ServerSession`
for each. A session restarts its server after a crash, so that only one trial is affected.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import JsonValue

from bakeoff._kernel.imports import command_revision
from bakeoff._kernel.model import fingerprint
from bakeoff._kernel.text import near_names
from bakeoff._kernel.tracing import active_tracing
from bakeoff.errors import InfraError, ToolError, UsageError
from bakeoff.mcp.servers import HubLimits, ServerSpec, with_unique_names
from bakeoff.mcp.session import ServerSession, wait_despite_cancellation
from bakeoff.mcp.snapshot import ServerEntry
from bakeoff.mcp.tools import ServerTool, ToolCallResult, tools_fingerprint
from bakeoff.protocols import Tool


class McpHub:
    """The servers of a run and their limits. A `Resource`, opened once per run or per trial."""

    def __init__(self, specs: Sequence[ServerSpec], limits: HubLimits | None = None) -> None:
        specs = with_unique_names(specs)
        twice = [name for name, count in Counter(spec.name for spec in specs).items() if count > 1]
        if twice:
            raise UsageError(f"two MCP servers are called {twice[0]!r}: give each a name of its own")
        self._specs = specs
        self._limits = limits or HubLimits()

    @property
    def key(self) -> str:
        """Return a key of all settings. Subjects with equal settings share the servers."""
        return f"mcp:{fingerprint(self._specs, self._limits)}"

    @property
    def revisions(self) -> dict[str, str]:
        """Return a hash of the local files that the command of each server names."""
        programs = [spec.program for spec in self._specs if spec.command]
        return {each.label: command_revision(each.argv, each.cwd or Path()) for each in programs}

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenHub"]:
        """Start all servers at once. If some fail, one `InfraError` names all of them."""
        sessions = [ServerSession(spec, self._limits) for spec in self._specs]
        try:
            async with asyncio.TaskGroup() as group:
                starts = [group.create_task(session.start()) for session in sessions]
            problems = [problem for start in starts if (problem := start.result())]
            if problems:
                raise InfraError("\n".join(problems))
            yield OpenHub(sessions, self._limits)
        finally:
            stops = [asyncio.create_task(session.stop()) for session in sessions]
            await wait_despite_cancellation(*stops, pass_on=True)


class RunningHub(McpHub):
    """A hub of servers that are already running. It neither starts nor stops them."""

    def __init__(self, hub: McpHub, opened: "OpenHub") -> None:
        super().__init__(hub._specs, hub._limits)
        self._opened = opened

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenHub"]:
        """Yield the hub that is already open."""
        yield self._opened


class OpenHub:
    """Running servers. Call the methods from any task of the loop that opened the hub."""

    def __init__(self, sessions: Sequence[ServerSession], limits: HubLimits) -> None:
        self._sessions = {session.spec.name: session for session in sessions}
        self._limits = limits

    @property
    def servers(self) -> tuple[str, ...]:
        """Return the names of the servers, in configured order."""
        return tuple(self._sessions)

    async def tools(self) -> tuple[ServerTool, ...]:
        """Return the tools of all servers, as listed when the hub was opened."""
        return tuple(tool for session in self._sessions.values() for tool in session.tools)

    async def offers(self) -> dict[str, ServerEntry]:
        """Return the instructions, resources and prompts of every server by its name."""
        offers = await asyncio.gather(*(session.offers() for session in self._sessions.values()))
        return dict(zip(self._sessions, offers, strict=True))

    def remarks(self) -> dict[str, str]:
        """Return remarks on servers that work but break the protocol, for example by printing."""
        return {name: remark for name, session in self._sessions.items() if (remark := session.remark())}

    def fingerprint(self, server: str | None = None) -> str:
        """Return a hash of the tools of one server or of all. Every name and text counts."""
        if server is not None:
            return tools_fingerprint(self._session(server).tools)
        return fingerprint(sorted((name, tools_fingerprint(session.tools)) for name, session in self._sessions.items()))

    async def call(
        self, server: str, tool: str, arguments: Mapping[str, JsonValue], *, seconds: float | None = None
    ) -> ToolCallResult:
        """Call a tool. Raise `UsageError` for an unknown server or tool.

        If the server dies or does not answer, raise `InfraError` and restart it for later calls.
        """
        session = self._session(server)
        names = [known.name for known in session.tools]
        if tool not in names:
            raise UsageError(f"MCP server {server!r} has no tool {tool!r}{near_names(tool, names)}")
        attributes = {
            "mcp.method.name": "tools/call",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "bakeoff.mcp.server": server,  # no conventional name: only the server's address has one
        }
        with active_tracing().span(f"tools/call {tool}", attributes, "CLIENT") as span:
            result = await session.call(tool, arguments, self._limits.call_seconds if seconds is None else seconds)
            if result.is_error:
                span.failed("tool_error")  # the conventional value for an error result
        return result

    def as_tools(self, taken_names: Collection[str] = ()) -> tuple[Tool, ...]:
        """Return all tools for an agent loop.

        Raise `UsageError` if two servers offer the same name, which would be ambiguous, or if a
        name is in `taken_names`, because a server could pose as a built-in tool.
        """
        owners = dict.fromkeys(taken_names, "a built-in tool")
        clashes = []
        tools = []
        for session in self._sessions.values():
            owner = f"MCP server {session.spec.name!r}"
            for tool in session.tools:
                if tool.name in owners:
                    clashes.append(f"the tool {tool.name!r} is offered by {owners[tool.name]} and by {owner}")
                owners.setdefault(tool.name, owner)
                tools.append(self.as_tool(tool))
        if clashes:
            raise UsageError("\n".join([*clashes, "leave one of them out, or rename the tool in its server"]))
        return tuple(tools)

    def as_tool(self, tool: ServerTool) -> Tool:
        """Return one tool for an agent loop. Error results raise `ToolError`."""

        async def call(arguments: Mapping[str, JsonValue]) -> JsonValue:
            result = await self.call(tool.server, tool.name, arguments)
            if result.is_error:
                raise ToolError(result.text or f"the tool {tool.name!r} failed and gave no reason")
            return result.value

        return Tool(tool.name, tool.description, tool.input_schema, call)

    def _session(self, server: str) -> ServerSession:
        if server not in self._sessions:
            raise UsageError(f"there is no MCP server {server!r}{near_names(server, self._sessions)}")
        return self._sessions[server]

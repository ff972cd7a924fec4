"""The MCP servers of a run, opened together: their tools, their fingerprints, and calls to them from any task."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from difflib import get_close_matches

from pydantic import JsonValue

from bakeoff._kernel.model import fingerprint
from bakeoff._kernel.tracing import Attributes, active_tracing
from bakeoff.errors import InfraError, ToolError, UsageError
from bakeoff.mcp.servers import HubLimits, ServerSpec, told_apart
from bakeoff.mcp.session import Keeper
from bakeoff.mcp.tools import ServerTool, ToolResult, tools_fingerprint
from bakeoff.protocols import Tool


class McpHub:
    """Which servers, and how far they are trusted; a `Resource` that a run opens once, or a trial for itself."""

    def __init__(self, specs: Sequence[ServerSpec], limits: HubLimits | None = None) -> None:
        specs = told_apart(specs)
        twice = [name for name, count in Counter(spec.name for spec in specs).items() if count > 1]
        if twice:
            raise UsageError(f"two MCP servers are called {twice[0]!r}: give each a name of its own")
        self._specs = specs
        self._limits = limits or HubLimits()

    @property
    def key(self) -> str:
        return f"mcp:{fingerprint(self._specs, self._limits)}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenHub"]:
        """Start every server at the same time. Those that fail are all named in one `InfraError`."""
        keepers = [Keeper(spec, self._limits) for spec in self._specs]
        try:
            async with asyncio.TaskGroup() as group:
                starts = [group.create_task(keeper.start()) for keeper in keepers]
            problems = [problem for start in starts if (problem := start.result())]
            if problems:
                raise InfraError("\n".join(problems))
            yield OpenHub(keepers, self._limits)
        finally:
            await _stop_all(keepers)


async def _stop_all(keepers: Sequence[Keeper]) -> None:
    """All at the same time; a cancellation is passed on when every server is gone."""
    stops = [asyncio.create_task(keeper.stop()) for keeper in keepers]
    cancelled = False
    while not all(stop.done() for stop in stops):
        try:
            await asyncio.wait(stops)
        except asyncio.CancelledError:
            cancelled = True
            for stop in stops:
                stop.cancel()
    if cancelled:
        raise asyncio.CancelledError
    for stop in stops:
        stop.result()


class OpenHub:
    """Servers that are running. Everything here may be used from any task of the loop that opened it."""

    def __init__(self, keepers: Sequence[Keeper], limits: HubLimits) -> None:
        self._keepers = {keeper.spec.name: keeper for keeper in keepers}
        self._limits = limits

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(self._keepers)

    async def tools(self) -> tuple[ServerTool, ...]:
        """Every tool of every server, as listed when the hub was opened."""
        return tuple(tool for keeper in self._keepers.values() for tool in keeper.tools)

    def fingerprint(self, server: str | None = None) -> str:
        """Of one server's tool list, or of all; it changes with any name, description or schema."""
        if server is not None:
            return tools_fingerprint(self._keeper(server).tools)
        return fingerprint(sorted((name, tools_fingerprint(keeper.tools)) for name, keeper in self._keepers.items()))

    async def call(
        self, server: str, tool: str, arguments: Mapping[str, JsonValue], *, seconds: float | None = None
    ) -> ToolResult:
        """Call a tool. A server that dies or does not answer raises `InfraError`; it is started again for later calls.

        A name that the hub does not know raises `UsageError`.
        """
        keeper = self._keeper(server)
        names = [known.name for known in keeper.tools]
        if tool not in names:
            raise UsageError(f"MCP server {server!r} has no tool {tool!r}; {_near(tool, names)}")
        with active_tracing().span(f"tools/call {tool}", _about(server, tool), "CLIENT") as span:
            result = await keeper.call(tool, arguments, self._limits.call_seconds if seconds is None else seconds)
            if result.is_error:
                span.failed("tool_error")  # the convention's word for a result that says it is an error
        return result

    def as_tools(self, taken_names: Collection[str] = ()) -> tuple[Tool, ...]:
        """For an agent loop. A name that two servers offer, or that is taken already, is refused: it would be a guess
        which one is meant, and a server could pose as a tool of ours."""
        owners = dict.fromkeys(taken_names, "a built-in tool")
        clashes = []
        tools = []
        for keeper in self._keepers.values():
            whose = f"MCP server {keeper.spec.name!r}"
            for tool in keeper.tools:
                if tool.name in owners:
                    clashes.append(f"the tool {tool.name!r} is offered by {owners[tool.name]} and by {whose}")
                owners.setdefault(tool.name, whose)
                tools.append(self._as_tool(tool))
        if clashes:
            raise UsageError("\n".join([*clashes, "leave one of them out, or rename the tool in its server"]))
        return tuple(tools)

    def _as_tool(self, tool: ServerTool) -> Tool:
        async def call(arguments: Mapping[str, JsonValue]) -> JsonValue:
            result = await self.call(tool.server, tool.name, arguments)
            if result.is_error:
                raise ToolError(result.text or f"the tool {tool.name!r} failed and did not say why")
            return result.value

        return Tool(tool.name, tool.description, tool.input_schema, call)

    def _keeper(self, server: str) -> Keeper:
        if server not in self._keepers:
            raise UsageError(f"there is no MCP server {server!r}; {_near(server, list(self._keepers))}")
        return self._keepers[server]


def _about(server: str, tool: str) -> Attributes:
    return {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "bakeoff.mcp.server": server,  # the convention has a word for its address only
    }


def _near(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=3, cutoff=0.5) or sorted(known)[:10]
    return f"did you mean {', '.join(map(repr, near))}?" if near else "there are none"

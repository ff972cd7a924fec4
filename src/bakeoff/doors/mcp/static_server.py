"""Serve the tools of a snapshot over stdio. They can be listed; a call is answered with an error, and does nothing."""

import asyncio
from pathlib import Path

from pydantic import ValidationError

from bakeoff._kernel.files import read_file
from bakeoff.doors.mcp.config import near_names
from bakeoff.doors.mcp.snapshot.files import ServerEntry, Snapshot
from bakeoff.errors import UsageError


def serve_snapshot(file: Path, name: str | None = None) -> None:
    """Serve one server of a snapshot until the client goes away. Without a name, the snapshot must have one server."""
    servers = _read(file).servers
    if name is None and len(servers) != 1:
        raise UsageError(f"{file} has {len(servers)} servers: name one of {', '.join(servers) or 'none'}")
    if name is not None and name not in servers:
        raise UsageError(f"{file} has no server {name!r}{near_names(name, servers)}")
    chosen = name if name is not None else next(iter(servers))
    asyncio.run(_serve(chosen, servers[chosen]))


def _read(file: Path) -> Snapshot:
    try:
        return Snapshot.model_validate_json(read_file(file, pipes=True))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise UsageError(f"{file} is not a snapshot of MCP servers: write one with `bakeoff mcp snapshot`") from error


async def _serve(name: str, entry: ServerEntry) -> None:
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

    tools = [
        Tool.model_validate({"name": tool, **described.model_dump(mode="json", exclude_defaults=True)})
        for tool, described in entry.tools.items()
    ]

    async def listed(context: object, params: object) -> ListToolsResult:  # noqa: ARG001 - the signature of a handler
        return ListToolsResult(tools=tools)

    async def called(context: object, params: object) -> CallToolResult:  # noqa: ARG001 - the signature of a handler
        text = "this server only describes its tools: set executeTools to false"
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)

    server = Server(name, on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

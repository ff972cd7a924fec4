"""Connect to MCP servers over any transport and call their tools. See docs/reference/mcp-servers.md.

hub = McpHub([ServerSpec(name="time", command="mcp-server-time")])
async with hub.open() as opened:
    tools = await opened.tools()
    result = await opened.call("time", "get_current_time", {"timezone": "UTC"})
"""

from typing import TYPE_CHECKING

from bakeoff._kernel.imports import lazy_imports

if TYPE_CHECKING:
    from bakeoff.mcp.hub import McpHub, OpenHub, RunningHub
    from bakeoff.mcp.servers import HubLimits, ServerSpec, parse_mcp_option
    from bakeoff.mcp.tools import ServerTool, ToolCallResult

# Imported on first use: the SDK loads slowly, and configurations only describe servers.
_HOMES = {
    "bakeoff.mcp.hub": ("McpHub", "OpenHub", "RunningHub"),
    "bakeoff.mcp.servers": ("HubLimits", "ServerSpec", "parse_mcp_option"),
    "bakeoff.mcp.tools": ("ServerTool", "ToolCallResult"),
}

__all__ = [
    "HubLimits",
    "McpHub",
    "OpenHub",
    "RunningHub",
    "ServerSpec",
    "ServerTool",
    "ToolCallResult",
    "parse_mcp_option",
]

__getattr__, __dir__ = lazy_imports(__name__, {name: module for module, names in _HOMES.items() for name in names})

"""Connect to MCP servers over any transport and call their tools. See docs/reference/mcp-hub.md.

hub = McpHub([ServerSpec(name="time", command="mcp-server-time")])
async with hub.open() as opened:
    tools = await opened.tools()
    result = await opened.call("time", "get_current_time", {"timezone": "UTC"})
"""

from bakeoff.mcp.hub import McpHub, OpenHub, RunningHub
from bakeoff.mcp.servers import HubLimits, ServerSpec, parse_mcp_option
from bakeoff.mcp.tools import ServerTool, ToolCallResult

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

"""MCP servers: connecting to several over any transport, and handing their tools to whoever asks. See docs/mcp-hub.md.

hub = McpHub([ServerSpec(name="time", command="mcp-server-time")])
async with hub.open() as opened:
    tools = await opened.tools()
    result = await opened.call("time", "get_current_time", {"timezone": "UTC"})
"""

from bakeoff.mcp.hub import McpHub, OpenHub
from bakeoff.mcp.limits import HubLimits
from bakeoff.mcp.listing import ServerTool
from bakeoff.mcp.results import ToolResult
from bakeoff.mcp.servers import ServerSpec, parse_mcp_option

__all__ = ["HubLimits", "McpHub", "OpenHub", "ServerSpec", "ServerTool", "ToolResult", "parse_mcp_option"]

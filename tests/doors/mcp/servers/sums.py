"""An MCP server over stdio, made with the SDK, whose tools give what is no object: the SDK wraps it in one."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("sums")


@server.tool()
def add(a: int, b: int) -> int:
    """The sum of two whole numbers."""
    return a + b


@server.tool()
def count_to(last: int) -> list[int]:
    """All whole numbers from 1 up to the last."""
    return list(range(1, last + 1))


server.run()

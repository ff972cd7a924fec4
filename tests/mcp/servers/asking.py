"""An MCP server over stdio that asks its client back, and that has resources and prompts."""

import warnings

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer("asking", log_level="ERROR")


class Confirmation(BaseModel):
    sure: bool
    reason: str = ""


@server.tool()
async def delete_all(ctx: Context) -> str:
    """Delete everything, after asking."""
    answer = await ctx.elicit("Do you really want to delete everything?", Confirmation)
    if answer.action != "accept":
        return f"kept, because of {answer.action}"
    return f"deleted: {answer.data.sure} {answer.data.reason}" if answer.data.sure else "kept after all"


@server.tool()
async def summarise(text: str, ctx: Context) -> str:
    """Summarise a text with the client's model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=f"Summarise: {text}"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = await ctx.session.create_message(messages=[message], max_tokens=50)
    assert isinstance(answer.content, TextContent)
    return f"summary: {answer.content.text}"


@server.resource("note://today", description="What is planned today.", mime_type="text/plain")
def today() -> str:
    return "Buy milk."


@server.resource("note://{day}", description="What is planned on a day.")
def day(day: str) -> str:
    return f"Nothing on {day}."


@server.prompt(description="Greet somebody.")
def greet(who: str, how: str = "kindly") -> str:
    return f"Greet {who} {how}."


if __name__ == "__main__":
    server.run("stdio")

"""What a tool gave back."""

from mcp_types import CallToolResult, EmbeddedResource, TextContent, TextResourceContents
from pydantic import JsonValue

from bakeoff._kernel.model import FrozenModel


class ToolResult(FrozenModel):
    """The server's answer to one call. With `is_error` the tool did not do what it was asked."""

    server: str
    tool: str
    text: str = ""
    content: tuple[JsonValue, ...] = ()
    structured: JsonValue = None
    is_error: bool = False
    code: int | None = None  # of a JSON-RPC error, where the server answered with one

    @property
    def value(self) -> JsonValue:
        """What to hand on: the structured content, else the text, else every part of the content."""
        if self.structured is not None:
            return self.structured
        only_text = all(isinstance(part, dict) and part.get("type") == "text" for part in self.content)
        return self.text if only_text else list(self.content)


def result_from_wire(server: str, tool: str, wire: CallToolResult, most_bytes: int) -> ToolResult:
    """An answer that is too long is an error: the subject could do nothing with it."""
    size = len(wire.model_dump_json())
    if size > most_bytes:
        said = f"the result of {tool!r} has {size:,} bytes, over {most_bytes:,}; ask for less at a time"
        return ToolResult(server=server, tool=tool, text=said, is_error=True)
    dumped = wire.model_dump(mode="json", by_alias=True, exclude_none=True)
    return ToolResult(
        server=server,
        tool=tool,
        text="\n".join(text for block in wire.content if (text := _text_of(block)) is not None),
        content=tuple(dumped["content"]),
        structured=dumped.get("structuredContent"),
        is_error=wire.is_error,
    )


def _text_of(block: object) -> str | None:
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
        return block.resource.text
    return None

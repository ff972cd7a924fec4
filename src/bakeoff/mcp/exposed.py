"""Offer the resources and prompts of a server as tools, as clients do, so that models can choose them."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mcp.client import Client
from mcp_types import EmbeddedResource, TextContent, TextResourceContents
from pydantic import JsonValue

from bakeoff.mcp.offers import Offers, ServerPrompt
from bakeoff.mcp.tools import ServerTool, ToolCallResult

READ = "read_resource"
PROMPT = "prompt_"
_MAX_LISTED = 100  # resources in a description
_LONGEST = 200  # characters of the description of one resource


def exposed_tools(offers: Offers, expose: Collection[str], taken: Collection[str]) -> Iterator[ServerTool]:
    """Yield a tool that reads resources, and one for each prompt. Tools of the server itself keep their names."""
    if "resources" in expose and offers.resources and READ not in taken:
        yield _reader(offers)
    if "prompts" in expose:
        for prompt in offers.prompts:
            if f"{PROMPT}{prompt.name}" not in taken:
                yield _prompt_tool(prompt)


def is_exposed(tool: ServerTool) -> bool:
    """Return True for a tool that was made here."""
    return tool.annotations.get(_MARK) is not None


_MARK = "bakeoffExposes"


def _reader(offers: Offers) -> ServerTool:
    listed = [
        f"- {each.uri}{f' ({each.mime_type})' if each.mime_type else ''}: "
        f"{' '.join((each.description or each.title or each.name).split())[:_LONGEST]}"
        for each in offers.resources[:_MAX_LISTED]
    ]
    uris: list[JsonValue] = [each.uri for each in offers.resources if not each.template]
    uri: dict[str, JsonValue] = {"type": "string", "description": "The URI of the resource."}
    if len(uris) == len(offers.resources):
        uri["enum"] = uris
    else:
        uri["description"] = "The URI of the resource; fill in the variables of a template, which are in braces."
    return ServerTool(
        server=offers.server,
        name=READ,
        description="\n".join(["Read a resource of this server:", *listed]),
        input_schema={"type": "object", "properties": {"uri": uri}, "required": ["uri"]},
        annotations={"readOnlyHint": True, _MARK: "resources"},
    )


def _prompt_tool(prompt: ServerPrompt) -> ServerTool:
    return ServerTool(
        server=prompt.server,
        name=f"{PROMPT}{prompt.name}",
        title=prompt.title,
        description=prompt.description or prompt.title,
        input_schema={
            "type": "object",
            "properties": {
                each.name: {"type": "string", **({"description": each.description} if each.description else {})}
                for each in prompt.arguments
            },
            "required": [each.name for each in prompt.arguments if each.required],
        },
        annotations={"readOnlyHint": True, _MARK: "prompts"},
    )


async def use_exposed(
    client: Client, tool: ServerTool, arguments: Mapping[str, Any], most_bytes: int
) -> ToolCallResult:
    """Read a resource or get a prompt, and return that as the result of a tool."""
    if tool.name == READ:
        read = await client.read_resource(str(arguments.get("uri", "")))
        texts = [each.text for each in read.contents if isinstance(each, TextResourceContents)]
        content = [{"type": "resource", "resource": _plain(each)} for each in read.contents]
    else:
        words = {name: value if isinstance(value, str) else str(value) for name, value in arguments.items()}
        got = await client.get_prompt(tool.name.removeprefix(PROMPT), words)
        texts = [text for each in got.messages if (text := _text(each.content)) is not None]
        content = [_plain(each.content) for each in got.messages]
    size = sum(len(str(part)) for part in content)
    if size > most_bytes:
        said = f"the result of {tool.name!r} has {size:,} bytes, over {most_bytes:,}"
        return ToolCallResult(server=tool.server, tool=tool.name, text=said, is_error=True)
    return ToolCallResult(server=tool.server, tool=tool.name, text="\n".join(texts), content=tuple(content))


def _text(content: Any) -> str | None:
    if isinstance(content, TextContent):
        return content.text
    if isinstance(content, EmbeddedResource) and isinstance(content.resource, TextResourceContents):
        return content.resource.text
    return None


def _plain(part: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = part.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped

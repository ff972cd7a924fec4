"""Describe tools, and read a server's tool lists and results within limits."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]
from jsonschema.validators import Draft202012Validator, validator_for  # type: ignore[import-untyped]
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    METHOD_NOT_FOUND,
    CallToolResult,
    EmbeddedResource,
    PaginatedResult,
    TextContent,
    TextResourceContents,
)
from mcp_types import Tool as WireTool
from pydantic import JsonValue, ValidationError

from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._kernel.text import expectation, free_name, near_names, quoted, visible
from bakeoff.errors import UsageError
from bakeoff.mcp.servers import HubLimits

Page = TypeVar("Page", bound=PaginatedResult)


class ToolRefused(Exception):
    """Raised for a tool list that is not accepted. The message gives the reason."""


class ServerTool(FrozenModel):
    """One tool as its server describes it. All texts are untrusted data."""

    server: str
    name: str
    title: str = ""
    description: str = ""
    input_schema: dict[str, JsonValue]
    output_schema: dict[str, JsonValue] | None = None
    annotations: dict[str, JsonValue] = {}

    @property
    def label(self) -> str:
        """Return `server / name`, as used in reports and the metadata of scores."""
        return tool_label(self.server, self.name)

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Return the schemas of the parameters by name; empty if none are declared."""
        return properties_of(self.input_schema)

    @property
    def required(self) -> list[str]:
        """Return the names of the required parameters."""
        return required_by(self.input_schema)


def properties_of(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the schemas of an object's properties by name; empty if none are declared."""
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def required_by(schema: Mapping[str, JsonValue]) -> list[str]:
    """Return the names of the properties that a schema requires."""
    required = schema.get("required")
    return [str(name) for name in required] if isinstance(required, list) else []


class ToolCallResult(FrozenModel):
    """A server's answer to one call. `is_error` is True if the tool failed."""

    server: str
    tool: str
    text: str = ""
    content: tuple[JsonValue, ...] = ()
    structured: JsonValue = None
    is_error: bool = False
    code: int | None = None  # the code of a JSON-RPC error, if that was the answer

    @property
    def value(self) -> JsonValue:
        """Return the structured content, or else the text, or else all parts of the content."""
        if self.structured is not None:
            return self.structured
        only_text = all(isinstance(part, dict) and part.get("type") == "text" for part in self.content)
        return self.text if only_text else list(self.content)


def result_from_wire(server: str, tool: str, wire: CallToolResult, most_bytes: int) -> ToolCallResult:
    """Convert an SDK answer to a result. Answers that are too long become errors."""
    size = len(wire.model_dump_json())
    if size > most_bytes:
        text = f"the result of {tool!r} has {size:,} bytes, over {most_bytes:,}; ask for less at a time"
        return ToolCallResult(server=server, tool=tool, text=text, is_error=True)
    dumped = wire.model_dump(mode="json", by_alias=True, exclude_none=True)
    return ToolCallResult(
        server=server,
        tool=tool,
        text="\n".join(said for block in wire.content if (said := text_in(block)) is not None),
        content=tuple(dumped["content"]),
        structured=dumped.get("structuredContent"),
        is_error=wire.is_error,
    )


def text_in(block: Any) -> str | None:
    """Return the text of a content block or its embedded resource; None for other content."""
    if isinstance(block, EmbeddedResource):
        block = block.resource
    return block.text if isinstance(block, TextContent | TextResourceContents) else None


def tools_fingerprint(tools: Iterable[ServerTool]) -> str:
    """Return a hash of all names, descriptions and schemas. Order and server do not matter."""
    parts = [[tool.name, tool.description, tool.input_schema, tool.output_schema] for tool in tools]
    return fingerprint(sorted(parts, key=lambda part: json.dumps(part, sort_keys=True)))


async def read_pages(
    get: Callable[[str | None], Awaitable[Page]], what: str, limits: HubLimits, *, needed: bool = False
) -> AsyncIterator[Page]:
    """Yield all pages of a list. Raise `ToolRefused` if there are too many or a page repeats.

    Args:
        get: Returns the page at a cursor.
        what: The name of the list, for messages.
        limits: The limits of the hub.
        needed: Raise an error if the server does not know this list. Some servers declare
            resources but do not know templates.
    """
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(limits.pages):
        try:
            page = await get(cursor)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND and not needed:
                return
            raise
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
        if cursor in seen:
            raise ToolRefused(f"its {what} never ends: it gave the cursor {quoted(cursor, 80)} twice")
        seen.add(cursor)
    raise ToolRefused(f"its {what} has more than {limits.pages:,} pages")


async def list_tools(client: Client, server: str, limits: HubLimits) -> tuple[ServerTool, ...]:
    """Read all pages of the tool list. Raise `ToolRefused` as soon as a limit is exceeded."""
    tools: dict[str, ServerTool] = {}
    size = 0
    async for page in read_pages(lambda cursor: client.list_tools(cursor=cursor), "tool list", limits, needed=True):
        for wire in page.tools:
            if len(tools) >= limits.tools:
                raise ToolRefused(f"it lists more than {limits.tools:,} tools")
            tool = _tool_from_wire(server, wire, limits)
            if tool.name in tools:
                raise ToolRefused(f"it lists two tools called {tool.name!r}")
            size += len(tool.model_dump_json())
            if size > limits.list_bytes:
                raise ToolRefused(f"its tool list has more than {limits.list_bytes:,} bytes")
            tools[tool.name] = tool
    # In a thread: this takes milliseconds per schema, and trials may be running.
    await asyncio.to_thread(_check_schemas, tools.values())
    return tuple(tools.values())


def _tool_from_wire(server: str, wire: WireTool, limits: HubLimits) -> ServerTool:
    """Convert a tool of the SDK. Raise `ToolRefused` if its name or a schema exceeds a limit."""
    name, longest = wire.name, limits.name_length
    if len(name) > longest:
        raise ToolRefused(
            f"it lists a tool whose name has {len(name):,} characters ({quoted(name, 40)}), over {longest}"
        )
    if not name.strip() or not name.isprintable():
        raise ToolRefused(f"it lists a tool called {quoted(name)}, which is not a printable name")
    for kind, schema in (("input", wire.input_schema), ("output", wire.output_schema)):
        what = f"the {kind} schema of its tool {name!r}"
        # Check the depth first: everything after this walks the schema recursively.
        if is_deeper(schema, limits.schema_depth):
            raise ToolRefused(f"{what} is nested more than {limits.schema_depth} levels deep")
        size = len(json.dumps(schema))
        if size > limits.schema_bytes:
            raise ToolRefused(f"{what} has {size:,} bytes, over {limits.schema_bytes:,}")
    hints = wire.annotations.model_dump(mode="json", by_alias=True, exclude_none=True) if wire.annotations else {}
    return ServerTool(
        server=server,
        name=name,
        title=wire.title or "",
        description=wire.description or "",
        input_schema=wire.input_schema,
        output_schema=wire.output_schema,
        annotations=hints,
    )


def is_deeper(value: Any, most: int) -> bool:
    """Return True if nested objects and lists are more than `most` levels deep."""
    level: list[Any] = [value]
    for _ in range(most):
        inner = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level = [child for children in inner for child in children]
        if not level:
            return False
    return True


def _check_schemas(tools: Iterable[ServerTool]) -> None:
    """Raise `ToolRefused` if a schema is invalid or does not describe an object."""
    for tool in tools:
        if tool.input_schema.get("type") != "object":
            raise ToolRefused(f"the input schema of its tool {tool.name!r} is not of type object")
        for kind, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
            if schema is None:
                continue
            try:
                validator_for(schema, default=Draft202012Validator).check_schema(schema)
            except SchemaError as problem:
                raise ToolRefused(
                    f"the {kind} schema of its tool {tool.name!r} is not valid JSON Schema: "
                    f"{visible(problem.message)} at {problem.json_path}"
                ) from problem


def explain_unreadable(problem: ValidationError, listed: list[Any] | None) -> str:
    """Describe the unreadable part of an answer. For a tool list (`listed`), name the tool."""
    first = problem.errors(include_url=False)[0]
    place, sent = first["loc"], first["input"]
    shown = visible(type(sent).__name__ if isinstance(sent, dict | list) else repr(sent), 80)
    what = f"{visible(expectation(first))} at {visible('.'.join(map(str, place)), 120)}, where it sent {shown}"
    if len(place) > 1 and place[0] == "tools" and isinstance(place[1], int) and listed and place[1] < len(listed):
        tool = listed[place[1]]
        name = tool.get("name") if isinstance(tool, dict) else None
        return f"its tool {quoted(str(name))} is described wrongly: {what}"
    return f"its answer does not follow the protocol: {what}"


MAX_TOOL_NAME_LENGTH = 64
"""The length of tool names that every provider accepts, if they consist of letters, digits, `_` and `-`."""


def tool_label(server: str, tool: str) -> str:
    """Return the name of a tool in reports, unique over all servers. Models see other names."""
    return f"{server} / {tool}"


def offered_tools(tools: Sequence[ServerTool], only: Sequence[str] | None) -> tuple[ServerTool, ...]:
    """Return the tools that a case offers: all, or those named in `only`, by name or label."""
    if only is None:
        return tuple(tools)
    return tuple(tool for tool in tools if tool.name in only or f"{tool.server}/{tool.name}" in only)


def offered_names(tools: Sequence[ServerTool]) -> Mapping[str, ServerTool]:
    """Return the tools by unique names that every provider accepts.

    If two servers offer tools of the same name, the name of the server becomes a prefix.
    """
    plain = [plain_name(tool.name) for tool in tools]
    often = Counter(plain)
    offered: dict[str, ServerTool] = {}
    for tool, name in zip(tools, plain, strict=True):
        wanted = name if often[name] == 1 else plain_name(f"{tool.server}__{tool.name}")
        offered[free_name(wanted, offered, f"{wanted[: MAX_TOOL_NAME_LENGTH - 4]}_{{1}}")] = tool
    return offered


def plain_name(name: str) -> str:
    """Return a name that every provider accepts. Names that are already accepted stay."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:MAX_TOOL_NAME_LENGTH]


def is_destructive(tool: ServerTool) -> bool:
    """Return True if the server declares that the tool may destroy data."""
    return tool.annotations.get("destructiveHint") is True and tool.annotations.get("readOnlyHint") is not True


def find_tool(tools: Sequence[ServerTool], wanted: str) -> ServerTool:
    """Return the tool with a name, or with `server/name` if several servers have it.

    If there is no such tool, or if the name is ambiguous, raise `UsageError` with a hint.
    """
    found = [tool for tool in tools if wanted in (tool.name, f"{tool.server}/{tool.name}")]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(visible(f"{tool.server}/{tool.name}") for tool in found)
        raise UsageError(f"{quoted(wanted, 80)} is the name of several tools: write one of {names}")
    near = visible(near_names(wanted, [tool.name for tool in tools]))
    servers = ", ".join(dict.fromkeys(visible(tool.server) for tool in tools)) or "no server"
    raise UsageError(f"{servers} has no tool {quoted(wanted, 80)}{near}")

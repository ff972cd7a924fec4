"""What a tool gave back."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any

from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]
from jsonschema.validators import Draft202012Validator, validator_for  # type: ignore[import-untyped]
from mcp.client import Client
from mcp_types import CallToolResult, EmbeddedResource, TextContent, TextResourceContents
from mcp_types import Tool as WireTool
from pydantic import JsonValue, ValidationError

from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff.mcp.servers import HubLimits
from bakeoff.mcp.text import quoted, visible


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


class Refused(Exception):
    """A tool list that we do not work with; says why."""


class ServerTool(FrozenModel):
    """One tool as its server describes it. All texts are the server's: data to show, never to obey."""

    server: str
    name: str
    title: str = ""
    description: str = ""
    input_schema: dict[str, JsonValue]
    output_schema: dict[str, JsonValue] | None = None
    annotations: dict[str, JsonValue] = {}


def tools_fingerprint(tools: Iterable[ServerTool]) -> str:
    """Changes with any name, description or schema; not with the order or with whose server it is."""
    parts = [[tool.name, tool.description, tool.input_schema, tool.output_schema] for tool in tools]
    return fingerprint(sorted(parts, key=lambda part: json.dumps(part, sort_keys=True)))


async def list_tools(client: Client, server: str, limits: HubLimits) -> tuple[ServerTool, ...]:
    """Every page of the list; raises `Refused` as soon as a limit is passed."""
    basket = _Basket(server, limits)
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(limits.pages):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            basket.add(tool)
        cursor = page.next_cursor
        if cursor is None:
            await asyncio.to_thread(basket.check_schemas)  # some milliseconds each: trials may be under way
            return tuple(basket.tools.values())
        if cursor in seen:
            raise Refused(f"its tool list never ends: it gave the cursor {quoted(cursor, 80)} twice")
        seen.add(cursor)
    raise Refused(f"its tool list has more than {limits.pages:,} pages")


class _Basket:
    """Takes tools in while they are acceptable."""

    def __init__(self, server: str, limits: HubLimits) -> None:
        self.tools: dict[str, ServerTool] = {}
        self._server, self._limits = server, limits
        self._bytes = 0

    def add(self, wire: WireTool) -> None:
        if len(self.tools) >= self._limits.tools:
            raise Refused(f"it lists more than {self._limits.tools:,} tools")
        _check_name(wire.name, self._limits.name_length)
        if wire.name in self.tools:
            raise Refused(f"it lists two tools called {wire.name!r}")
        for kind, schema in (("input", wire.input_schema), ("output", wire.output_schema)):
            if schema is not None:
                _check_bounds(f"the {kind} schema of its tool {wire.name!r}", schema, self._limits)
        tool = _from_wire(self._server, wire)
        self._bytes += len(tool.model_dump_json())
        if self._bytes > self._limits.list_bytes:
            raise Refused(f"its tool list has more than {self._limits.list_bytes:,} bytes")
        self.tools[tool.name] = tool

    def check_schemas(self) -> None:
        for tool in self.tools.values():
            if tool.input_schema.get("type") != "object":
                raise Refused(f"the input schema of its tool {tool.name!r} is not of type object")
            _check_validity(f"the input schema of its tool {tool.name!r}", tool.input_schema)
            if tool.output_schema is not None:
                _check_validity(f"the output schema of its tool {tool.name!r}", tool.output_schema)


def _from_wire(server: str, wire: WireTool) -> ServerTool:
    hints = wire.annotations.model_dump(mode="json", by_alias=True, exclude_none=True) if wire.annotations else {}
    return ServerTool(
        server=server,
        name=wire.name,
        title=wire.title or "",
        description=wire.description or "",
        input_schema=wire.input_schema,
        output_schema=wire.output_schema,
        annotations=hints,
    )


def _check_name(name: str, longest: int) -> None:
    if len(name) > longest:
        raise Refused(f"it lists a tool whose name has {len(name):,} characters ({quoted(name, 40)}), over {longest}")
    if not name.strip() or not name.isprintable():
        raise Refused(f"it lists a tool called {quoted(name)}, which is not a printable name")


def _check_bounds(what: str, schema: Mapping[str, Any], limits: HubLimits) -> None:
    # Depth first: all that follows walks the schema recursively.
    if _deeper_than(schema, limits.schema_depth):
        raise Refused(f"{what} is nested more than {limits.schema_depth} deep")
    size = len(json.dumps(schema))
    if size > limits.schema_bytes:
        raise Refused(f"{what} has {size:,} bytes, over {limits.schema_bytes:,}")


def _check_validity(what: str, schema: Mapping[str, Any]) -> None:
    validator = validator_for(schema, default=Draft202012Validator)
    try:
        validator.check_schema(schema)
    except SchemaError as problem:
        raise Refused(
            f"{what} is not valid JSON Schema: {visible(problem.message)} at {problem.json_path}"
        ) from problem


def _deeper_than(value: Any, most: int) -> bool:
    level: list[Any] = [value]
    for _ in range(most):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def explain_unreadable(problem: ValidationError, listed: list[Any] | None) -> str:
    """What the SDK could not read in an answer; for a tool list, which tool it was."""
    first = problem.errors(include_url=False)[0]
    place = first["loc"]
    what = (
        f"{visible(first['msg'])} at {visible('.'.join(map(str, place)), 120)}, where it sent {_shown(first['input'])}"
    )
    if len(place) > 1 and place[0] == "tools" and isinstance(place[1], int) and listed and place[1] < len(listed):
        tool = listed[place[1]]
        name = tool.get("name") if isinstance(tool, dict) else None
        return f"its tool {quoted(str(name))} is described wrongly: {what}"
    return f"its answer is not what the protocol says: {what}"


def _shown(value: Any) -> str:
    return visible(repr(value) if not isinstance(value, dict | list) else type(value).__name__, 80)

"""Write what servers offer to a file that is the same for the same servers, read it, and serve its tools."""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import Field, JsonValue

from bakeoff._kernel.files import PUBLIC, os_errors_explained, read_file, write_atomically
from bakeoff._kernel.json import parse_json
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import near_names
from bakeoff._kernel.yaml import Key, PlacedYaml, parse_yaml
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.mcp.tools import ServerTool

SNAPSHOT_NAME = "mcp-snapshot.json"
SNAPSHOT_FORMAT: Final = "bakeoff-mcp-snapshot-1"
_MAX_FILE_SIZE = 16 * 1024 * 1024
_HIDDEN = re.compile(r"[^\n -~]")


class ToolEntry(FrozenModel):
    """A tool, with the keys of the protocol."""

    title: str = ""
    description: str = ""
    inputSchema: dict[str, JsonValue]
    outputSchema: dict[str, JsonValue] | None = None
    annotations: dict[str, JsonValue] = {}


class ResourceEntry(FrozenModel):
    """A resource, or a template of resources."""

    name: str = ""
    title: str = ""
    description: str = ""
    mimeType: str = ""


class ArgumentEntry(FrozenModel):
    """An argument of a prompt."""

    description: str = ""
    required: bool = False


class SnapshotPrompt(FrozenModel):
    """A prompt."""

    title: str = ""
    description: str = ""
    arguments: dict[str, ArgumentEntry] = {}


class ServerEntry(FrozenModel):
    """Everything that one server offers, by name or URI."""

    instructions: str = ""
    tools: dict[str, ToolEntry] = {}
    resources: dict[str, ResourceEntry] = {}
    resourceTemplates: dict[str, ResourceEntry] = {}
    prompts: dict[str, SnapshotPrompt] = {}


class Snapshot(FrozenModel):
    """The tools, resources and prompts of servers. All texts are untrusted data."""

    format: Literal["bakeoff-mcp-snapshot-1"] = SNAPSHOT_FORMAT
    servers: dict[str, ServerEntry] = Field(description="by the names that the configuration gives them")

    @classmethod
    def of(cls, offers: Mapping[str, ServerEntry], tools: Iterable[ServerTool]) -> Self:
        """Return the snapshot of servers from what they offer besides tools, by their names, and from their tools."""
        entries = dict(offers)
        for tool in tools:
            entries.setdefault(tool.server, ServerEntry()).tools[tool.name] = ToolEntry(
                title=tool.title,
                description=tool.description,
                inputSchema=tool.input_schema,
                outputSchema=tool.output_schema,
                annotations=tool.annotations,
            )
        return cls(servers=entries)

    @classmethod
    def of_tools(cls, tools: Iterable[ServerTool]) -> Self:
        """Return a snapshot of tools alone, such as those that the plan of a run keeps."""
        return cls.of({}, tools)

    def text(self) -> str:
        """Return the file: sorted, without empty values, and with escapes for characters that cannot be seen."""
        dumped = {"format": self.format, **self.model_dump(exclude_defaults=True)}
        written = json.dumps(dumped, indent=2, sort_keys=True, ensure_ascii=False)
        # A review must show characters that cannot be seen.
        return (
            _HIDDEN.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], written)
            + "\n"
        )

    def write(self, file: Path) -> None:
        """Write the snapshot to a file that everybody may read. An existing file is replaced."""
        write_atomically(file, self.text().encode(), PUBLIC)


@dataclass(frozen=True, slots=True)
class PlacedSnapshot:
    """A snapshot, with its file and the lines of its parts if it was read from one."""

    snapshot: Snapshot
    file: Path | None = None
    lines: Mapping[Key, int] = field(default_factory=dict)

    def line(self, *key: str) -> int:
        """Return the line of a part, or of the nearest part around it."""
        while key and key not in self.lines:
            key = key[:-1]
        return self.lines.get(key, 1)


def read_snapshot(file: Path) -> PlacedSnapshot:
    """Read a file. Errors name it and the line."""
    with os_errors_explained(file, "read", hint="write it with `bakeoff mcp snapshot`", kind=UsageError):
        content = read_file(file, _MAX_FILE_SIZE, pipes=True)
    try:
        value = parse_json(content)
    except json.JSONDecodeError as error:
        raise UsageError(f"{file}:{error.lineno}: this is not JSON: {error.msg}") from error
    except ValueError as error:
        raise UsageError(f"{file}: this is not JSON: {error}") from error
    placed = PlacedYaml(file, value, {})
    with suppress(BakeoffError):  # JSON is YAML except for a few forms, such as very long keys
        placed = PlacedYaml(file, value, parse_yaml(content.decode("utf-8-sig"), file).lines)
    if not isinstance(value, dict) or value.get("format") != Snapshot.model_fields["format"].default:
        raise UsageError(f"{file}:1: this is not a snapshot of MCP servers: write one with `bakeoff mcp snapshot`")
    return PlacedSnapshot(placed.read(Snapshot), file, placed.lines)


def serve_snapshot(file: Path, name: str | None = None) -> None:
    """Serve one server of a snapshot until the client goes away. Without a name, the snapshot must have one server."""
    servers = read_snapshot(file).snapshot.servers
    if name is None and len(servers) != 1:
        raise UsageError(f"{file} has {len(servers)} servers: name one of {', '.join(servers) or 'none'}")
    if name is not None and name not in servers:
        raise UsageError(f"{file} has no server {name!r}{near_names(name, servers)}")
    chosen = name if name is not None else next(iter(servers))
    asyncio.run(_serve(chosen, servers[chosen]))


async def _serve(name: str, entry: ServerEntry) -> None:
    """Answer requests over the standard streams until the client closes them."""
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

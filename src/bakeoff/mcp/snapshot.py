"""List what servers offer, and keep it in a file that changes only if the servers change."""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar

from mcp.client import Client
from pydantic import Field, JsonValue

from bakeoff._kernel.files import PUBLIC, os_errors_explained, read_file, write_atomically
from bakeoff._kernel.json import parse_json
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import quoted
from bakeoff._kernel.yaml import Key, PlacedYaml, parse_yaml
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.mcp.servers import HubLimits
from bakeoff.mcp.tools import ServerTool, ToolRefused, read_pages

SNAPSHOT_NAME = "mcp-snapshot.json"
SNAPSHOT_FORMAT: Final = "bakeoff-mcp-snapshot-1"
_MAX_FILE_SIZE = 16 * 1024 * 1024
Offer = TypeVar("Offer", bound=FrozenModel)
_HIDDEN = re.compile(r"[^\n -~]")


class ToolEntry(FrozenModel):
    """A tool, with the key names of the protocol."""

    title: str = ""
    description: str = ""
    inputSchema: dict[str, JsonValue]
    outputSchema: dict[str, JsonValue] | None = None
    annotations: dict[str, JsonValue] = {}


class ResourceEntry(FrozenModel):
    """A resource or resource template."""

    name: str = ""
    title: str = ""
    description: str = ""
    mimeType: str = ""


class ArgumentEntry(FrozenModel):
    """An argument of a prompt."""

    description: str = ""
    required: bool = False


class SnapshotPrompt(FrozenModel):
    """A prompt of a server."""

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
        """Return a snapshot of servers, given their tools and their other offers by name."""
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
        """Return a snapshot that has only tools, such as those in the plan of a run."""
        return cls.of({}, tools)

    def text(self) -> str:
        """Return the file's text: sorted, no empty values, invisible characters escaped."""
        dumped = {"format": self.format, **self.model_dump(exclude_defaults=True)}
        written = json.dumps(dumped, indent=2, sort_keys=True, ensure_ascii=False)
        # Reviewers must be able to see invisible characters.
        return (
            _HIDDEN.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], written)
            + "\n"
        )

    def write(self, file: Path) -> None:
        """Write the snapshot to a world-readable file, replacing an existing one."""
        write_atomically(file, self.text().encode(), PUBLIC)


@dataclass(frozen=True, slots=True)
class PlacedSnapshot:
    """A snapshot and, if it was read from a file, the lines of its parts."""

    snapshot: Snapshot
    file: Path | None = None
    lines: Mapping[Key, int] = field(default_factory=dict)

    def line(self, *key: str) -> int:
        """Return the line of a part, or of its nearest enclosing part."""
        while key and key not in self.lines:
            key = key[:-1]
        return self.lines.get(key, 1)


def read_snapshot(file: Path) -> PlacedSnapshot:
    """Read a snapshot from a file. Errors name the file and the line."""
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


async def list_offers(client: Client, limits: HubLimits) -> ServerEntry:
    """Return a server's instructions, resources and prompts. Raise `ToolRefused` if too long.

    Only features that the server declares are requested.
    """
    has = client.server_capabilities
    resources: dict[str, ResourceEntry] = {}
    templates: dict[str, ResourceEntry] = {}
    prompts: dict[str, SnapshotPrompt] = {}
    if has.resources is not None:
        async for page in read_pages(lambda cursor: client.list_resources(cursor=cursor), "resource list", limits):
            for wire in page.resources:
                _add(resources, str(wire.uri), _resource(wire), "resource")
        async for found in read_pages(
            lambda cursor: client.list_resource_templates(cursor=cursor), "templates", limits
        ):
            for template in found.resource_templates:
                _add(templates, template.uri_template, _resource(template), "resource")
    if has.prompts is not None:
        async for listed in read_pages(lambda cursor: client.list_prompts(cursor=cursor), "prompt list", limits):
            for prompt in listed.prompts:
                arguments = {
                    each.name: ArgumentEntry(description=each.description or "", required=bool(each.required))
                    for each in prompt.arguments or ()
                }
                about = {"title": prompt.title or "", "description": prompt.description or ""}
                _add(prompts, prompt.name, SnapshotPrompt(**about, arguments=arguments), "prompt")
    _check({**resources, **{f"template {uri}": each for uri, each in templates.items()}}, "resource", limits)
    _check(prompts, "prompt", limits)
    return ServerEntry(
        instructions=client.instructions or "", resources=resources, resourceTemplates=templates, prompts=prompts
    )


def _add(entries: dict[str, Offer], key: str, entry: Offer, what: str) -> None:
    if key in entries:
        raise ToolRefused(f"it lists the {what} {quoted(key, 80)} twice")
    entries[key] = entry


def _check(entries: Mapping[str, FrozenModel], what: str, limits: HubLimits) -> None:
    """Raise `ToolRefused` if a list is too long or too large."""
    if len(entries) > limits.tools:
        raise ToolRefused(f"it lists more than {limits.tools:,} {what}s")
    if sum(len(key) + len(entry.model_dump_json()) for key, entry in entries.items()) > limits.list_bytes:
        raise ToolRefused(f"its {what} list has more than {limits.list_bytes:,} bytes")


def _resource(wire: Any) -> ResourceEntry:
    return ResourceEntry(
        name=wire.name,
        title=wire.title or "",
        description=wire.description or "",
        mimeType=wire.mime_type or "",
    )

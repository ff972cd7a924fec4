"""List the resources and prompts of a server, and offer them as tools, as clients do, for models to choose."""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar

from mcp.client import Client
from mcp_types import TextResourceContents
from pydantic import JsonValue

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import quoted
from bakeoff.mcp.servers import HubLimits
from bakeoff.mcp.snapshot import ArgumentEntry, ResourceEntry, ServerEntry, SnapshotPrompt
from bakeoff.mcp.tools import ServerTool, ToolCallResult, ToolRefused, read_pages, text_in

Entry = TypeVar("Entry", bound=FrozenModel)


async def list_offers(client: Client, limits: HubLimits) -> ServerEntry:
    """Return instructions, resources and prompts, without tools. Raise `ToolRefused` if a limit is exceeded.

    A server is asked only for what it says that it has.
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


def _add(entries: dict[str, Entry], key: str, entry: Entry, what: str) -> None:
    if key in entries:
        raise ToolRefused(f"it lists the {what} {quoted(key, 80)} twice")
    entries[key] = entry


def _check(entries: Mapping[str, FrozenModel], what: str, limits: HubLimits) -> None:
    """Raise `ToolRefused` for a list that is too long or too large."""
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


READ = "read_resource"
PROMPT = "prompt_"
_MAX_LISTED = 100  # resources in a description
_MAX_LENGTH = 200  # characters of the description of one resource


def exposed_tools(
    server: str, offers: ServerEntry, expose: Collection[str], taken: Collection[str]
) -> Iterator[ServerTool]:
    """Yield a tool that reads resources, and one for each prompt. Tools of the server itself keep their names.

    Args:
        server: The name of the server.
        offers: What it offers.
        expose: `resources`, `prompts` or both.
        taken: The names of the server's own tools.
    """
    if "resources" in expose and (offers.resources or offers.resourceTemplates) and READ not in taken:
        yield _reader(server, offers)
    for name, prompt in offers.prompts.items() if "prompts" in expose else ():
        if f"{PROMPT}{name}" not in taken:
            properties = {
                argument: {"type": "string", **({"description": each.description} if each.description else {})}
                for argument, each in prompt.arguments.items()
            }
            required = [argument for argument, each in prompt.arguments.items() if each.required]
            yield ServerTool(
                server=server,
                name=f"{PROMPT}{name}",
                title=prompt.title,
                description=prompt.description or prompt.title,
                input_schema={"type": "object", "properties": properties, "required": required},
                annotations={"readOnlyHint": True, _MARK: "prompts"},
            )


def is_exposed(tool: ServerTool) -> bool:
    """Return True for a tool that was made here."""
    return tool.annotations.get(_MARK) is not None


_MARK = "bakeoffExposes"


def _reader(server: str, offers: ServerEntry) -> ServerTool:
    """Return the tool that reads resources; its description lists them."""
    listed = [
        f"- {uri}{f' ({each.mimeType})' if each.mimeType else ''}: "
        f"{' '.join((each.description or each.title or each.name).split())[:_MAX_LENGTH]}"
        for uri, each in chain(offers.resources.items(), offers.resourceTemplates.items())
    ]
    uri: dict[str, JsonValue] = {"type": "string", "description": "The URI of the resource."}
    if offers.resourceTemplates:
        uri["description"] = "The URI of the resource; fill in the variables of a template, which are in braces."
    else:
        uri["enum"] = list(offers.resources)
    return ServerTool(
        server=server,
        name=READ,
        description="\n".join(["Read a resource of this server:", *listed[:_MAX_LISTED]]),
        input_schema={"type": "object", "properties": {"uri": uri}, "required": ["uri"]},
        annotations={"readOnlyHint": True, _MARK: "resources"},
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
        texts = [text for each in got.messages if (text := text_in(each.content)) is not None]
        content = [_plain(each.content) for each in got.messages]
    size = sum(len(str(part)) for part in content)
    if size > most_bytes:
        said = f"the result of {tool.name!r} has {size:,} bytes, over {most_bytes:,}"
        return ToolCallResult(server=tool.server, tool=tool.name, text=said, is_error=True)
    return ToolCallResult(server=tool.server, tool=tool.name, text="\n".join(texts), content=tuple(content))


def _plain(part: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = part.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped

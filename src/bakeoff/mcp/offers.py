"""List the resources and prompts of a server, and offer them as tools, as clients do, for models to choose."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, EmbeddedResource, TextContent, TextResourceContents
from pydantic import JsonValue

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import quoted
from bakeoff.mcp.servers import HubLimits
from bakeoff.mcp.tools import ServerTool, ToolCallResult, ToolRefused


class ServerResource(FrozenModel):
    """One resource, or with `template` a form of URIs with variables. All texts are untrusted data."""

    server: str
    uri: str
    template: bool = False
    name: str = ""
    title: str = ""
    description: str = ""
    mime_type: str = ""


class PromptArgument(FrozenModel):
    """One argument of a prompt."""

    name: str
    description: str = ""
    required: bool = False


class ServerPrompt(FrozenModel):
    """One prompt as its server describes it. All texts are untrusted data."""

    server: str
    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class Offers(FrozenModel):
    """The instructions, resources and prompts of a server."""

    server: str
    instructions: str = ""
    resources: tuple[ServerResource, ...] = ()
    prompts: tuple[ServerPrompt, ...] = ()


class _Page(Protocol):
    @property
    def next_cursor(self) -> str | None: ...


Page = TypeVar("Page", bound=_Page)


async def list_offers(client: Client, server: str, limits: HubLimits) -> Offers:
    """List resources and prompts if the server says that it has any. Raise `ToolRefused` if a limit is exceeded."""
    has = client.server_capabilities
    resources: list[ServerResource] = []
    prompts: list[ServerPrompt] = []
    if has.resources is not None:
        for page in await _pages(lambda cursor: client.list_resources(cursor=cursor), "resource list", limits):
            resources += [_resource(server, wire, str(wire.uri), template=False) for wire in page.resources]
        for found in await _pages(lambda cursor: client.list_resource_templates(cursor=cursor), "templates", limits):
            resources += [
                _resource(server, wire, wire.uri_template, template=True) for wire in found.resource_templates
            ]
    if has.prompts is not None:
        for listed in await _pages(lambda cursor: client.list_prompts(cursor=cursor), "prompt list", limits):
            prompts += [_listed_prompt(server, wire) for wire in listed.prompts]
    _check(resources, [(each.template, each.uri) for each in resources], "resource", limits)
    _check(prompts, [each.name for each in prompts], "prompt", limits)
    return Offers(
        server=server,
        instructions=client.instructions or "",
        resources=tuple(resources),
        prompts=tuple(prompts),
    )


async def _pages(get: Callable[[str | None], Awaitable[Page]], what: str, limits: HubLimits) -> list[Page]:
    """Read all pages of a list. Raise `ToolRefused` if it has too many, or repeats itself."""
    pages: list[Page] = []
    seen: set[str] = set()
    cursor: str | None = None
    while len(pages) < limits.pages:
        try:
            pages.append(await get(cursor))
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND:  # published servers promise resources, and know no templates
                return pages
            raise
        cursor = pages[-1].next_cursor
        if cursor is None:
            return pages
        if cursor in seen:
            raise ToolRefused(f"its {what} never ends: it gave the cursor {quoted(cursor, 80)} twice")
        seen.add(cursor)
    raise ToolRefused(f"its {what} has more than {limits.pages:,} pages")


def _check(items: Sequence[FrozenModel], keys: Sequence[Any], what: str, limits: HubLimits) -> None:
    """Raise `ToolRefused` for a list that is too long, too large, or has the same entry twice."""
    if len(items) > limits.tools:
        raise ToolRefused(f"it lists more than {limits.tools:,} {what}s")
    if sum(len(item.model_dump_json()) for item in items) > limits.list_bytes:
        raise ToolRefused(f"its {what} list has more than {limits.list_bytes:,} bytes")
    seen: set[Any] = set()
    for key in keys:
        name = key[-1] if isinstance(key, tuple) else key
        if key in seen:
            raise ToolRefused(f"it lists the {what} {quoted(name, 80)} twice")
        seen.add(key)


def _resource(server: str, wire: Any, uri: str, *, template: bool) -> ServerResource:
    return ServerResource(
        server=server,
        uri=uri,
        template=template,
        name=wire.name,
        title=wire.title or "",
        description=wire.description or "",
        mime_type=wire.mime_type or "",
    )


def _listed_prompt(server: str, wire: Any) -> ServerPrompt:
    return ServerPrompt(
        server=server,
        name=wire.name,
        title=wire.title or "",
        description=wire.description or "",
        arguments=tuple(
            PromptArgument(name=each.name, description=each.description or "", required=bool(each.required))
            for each in wire.arguments or ()
        ),
    )


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
    """Return the tool that reads resources; its description lists them."""
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
    """Return the tool that gets one prompt."""
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

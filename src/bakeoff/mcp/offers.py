"""Read the resources and prompts that a server offers, within the same limits as its tools."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import quoted
from bakeoff.mcp.servers import HubLimits
from bakeoff.mcp.tools import ToolRefused


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
    """What a server offers besides its tools."""

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
            prompts += [_prompt(server, wire) for wire in listed.prompts]
    _check(resources, [(each.template, each.uri) for each in resources], "resource", limits)
    _check(prompts, [each.name for each in prompts], "prompt", limits)
    return Offers(
        server=server,
        instructions=client.instructions or "",
        resources=tuple(resources),
        prompts=tuple(prompts),
    )


async def _pages(get: Callable[[str | None], Awaitable[Page]], what: str, limits: HubLimits) -> list[Page]:
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


def _prompt(server: str, wire: Any) -> ServerPrompt:
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

"""Getting at the tools of servers, one server at a time: what is wrong with one says nothing about the others."""

import asyncio
from collections.abc import Mapping, Sequence

from bakeoff.doors.mcp_suite.config import Suite
from bakeoff.doors.mcp_suite.lint.report import Linted, LintReport, lint_tools
from bakeoff.errors import InfraError, UsageError
from bakeoff.mcp import McpHub, ServerSpec, ServerTool
from bakeoff.mcp.servers import told_apart
from bakeoff.subjects.variables import with_variables


async def lint_servers(specs: Sequence[ServerSpec]) -> LintReport:
    """Start them, list their tools, end them, and look at the tools of all of them together."""
    specs = told_apart(specs)
    listed = await asyncio.gather(*map(_listed, specs))
    tools = [tool for found in listed if not isinstance(found, str) for tool in found]
    unusable = {spec.name: found for spec, found in zip(specs, listed, strict=True) if isinstance(found, str)}
    return lint_tools(tools, [spec.name for spec in specs], unusable)


async def lint_suite(suite: Suite, environment: Mapping[str, str], only: Sequence[str] = ()) -> Linted:
    """The servers that a configuration names, or some of them."""
    lines = {
        server.name: suite.lines.lines.get(("mcpServers", at), 1) for at, server in enumerate(suite.config.mcpServers)
    }
    return Linted(await lint_servers(servers_of(suite, environment, only)), suite.file, lines)


def servers_of(suite: Suite, environment: Mapping[str, str], only: Sequence[str] = ()) -> list[ServerSpec]:
    """As they are started: in the configuration's folder, with what they are told in confidence."""
    names = [server.name for server in suite.config.mcpServers]
    for name in only:
        if name not in names:
            raise UsageError(f"{suite.file} has no server {name!r}: there are {', '.join(names)}")
    chosen = [server for server in suite.config.mcpServers if not only or server.name in only]
    return [with_variables(_placed(server, suite), environment) for server in chosen]


def _placed(server: ServerSpec, suite: Suite) -> ServerSpec:
    if server.command is None:
        return server
    return server.model_copy(update={"cwd": suite.folder.resolve() / (server.cwd or "")})


async def _listed(spec: ServerSpec) -> tuple[ServerTool, ...] | str:
    try:
        async with McpHub([spec]).open() as hub:
            return await hub.tools()
    except (InfraError, OSError) as error:
        return str(error)

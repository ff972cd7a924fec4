"""Before any model is asked: every MCP server starts, lists its tools, and hides none of ours."""

from collections.abc import Iterator, Sequence

from bakeoff.doors.components.tools import BUILT_IN
from bakeoff.errors import InfraError, UsageError
from bakeoff.mcp import McpHub
from bakeoff.plan import Plan


async def check_servers(plan: Plan) -> None:
    """Raises one error with what is wrong with the plan's servers."""
    from bakeoff.subjects.model import ModelSubject  # the SDKs behind it take a second to load

    agents = [ModelSubject.agent_from_spec(spec) for spec in plan.subjects if spec.kind == "agent"]
    hubs = {agent.hub.key: agent.hub for agent in agents if agent.hub is not None}
    problems = [problem for hub in hubs.values() if (problem := await _problem(hub)) is not None]
    if problems:
        raise UsageError("\n".join([*dict.fromkeys(problems), "nothing was run; `--mcp none` runs without a server"]))


async def _problem(hub: McpHub) -> str | None:
    try:
        async with hub.open() as opened:
            offered = opened.as_tools(BUILT_IN)
    except (InfraError, UsageError, OSError) as error:
        return str(error)
    servers = ", ".join(opened.servers)
    if not offered:
        return f"MCP server {servers} offers no tool, so no model could use it"
    return "\n".join(_look_alikes(servers, [tool.name for tool in offered])) or None


def _look_alikes(servers: str, names: Sequence[str]) -> Iterator[str]:
    """A model would take one for the other, and its work would go to a server instead of to us."""
    ours = {_bare(name): name for name in BUILT_IN}
    for name in names:
        if (taken := ours.get(_bare(name))) is not None:
            yield (
                f"the tool {name!r} of MCP server {servers} differs from the built-in {taken!r} in nothing but case, "
                "`_` or `-`: rename it in its server"
            )


def _bare(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")

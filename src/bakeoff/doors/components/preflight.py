"""Before any model is asked: every MCP server starts, lists its tools, and hides none of ours."""

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
    return None if offered else f"MCP server {', '.join(opened.servers)} offers no tool, so no model could use it"

"""The tools that a model may call in a component suite: `ResultWrite`, and `TestComponent` if it is allowed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from bakeoff._kernel.environment import read_environment
from bakeoff.doors.components.results.steps import BUILT_IN, RESULT_WRITE, TEST_COMPONENT
from bakeoff.doors.components.scoring import verification_of
from bakeoff.errors import InfraError, ToolError, UsageError
from bakeoff.grading.cases import graded_case
from bakeoff.grading.grades import Grade, grade_answer
from bakeoff.plan import Case, Plan
from bakeoff.protocols import Tool

if TYPE_CHECKING:
    from bakeoff.mcp import McpHub, ServerSpec

_WRITE = "Hand in the finished component. Call it once, when you are done: the first call counts and is the end."
_TEST = (
    "Run the test suite against a component without handing it in. "
    "Use it to check your work, and correct it before you call ResultWrite."
)
LONGEST = 500_000
"""Characters of one component. A longer one is a mistake, and every copy of it would have to be kept."""


def component_tools(case: Case, resources: Mapping[str, Any], *, test_tool: bool) -> tuple[Tool, ...]:
    """Return the tools of one case. They run on our side, so a model can test its work without seeing the tests."""
    graded = graded_case(case).shown  # nor does a tool tell what the hidden tests are

    async def write(arguments: Mapping[str, JsonValue]) -> JsonValue:
        _content(RESULT_WRITE, arguments)
        return {"success": True}

    async def test(arguments: Mapping[str, JsonValue]) -> JsonValue:
        content = _content(TEST_COMPONENT, arguments)
        return test_report(case.id, await grade_answer(graded, {graded.settings.solution[0]: content}, resources))

    content: JsonValue = {"type": "string", "description": f"The complete content of {', '.join(case.reference)}"}
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"content": content},
        "required": ["content"],
        "additionalProperties": False,
    }
    tools = (Tool(RESULT_WRITE, _WRITE, schema, write, ends=True), Tool(TEST_COMPONENT, _TEST, schema, test))
    return tools if test_tool else tools[:1]


def test_report(suite: str, grade: Grade) -> dict[str, JsonValue]:
    """Return what `TestComponent` tells the model."""
    verification = verification_of(suite, grade)
    found = verification.model_dump(mode="json")
    answer: dict[str, JsonValue] = {
        "success": verification.passed,
        "message": f"All {grade.total} tests passed." if grade.ok else f"{grade.summary().rstrip('.')}.",
        "passed": verification.num_passed,
        "failed": verification.num_failed,
        "total": verification.num_tests,
        "duration": found["duration"],
    }
    if verification.failed_tests:
        answer["failedTests"] = [
            {"name": test.full_name, "error": test.error_message} for test in verification.failed_tests
        ]
    return {**answer, **{key: found[key] for key in ("error", "validation", "validationFailed") if key in found}}


def _content(tool: str, arguments: Mapping[str, JsonValue]) -> str:
    content = arguments.get("content")
    if not isinstance(content, str):
        given = ", ".join(arguments) or "nothing"
        raise ToolError(f"{tool} takes `content`, a text with the whole component; it was given {given}")
    if len(content) > LONGEST:
        raise ToolError(f"{tool}: `content` has {len(content):,} characters; at most {LONGEST:,} are allowed")
    return content


async def check_servers(plan: Plan, servers: Sequence[Sequence["ServerSpec"]] = ()) -> None:
    """Start every MCP server of a plan before any model is asked. Raise one error with all problems.

    `servers` are those that were asked for, in case that no subject of the plan uses them.
    """
    from bakeoff.mcp import McpHub
    from bakeoff.mcp.servers import with_variables
    from bakeoff.subjects.model import ModelSubject  # the SDKs behind it take a second to load

    agents = [ModelSubject.from_spec(spec) for spec in plan.subjects if spec.kind == "agent"]
    hubs = {agent.hub.key: agent.hub for agent in agents if agent.hub is not None}
    if servers and not hubs:
        environment = read_environment()
        asked = [McpHub([with_variables(server, environment) for server in each]) for each in servers]
        hubs = {hub.key: hub for hub in asked}
    problems = [problem for hub in hubs.values() if (problem := await _server_problem(hub)) is not None]
    if problems:
        raise UsageError("\n".join([*dict.fromkeys(problems), "nothing was run; `--mcp none` runs without a server"]))


async def _server_problem(hub: "McpHub") -> str | None:
    try:
        async with hub.open() as opened:
            offered = opened.as_tools(BUILT_IN)
    except (InfraError, UsageError, OSError) as error:
        return str(error)
    servers = ", ".join(opened.servers)
    if not offered:
        return f"MCP server {servers} offers no tool, so no model could use it"
    return "\n".join(_similar_names(servers, [tool.name for tool in offered])) or None


def _similar_names(servers: str, names: Sequence[str]) -> Iterator[str]:
    """Name the tools that a model could mistake for a built-in one: its work would go to a server instead of to us."""

    def bare(name: str) -> str:
        return name.casefold().replace("_", "").replace("-", "")

    ours = {bare(name): name for name in BUILT_IN}
    for name in names:
        if (taken := ours.get(bare(name))) is not None:
            yield (
                f"the tool {name!r} of MCP server {servers} differs from the built-in {taken!r} in nothing but case, "
                "`_` or `-`: rename it in its server"
            )

"""Score components with the scorer `suite`, and give models the tools `ResultWrite` and `TestComponent`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.text import shorten
from bakeoff.doors.components.results.model import (
    BUILT_IN,
    RESULT_WRITE,
    TEST_COMPONENT,
    FailedTest,
    Validation,
    Verification,
    extract_result_write_content,
)
from bakeoff.errors import InfraError, ToolError, UsageError
from bakeoff.grading.cases import GradedCase, graded_case
from bakeoff.grading.grades import Grade, grade_answer, grade_nothing, share_metadata
from bakeoff.plan import Case, Plan
from bakeoff.protocols import ScoreInput, Tool
from bakeoff.record import UNIT_TESTS, Score, Transcript

if TYPE_CHECKING:
    from bakeoff.mcp import McpHub, ServerSpec


SUITE = "suite"
_MESSAGE = 4000  # characters of an error that are kept; a component may throw a text of any length
_FAILURES = 200  # tests that are named


async def score_component(case: GradedCase, given: ScoreInput) -> Score:
    """Score the submitted component by the share of tests that passed; 1 only if the whole component passes."""
    component = case.settings.solution[0]
    content = extract_result_write_content(given.transcript.steps)
    if content is None:
        content = given.artefacts.get(component)
    if content is None:
        grade = await grade_nothing(case, missing_submission(given.transcript), given.resources)
    else:
        grade = await grade_answer(case, {component: content}, given.resources)
    verification = verification_of(case.name, grade)
    return Score(
        name=SUITE,
        value=verification.value,
        reason="" if grade.ok else grade.summary(),
        metadata={
            "verification": verification.model_dump(mode="json"),
            UNIT_TESTS: verification.unit_tests.model_dump(),
            **share_metadata(grade),
        },
    )


def missing_submission(transcript: Transcript) -> str:
    """Return why there is no component. A refused call and a missing call are different mistakes."""
    refused = [call.error for call in transcript.tool_calls if call.name == RESULT_WRITE and call.error is not None]
    if not refused:
        return f"no component was handed in: `{RESULT_WRITE}` was not called"
    return f"no component was handed in: `{RESULT_WRITE}` was called and refused: {refused[-1]}"


def verification_of(suite: str, grade: Grade) -> Verification:
    """Return a grade in the form that result files have."""
    messages = {test.name: test.message or "" for test in grade.run.tests if test.state != "passed"}
    named = [name for name in grade.failed if name in messages][:_FAILURES]
    failed = tuple(FailedTest(full_name=name, error_message=shorten(messages[name], _MESSAGE)) for name in named)
    outcome = grade.validation
    error = grade.problem or grade.error
    return Verification.known(
        test_name=suite,
        passed=grade.ok,
        num_tests=grade.total,
        num_passed=grade.passed.total(),
        num_failed=grade.failed.total(),
        duration=round(1000 * grade.run.seconds),
        error=None if error is None else shorten(error, _MESSAGE),
        failed_tests=failed,
        validation=None
        if outcome is None
        else Validation(
            valid=outcome.valid, errors=tuple(shorten(error, _MESSAGE) for error in outcome.errors[:_FAILURES])
        ),
        validation_failed=True if grade.refused else None,
    )


_WRITE = "Hand in the finished component. Call it once, when you are done: the first call counts and is the end."
_TEST = (
    "Run the test suite against a component without handing it in. "
    "Use it to check your work, and correct it before you call ResultWrite."
)
MAX_LENGTH = 500_000
"""The longest component, in characters. A longer one is a mistake, and every copy of it would have to be kept."""


def component_tools(case: Case, resources: Mapping[str, Any], *, test_tool: bool) -> tuple[Tool, ...]:
    """Return the tools of a case, with which models test their work without seeing the tests."""
    graded = graded_case(case).shown  # the tools do not reveal hidden tests

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
    """Return the answer of `TestComponent` to the model."""
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
    if len(content) > MAX_LENGTH:
        raise ToolError(f"{tool}: `content` has {len(content):,} characters; at most {MAX_LENGTH:,} are allowed")
    return content


async def check_servers(plan: Plan, servers: Sequence[Sequence["ServerSpec"]] = ()) -> None:
    """Start every MCP server of a plan before any model is asked. Raise one error with all problems.

    `servers` are started instead if no subject of the plan uses a server.
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
    """Yield the tools that a model could mistake for a built-in one, so that its work would not reach us."""

    def bare(name: str) -> str:
        return name.casefold().replace("_", "").replace("-", "")

    ours = {bare(name): name for name in BUILT_IN}
    for name in names:
        if (taken := ours.get(bare(name))) is not None:
            yield (
                f"the tool {name!r} of MCP server {servers} differs from the built-in {taken!r} in nothing but case, "
                "`_` or `-`: rename it in its server"
            )

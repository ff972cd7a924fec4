"""What a model may call in a trial of this door: `ResultWrite`, and `TestComponent` where it is allowed."""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from bakeoff.doors.components.cases import grading_of
from bakeoff.doors.components.results.model import Verification
from bakeoff.doors.components.verification import summary, verify_component
from bakeoff.errors import ToolError
from bakeoff.plan import Case
from bakeoff.protocols import Tool
from bakeoff.record import Transcript

RESULT_WRITE = "ResultWrite"
TEST_COMPONENT = "TestComponent"
BUILT_IN = (RESULT_WRITE, TEST_COMPONENT)
LONGEST = 500_000
"""Characters of one component: more is a mistake, and every copy of it would have to be kept."""


def component_tools(case: Case, resources: Mapping[str, Any], *, test_tool: bool) -> tuple[Tool, ...]:
    """The tools of one case. They run on our side, so a model can have its work tested without seeing the means."""
    return (_result_write(case), *((_test_component(case, resources),) if test_tool else ()))


def submission(transcript: Transcript, artefacts: Mapping[str, str], component: str) -> str | None:
    """The component that counts: what the first `ResultWrite` was given, or else the file that was left."""
    for call in transcript.tool_calls:
        if call.name == RESULT_WRITE and call.error is None and isinstance(call.arguments, dict):
            content = call.arguments.get("content")
            if isinstance(content, str):
                return content
    return artefacts.get(component)


def why_nothing(transcript: Transcript) -> str:
    """Why there is no component: a call that was refused is another mistake than none at all."""
    refused = [call.error for call in transcript.tool_calls if call.name == RESULT_WRITE and call.error is not None]
    if not refused:
        return f"no component was handed in: `{RESULT_WRITE}` was not called"
    return f"no component was handed in: `{RESULT_WRITE}` was called and refused: {refused[-1]}"


def _parameters(case: Case) -> dict[str, JsonValue]:
    described = f"The complete content of {', '.join(case.reference)}"
    return {
        "type": "object",
        "properties": {"content": {"type": "string", "description": described}},
        "required": ["content"],
        "additionalProperties": False,
    }


def _result_write(case: Case) -> Tool:
    async def call(arguments: Mapping[str, JsonValue]) -> JsonValue:
        _content(RESULT_WRITE, arguments)
        return {"success": True}

    described = "Hand in the finished component. Call it once, when you are done: the first call counts and is the end."
    return Tool(RESULT_WRITE, described, _parameters(case), call, ends=True)


def _test_component(case: Case, resources: Mapping[str, Any]) -> Tool:
    grading = grading_of(case)

    async def call(arguments: Mapping[str, JsonValue]) -> JsonValue:
        content = _content(TEST_COMPONENT, arguments)
        return told(await verify_component(content, grading, resources))

    described = (
        "Run the test suite against a component without handing it in. "
        "Use it to check your work, and correct it before you call ResultWrite."
    )
    return Tool(TEST_COMPONENT, described, _parameters(case), call)


def told(verification: Verification) -> dict[str, JsonValue]:
    """What `TestComponent` returns."""
    found = verification.model_dump(mode="json")
    answer: dict[str, JsonValue] = {
        "success": verification.passed,
        "message": _message(verification),
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


def _message(verification: Verification) -> str:
    if verification.passed:
        return f"All {verification.num_tests} tests passed."
    return f"{summary(verification)}."


def _content(tool: str, arguments: Mapping[str, JsonValue]) -> str:
    content = arguments.get("content")
    if not isinstance(content, str):
        given = ", ".join(arguments) or "nothing"
        raise ToolError(f"{tool} takes `content`, a text with the whole component; it was given {given}")
    if len(content) > LONGEST:
        raise ToolError(f"{tool}: `content` has {len(content):,} characters, and {LONGEST:,} are the most")
    return content

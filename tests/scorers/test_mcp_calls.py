"""The comparison of MCP calls as a scorer of every door: without servers, and with what people write as expected."""

import json
from typing import Any

import pytest

from bakeoff.errors import GraderError
from bakeoff.plan import Case, ScorerSpec
from bakeoff.protocols import ScoreInput
from bakeoff.record import ToolCall
from bakeoff.scorers import McpCalls
from bakeoff.scorers.registry import scorer_kinds

WANTED = {"serverName": "desk", "toolName": "add", "parameters": {"a": 1, "b": {"value": 2, "optional": True}}}
SAID = {"serverName": "desk", "toolName": "add", "parameters": {"a": 1}}


@pytest.mark.parametrize(
    ("output", "expected", "value", "reason"),
    [
        (SAID, WANTED, 1.0, ""),
        ([SAID, SAID], [WANTED, WANTED], 1.0, ""),
        (None, None, 1.0, ""),
        ({**SAID, "serverName": ""}, WANTED, 0.0, "serverName is '', expected 'desk'"),
        ({**SAID, "parameters": {"a": 2}}, WANTED, 0.0, "parameters: a: is 2, expected 1"),
        (SAID, None, 0.0, "no tool should be called, but 'desk / add' was"),
        (None, WANTED, 0.0, "no tool was called, expected 'desk / add'"),
    ],
)
async def test_a_reply_is_compared_with_the_row(output: Any, expected: Any, value: float, reason: str) -> None:
    score = await McpCalls()(ScoreInput.of(json.dumps(output), expected=expected))
    assert (score.name, score.value, score.reason) == ("mcp", value, reason)


async def test_tool_calls_without_servers_are_compared_by_their_tools() -> None:
    scorer = McpCalls(mode="native", extra_parameters="allow")
    made = [ToolCall(name="add", arguments={"a": 1, "c": 3})]
    assert (await scorer(ScoreInput.of(tool_calls=made, expected=WANTED))).value == 1.0
    other = await scorer(ScoreInput.of(tool_calls=[ToolCall(name="subtract", arguments={})], expected=WANTED))
    assert (other.value, "toolName is 'subtract', expected 'add'" in other.reason) == (0.0, True)


async def test_what_cannot_be_compared_or_executed_is_told() -> None:
    with pytest.raises(GraderError, match="case 'case' does not say which calls are expected"):
        await McpCalls()(ScoreInput.of("null", expected="add"))
    case = Case(id="c", prompt="?", expected=WANTED)
    assert McpCalls().check(case) is None
    assert "only `bakeoff mcp` can execute tools" in (McpCalls(execute=True).check(case) or "")


def test_a_plan_names_it_like_any_other() -> None:
    spec = ScorerSpec(kind="mcp", options={"mode": "native", "strict_json": True})
    assert scorer_kinds()["mcp"].build(spec) == McpCalls(mode="native", strict_json=True)

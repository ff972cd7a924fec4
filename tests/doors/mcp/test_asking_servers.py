"""Evaluations of servers that ask back."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from bakeoff.doors.mcp.config import McpSuite
from bakeoff.errors import UsageError

from ...mcp.conftest import SERVERS
from .config_texts import GOOD
from .conftest import Evaluate, content, details


def wanted(tool: str, **parameters: Any) -> dict[str, Any]:
    return {"serverName": "asking", "toolName": tool, "parameters": parameters}


@pytest.mark.parametrize("mode", ["json", "native"])
def test_a_case_can_want_a_tool_that_asks_back(evaluated: Evaluate, script: Callable[..., str], mode: str) -> None:
    server = {
        "name": "asking",
        "command": sys.executable,
        "args": [str(SERVERS / "asking.py")],
        "elicitation": [{"match": "really", "content": {"sure": True, "reason": "spring"}}],
    }
    cases = {"Delete it all.": (wanted("delete_all"), "deleted: True spring")}
    replies: list[tuple[str, Any]] = [
        (prompt, json.dumps(call))
        if mode == "json"
        else (prompt, [{"name": call["toolName"], "arguments": call["parameters"]}])
        for prompt, (call, _) in cases.items()
    ]
    report = evaluated(
        mode=mode,
        modelsToTest=[script(*replies)],
        mcpServers=[server],
        testCases=[
            {"prompt": prompt, "expectedOutput": call, **({"expectedResults": said} if mode == "json" else {})}
            for prompt, (call, said) in cases.items()
        ],
    )
    assert [detail.error for at in range(len(cases)) for detail in details(report, at)] == [None] * len(cases)
    assert report.summary.allPass
    if mode == "json":
        assert "spring" in json.dumps(content(details(report)[0]))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("elicitation: [{action: maybe}]", "elicitation[0].action: 'maybe': has to be 'accept', 'decline' or 'cancel'"),
        (
            "elicitation: [{matches: x}]",
            "elicitation[0].matches: is not a key that is known here: did you mean",
        ),
        ("sampling: [{match: x}]", "sampling[0].reply: is missing"),
    ],
)
def test_a_mistake_in_what_a_server_is_answered_is_said_with_its_place(
    read: Callable[..., McpSuite], line: str, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read(f"{GOOD}    {line}\n")
    assert f"mcpServers[0].{message}" in str(caught.value)

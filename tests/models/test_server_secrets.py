"""Test what MCP servers are given in confidence: it comes from the environment, and reaches no file."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff.errors import PlanError
from bakeoff.plan import SubjectSpec
from bakeoff.record import Record
from bakeoff.subjects.model import ModelSubject

from .loopback import plan_of

CarryOut = Callable[..., Awaitable[list[Record]]]
SECRET = "plain-words-0123-abcd"

TELLTALE = """\
import os
from mcp.server.mcpserver import MCPServer

server = MCPServer("telltale")


@server.tool()
def tell() -> str:
    return "I was told " + os.environ["PASSWORD"]


server.run("stdio")
"""
SCRIPT = '{"replies": [{"step": 0, "call": [{"name": "tell"}]}, {"step": 1, "say": "yes"}]}'


def agent(**server: Any) -> SubjectSpec:
    Path("script.json").write_text(SCRIPT)
    mcp = [{"name": "telltale", **server}]
    return SubjectSpec(kind="agent", name="agent", options={"model": "scripted:script.json", "mcp": mcp})


async def test_a_server_is_given_a_variables_value_and_no_file_holds_it(
    nobody: None, carry_out: CarryOut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("telltale.py").write_text(TELLTALE)
    monkeypatch.setenv("WHATEVER", SECRET)
    spec = agent(command=sys.executable, args=["telltale.py"], env={"PASSWORD": "x-${WHATEVER}"})
    [record] = await carry_out(plan_of(spec), retries=0)
    assert record.transcript is not None, record.failure
    assert f"I was told x-{SECRET}" in str(record.transcript.tool_calls[0].result)
    files = [path for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert any(b"I was told [redacted" in path.read_bytes() for path in files)
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


def test_a_header_is_a_secret_as_a_whole_and_so_is_the_variable_in_it(
    nobody: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHATEVER", SECRET)
    subject = ModelSubject.from_spec(
        agent(url="http://127.0.0.1:9/mcp", headers={"Authorization": "Bearer ${WHATEVER}"})
    )
    named = {"telltale.Authorization": f"Bearer {SECRET}", "telltale.Authorization.token": SECRET}
    assert subject.secrets() == {**named, "WHATEVER": SECRET}


async def test_a_variable_that_is_not_set_is_named_before_anything_runs(nobody: None, carry_out: CarryOut) -> None:
    spec = agent(url="http://127.0.0.1:9/mcp", headers={"Authorization": "Bearer ${NOBODY_SET_THIS}"})
    with pytest.raises(PlanError, match="'telltale' is given \\$\\{NOBODY_SET_THIS\\}, which is not set"):
        await carry_out(plan_of(spec))


async def test_a_variable_that_no_header_can_hold_is_an_error_that_does_not_show_it(
    nobody: None, carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHATEVER", f"{SECRET}\n{SECRET}")
    spec = agent(url="http://127.0.0.1:9/mcp", headers={"Authorization": "Bearer ${WHATEVER}"})
    with pytest.raises(PlanError, match="line break") as caught:
        await carry_out(plan_of(spec))
    assert SECRET not in str(caught.value)

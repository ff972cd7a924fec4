"""An agent with MCP servers, from plan to record."""

import sys
from pathlib import Path

import pytest
from pydantic import JsonValue

from bakeoff.engine.run import run
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Record

pytestmark = pytest.mark.full

ADDER = """\
from mcp.server.mcpserver import MCPServer

server = MCPServer("adder")


@server.tool()
def add(a: int, b: int) -> int:
    '''Add two numbers.'''
    return a + b


server.run("stdio")
"""
SCRIPT = """\
{"replies": [
    {"step": 0, "call": [{"name": "add", "arguments": {"a": 2, "b": 40}}]},
    {"step": 1, "say": "It is 42."}
]}
"""


async def ask(folder: Path, servers: list[JsonValue]) -> Record:
    (folder / "script.json").write_text(SCRIPT)
    options: dict[str, JsonValue] = {"model": f"scripted:{folder / 'script.json'}", "mcp": servers}
    plan = Plan(
        name="adding",
        cases=(Case(id="sum", prompt="What is 2 + 40?", expected="42"),),
        subjects=(SubjectSpec(kind="agent", name="agent", options=options),),
        scorers=(ScorerSpec(kind="contains"),),
    )
    (record,) = [record async for record in run(plan, RunOptions(results=folder / "results", retries=0))]
    return record


async def test_an_agent_calls_the_tools_of_a_server_and_the_record_says_which_were_offered(tmp_path: Path) -> None:
    (tmp_path / "adder.py").write_text(ADDER)
    server: JsonValue = {"name": "adder", "command": sys.executable, "args": [str(tmp_path / "adder.py")]}
    record = await ask(tmp_path, [server])
    assert record.verdict == "pass", record.failure
    assert record.transcript is not None
    (call,) = record.transcript.tool_calls
    assert (call.name, call.arguments, call.error) == ("add", {"a": 2, "b": 40}, None)
    assert "42" in str(call.result)
    offered = record.transcript.metadata["mcp"]
    assert isinstance(offered, dict)
    assert list(offered) == ["adder"]


async def test_two_servers_with_one_tool_name_are_our_mistake_and_not_the_models(tmp_path: Path) -> None:
    (tmp_path / "adder.py").write_text(ADDER)
    servers: list[JsonValue] = [
        {"name": name, "command": sys.executable, "args": [str(tmp_path / "adder.py")]} for name in ("one", "two")
    ]
    record = await ask(tmp_path, servers)
    assert record.verdict == "infra"
    assert record.failure is not None
    assert "'add' is offered by MCP server 'one' and by MCP server 'two'" in record.failure.message

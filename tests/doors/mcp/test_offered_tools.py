"""Cases that offer some tools only, and snapshots whose tools are served."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from bakeoff.doors.mcp.api import evaluate
from bakeoff.doors.mcp.examples import write_example
from bakeoff.doors.mcp.plan import McpPlanSettings
from bakeoff.doors.mcp.subjects import SuiteModel
from bakeoff.errors import UsageError
from bakeoff.mcp import McpHub, ServerSpec, ServerTool
from bakeoff.mcp.snapshot import ServerEntry, Snapshot, ToolEntry, serve_snapshot
from bakeoff.mcp.tools import ToolCallResult, offered_tools
from bakeoff.plan import Plan, SubjectSpec


def test_a_snapshot_is_served_and_nothing_is_executed(tmp_path: Path):
    entry = ToolEntry(description="Mixes two.", inputSchema={"type": "object"})
    Snapshot(servers={"studio": ServerEntry(tools={"mix": entry})}).write(tmp_path / "tools.json")
    words = ("-m", "bakeoff", "mcp", "serve", "tools.json")
    spec = ServerSpec(name="still", command=sys.executable, args=words, cwd=tmp_path, sandbox="none")

    async def used() -> tuple[list[str], ToolCallResult]:
        async with McpHub([spec]).open() as hub:
            return [tool.name for tool in await hub.tools()], await hub.call("still", "mix", {"a": "red"})

    names, result = asyncio.run(used())
    assert names == ["mix"]
    assert result.is_error
    assert "only describes its tools" in result.text


@pytest.mark.parametrize(
    ("content", "name", "told"),
    [
        (
            '{"format": "bakeoff-mcp-snapshot-1", "servers": {"a": {}, "b": {}}}',
            None,
            "has 2 servers: name one of a, b",
        ),
        ('{"format": "bakeoff-mcp-snapshot-1", "servers": {"a": {}}}', "c", "has no server 'c'"),
        ("{}", None, "is not a snapshot"),
        ("{", None, "is not a snapshot"),
    ],
)
def test_a_snapshot_that_cannot_be_served_is_told(tmp_path: Path, content: str, name: str | None, told: str):
    (tmp_path / "tools.json").write_text(content)
    with pytest.raises(UsageError, match=told):
        serve_snapshot(tmp_path / "tools.json", name)


def test_an_unknown_tool_of_a_case_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_example("getting-started", tmp_path)
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mcp-testing-framework.yaml"
    text = file.read_text().replace("local:smollm2", "scripted:null")
    file.write_text(
        text.replace("    prompt: Write me a poem", "    tools: [kitchen/set_timers]\n    prompt: Write me a poem")
    )
    with pytest.raises(UsageError, match=r"yaml:\d+: testCases\[4\].tools\[0\]: no server has .*did you mean"):
        evaluate(file)


def test_names_of_tools_may_have_that_of_their_server():
    tools = tuple(ServerTool(server="s", name=name, input_schema={"type": "object"}) for name in ("a", "b"))
    assert [tool.name for tool in offered_tools(tools, ("s/b",))] == ["b"]
    assert [tool.name for tool in offered_tools(tools, ("a",))] == ["a"]
    assert offered_tools(tools, None) == tools


@pytest.mark.parametrize("mode", ["json", "native", "agent"])
def test_a_case_offers_only_its_tools_in_every_mode(mode: str):
    tools = tuple(ServerTool(server="s", name=name, input_schema={"type": "object"}) for name in ("left", "right"))
    server = ServerSpec(name="s", command="x")
    settings = McpPlanSettings(
        file="a.yaml", report="r", servers=(server,), tools=tools, offered={"one": ("s/right",), "none": ("s/none",)}
    )
    spec = SubjectSpec(kind=f"mcp-{mode}", name="m", options={"model": "scripted:null"})
    model = SuiteModel.from_spec(spec, Plan(name="p", cases=(), subjects=(spec,), scorers=()), settings, {})

    def seen(case: str) -> set[str]:
        told = model.for_case(case)
        text = str(told.model.options.system) if mode == "json" else " ".join(told.offered)
        return {"left", "right"} & set(re.findall(r"\w+", text))

    assert [seen(case) for case in ("one", "other", "none")] == [{"right"}, {"left", "right"}, set()]

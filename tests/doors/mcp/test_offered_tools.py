"""Cases that offer some tools only."""

import re
from pathlib import Path

import pytest

from bakeoff.doors.mcp.api import evaluate
from bakeoff.doors.mcp.examples import write_example
from bakeoff.doors.mcp.plan import McpPlanSettings
from bakeoff.doors.mcp.subjects import SuiteModel
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec, ServerTool
from bakeoff.mcp.tools import offered_tools
from bakeoff.plan import Plan, SubjectSpec


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

"""Test which tools, parameters and enum values no case exercises."""

import json
from pathlib import Path
from typing import Any

import pytest

from bakeoff.cli.mcp.servers import ServerFlags
from bakeoff.cli.mcp.tools import coverage
from bakeoff.doors.mcp.api import evaluate
from bakeoff.doors.mcp.cases import McpCase
from bakeoff.doors.mcp.coverage import Coverage, CoverageGap, coverage_of
from bakeoff.doors.mcp.examples import write_example
from bakeoff.doors.mcp.plan import EvaluationRequest
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerTool

from ...warm_bakeoff import Bakeoff

TRAVEL = ServerTool(
    server="maps",
    name="travel",
    input_schema={
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "mode": {"$ref": "#/$defs/mode"},
            "days": {"type": "array", "items": {"enum": ["sat", "sun"]}},
            "unit": {"anyOf": [{"type": "null"}, {"enum": ["km", "mi"]}]},
        },
        "$defs": {"mode": {"enum": ["walk", "bus"]}},
    },
)
STOP = ServerTool(server="maps", name="stop", input_schema={"type": "object"})


def case(parameters: dict[str, Any], tool: str = "travel", **more: Any) -> McpCase:
    call = {"serverName": "maps", "toolName": tool, "parameters": parameters}
    return McpCase.model_validate({"prompt": "a", "expectedOutput": call, **more})


def counts(found: Coverage) -> tuple[str, str, str]:
    tools, parameters, values = (
        f"{each.covered} of {each.total}" for each in (found.tools, found.parameters, found.enumValues)
    )
    return tools, parameters, values


def test_without_cases_nothing_is_covered_and_without_tools_everything():
    found = coverage_of([McpCase(prompt="a", expectedOutput=None)], [TRAVEL, STOP])
    assert counts(found) == ("0 of 2", "0 of 4", "0 of 6")
    assert found.uncovered == tuple(CoverageGap(server="maps", tool=tool.name, noCase=True) for tool in (TRAVEL, STOP))
    assert coverage_of([], []).share == 1


def test_a_parameter_counts_if_a_call_must_have_it_and_a_value_if_it_is_named():
    cases = [
        case({"to": {"any": True}, "mode": {"oneOf": ["walk", "bus"]}, "days": ["sun"]}),
        case({"unit": {"value": "km", "optional": True}}),
    ]
    found = coverage_of(cases, [TRAVEL])
    assert counts(found) == ("1 of 1", "3 of 4", "3 of 6")
    [gap] = found.uncovered
    assert (gap.parameters, gap.enumValues) == (("unit",), {"days": ("sat",)})
    assert found.first_gaps == 'maps / travel unit, maps / travel days = "sat"'
    assert found.share == pytest.approx(7 / 11)


def test_alternatives_and_values_that_differ_in_upper_and_lower_case_count():
    other = {"serverName": "maps", "toolName": "stop", "parameters": {}}
    walks = case({"mode": {"value": "WALK", "caseInsensitive": True}}, alternatives=[other])
    assert counts(coverage_of([walks], [TRAVEL, STOP])) == ("2 of 2", "1 of 4", "1 of 6")


@pytest.mark.parametrize(("minimum", "passed"), [(None, True), (0.5, True), (0.51, False)])
def test_the_gate_is_the_share_of_everything(minimum: float | None, passed: bool):
    tools = [STOP, STOP.model_copy(update={"name": "go"})]
    assert coverage_of([case({}, tool="stop")], tools, minimum).passed is passed


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_example("getting-started", tmp_path)
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mcp-testing-framework.yaml"
    file.write_text(file.read_text().replace("local:smollm2", "scripted:null"))
    return file


def test_the_report_has_the_coverage_of_all_cases_and_fails_below_the_minimum(example: Path):
    example.write_text("minCoverage: 0.9\n" + example.read_text())
    report = evaluate(EvaluationRequest(path=example, cases=("poem",)))
    found = report.bakeoff.coverage
    assert found is not None
    assert counts(found) == ("4 of 4", "5 of 6", "1 of 2")
    assert report.summary.allPass
    assert not report.passed
    [markdown] = example.parent.glob("mcp-report/*.md")
    assert "Coverage 83.3 %: 4 of 4 tools, 5 of 6 parameters, 1 of 2 enum values; 90.0 % needed" in markdown.read_text()
    [page] = example.parent.glob("mcp-report/*.html")
    assert "What no case exercises" in page.read_text()


def test_evaluate_exits_with_1_if_too_little_is_covered(example: Path, bakeoff: Bakeoff):
    for share, code in (("0.8", 0), ("0.9", 1)):
        done = bakeoff("mcp", "evaluate", str(example), "--case", "poem", "--min-coverage", share)
        assert done.returncode == code, done.stderr
        assert "no case for kitchen / add_to_shopping_list quantity" in " ".join(done.stdout.split())


@pytest.mark.usefixtures("example")
def test_the_command_needs_no_model(capsys: pytest.CaptureFixture[str]):
    assert coverage(servers=ServerFlags(), as_json=True, min_coverage=0.9) == 1
    [told] = json.loads(capsys.readouterr().out)
    assert told["uncovered"][1] == {
        "server": "kitchen",
        "tool": "convert_temperature",
        "noCase": False,
        "parameters": [],
        "enumValues": {"to": ["celsius"]},
    }
    assert coverage(servers=ServerFlags(), min_coverage=0.8) == 0
    assert "quantity" in capsys.readouterr().out
    with pytest.raises(UsageError, match="name a configuration instead of a server"):
        coverage(servers=ServerFlags(commands=["python x.py"]))

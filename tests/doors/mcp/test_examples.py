"""`bakeoff mcp init`: examples that run at once, and that harm nothing that is there."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema.validators import Draft202012Validator  # type: ignore[import-untyped]

from bakeoff._kernel.yaml import read_yaml
from bakeoff.cli.mcp.tools import init
from bakeoff.doors.mcp.api import evaluate
from bakeoff.doors.mcp.config import read_suite
from bakeoff.doors.mcp.examples import examples, write_example
from bakeoff.doors.mcp.expectations import impossible_calls, unknown_tools
from bakeoff.doors.mcp.servers import servers_of
from bakeoff.doors.mcp.suites import check_models, find_configs
from bakeoff.errors import UsageError
from bakeoff.mcp import McpHub, ServerTool
from bakeoff.mcp.lint.checks import lint_tools

from ...warm_bakeoff import Bakeoff

pytestmark = pytest.mark.full


@pytest.mark.parametrize("name", examples())
def test_an_example_is_a_configuration_of_which_editors_know_the_schema(tmp_path: Path, name: str):
    write_example(name, tmp_path)
    for file in find_configs(tmp_path):
        first = file.read_text().splitlines()[0]
        assert first == "# yaml-language-server: $schema=./mcp-testing-framework.schema.json"
        schema = json.loads((tmp_path / first.rpartition("=")[2]).read_text())
        Draft202012Validator(schema).validate(read_yaml(file).value)
        suite = read_suite(file, {})
        assert suite.config.mcpServers[0].command == sys.executable
        check_models(suite)


def test_the_servers_have_the_tools_that_cases_expect_and_nothing_to_complain_of(tmp_path: Path):
    async def tools() -> tuple[ServerTool, ...]:
        suite = read_suite(tmp_path / "several-servers" / "mcp-testing-framework.yaml", {})
        async with McpHub(servers_of(suite)).open() as hub:
            return await hub.tools()

    for name in examples():
        write_example(name, tmp_path / name)
    offered = asyncio.run(tools())
    assert lint_tools(offered, ["kitchen", "calendar"]).findings == ()
    for file in find_configs(tmp_path):
        assert unknown_tools(read_suite(file, {}), offered) == []
        assert impossible_calls(read_suite(file, {}), offered) == []


def test_what_is_there_is_not_overwritten_unless_asked(tmp_path: Path):
    mine = tmp_path / "kitchen.py"
    mine.write_text("mine")
    with pytest.raises(UsageError, match=r"kitchen\.py would be overwritten: name another folder, or add --force"):
        write_example("getting-started", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["kitchen.py"]
    write_example("getting-started", tmp_path, force=True)
    assert mine.read_text() != "mine"
    write_example("getting-started", tmp_path)  # the same files again are not loss


@pytest.mark.parametrize("name", examples())
def test_an_example_speaks_to_its_reader_and_not_to_our_tools(tmp_path: Path, name: str):
    for file in write_example(name, tmp_path):
        assert not re.search("noqa|type: ignore", file.read_text())
        if file.suffix == ".py":
            compile(file.read_text(), str(file), "exec")


def test_an_example_that_is_not_there_is_told_with_its_likely_name(tmp_path: Path):
    with pytest.raises(UsageError, match="did you mean 'getting-started'"):
        write_example("get-started", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write_example("getting-started", tmp_path / "file")


def test_the_next_steps_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    assert init(directory=Path("my suite"), example="several-servers") == 0
    said = capsys.readouterr()
    assert "cd 'my suite'\n  bakeoff mcp evaluate" in said.out
    assert "wrote my suite/calendar_server.py" in said.err


def test_a_provider_of_ones_own_is_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_example("custom-provider", tmp_path)
    monkeypatch.chdir(tmp_path)
    report = evaluate("mcp-testing-framework.yaml")
    assert (report.summary.passedTests, report.summary.totalTests) == (2, 2)


def test_the_script_that_registers_a_provider_runs(tmp_path: Path):
    write_example("custom-provider", tmp_path)
    text = (tmp_path / "mcp-testing-framework.yaml").read_text()
    (tmp_path / "mcp-testing-framework.yaml").write_text(text[: text.index("\nproviders:")] + "\n")
    done = subprocess.run(
        [sys.executable, "with_register.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "2 of 2 passed\n", done.stderr


def test_the_schema_is_printed(bakeoff: Bakeoff):
    assert json.loads(bakeoff("mcp", "schema").stdout)["title"] == "MCP evaluation"

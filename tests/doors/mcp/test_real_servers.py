"""Whole evaluations over servers that others wrote, over every transport and several at once."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff.mcp import ServerSpec

from ...warm_bakeoff import Bakeoff
from .conftest import SERVERS, Evaluate, details

pytestmark = pytest.mark.full


def expected(server: str, tool: str, **parameters: Any) -> dict[str, Any]:
    return {"serverName": server, "toolName": tool, "parameters": parameters}


def as_config(spec: ServerSpec) -> dict[str, Any]:
    config: dict[str, Any] = spec.model_dump(mode="json", exclude_defaults=True)
    return config


@pytest.mark.parametrize("transport", ["stdio", "sse", "streamableHttp"])
def test_server_everything_is_evaluated_over_each_transport(
    transport: str, everything: tuple[str, str], everything_at: Callable[[str], str], evaluated: Evaluate
) -> None:
    where: dict[str, Any] = (
        {"command": everything[0], "args": [everything[1], "stdio"]}
        if transport == "stdio"
        else {"url": everything_at(transport)}
    )
    wanted = expected("everything", "get-sum", a=2, b={"value": 3, "approx": 0})
    report = evaluated(
        modelsToTest=[f"scripted:{json.dumps(expected('everything', 'get-sum', a=2, b=3))}"],
        testCases=[{"prompt": "2 + 3?", "expectedOutput": wanted, "expectedResults": {"regex": r"\b5\b"}}],
        mcpServers=[{"name": "everything", **where}],
        testRound=3,
    )
    assert report.summary.allPass, details(report)[0].error
    assert len(details(report)) == 3


def test_several_real_servers_are_evaluated_at_once(
    everything: tuple[str, str],
    time_server: ServerSpec,
    git_server: Callable[[Path], ServerSpec],
    evaluated: Evaluate,
    script: Callable[..., str],
    tmp_path: Path,
    needs_program: Callable[[str], str],
) -> None:
    repository = tmp_path / "repository"
    subprocess.run([needs_program("git"), "init", "--quiet", "-b", "trunk", str(repository)], check=True)
    convert = expected("time", "convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo")
    status = expected("git", "git_status", repo_path=str(repository))
    echo = expected("everything", "echo", message="hello")
    model = script(("Tokyo", json.dumps(convert)), ("clean", json.dumps(status)), ("Say", json.dumps(echo)))
    report = evaluated(
        modelsToTest=[model],
        testCases=[
            {"prompt": "What is noon UTC in Tokyo?", "expectedOutput": convert, "expectedResults": "21:00"},
            {"prompt": "Is my repository clean?", "expectedOutput": status, "expectedResults": "On branch trunk"},
            {"prompt": "Say hello", "expectedOutput": echo, "expectedResults": "Echo: hello"},
        ],
        mcpServers=[
            {"name": "everything", "command": everything[0], "args": [everything[1], "stdio"]},
            as_config(time_server),
            as_config(git_server(repository)),
        ],
        testRound=2,
    )
    assert [(case.modelResults[0].passRate, case.modelResults[0].details[0].error) for case in report.results] == [
        (1.0, None)
    ] * 3
    wanted = {entry.wanted for entry in report.bakeoff.confusion[0].calls}
    assert wanted == {"time / convert_time", "git / git_status", "everything / echo"}


EXAMPLE = """\
testRound: 2 # Number of test iterations per model
passThreshold: 0.8 # Minimum pass rate (0-1)
concurrencyLimit: 5 # Max concurrent test executions

modelsToTest:
  - scripted:{bmi}

testCases:
  - prompt: 'Help me calculate my BMI index, my weight is 90kg, my height is 180cm'
    expectedOutput:
      serverName: 'example-server'
      toolName: 'calculate-bmi'
      parameters:
        weightKg: 90
        heightM: 1.8
  - prompt: 'Search for healthcare providers in California'
    expectedOutput:
      serverName: 'healthcare-server'
      toolName: 'search-providers'
      parameters:
        state:
          value: 'california'
          caseInsensitive: true
        specialty:
          value: 'cardiology'
          optional: true
          caseInsensitive: true

mcpServers:
  - name: 'local-server'
    command: '{python}'
    args: ['{server}', 'health']
    env:
      KEY: 'value'
  - name: 'remote-server'
    url: '{url}'
"""


def test_the_example_that_people_begin_with_means_what_it_says(
    bakeoff: Bakeoff, everything_at: Callable[[str], str], script: Callable[..., str]
) -> None:
    bmi = expected("example-server", "calculate-bmi", weightKg=90.0, heightM=1.8)
    search = expected("healthcare-server", "search-providers", state="CALIFORNIA")
    model = script(("BMI", json.dumps(bmi)), ("healthcare", json.dumps(search)))
    server = SERVERS / "desk.py"
    text = EXAMPLE.format(bmi=model.partition(":")[2], python=sys.executable, server=server, url=everything_at("sse"))
    Path("mcp-testing-framework.yaml").write_text(text)
    done = bakeoff("mcp", "evaluate", "--no-open")
    assert done.returncode == 0, done.stderr
    assert "no server is called 'example-server'" in done.stderr
    assert "no server is called 'healthcare-server'" in done.stderr
    assert "Passed: 2 of 2 case–model pairs passed 80.0 % of 2 rounds." in done.stdout

"""A configuration as the guide of the tool describes it whose files we read: each of its features in one suite."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ...models.loopback import KEY, Act, Loopback, Received
from ...warm_bakeoff import Bakeoff
from .conftest import SERVERS

CONFIGURATION = """\
testRound: 2
passThreshold: 0.8
concurrencyLimit: 5
executeTools: true
retryConfig: {maxRetries: 1, baseDelay: 1, maxDelay: 2}
gradingPrompt: Is the answer right?

modelsToTest:
  - openai:gpt-4o
  - anthropic:claude-3-opus
  - gemini:gemini-pro
  - deepseek:deepseek-chat
  - custom:my-model

testCases:
  - prompt: 'Help me calculate my BMI index, my weight is 90kg, my height is 180cm'
    expectedOutput:
      serverName: 'health'
      toolName: 'calculate-bmi'
      parameters:
        weightKg: 90
        heightM: 1.8
    expectedResults:
      content: 'Your BMI is 27.8'
  - prompt: 'Write CALIFORNIA into the diary'
    expectedToolUsage:
      serverName: 'health'
      toolName: 'log'
      parameters:
        text: {value: 'california', optional: true, caseInsensitive: true}

mcpServers:
  - name: 'health'
    command: 'python'
    args: ['${DESK}', 'health']
    env:
      KEY: 'value'

providers: {custom: 'my_provider:MyCustomProvider'}
"""
CUSTOM = """
import json
from answers import answer_to

class MyCustomProvider:
    def __init__(self, config):
        self.model = config.model

    def create_message(self, system, message):
        return answer_to(message)
"""
ANSWERS = """
import json

def answer_to(message):
    if "between the marks" in message:
        return json.dumps({"rationale": "it is", "choice": "A"})
    if "gave back" in message:
        return "Your BMI is 27.8."
    if "CALIFORNIA" in message:
        return json.dumps({"serverName": "health", "toolName": "log", "parameters": {"text": "California"}})
    bmi = {"serverName": "health", "toolName": "calculate-bmi", "parameters": {"weightKg": 90, "heightM": 1.8}}
    return "```json\\n" + json.dumps(bmi) + "\\n```"
"""


@pytest.fixture
def project(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The files of a project, with the keys in `.env`, and four providers that answer its prompts."""
    answers: dict[str, Any] = {}
    exec(ANSWERS, answers)

    def act(asked: Received) -> Act:
        return Act(say=answers["answer_to"](json.dumps(asked.body, ensure_ascii=False)))

    loopback.plan = act
    keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "DEEPSEEK_API_KEY")
    Path(".env").write_text("".join(f"{name}={KEY}\n" for name in keys))
    addresses = {"OPENAI_BASE_URL": "/v1", "ANTHROPIC_BASE_URL": "", "GEMINI_BASE_URL": "", "DEEPSEEK_API_URL": "/v1"}
    for name, path in addresses.items():
        monkeypatch.setenv(name, loopback.url + path)
    monkeypatch.setenv("DESK", str(SERVERS / "desk.py"))
    Path("answers.py").write_text(ANSWERS)
    Path("my_provider.py").write_text(CUSTOM)
    Path("mcp-testing-framework.yaml").write_text(CONFIGURATION)
    config: dict[str, Any] = yaml.safe_load(CONFIGURATION)
    return config


@pytest.mark.full
def test_a_configuration_of_the_source_system_runs_unchanged(bakeoff: Bakeoff, project: dict[str, Any]) -> None:
    done = bakeoff("mcp", "evaluate", "--html", "--no-open")
    assert done.returncode == 0, done.stdout + done.stderr
    [file] = Path("mcp-report").glob("test-report-*.json")
    report = json.loads(file.read_bytes())
    assert report.keys() >= {"timestamp", "config", "results", "summary"}
    assert [result["model"] for result in report["results"][0]["modelResults"]] == project["modelsToTest"]
    assert (report["summary"]["allPass"], report["summary"]["totalTests"]) == (True, 10)
    for result in report["results"][0]["modelResults"]:
        assert result["passRate"] == 1
        for number, detail in enumerate(result["details"], 1):
            assert (detail["round"], detail["passed"], detail["error"]) == (number, True, None)
            assert detail["response"] == project["testCases"][0]["expectedOutput"]
            assert detail["toolExecutionResult"] == {"success": True, "content": {"bmi": 27.8}}
            graded = detail["gradingResult"]
            assert (graded["grade"], graded["reasoning"]) == ("PASS", "it is")
            assert graded["finalMessage"] == "Your BMI is 27.8."
    assert "each model grades its own results" in done.stderr

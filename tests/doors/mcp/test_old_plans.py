"""Plans of older versions, whose settings hold the whole configuration, mean the same as new plans."""

import json
from pathlib import Path

import pytest

from bakeoff.doors.mcp.config import read_suite
from bakeoff.doors.mcp.door import McpDoor
from bakeoff.doors.mcp.outcome import outcome_of
from bakeoff.doors.mcp.plan import (
    EvaluationRequest,
    McpPlanSettings,
    build_plan,
    settings_of,
    with_tools,
)
from bakeoff.mcp import ServerTool
from bakeoff.options import RunOptions
from bakeoff.plan import PassRule, Plan
from bakeoff.storage.run_folder import RunFolder

OLD_PLAN = Path(__file__).with_name("plan_with_configuration.json")
CONFIGURATION = {
    "testRound": 3,
    "passThreshold": 0.8,
    "suiteRule": "ratio",
    "concurrencyLimit": 2,
    "modelsToTest": ["local:smollm2", "mine:large"],
    "testCases": [
        {
            "name": "bmi",
            "prompt": "BMI?",
            "tags": ["smoke"],
            "expectedOutput": {
                "serverName": "health",
                "toolName": "calculate-bmi",
                "parameters": {"weightKg": 90},
            },
            "expectedResults": {"bmi": 27.8},
        },
        {"prompt": "Thank you.", "expectedOutput": None},
    ],
    "mcpServers": [
        {
            "name": "health",
            "command": "health-server",
            "args": ["--fast"],
            "env": {"HEALTH_TOKEN": "token-1234567890"},
        }
    ],
    "executeTools": True,
    "gradingPrompt": "Is the answer right?",
    "judge": "mine:judge",
    "gradedText": "result",  # as all plans did when there was no choice
    "extraParameters": "allow",
    "strictJson": True,
    "retryConfig": {"maxRetries": 2, "baseDelay": 10, "maxDelay": 20},
    # Older versions gave models on this machine no more time than others.
    "modelSettings": {"temperature": 0.5, "timeout": 60, "mine:large": {"maxTokens": 99}},
    "serverScope": "trial",
    "providers": {"mine": {"baseUrl": "https://models.example/v1", "apiKeyVariable": "MINE_KEY"}},
}
"""The configuration that the old plan was made from."""


@pytest.fixture
def old(tmp_path: Path) -> Plan:
    assert "config" in Plan.model_validate_json(OLD_PLAN.read_bytes()).settings
    folder = RunFolder(tmp_path / "old-run")
    folder.path.mkdir()
    folder.plan_file.write_bytes(OLD_PLAN.read_bytes())
    return folder.read_plan()


def new_plan(folder: Path) -> tuple[Plan, McpPlanSettings]:
    file = folder / "mcp-testing-framework.yaml"
    file.write_text(json.dumps(CONFIGURATION))
    plan = build_plan(read_suite(file, {}), EvaluationRequest(path=file))
    tool = ServerTool(
        server="health", name="calculate-bmi", description="Compute the BMI.", input_schema={"type": "object"}
    )
    return with_tools(plan, settings_of(plan), [tool], ["a warning"])


def test_an_old_plan_has_the_settings_of_a_new_plan_of_the_same_file(old: Plan, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    new, settings = new_plan(Path())
    assert settings_of(old) == settings.model_copy(update={"configuration": {}})  # reports of old runs lack most of it
    assert old.cases == new.cases


def test_recorded_answers_and_scores_of_an_old_plan_are_found_by_a_new_one(
    old: Plan, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    new, settings = new_plan(Path())
    assert (old.subjects, old.scorers, old.rounds, old.seed) == (new.subjects, new.scorers, new.rounds, new.seed)
    assert {spec.revision for spec in old.subjects} == {settings.revision}
    assert [case.attempt_digest for case in old.cases] == [case.attempt_digest for case in new.cases]
    assert [case.score_digest for case in old.cases] == [case.score_digest for case in new.cases]


def test_an_old_plan_keeps_its_threshold_rule_limits_and_retries(old: Plan) -> None:
    door, outcome = McpDoor(environment={}), outcome_of(old, [], settings_of(old))
    options = door.options(old, RunOptions(jobs=8))
    assert (options.jobs, options.retries, options.backoff_seconds) == (2, 2, 0.01)
    assert (outcome.threshold, outcome.rule, outcome.state) == (0.8, "ratio", "undecided")
    assert [case.pass_rule for case in old.cases] == [PassRule(gate="share", share=0.8)] * 2

"""Function calling over the wires that providers speak, and agents that use tools for real."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff.doors.mcp.config import read_suite
from bakeoff.doors.mcp.subjects import changed_names
from bakeoff.mcp import ServerTool
from bakeoff.mcp.tools import offered_names

from ...models.loopback import KEY, Act, Loopback
from .conftest import BMI, NOTE, Evaluate, content, desk, details

WIRES = {
    "openai": ("openai:gpt-x", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
    "anthropic": ("anthropic:claude-x", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ""),
    "google": ("gemini:gemini-x", "GEMINI_API_KEY", "GEMINI_BASE_URL", ""),
}
LOG = {"serverName": "notes", "toolName": "log", "parameters": {"text": "rain"}}


@pytest.fixture
def wire(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    def reach(name: str) -> str:
        model, key, address, path = WIRES[name]
        monkeypatch.setenv(key, KEY)
        monkeypatch.setenv(address, loopback.url + path)
        return model

    return reach


def offered(name: str, body: dict[str, Any]) -> dict[str, str]:
    """The tools of a request as that provider's API spells them: names and descriptions."""
    if name == "openai":
        return {tool["function"]["name"]: tool["function"]["description"] for tool in body["tools"]}
    if name == "anthropic":
        return {tool["name"]: tool["description"] for tool in body["tools"]}
    declared = [each for tool in body["tools"] for each in tool["functionDeclarations"]]
    return {each["name"]: each["description"] for each in declared}


@pytest.mark.parametrize("name", list(WIRES))
def test_native_mode_speaks_the_tool_format_of_each_provider(
    name: str, wire: Callable[[str], str], loopback: Loopback, evaluated: Evaluate
) -> None:
    loopback.then(Act(calls=(("notes__log", {"text": "rain"}),)), Act(calls=(("health__log", {"text": "rain"}),)))
    report = evaluated(
        mode="native",
        modelsToTest=[wire(name)],
        testCases=[{"prompt": "Into my diary: rain", "expectedOutput": LOG}],
        mcpServers=[desk("health"), desk("notes")],
        testRound=2,
        concurrencyLimit=1,
        executeTools=True,
    )
    tools = offered(name, loopback.bodies[0])
    assert {"calculate-bmi", "stumble", "health__log", "add-note", "notes__log", "fail", "erase"} == set(tools)
    assert tools["notes__log"] == "Keep a line of a diary."
    right, wrong = details(report)
    assert (right.passed, content(right)) == (True, "note 1: rain")
    assert wrong.error == "serverName is 'health', expected 'notes'"
    assert report.bakeoff.models[0].usage.input == 20
    assert report.bakeoff.models[0].replies == {"native": 2}
    told = [warning.partition("yaml: ")[2] for warning in report.bakeoff.warnings]
    why = "because another server has a tool of that name"
    assert told == [f"'{server} / log' is offered as '{server}__log', {why}" for server in ("health", "notes")]


def test_words_where_a_call_was_wanted_and_tools_that_are_not_there_are_failures(
    wire: Callable[[str], str], loopback: Loopback, evaluated: Evaluate
) -> None:
    loopback.then(Act(say="Let me think."), Act(calls=(("made-up", {}),)), Act(calls=(("add-note", "{broken"),)))
    report = evaluated(
        mode="native",
        modelsToTest=[wire("openai")],
        testCases=[{"prompt": "note", "expectedOutput": NOTE}],
        mcpServers=[desk("notes")],
        testRound=3,
        concurrencyLimit=1,
    )
    errors = [detail.error or "" for detail in details(report)]
    assert "no tool was called" in errors[0]
    assert "'made-up' was called, but there is no such tool" in errors[1]
    assert "not a JSON object" in errors[2]
    called = {entry.called for entry in report.bakeoff.confusion[0].calls}
    assert called == {"no tool", "unknown / made-up", "unreadable reply"}


@pytest.mark.parametrize("levels", [100, 230, 400])
def test_arguments_that_nobody_could_keep_are_a_failure_of_the_model(
    levels: int, wire: Callable[[str], str], loopback: Loopback, evaluated: Evaluate
) -> None:
    loopback.plan = lambda _: Act(calls=(("add-note", '{"text":' * levels + "1" + "}" * levels),))
    report = evaluated(
        mode="native",
        modelsToTest=[wire("openai")],
        testCases=[{"prompt": "note", "expectedOutput": NOTE}],
        mcpServers=[desk("notes")],
    )
    assert report.summary.failedTests == 1, details(report)[0].error
    assert details(report)[0].error


def test_the_settings_of_a_suite_reach_the_provider_and_the_round_is_the_seed(
    wire: Callable[[str], str], loopback: Loopback, evaluated: Evaluate
) -> None:
    model = wire("openai")
    loopback.plan = lambda _: Act(say=json.dumps(BMI))
    evaluated(
        modelsToTest=[model],
        testRound=2,
        concurrencyLimit=1,
        modelSettings={"temperature": 0.5, model: {"maxTokens": 77}},
    )
    asked = [(body["seed"], body["temperature"], body["max_completion_tokens"]) for body in loopback.bodies]
    assert asked == [(1, 0.5, 77), (2, 0.5, 77)]
    assert "calculate-bmi" in str(loopback.bodies[0]["messages"])
    assert "response_format" not in loopback.bodies[0]


def test_an_agent_works_in_steps_and_its_calls_are_the_sequence(evaluated: Evaluate) -> None:
    steps = [
        {"step": 0, "call": [{"name": "calculate-bmi", "arguments": BMI["parameters"]}]},
        {"step": 1, "call": [{"name": "add-note", "arguments": {"text": "milk"}}]},
        {"step": 2, "say": "Your index is noted."},
    ]
    Path("steps.json").write_text(json.dumps({"replies": steps}))
    report = evaluated(
        mode="agent",
        modelsToTest=["scripted:steps.json"],
        testCases=[
            {
                "prompt": "BMI, then note milk",
                "expectedOutput": [BMI, NOTE],
                "expectedResults": [{"bmi": 27.8}, {"regex": "^note \\d+: milk$"}],
            }
        ],
        mcpServers=[desk("health"), desk("notes")],
    )
    [detail] = details(report)
    assert detail.error is None
    assert detail.toolExecutionResult == [
        {"success": True, "content": {"bmi": 27.8}},
        {"success": True, "content": "note 1: milk"},
    ]
    assert detail.response == "Your index is noted."


def named(*tools: tuple[str, str]) -> list[ServerTool]:
    return [ServerTool(server=server, name=name, input_schema={"type": "object"}) for server, name in tools]


def test_names_that_every_provider_accepts_are_kept_and_others_are_told() -> None:
    tools = named(("a", "get_It-2"), ("a", "Log"), ("a", "log"), ("a", "files.read"), ("b", "x" * 70))
    assert list(offered_names(tools)) == ["get_It-2", "Log", "log", "files_read", "x" * 64]
    accepted = "because providers accept letters, digits, _ and - in names, at most 64 characters"
    assert list(changed_names(tools)) == [
        f"'a / files.read' is offered as 'files_read', {accepted}",
        f"'b / {'x' * 70}' is offered as '{'x' * 64}', {accepted}",
    ]


def test_a_model_on_this_machine_has_more_time_unless_the_file_sets_it(write_suite: Callable[..., Path]) -> None:
    models = ["local:smollm2", "local:other", "openai:gpt-x"]
    settings = {"local:other": {"timeout": 90}}
    config = read_suite(write_suite(modelsToTest=models, modelSettings=settings)).config
    assert [config.settings_of(model).timeout for model in models] == [600, 90, 60]
    config = read_suite(write_suite(modelsToTest=models, modelSettings={"timeout": 45})).config
    assert [config.settings_of(model).timeout for model in models] == [45, 45, 45]


@pytest.mark.parametrize(("provider", "lost"), [("local", 1), ("remote", 0)])
def test_slowness_of_this_machine_is_lost_and_slowness_of_a_provider_fails(
    loopback: Loopback, evaluated: Evaluate, provider: str, lost: int
) -> None:
    loopback.plan = lambda _: Act(say=json.dumps(BMI), first_byte=30.0)
    report = evaluated(
        modelsToTest=[f"{provider}:x"],
        providers={provider: {"baseUrl": f"{loopback.url}/v1"}},
        modelSettings={"timeout": 0.2},
    )
    assert report.bakeoff.models[0].lostRounds == lost
    assert ("this machine took too long" in (details(report)[0].error or "")) is bool(lost)

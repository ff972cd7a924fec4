"""Whole evaluations with small servers of ours and scripted models."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff.doors.mcp.api import McpProgress, evaluate, evaluate_all, evaluate_mcp_async
from bakeoff.doors.mcp.config import SuiteConfig
from bakeoff.doors.mcp.plan import EvaluationRequest
from bakeoff.errors import InfraError, PlanError, UsageError
from bakeoff.models.providers import register_provider
from bakeoff.models.rate_limit import ProviderBusy
from bakeoff.options import RunOptions
from bakeoff.scorers.mcp.execution import NOT_EXECUTED

from ...mcp.conftest import nothing_is_left_running
from .conftest import BMI, NOTE, Evaluate, call, content, desk, details

pytestmark = pytest.mark.journey

__all__ = ["nothing_is_left_running"]


def test_a_right_call_passes_and_a_wrong_one_says_why(evaluated: Evaluate, script: Callable[..., str]) -> None:
    wrong = script(("", call(**{**BMI, "parameters": {"weightKg": "90", "age": 40}})))
    report = evaluated(modelsToTest=[f"scripted:{call(**BMI)}", wrong], testRound=2)
    assert [result.passRate for result in report.results[0].modelResults] == [1.0, 0.0]
    assert (report.summary.totalTests, report.summary.passedTests, report.summary.failedTests) == (2, 1, 1)
    assert not report.summary.allPass
    first = details(report, model=1)[0]
    assert first.round == 1
    assert first.error is not None
    for word in ("weightKg: is '90', expected 90", "heightM: is missing", "age: was not expected"):
        assert word in first.error


def test_the_report_has_the_keys_that_its_readers_know(evaluated: Evaluate) -> None:
    evaluated(testRound=2)
    [file] = Path("mcp-report").glob("test-report-*.json")
    assert ":" not in file.name
    report = json.loads(file.read_bytes())
    assert list(report) == ["timestamp", "config", "results", "summary", "bakeoff"]
    assert report["timestamp"].endswith("Z")
    assert file.name == f"test-report-{report['timestamp'].replace(':', '-')}.json"
    [case] = report["results"]
    assert list(case) == ["prompt", "expectedOutput", "modelResults"]
    assert case["expectedOutput"] == BMI
    [result] = case["modelResults"]
    assert list(result) == ["model", "passRate", "details"]
    assert result["details"] == [
        {"round": 1, "passed": True, "error": None, "response": BMI},
        {"round": 2, "passed": True, "error": None, "response": BMI},
    ]
    assert {"allPass": True, "totalTests": 1, "passedTests": 1, "failedTests": 0}.items() <= report["summary"].items()
    assert report["config"]["testCases"] == [{"prompt": "BMI?", "expectedOutput": BMI}]
    numbers = report["bakeoff"]["models"][0]
    assert numbers["latency"]["answers"] == 2
    assert len(report["bakeoff"]["toolsHash"]) == 32


@pytest.mark.parametrize(
    ("reply", "passed", "reason"),
    [
        ("null", True, ""),
        ("Hello, and welcome!", True, ""),
        (call(**NOTE), False, "no tool should be called"),
    ],
)
def test_null_expects_that_no_tool_is_called(evaluated: Evaluate, reply: str, passed: bool, reason: str) -> None:
    report = evaluated(
        modelsToTest=[f"scripted:{reply}"],
        testCases=[{"prompt": "Hello", "expectedOutput": None}],
        mcpServers=[desk("notes")],
    )
    [detail] = details(report)
    assert detail.passed is passed
    assert reason in (detail.error or "")


def test_a_sequence_has_to_be_called_whole_and_in_its_order(evaluated: Evaluate, script: Callable[..., str]) -> None:
    both = [BMI, NOTE]
    models = [
        script(("", json.dumps(both)), name="right"),
        script(("", json.dumps(both[::-1])), name="reversed"),
        script(("", json.dumps(both[:1])), name="half"),
    ]
    report = evaluated(
        modelsToTest=models,
        testCases=[{"prompt": "BMI, then a note", "expectedOutput": both}],
        mcpServers=[desk("health"), desk("notes")],
    )
    assert [result.passRate for result in report.results[0].modelResults] == [1.0, 0.0, 0.0]
    assert "call 1: serverName is 'notes'" in (details(report, model=1)[0].error or "")
    assert "1 call was made" in (details(report, model=2)[0].error or "")


def test_extra_parameters_and_strict_json_are_as_the_suite_says(
    evaluated: Evaluate, script: Callable[..., str]
) -> None:
    extra = call(**{**BMI, "parameters": {**BMI["parameters"], "unit": "kg"}})
    fenced = [script(("", f"Sure: ```json\n{extra}\n```"))]
    assert evaluated(modelsToTest=fenced, extraParameters="allow").summary.allPass
    assert not evaluated(modelsToTest=fenced).summary.allPass
    strict = evaluated(modelsToTest=fenced, extraParameters="allow", strictJson=True)
    assert "strictJson" in (details(strict)[0].error or "")
    assert strict.bakeoff.models[0].replies == {"fenced": 1}


def test_the_threshold_is_of_rounds_and_the_ratio_of_cells(evaluated: Evaluate, script: Callable[..., str]) -> None:
    model = script(("BMI", call(**BMI)), ("", "null"))
    cases = [{"prompt": "BMI?", "expectedOutput": BMI}, {"prompt": "Note!", "expectedOutput": NOTE}]
    fields: dict[str, Any] = {
        "modelsToTest": [model],
        "testCases": cases,
        "mcpServers": [desk("health"), desk("notes")],
    }
    assert not evaluated(**fields, passThreshold=0.5).summary.allPass
    assert evaluated(**fields, passThreshold=0.5, suiteRule="ratio").summary.allPass
    assert not evaluated(**fields, passThreshold=0.6, suiteRule="ratio").summary.allPass


def test_filters_leave_out_and_are_no_failures(evaluated: Evaluate, script: Callable[..., str]) -> None:
    cases = [
        {"name": "index", "prompt": "My BMI?", "expectedOutput": BMI, "tags": ["smoke"]},
        {"prompt": "a NOTE please", "expectedOutput": NOTE},
    ]
    models = [f"scripted:{call(**BMI)}", script(("", "null"))]
    fields: dict[str, Any] = {"testCases": cases, "modelsToTest": models, "mcpServers": [desk("health"), desk("notes")]}
    for asked in ({"cases": ["index"]}, {"cases": ["smoke"]}, {"cases": ["1"]}, {"prompts": ["bmi"]}):
        report = evaluated(**fields, request={**asked, "models": models[:1]})
        assert [case.prompt for case in report.results] == ["My BMI?"]
        assert (report.summary.totalTests, report.summary.allPass) == (1, True)
    with pytest.raises(UsageError, match="did you mean 'index'"):
        evaluated(**fields, request={"cases": ["indx"]})
    with pytest.raises(UsageError, match="not among modelsToTest"):
        evaluated(**fields, request={"models": ["local:smollm2"]})
    with pytest.raises(UsageError, match="no case"):
        evaluated(**fields, request={"prompts": ["nowhere"]})


def test_a_part_of_a_suite_is_asked_with_the_words_of_the_whole(evaluated: Evaluate) -> None:
    heard: list[str] = []

    class Listening:
        def create_message(self, system: str, message: str) -> str:
            heard.append(system)
            return "null"

    take_back = register_provider("listening", Listening())
    cases = [{"prompt": "BMI?", "expectedOutput": BMI}, {"prompt": "twice", "expectedOutput": [BMI, BMI]}]
    try:
        for chosen in ((), ("1",)):
            evaluated(modelsToTest=["listening:x"], testCases=cases, request={"cases": chosen})
    finally:
        take_back()
    assert len(heard) == 3
    assert len(set(heard)) == 1


def test_a_report_has_the_warnings_about_what_was_evaluated(evaluated: Evaluate) -> None:
    made_up = {**BMI, "toolName": "calculate-bmj"}
    cases = [{"prompt": "BMI?", "expectedOutput": BMI}, {"prompt": "x", "expectedOutput": made_up}]
    model = f"scripted:{call(**BMI)}"
    models = [model, "scripted:null"]
    settings = {"maxTokens": 9, model: {"temperature": 0.5}}
    report = evaluated(modelsToTest=models, testCases=cases, modelSettings=settings)
    [warning] = report.bakeoff.warnings
    assert "did you mean 'calculate-bmi'?" in warning
    assert report.config["modelSettings"] == {"maxTokens": 9, model: {"maxTokens": 9, "temperature": 0.5}}
    assert evaluated(testCases=cases, request={"cases": ("1",)}).bakeoff.warnings == (), "it is not asked"


def test_executed_tools_are_checked_and_an_error_of_theirs_is_one(evaluated: Evaluate) -> None:
    case = {"prompt": "BMI?", "expectedOutput": BMI}
    right = evaluated(testCases=[{**case, "expectedResults": {"bmi": 27.8}}])
    assert right.summary.allPass
    assert details(right)[0].toolExecutionResult == {"success": True, "content": {"bmi": 27.8}}
    wrong = evaluated(testCases=[{**case, "expectedResults": {"bmi": {"value": 20, "approx": 1}}}])
    assert "result of 'health / calculate-bmi': bmi: is 27.8" in (details(wrong)[0].error or "")
    fail = {"serverName": "notes", "toolName": "fail", "parameters": {"text": "x"}}
    failed = evaluated(
        modelsToTest=[f"scripted:{call(**fail)}"],
        testCases=[{"prompt": "fail", "expectedOutput": fail}],
        mcpServers=[desk("notes")],
        executeTools=True,
    )
    assert "answered with an error: it was meant to" in (details(failed)[0].error or "")
    assert details(failed)[0].toolExecutionResult == {"success": False, "error": "it was meant to"}


def test_tools_are_not_executed_where_that_is_forbidden_or_not_asked_for(evaluated: Evaluate) -> None:
    case = {"prompt": "note", "expectedOutput": NOTE}
    notes = {"modelsToTest": [f"scripted:{call(**NOTE)}"], "mcpServers": [desk("notes")]}
    judged = {"gradingPrompt": "It is kept.", "judge": 'scripted:{"rationale": "no", "choice": "B"}'}
    told = evaluated(testCases=[case], **notes, **judged)
    assert told.summary.allPass
    assert details(told)[0].toolExecutionResult is None
    assert "gradingPrompt does not grade 1 case, because" in told.bakeoff.warnings[0]
    forbidden = evaluated(testCases=[{**case, "expectedResults": "note 9"}], executeTools=False, **notes)
    assert details(forbidden)[0].toolExecutionResult is None
    assert "expectedResults is not checked in 1 case, because" in forbidden.bakeoff.warnings[0]
    wrong = evaluated(testCases=[{**case, "expectedError": True, "executeTools": False}], **notes)
    assert details(wrong)[0].toolExecutionResult is None
    assert "expectedError is not checked in 1 case, because" in wrong.bakeoff.warnings[0]
    apart = [{**case, "executeTools": False}, {**case, "prompt": "another note"}]
    report = evaluated(testCases=apart, executeTools=True, **notes)
    assert details(report, 0)[0].toolExecutionResult is None
    assert content(details(report, 1)[0]) == "note 1: milk"


@pytest.mark.parametrize("mode", ["json", "agent"])
def test_a_destructive_tool_needs_an_explicit_yes(evaluated: Evaluate, script: Callable[..., str], mode: str) -> None:
    erase = {"serverName": "notes", "toolName": "erase", "parameters": {"text": "all"}}
    case = {"prompt": "Erase all.", "expectedOutput": erase}
    agent = {"step": 0, "call": [{"name": "erase", "arguments": {"text": "all"}}]}
    Path("agent.json").write_text(json.dumps({"replies": [agent, {"step": 1, "say": "done"}]}))
    model = "scripted:agent.json" if mode == "agent" else f"scripted:{call(**erase)}"
    fields: dict[str, Any] = {"modelsToTest": [model], "mcpServers": [desk("notes")], "mode": mode}
    if mode == "agent":
        report = evaluated(testCases=[case], **fields)
        assert "is not executed in this evaluation" in str(details(report)[0].toolExecutionResult)
        assert "is marked as destructive and is not executed" in report.bakeoff.warnings[0]
    else:
        with pytest.raises(UsageError, match=r"testCases\[0\].expectedOutput.toolName: 'notes / erase' is marked as"):
            evaluated(testCases=[case], executeTools=True, **fields)
        allowed = evaluated(testCases=[{**case, "executeTools": True}], **fields)
        assert content(details(allowed)[0]) == "note 1: all"
    allowed = evaluated(testCases=[case], executeTools=True, allowDestructive=True, **fields)
    assert content(details(allowed)[0]) == "note 1: all"


@pytest.mark.parametrize("place", ["suite", "case", "turns"])
def test_an_agent_executes_nothing_where_that_is_forbidden(evaluated: Evaluate, place: str) -> None:
    steps = [{"step": 0, "call": [{"name": "erase", "arguments": {"text": "all"}}]}, {"say": "done"}]
    Path("agent.json").write_text(json.dumps({"replies": steps}))
    erase = {"serverName": "notes", "toolName": "erase", "parameters": {"text": "all"}}
    asked = {"prompt": "Erase all.", "expectedOutput": erase}
    case = {"turns": [asked], "endState": [{"command": "false"}]} if place == "turns" else asked
    report = evaluated(
        mode="agent",
        modelsToTest=["scripted:agent.json"],
        mcpServers=[desk("notes")],
        allowDestructive=True,
        concurrencyLimit=1,
        executeTools=place != "suite",
        testCases=[
            {**case, **({} if place == "suite" else {"executeTools": False})},
            {**asked, "executeTools": True, "name": "executed", "expectedResults": "note 1: all"},
        ],
    )
    assert report.summary.allPass
    assert details(report)[0].toolExecutionResult is None
    assert content(details(report, 1)[0]) == "note 1: all"  # the server counts every call that reaches it


def test_destructive_calls_that_no_case_expects_are_not_executed(evaluated: Evaluate) -> None:
    erase = {"serverName": "notes", "toolName": "erase", "parameters": {"text": "all"}}
    case = {"prompt": "note", "expectedOutput": NOTE, "extraCalls": "allow", "executeTools": True}
    fields: dict[str, Any] = {"modelsToTest": [f"scripted:{json.dumps([NOTE, erase])}"], "mcpServers": [desk("notes")]}
    results: Any = details(evaluated(testCases=[case], **fields))[0].toolExecutionResult
    assert results[0]["success"]
    assert results[1] == {"success": False, "error": NOT_EXECUTED}
    turns = [{"prompt": "note", "expectedOutput": NOTE, "extraCalls": "allow"}]
    told = details(evaluated(testCases=[{"turns": turns, "executeTools": True}], **fields))[0].error
    assert told is not None
    assert NOT_EXECUTED in told
    other = {**case, "alternatives": [erase], "executeTools": None}
    for more in ({"executeTools": True}, {"testCases": [{**other, "expectedError": True}]}):
        with pytest.raises(UsageError, match=r"alternatives\[0\].toolName: 'notes / erase' is marked as destructive"):
            evaluated(**{"testCases": [other], **fields, **more})


def test_a_tool_that_hangs_has_failed_and_is_not_tried_again(evaluated: Evaluate, tmp_path: Path) -> None:
    slow = desk("notes", tmp_path / "lives", "30")
    model = f"scripted:{call(**NOTE)}"
    case = {"prompt": "note", "expectedOutput": NOTE, "expectedResults": "note 1"}
    report = evaluated(modelsToTest=[model], testCases=[case], mcpServers=[slow], toolTimeout=0.3)
    (detail,) = details(report)
    assert "gave no answer to 'add-note' within 0.3 s" in (detail.error or "")
    assert report.summary.failedTests == 1, "it counts, as a failure of the server"
    assert len((tmp_path / "lives").read_text().split()) == 1, "it is not started again"


def test_limits_of_a_case(evaluated: Evaluate) -> None:
    case = {"prompt": "BMI?", "expectedOutput": BMI, "maxCalls": 1}
    assert evaluated(testCases=[{**case, "scorers": {"latency": 60_000}}]).summary.allPass
    report = evaluated(testCases=[{**case, "scorers": [{"latency": 0.00001}]}])
    assert "ms; at most 1e-05 ms are allowed" in (details(report)[0].error or "")
    assert report.config["testCases"] == [{**case, "scorers": [{"latency": 0.00001}]}]


def test_the_scorers_of_every_door_score_the_answer_beside_the_calls(evaluated: Evaluate) -> None:
    Path("my_scorers.py").write_text("def short(given):\n    return len(given.output) < 200\n")
    case = {"prompt": "BMI?", "expectedOutput": BMI}
    scorers = ["contains", {"checks": ["is-json"]}, {"function": "my_scorers:short"}, {"json": {"match": "subset"}}]
    good = {**case, "name": "good", "expected": {"toolName": "calculate-bmi"}, "scorers": scorers[1:]}
    bad = {**case, "name": "bad", "expected": "twenty"}
    wrong = {
        **case,
        "name": "wrong call",
        "expectedOutput": {**NOTE, "toolName": "log", "serverName": "health"},
        "expected": "calculate-bmi",
    }
    report = evaluated(testCases=[good, bad, wrong], scorers="contains")
    assert [details(report, at)[0].passed for at in range(3)] == [True, False, False]
    assert details(report, 1)[0].error == "missing: 'twenty'"
    assert "toolName is 'calculate-bmi', expected 'log'" in (details(report, 2)[0].error or "")
    assert [each.rounds for each in report.bakeoff.mostConfused] == [1], "the calls are read beside other scores"
    assert report.config["scorers"] == [{"contains": None}]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scorers": ["contans"]}, "scorers[0]: there is no scorer 'contans': did you mean 'contains'"),
        ({"scorers": ["contains"]}, "testCases[0]: has no `expected`, which contains would compare the answer with"),
        ({"scorers": [{"command": ["true"]}]}, "the scorer 'command' grades with the hidden files of a case"),
        ({"scorers": ["mcp"]}, "two scorers are called 'mcp'"),
        ({"case": {"expected": "x"}}, "testCases[0].expected: needs `scorers` that compare"),
        ({"case": {"scorers": [{"function": "nowhere:f"}]}}, "testCases[0].scorers[0].function: "),
    ],
)
def test_wrong_scorers_are_told_with_their_place(evaluated: Evaluate, fields: dict[str, Any], message: str) -> None:
    case = {"prompt": "BMI?", "expectedOutput": BMI, **fields.pop("case", {})}
    with pytest.raises((UsageError, PlanError)) as caught:
        evaluated(testCases=[case], **fields)
    assert message in str(caught.value)


def test_only_right_calls_are_executed(evaluated: Evaluate) -> None:
    report = evaluated(
        modelsToTest=[f"scripted:{call(**NOTE)}"],
        testCases=[{"prompt": "diary", "expectedOutput": {**NOTE, "toolName": "log"}}],
        mcpServers=[desk("notes")],
        executeTools=True,
    )
    assert details(report)[0].toolExecutionResult is None


@pytest.mark.parametrize("mode", ["json", "agent"])
def test_servers_of_their_own_keep_trials_apart(evaluated: Evaluate, script: Callable[..., str], mode: str) -> None:
    model = f"scripted:{call(**NOTE)}"
    if mode == "agent":
        Path("agent.json").write_text(
            json.dumps(
                {
                    "replies": [
                        {"step": 0, "call": [{"name": "add-note", "arguments": {"text": "milk"}}]},
                        {"step": 1, "say": "done"},
                    ]
                }
            )
        )
        model = "scripted:agent.json"
    fields: dict[str, Any] = {
        "modelsToTest": [model],
        "testCases": [{"prompt": "note", "expectedOutput": NOTE, "expectedResults": "note 1: milk"}],
        "mcpServers": [desk("notes")],
        "testRound": 3,
        "concurrencyLimit": 1,
        "mode": mode,
    }
    shared = details(evaluated(**fields))
    assert [content(detail) for detail in shared] == ["note 1: milk", "note 2: milk", "note 3: milk"]
    assert [detail.passed for detail in shared] == [True, False, False]
    apart = details(evaluated(**fields, serverScope="trial"))
    assert [content(detail) for detail in apart] == ["note 1: milk"] * 3
    assert all(detail.passed for detail in apart)


@pytest.mark.parametrize("mode", ["json", "agent"])
def test_a_server_that_dies_is_restarted_and_its_rounds_are_tried_again(
    evaluated: Evaluate, tmp_path: Path, mode: str
) -> None:
    lives = tmp_path / "lives"
    stumble = {"serverName": "health", "toolName": "stumble", "parameters": {"text": "x"}}
    steps = [{"step": 0, "call": [{"name": "stumble", "arguments": {"text": "x"}}]}, {"step": 1, "say": "done"}]
    Path("agent.json").write_text(json.dumps({"replies": steps}))
    report = evaluated(
        mode=mode,
        modelsToTest=["scripted:agent.json" if mode == "agent" else f"scripted:{call(**stumble)}"],
        testCases=[{"prompt": "stumble", "expectedOutput": stumble}],
        mcpServers=[desk("health", lives)],
        executeTools=True,
        testRound=3,
        concurrencyLimit=1,
    )
    assert len(lives.read_text().split()) == 2  # to die, and once more
    assert report.summary.allPass
    assert report.bakeoff.models[0].lostRounds == 0
    assert [detail.passed for detail in details(report)] == [True] * 3


@pytest.fixture
def agent(nobody: None) -> str:
    """A model that adds a note and is done."""
    steps = [{"step": 0, "call": [{"name": "add-note", "arguments": {"text": "milk"}}]}, {"step": 1, "say": "done"}]
    Path("agent.json").write_text(json.dumps({"replies": steps}))
    return "scripted:agent.json"


def test_what_a_slow_server_takes_is_not_the_time_of_the_agent_that_waits_for_it(
    write_suite: Callable[..., Path], agent: str
) -> None:
    file = write_suite(
        mode="agent",
        modelsToTest=[agent],
        testCases=[{"prompt": "note", "expectedOutput": NOTE}],
        mcpServers=[desk("notes", "lives", "0.5")],
    )
    news: list[McpProgress] = []
    assert evaluate(file, progress=news.append).summary.allPass
    attempt = news[0].record.attempt
    assert attempt is not None
    assert attempt.waited >= 0.5


def test_a_server_that_lists_the_same_tools_in_another_order_is_the_same_to_an_agent(
    evaluated: Evaluate, agent: str
) -> None:
    report = evaluated(
        mode="agent",
        modelsToTest=[agent],
        testCases=[{"prompt": "note", "expectedOutput": NOTE}],
        mcpServers=[desk("notes", "lives", "turned")],
        serverScope="trial",
    )
    assert [detail.error for detail in details(report)] == [None]
    assert len(Path("lives").read_text().split()) == 2  # to list tools, and for the round


def test_a_server_that_does_not_start_is_named_with_what_it_said(write_suite: Callable[..., Path]) -> None:
    broken = {"name": "broken", "command": sys.executable, "args": ["-c", "raise SystemExit('no licence')"]}
    file = write_suite(mcpServers=[desk("health"), broken])
    with pytest.raises(InfraError, match=r"(?s)'broken'.*no licence.*nothing was run"):
        evaluate(file)
    assert not Path("results").exists()


def test_what_providers_lack_is_told_of_all_models_before_any_server_starts(
    write_suite: Callable[..., Path], tmp_path: Path
) -> None:
    lives = tmp_path / "lives"
    models = ["openai:gpt-x", "anthropic:claude-x", "nobody:x", "gemini:g"]
    file = write_suite(modelsToTest=models, mcpServers=[desk("health", lives)])
    with pytest.raises(UsageError) as told:
        evaluate(file)
    for word in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "unknown provider 'nobody'"):
        assert word in str(told.value)
    assert not lives.exists()


def test_a_key_that_the_file_spells_out_is_in_no_file_of_a_run(evaluated: Evaluate) -> None:
    secret = "a-key-that-nobody-should-see"
    report = evaluated(mcpServers=[{**desk("health"), "env": {"API_KEY": secret}}], executeTools=True)
    assert report.summary.allPass
    written = [path for folder in ("results", "mcp-report") for path in Path(folder).rglob("*") if path.is_file()]
    assert len(written) > 4
    assert [path for path in written if secret.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("told", ["a-key-that-nobody-should-see", "${SERVICE_KEY}"])
def test_a_server_that_repeats_its_key_in_a_result_gives_it_to_no_file(evaluated: Evaluate, told: str) -> None:
    Path(".env").write_text("SERVICE_KEY=a-key-that-nobody-should-see\n" if "$" in told else "")
    wanted = {"serverName": "notes", "toolName": "log", "parameters": {"text": "$API_KEY"}}
    report = evaluated(
        modelsToTest=[f"scripted:{call(**wanted)}"],
        testCases=[{"prompt": "x", "expectedOutput": wanted}],
        mcpServers=[{**desk("notes"), "env": {"API_KEY": told}}],
        executeTools=True,
    )
    assert str(content(details(report)[0])).startswith("note 1: [redacted ")
    written = [path for folder in ("results", "mcp-report") for path in Path(folder).rglob("*") if path.is_file()]
    assert len(written) > 4
    assert [path for path in written if b"nobody-should-see" in path.read_bytes()] == []


def test_a_provider_of_ones_own_is_a_class_beside_the_configuration(write_suite: Callable[..., Path]) -> None:
    folder = Path("suite")
    file = write_suite(
        "suite/own.yaml",
        modelsToTest=["mine:x"],
        providers={"mine": {"target": "own_provider_beside:Mine", "options": {"weight": 90}}},
    )
    (folder / "own_provider_beside.py").write_text(
        "import json\n"
        "class Mine:\n"
        "    def __init__(self, settings):\n"
        "        self.weight = settings.options['weight']\n"
        "    def create_message(self, system, message):\n"
        "        assert 'calculate-bmi' in system and message == 'BMI?'\n"
        "        parameters = {'weightKg': self.weight, 'heightM': 1.8}\n"
        "        return json.dumps({'serverName': 'health', 'toolName': 'calculate-bmi', 'parameters': parameters})\n"
    )
    assert evaluate(file).summary.allPass
    assert str(folder.resolve()) not in sys.path


def test_a_registered_provider_is_asked_with_the_limit_of_the_suite(evaluated: Evaluate) -> None:
    class Counting:
        now = most = 0

        async def create_message(self, system: str, message: str) -> str:
            self.now += 1
            self.most = max(self.most, self.now)
            for _ in range(5):
                await asyncio.sleep(0)
            self.now -= 1
            return call(**BMI)

    counting = Counting()
    take_back = register_provider("counting", counting)
    try:
        report = evaluated(modelsToTest=["counting:a", "counting:b"], testRound=10, concurrencyLimit=3)
    finally:
        take_back()
    assert report.summary.allPass
    assert counting.most == 3


def test_a_busy_provider_is_tried_as_often_as_the_suite_says(evaluated: Evaluate) -> None:
    class Broken:
        calls = 0

        async def create_message(self, system: str, message: str) -> str:
            self.calls += 1
            raise ProviderBusy("come back later")

    broken = Broken()
    take_back = register_provider("broken", broken)
    try:
        retry = {"maxRetries": 2, "baseDelay": 1, "maxDelay": 2}
        report = evaluated(modelsToTest=["broken:a"], retryConfig=retry)
    finally:
        take_back()
    assert broken.calls == 3
    assert report.results[0].modelResults[0].passRate is None
    assert (report.summary.allPass, report.summary.undecidedTests) == (False, 1)
    assert "not counted (infra)" in (details(report)[0].error or "")


def test_progress_tells_of_every_round(write_suite: Callable[..., Path]) -> None:
    news: list[McpProgress] = []
    evaluate(write_suite(testRound=3), progress=news.append)
    assert [(one.done, one.total, one.passed) for one in news] == [(1, 3, True), (2, 3, True), (3, 3, True)]


def test_a_folder_of_several_suites_is_refused_before_any_is_run_where_one_report_is_wanted(
    write_suite: Callable[..., Path],
) -> None:
    for name in ("one", "two"):
        write_suite(f"suites/{name}.yaml", mcpServers=[desk("health", Path("lives").resolve())])
    with pytest.raises(UsageError, match="suites has 2 suites: use evaluate_all"):
        evaluate("suites")
    assert not Path("lives").exists()
    assert not Path("results").exists()
    reports = asyncio.run(evaluate_all("suites"))
    assert [report.bakeoff.suite for report in reports] == ["suites/one.yaml", "suites/two.yaml"]


def test_a_part_that_only_one_suite_of_a_folder_has_is_one_report(write_suite: Callable[..., Path]) -> None:
    write_suite("suites/one.yaml", testCases=[{"name": "sum", "prompt": "BMI?", "expectedOutput": BMI}])
    write_suite("suites/two.yaml")
    report = evaluate(EvaluationRequest(path=Path("suites"), cases=("sum",)))
    assert report.bakeoff.suite == "suites/one.yaml"


def test_a_judge_grades_what_the_tool_gave(evaluated: Evaluate, script: Callable[..., str]) -> None:
    case = {"prompt": "BMI?", "expectedOutput": BMI, "gradingPrompt": "The index is below 25.", "gradedText": "result"}
    graded = evaluated(testCases=[case], judge='scripted:{"rationale": "27.8 is above 25", "choice": "B"}')
    [detail] = details(graded)
    assert not detail.passed
    assert detail.error == "graded as failed: 27.8 is above 25"
    assert isinstance(detail.gradingResult, dict)
    assert detail.gradingResult["grade"] == "FAIL"
    assert evaluated(testCases=[case], judge='scripted:{"rationale": "fine", "choice": "A"}').summary.allPass
    unread = evaluated(testCases=[case], judge="scripted:I cannot say")
    assert "not counted (grader)" in (details(unread)[0].error or "")


@pytest.mark.parametrize("mode", ["json", "native", "agent"])
def test_a_judge_grades_what_the_model_tells_the_user_once_the_tool_has_run(
    evaluated: Evaluate, script: Callable[..., str], mode: str
) -> None:
    asked = [{"name": BMI["toolName"], "arguments": BMI["parameters"]}]
    replies: list[dict[str, Any]] = [{"to": "gave back", "say": "Your index is 27.8."}]
    first: dict[str, Any] = {"say": call(**BMI)} if mode == "json" else {"step": 0, "call": asked}
    replies += [{**first}, {"step": 1, "say": "Your index is 27.8."}]
    Path("model.json").write_text(json.dumps({"replies": replies}))
    judge = script(
        ("Your index is 27.8.\n<<<end of answer", '{"rationale": "it says so", "choice": "A"}'),
        ("", '{"rationale": "it does not say so", "choice": "B"}'),
        name="judge",
    )
    case = {"prompt": "BMI?", "expectedOutput": BMI, "expectedResults": {"content": "27.8"}, "gradingPrompt": "Right?"}
    cases = [case, {**case, "name": "raw", "gradedText": "result"}, {**case, "name": "both", "gradedText": "both"}]
    report = evaluated(mode=mode, modelsToTest=["scripted:model.json"], testCases=cases, judge=judge)
    graded = [details(report, at)[0].gradingResult for at in range(3)]
    good = {"grade": "PASS", "reasoning": "it says so", "finalMessage": "Your index is 27.8.", "judge": judge}
    assert graded == [good, {"grade": "FAIL", "reasoning": "it does not say so", "judge": judge}, good]


def test_a_model_without_a_final_answer_fails_before_a_judge_is_asked(
    evaluated: Evaluate, script: Callable[..., str]
) -> None:
    case = {"prompt": "BMI?", "expectedOutput": BMI, "gradingPrompt": "Right?"}
    model = script(("gave back", " "), ("", call(**BMI)))
    report = evaluated(modelsToTest=[model], testCases=[case], judge="scripted:nobody reads this")
    assert details(report)[0].error == "graded as failed: the model's final answer is empty"


def test_without_a_judge_each_model_grades_its_own_results(evaluated: Evaluate, script: Callable[..., str]) -> None:
    case = {"prompt": "BMI?", "expectedOutput": BMI, "gradingPrompt": "The index is below 25."}
    fair = script(
        ("between the marks", '{"rationale": "27.8 is above", "choice": "B"}'), ("", call(**BMI)), name="fair"
    )
    vain = script(("between the marks", '{"rationale": "it is mine", "choice": "A"}'), ("", call(**BMI)), name="vain")
    report = evaluated(modelsToTest=[fair, vain], testCases=[case])
    assert [details(report, 0, model)[0].passed for model in (0, 1)] == [False, True]
    assert details(report)[0].error == "graded as failed: 27.8 is above"
    [warning] = report.bakeoff.warnings
    assert warning.endswith("gradingPrompt without a judge: each model grades its own results; name a `judge`")


def test_recordings_answer_in_place_of_a_model(evaluated: Evaluate, script: Callable[..., str]) -> None:
    model = script(("", call(**BMI)))
    evaluated(modelsToTest=[model], options=RunOptions(replay="record"))
    script(("", "null"))
    report = evaluated(modelsToTest=[model], options=RunOptions(replay="strict"))
    assert report.summary.allPass


def test_a_configuration_can_be_data_or_an_object(write_suite: Callable[..., Path]) -> None:
    data = json.loads(write_suite().read_text())
    reports = [evaluate(data), evaluate(SuiteConfig.model_validate(data)), asyncio.run(evaluate_mcp_async(data))]
    assert [(one.summary.allPass, one.bakeoff.suite) for one in reports] == [(True, "configuration")] * 3
    with pytest.raises(UsageError, match=r"^configuration:1: testCases: is missing: list cases"):
        evaluate({name: value for name, value in data.items() if name != "testCases"})
    with pytest.raises(UsageError, match=r"^configuration: the configuration is not plain data"):
        evaluate({**data, "judge": object()})


def test_a_request_can_be_given_in_parts(write_suite: Callable[..., Path]) -> None:
    file = write_suite(testRound=5)
    report = evaluate(EvaluationRequest(path=file, rounds=2, report=Path("elsewhere")))
    assert len(details(report)) == 2
    assert {path.suffix for path in Path("elsewhere").iterdir()} == {".json", ".md", ".html", ".log"}

"""Result files from the records of a run of our own."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bakeoff.doors.components.results.model import percentage, write_step
from bakeoff.doors.components.results.read import plan_of, read_result, records_of
from bakeoff.doors.components.results.write import result_files, result_of
from bakeoff.errors import UsageError
from bakeoff.models.prices import Price
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Failure, Phase, Reasoning, Record, Score, Step, Text, ToolCall, Transcript, Usage
from bakeoff.verdict import Verdict

PRICE = Price(
    input=Decimal("0.000003"),
    output=Decimal("0.000015"),
    cache_read=Decimal("0.0000003"),
    cache_write=Decimal("0.00000375"),
    key="anthropic/claude-sonnet-4",
    source="gateway",
)
MODEL = "anthropic/claude-sonnet-4"
BEGAN = 1733581845.25  # 2024-12-07T14:30:45.250Z
COMPONENT = "<script>let n = $state(0);</script>"


def agent(name: str = MODEL, **options: Any) -> SubjectSpec:
    return SubjectSpec(kind="agent", name=name, options={"model": MODEL, **options})


def plan_with(*subjects: SubjectSpec, rounds: int = 1, **more: Any) -> Plan:
    return Plan(
        name="components",
        cases=tuple(
            Case(id=name, prompt=f"# {name}", answer_file="Component.svelte") for name in ("counter", "timer", "form")
        ),
        subjects=subjects or (agent(),),
        scorers=(ScorerSpec(kind="suite"),),
        rounds=rounds,
        door="components",
        **more,
    )


def verification(case: str, passed: int = 4, tests: int = 4, **more: Any) -> dict[str, Any]:
    return {
        "testName": case,
        "passed": passed == tests and not more.get("validationFailed"),
        "numTests": tests,
        "numPassed": passed,
        "numFailed": tests - passed,
        "duration": 150,
        **more,
    }


def suite_score(found: dict[str, Any]) -> Score:
    return Score(name="suite", value=found["numPassed"] / found["numTests"], metadata={"verification": found})


def transcript(**more: Any) -> Transcript:
    draft = ToolCall(name="TestComponent", id="1", arguments={"content": "draft"}, result={"success": False})
    again = ToolCall(name="nosuch", id="2", arguments={}, error="there is no such tool")
    write = ToolCall(name="ResultWrite", arguments={"content": COMPONENT}, result={"success": True})
    late = ToolCall(name="ResultWrite", arguments={"content": "late"}, error="the attempt was over")
    steps = (
        Step(
            parts=(Reasoning(text="hm"), Text(text="a draft"), draft, again),
            usage=Usage(requests=1, input=1000, output=200, reasoning=50),
            finish_reason="tool_call",
        ),
        Step(parts=(write, late), usage=Usage(requests=1, input=1500, output=200), finish_reason="tool_call"),
        Step(usage=Usage(requests=1, input=2100, output=200)),
    )
    return Transcript(steps=steps, metadata={"price": PRICE.model_dump(mode="json"), **more})


def record(plan: Plan, case: str, subject: str = MODEL, round_: int = 0, **more: Any) -> Record:
    trial = plan.find(case, subject, round_)
    assert trial is not None
    usual: dict[str, Any] = {
        "case": case,
        "subject": subject,
        "round": round_,
        "attempt_key": trial.attempt_key,
        "score_key": trial.score_key,
        "started": BEGAN + trial.index,
        "threshold": 1.0,
        "attempt": Phase(seconds=2.5),
        "score": Phase(seconds=0.5),
        "transcript": transcript(),
        "scores": (suite_score(verification(case)),),
        "spent": Usage(requests=3, input=4600, output=600, cost=0.0228),
    }
    return Record(**{**usual, **more})


def lost(plan: Plan, case: str, kind: str, **more: Any) -> Record:
    failure = Failure.model_validate({"kind": kind, "type": "Broken", "message": f"{kind} it was"})
    return record(
        plan, case, attempt=Phase(seconds=1.0, failure=failure), transcript=None, scores=(), score=None, **more
    )


def written(plan: Plan, *records: Record, subject: str = MODEL, round_: int = 0) -> Any:
    return json.loads(result_of(plan, subject, round_, records).to_json())


@pytest.mark.parametrize(
    ("result", "output"),
    [
        ("found", {"content": [{"type": "text", "text": "found"}]}),
        ({"pages": ["é"]}, {"content": [{"type": "text", "text": '{"pages": ["é"]}'}]}),
        ({"content": [{"type": "text", "text": "a"}]}, {"content": [{"type": "text", "text": "a"}]}),
    ],
)
def test_what_a_server_returned_is_written_in_the_form_of_its_protocol(result: Any, output: Any) -> None:
    call = ToolCall(name="search", id="1", arguments={}, result=result)
    [_, written_result] = write_step(Step(parts=(call,))).model_dump(mode="json")["content"]
    assert written_result["output"] == output


def test_a_step_is_written_with_its_reasoning_calls_results_and_tokens() -> None:
    plan = plan_with()
    first, second, third = written(plan, record(plan, "counter"))["tests"][0]["steps"]
    call = {"toolCallId": "1", "toolName": "TestComponent", "input": {"content": "draft"}}
    nosuch = {"toolCallId": "2", "toolName": "nosuch", "input": {}}
    assert first == {
        "content": [
            {"type": "reasoning", "text": "hm"},
            {"type": "text", "text": "a draft"},
            {"type": "tool-call", **call},
            {"type": "tool-call", **nosuch},
            {"type": "tool-result", **call, "output": {"success": False}},
            {"type": "tool-result", **nosuch, "output": {"error": "there is no such tool"}},
        ],
        "finishReason": "tool-calls",
        "usage": {
            "inputTokens": 1000,
            "outputTokens": 200,
            "totalTokens": 1200,
            "cachedInputTokens": 0,
            "reasoningTokens": 50,
        },
        "warnings": [],
        "response": {},
    }
    assert second["content"][0]["toolCallId"] == "call-1"
    assert (third["content"], third["finishReason"]) == ([], "unknown")


def test_the_first_accepted_result_write_is_what_was_handed_in() -> None:
    plan = plan_with()
    assert written(plan, record(plan, "counter"))["tests"][0]["resultWriteContent"] == COMPONENT


def test_without_a_result_write_the_answer_file_was_handed_in() -> None:
    plan = plan_with(SubjectSpec(kind="oracle", name="oracle"))
    files = {"notes.md": "…", "Component.svelte": "<p>right</p>"}
    oracle = record(plan, "counter", "oracle", transcript=Transcript(), artefacts=files, bound=True)
    result = written(plan, oracle, subject="oracle")
    assert result["tests"][0]["resultWriteContent"] == "<p>right</p>"
    assert result["metadata"]["model"] == "oracle"
    assert "pricing" not in result["metadata"]
    assert result["bakeoff"]["trials"][0]["bound"] is True
    silent = record(plan, "counter", "oracle", transcript=Transcript(), artefacts={})
    assert written(plan, silent, subject="oracle")["tests"][0]["resultWriteContent"] is None


def test_the_verification_is_the_suite_scorers_word() -> None:
    plan = plan_with()
    found = verification(
        "counter",
        3,
        error="1 failed",
        failedTests=[{"fullName": "Counter > click > counts", "errorMessage": "expected 1"}],
        validation={"valid": False, "errors": ["no runes"]},
        validationFailed=True,
    )
    result = written(plan, record(plan, "counter", scores=(suite_score(found),)))
    assert result["tests"][0]["verification"] == found


def test_a_suite_whose_validation_failed_counts_none_of_its_tests() -> None:
    plan = plan_with()
    invalid = verification("timer", 4, validationFailed=True, validation={"valid": False, "errors": []})
    records = [
        record(plan, "counter"),
        record(plan, "timer", scores=(suite_score(invalid),)),
        record(plan, "form", scores=(suite_score(verification("form", 1, 3)),)),
    ]
    totals = written(plan, *records)["metadata"]["unitTestTotals"]
    assert totals == {"total": 11, "passed": 5, "failed": 6, "score": 45}


@pytest.mark.parametrize(("passed", "total", "score"), [(0, 0, 0), (1, 8, 13), (3, 8, 38), (1, 3, 33), (7, 7, 100)])
def test_half_a_percent_is_rounded_up(passed: int, total: int, score: int) -> None:
    assert percentage(passed, total) == score


def test_money_is_that_of_the_steps_and_written_per_million_tokens() -> None:
    plan = plan_with()
    metadata = written(plan, record(plan, "counter"))["metadata"]
    assert metadata["pricingKey"] == MODEL
    assert metadata["pricing"] == {
        "inputCostPerMTok": 3,
        "outputCostPerMTok": 15,
        "cacheReadCostPerMTok": 0.3,
        "cacheCreationCostPerMTok": 3.75,
    }
    assert metadata["totalCost"] == {
        "inputCost": 0.0138,
        "outputCost": 0.009,
        "cacheReadCost": 0,
        "totalCost": 0.0228,
        "inputTokens": 4600,
        "outputTokens": 600,
        "cachedInputTokens": 0,
    }
    assert metadata["cacheSimulation"] == {
        "simulatedCostWithCache": 0.017625,
        "cacheHits": 2500,
        "cacheWriteTokens": 2100,
        "outputTokens": 600,
        "simulatedInputCost": 0.008625,
        "simulatedOutputCost": 0.009,
    }


def test_cached_tokens_are_billed_apart_and_cache_writes_stand_among_our_additions() -> None:
    plan = plan_with()
    usage = Usage(requests=1, input=3000, cache_read=1000, cache_write=1000, output=1000)
    steps = (Step(usage=usage),)
    told = transcript().model_copy(update={"steps": steps})
    result = written(plan, record(plan, "counter", transcript=told))
    assert result["metadata"]["totalCost"] == {
        "inputCost": 0.003,
        "outputCost": 0.015,
        "cacheReadCost": 0.0003,
        "totalCost": 0.02205,
        "inputTokens": 1000,
        "outputTokens": 1000,
        "cachedInputTokens": 1000,
    }
    assert result["bakeoff"]["cacheWriteCost"] == 0.00375
    assert result["tests"][0]["steps"][0]["usage"]["inputTokens"] == 3000


def test_without_pricing_no_money_is_written() -> None:
    plan = plan_with(settings={"pricing": False})
    metadata = written(plan, record(plan, "counter"))["metadata"]
    assert not metadata.keys() & {"pricing", "pricingKey", "totalCost", "cacheSimulation"}


@pytest.mark.parametrize(
    ("mcp", "expected"),
    [
        ([], (False, None, None)),
        (["none"], (False, None, None)),
        (["http:https://mcp.svelte.dev/mcp"], (True, "https://mcp.svelte.dev/mcp", "HTTP")),
        (["stdio:npx -y @sveltejs/mcp", "http"], (True, "npx -y @sveltejs/mcp", "StdIO")),
        ([{"name": "mine", "url": "https://me:secret@host/sse?key=1"}], (True, "https://host/sse", "HTTP")),
    ],
)
def test_the_first_server_stands_in_the_metadata_without_its_secrets(mcp: list[Any], expected: Any) -> None:
    plan = plan_with(agent(mcp=mcp))
    told = transcript(mcp_tools_hash="abc123")
    result = written(plan, record(plan, "counter", transcript=told))
    metadata = result["metadata"]
    assert (metadata["mcpEnabled"], metadata["mcpServerUrl"], metadata["mcpTransportType"]) == expected
    assert result["bakeoff"]["mcpToolsHash"] == "abc123"
    assert len(result["bakeoff"]["mcpServers"]) == len([one for one in mcp if one != "none"])
    assert "secret" not in json.dumps(result)


@pytest.mark.parametrize("kind", ["infra", "budget", "grader"])
def test_a_trial_that_was_lost_has_no_verification_and_is_named(kind: str) -> None:
    plan = plan_with()
    result = written(plan, record(plan, "counter"), lost(plan, "timer", kind))
    assert result["tests"][1]["verification"] is None
    assert result["bakeoff"]["trials"][1]["verdict"] == kind
    assert result["bakeoff"]["trials"][1]["reason"] == f"{kind} it was"
    assert result["bakeoff"]["notRun"] == ["form"]
    assert result["metadata"]["unitTestTotals"]["total"] == 4


def test_a_subject_that_was_too_slow_passed_none_of_the_tests() -> None:
    plan = plan_with()
    [(_, result)] = result_files(plan, [lost(plan, "timer", "timeout")], {"timer": 6})
    test = json.loads(result.to_json())["tests"][0]
    assert test["verification"] == {
        "testName": "timer",
        "passed": False,
        "numTests": 6,
        "numPassed": 0,
        "numFailed": 6,
        "duration": 0,
        "error": "timeout it was",
    }
    assert result.metadata.unit_test_totals is not None
    assert result.metadata.unit_test_totals.total == 6


def test_a_score_that_is_no_verification_is_written_as_none() -> None:
    plan = plan_with()
    strange = Score(name="suite", value=1.0, metadata={"verification": {"passed": "yes"}})
    assert written(plan, record(plan, "counter", scores=(strange,)))["tests"][0]["verification"] is None


def test_there_is_one_file_for_each_subject_and_round() -> None:
    plan = plan_with(agent(), agent("with mcp", mcp=["http"]), agent("warm", temperature=1), rounds=2)
    records = [
        record(plan, "counter", subject.name, round_, started=BEGAN) for round_ in (1, 0) for subject in plan.subjects
    ]
    stem = "result-2024-12-07-14-30-45-anthropic-claude-sonnet-4"
    assert [name for name, _ in result_files(plan, records)] == [
        f"{stem}-r1.json",
        f"{stem}-mcp-mcp.svelte.dev-r1.json",
        f"{stem}-r1-2.json",
        f"{stem}-r2.json",
        f"{stem}-mcp-mcp.svelte.dev-r2.json",
        f"{stem}-r2-2.json",
    ]
    [(name, result)] = result_files(plan_with(), [record(plan_with(), "counter")])
    assert name == f"{stem}.json"
    assert result.metadata.timestamp == "2024-12-07T14:30:45.250Z"


def test_tests_stand_in_the_order_of_the_plan_and_only_of_that_subject_and_round() -> None:
    plan = plan_with(agent(), agent("other"), rounds=2)
    records = [
        record(plan, "form"),
        record(plan, "counter", "other"),
        record(plan, "timer", round_=1),
        record(plan, "counter"),
    ]
    assert [test["testName"] for test in written(plan, *records)["tests"]] == ["counter", "form"]


def test_a_server_that_is_none_is_a_sentence() -> None:
    plan = plan_with(agent(mcp=[{"name": "mine"}]))
    with pytest.raises(UsageError, match=r"option mcp: .*neither `command` nor `url`"):
        result_of(plan, MODEL, 0, [])


def test_a_file_of_ours_is_read_back_with_its_verdicts(tmp_path: Path) -> None:
    plan = plan_with(agent(mcp=["stdio", "http"]), rounds=3)
    slow = lost(plan, "timer", "timeout", round_=1)
    records = [
        record(plan, "counter", round_=1, transcript=transcript(mcp_tools_hash="abc"), tries=2),
        slow,
        lost(plan, "form", "infra", round_=1),
    ]
    [(name, result)] = result_files(plan, records)
    file = tmp_path / name
    file.write_bytes(result.to_json())
    read = read_result(file)
    assert read == result
    again = list(records_of(read, plan_of(read, "again")))
    assert [one.verdict for one in again] == [Verdict.PASS, Verdict.TIMEOUT, Verdict.INFRA]
    assert [one.seconds for one in again] == [one.seconds for one in records]


@pytest.mark.parametrize("kind", ["infra", "budget", "grader", "timeout"])
def test_whose_doing_it_was_is_known_after_reading_a_file_of_ours(kind: str) -> None:
    plan = plan_with()
    result = result_of(plan, MODEL, 0, [lost(plan, "timer", kind)])
    [again] = records_of(result, plan_of(result, "again"))
    assert again.verdict == kind


def test_hostile_names_of_tools_do_not_keep_a_file_from_being_written() -> None:
    plan = plan_with()
    call = ToolCall(name="x" * 10_000, id="\x1b" * 10_000, arguments=[1], result=None)
    told = Transcript(steps=(Step(parts=(call,)),))
    [step] = written(plan, record(plan, "counter", transcript=told))["tests"][0]["steps"]
    assert len(step["content"][0]["toolName"]) == 4000

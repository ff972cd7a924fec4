"""Cases with several turns: what is carried on, where a conversation ends, and what reports say about it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart

from bakeoff._kernel.clock import Clock
from bakeoff.doors.mcp.plan import McpPlanSettings
from bakeoff.doors.mcp.results.report import McpReport
from bakeoff.doors.mcp.subjects import TurnConversation, turn_rules, with_results
from bakeoff.errors import GraderError
from bakeoff.mcp import ServerTool
from bakeoff.models.conversation import Conversation
from bakeoff.record import Step, Text, ToolCall, Transcript
from bakeoff.scorers.mcp.calls import (
    Call,
    CallRules,
    CaseExpectation,
    ExecutedCall,
    ExpectedMcpCall,
    ExpectedTurn,
)
from bakeoff.scorers.mcp.execution import TurnRules
from bakeoff.scorers.mcp.scorer import McpCalls

from .conftest import Evaluate, desk, details


def note(text: str, tool: str = "add-note") -> dict[str, Any]:
    return {"serverName": "notes", "toolName": tool, "parameters": {"text": text}}


TURNS: list[dict[str, Any]] = [
    {"prompt": "Note milk.", "expectedOutput": note("milk"), "expectedResults": "milk"},
    {"prompt": "Bread, too.", "expectedOutput": note("bread"), "expectedResults": "note 2: bread"},
    {"prompt": "Thanks.", "expectedOutput": None},
]
CASE = {"name": "two notes", "turns": TURNS}


def model(mode: str, *calls: dict[str, Any] | None, name: str = "model") -> str:
    """Return a model that makes one call in each turn. `None` is a turn without a call."""
    replies: list[dict[str, Any]] = []
    for call in calls:
        if mode == "json":
            replies.append({"say": json.dumps(call)})
        elif call is None:
            replies.append({"say": "You are welcome."})
        else:
            replies.append({"call": [{"name": call["toolName"], "arguments": call["parameters"]}]})
            replies += [{"say": "It is done."}] if mode == "agent" else []
    script = {"replies": [{**reply, "step": step} for step, reply in enumerate(replies)]}
    Path(f"{name}.json").write_text(json.dumps(script))
    return f"scripted:{name}.json"


def evaluated_in(evaluated: Evaluate, mode: str, **fields: Any) -> McpReport:
    models = [
        model(mode, note("milk"), note("bread"), None, name="good"),
        model(mode, note("milk"), note("bread", "log"), None, name="bad"),
    ]
    usual = {"testCases": [CASE], "mcpServers": [desk("notes")], "serverScope": "trial", "testRound": 2}
    return evaluated(mode=mode, modelsToTest=models, **{**usual, **fields})


@pytest.mark.parametrize("mode", ["json", "native", "agent"])
def test_a_conversation_goes_on_with_the_results_of_its_tools_and_ends_with_the_turn_that_fails(
    evaluated: Evaluate, mode: str
) -> None:
    report = evaluated_in(evaluated, mode)
    good, bad = details(report)[0], details(report, model=1)[1]
    # `note 2`: all turns of a round have the same server, and each round has a fresh one
    assert (good.passed, good.failedTurn, [turn.passed for turn in good.turns]) == (True, None, [True] * 3)
    assert good.turns[1].toolExecutionResult == {"success": True, "content": "note 2: bread"}
    assert details(report)[1].passed
    assert (bad.passed, bad.failedTurn, [turn.passed for turn in bad.turns]) == (False, 2, [True, False])
    assert bad.error == "turn 2 of 3: toolName is 'log', expected 'add-note'"
    assert bad.turns[1].error == "toolName is 'log', expected 'add-note'"
    assert bad.turns[1].response == note("bread", "log")
    assert [(turn.prompt, turn.expectedOutput) for turn in report.results[0].turns][1] == ("Bread, too.", note("bread"))
    assert report.config["testCases"] == [CASE]


def test_every_report_says_which_turn_failed(evaluated: Evaluate) -> None:
    evaluated_in(evaluated, "json")
    [markdown], [page], [log] = (list(Path("mcp-report").glob(f"*.{end}")) for end in ("md", "html", "log"))
    assert "turn 2 of 3: toolName is 'log', expected 'add-note'" in markdown.read_text()
    assert "not asked" in markdown.read_text()
    assert "FAILED at turn 2" in log.read_text()
    assert "<strong>(failed)</strong>" in page.read_text()
    assert "(not asked)" in page.read_text()


def test_turns_that_were_not_asked_are_no_confusion(evaluated: Evaluate) -> None:
    report = evaluated_in(evaluated, "json")
    [_, bad] = report.bakeoff.confusion
    assert {(entry.wanted, entry.called): entry.rounds for entry in bad.calls} == {
        ("notes / add-note", "notes / add-note"): 2,
        ("notes / add-note", "notes / log"): 2,
    }


def test_a_case_with_turns_that_must_not_execute_does_not(evaluated: Evaluate, tmp_path: Path) -> None:
    turns = [{name: turn[name] for name in ("prompt", "expectedOutput")} for turn in TURNS]
    lives = tmp_path / "lives"
    report = evaluated_in(
        evaluated,
        "native",
        testCases=[{"turns": turns, "executeTools": False}],
        mcpServers=[desk("notes", lives)],
    )
    assert details(report)[0].passed
    assert details(report)[0].toolExecutionResult is None
    assert len(lives.read_text().split()) == 1  # to list its tools


NOTES = tuple(ServerTool(server="notes", name=name, input_schema={"type": "object"}) for name in ("add-note", "log"))


def turn(prompt: str, *calls: Call, **fields: Any) -> ExpectedTurn:
    expected = tuple(ExpectedMcpCall.model_validate(call.model_dump()) for call in calls)
    return ExpectedTurn(prompt=prompt, calls=expected or None, **fields)


def rules(mode: Any = "json") -> TurnRules:
    return turn_rules(McpCalls(mode=mode), McpPlanSettings(file="a.yaml", report="r", servers=(), tools=NOTES), {})


def carried_on(mode: Any, turns: list[ExpectedTurn], *steps: Step) -> tuple[list[Any], Transcript]:
    """Return the messages of the last request, and the transcript of a model that takes these steps."""
    left = iter(steps)
    seen: list[Conversation] = []

    async def ask(talk: Conversation) -> Conversation:
        seen.append(talk)
        step = next(left)
        talk.steps.append(step)
        called = [part for part in step.parts if isinstance(part, ToolCall)]
        if called:  # as the loop does with tools that do nothing
            talk.messages.append(
                ModelRequest(parts=[ToolReturnPart(part.name, None, part.id or "") for part in called])
            )
        return talk

    expected = CaseExpectation(calls=None, turns=tuple(turns))
    transcript = asyncio.run(TurnConversation(rules(mode), None, Clock(60.0)).run(expected, ask, None))
    return seen[-1].messages, transcript


MILK, BREAD = Call.model_validate(note("milk")), Call.model_validate(note("bread"))


def test_a_call_that_was_not_executed_is_answered_before_the_next_message() -> None:
    called = Step(parts=(ToolCall(name="add-note", arguments={"text": "milk"}, id="1"),))
    messages, _ = carried_on("native", [turn("Milk.", MILK), turn("Thanks.")], called, Step(parts=(Text(text="Bye"),)))
    result, prompt = messages[-1].parts
    assert (result.tool_call_id, result.content) == ("1", "done; the result is not shown")
    assert isinstance(prompt, UserPromptPart)
    assert prompt.content == "Thanks."


def test_a_model_that_replies_with_json_reads_its_calls_and_what_they_gave() -> None:
    failed = ExecutedCall(tool="notes / add-note", text="the pencil broke", is_error=True)
    assert with_results("And now?", [MILK, BREAD], [failed]).splitlines() == [
        "These calls were made, and gave back:",
        'notes / add-note {"text": "milk"}: the pencil broke',
        'notes / add-note {"text": "bread"}: not made, because the call before it failed',
        "",
        "The user's next message: And now?",
    ]
    assert with_results("And now?", [], []) == "And now?"


def test_a_conversation_that_other_expectations_ended_is_not_scored() -> None:
    said = Step(parts=(Text(text=json.dumps(note("milk"))),))
    _, transcript = carried_on("json", [turn("Bread.", BREAD), turn("Thanks.")], said)
    with pytest.raises(GraderError, match="ended after turn 1 by other expectations"):
        asyncio.run(rules().read([turn("Milk.", MILK), turn("Thanks.")], transcript))
    with pytest.raises(GraderError, match="has no turns"):
        asyncio.run(rules().read([turn("Milk.", MILK)], Transcript(output="null")))


def test_rules_of_a_turn_are_its_own() -> None:
    both = Step(parts=(Text(text=json.dumps([note("bread"), note("milk")])),))
    turns = [turn("Both.", MILK, BREAD, rules=CallRules(order="any")), turn("Both again.", MILK, BREAD)]
    _, transcript = carried_on("json", turns, both, both)
    [first, second] = asyncio.run(rules().read(turns, transcript))
    assert first.problems == ()
    assert second.problems[0].startswith("call 1: ")

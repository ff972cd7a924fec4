"""Test what a case has left behind, checked by commands and queries."""

import json
from pathlib import Path
from typing import Any

import pytest

from bakeoff.doors.mcp.config import read_suite
from bakeoff.errors import UsageError
from bakeoff.scorers.mcp.calls import EndCheck

from .conftest import NOTE, Evaluate, call, desk, details

QUERY = {"serverName": "notes", "toolName": "log", "parameters": {"text": "x"}}


def case(name: str, *checks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "prompt": f"Note milk: {name}", "expectedOutput": NOTE, "endState": checks, **more}


def evaluated_notes(evaluated: Evaluate, *cases: dict[str, Any], **fields: Any) -> Any:
    Path("seen.txt").touch()
    usual = {"mcpServers": [desk("notes")], "serverScope": "trial", "modelsToTest": [f"scripted:{call(**NOTE)}"]}
    return evaluated(testCases=cases, **{**usual, **fields})


def test_every_check_has_its_own_line_and_reason(evaluated: Evaluate) -> None:
    good = case(
        "good",
        {"command": "pwd; ls", "expectedResults": "seen.txt"},
        {"query": QUERY, "expectedResults": "note 2"},  # on the same server, which is a fresh one for each round
    )
    bad = case(
        "bad",
        {"name": "a file", "command": ["ls", "/nowhere/at all"]},
        {"query": QUERY, "expectedResults": "note 3"},
    )
    report = evaluated_notes(evaluated, good, bad, testRound=2)
    assert [(each.check, each.passed) for each in details(report)[1].endState] == [
        ("pwd; ls", True),
        ("notes / log", True),
    ]
    failed = details(report, 1)[0]
    [file, query] = failed.endState
    assert file.reason.startswith("exit code 2: ")
    assert "/nowhere/at all" in file.reason
    assert query.reason == "'note 3' is not in 'note 2: x'"
    assert str(failed.error).startswith("end state: a file: exit code 2")
    assert failed.turns == ()
    assert report.config["testCases"][0] == json.loads(json.dumps(good))
    numbers = report.bakeoff.models[0]
    assert (numbers.passAtK.name, numbers.passAtK.value, numbers.passHatK.value) == ("pass@2", 0.5, 0.5)
    [markdown], [log], [page] = (list(Path("mcp-report").glob(f"*.{end}")) for end in ("md", "log", "html"))
    assert "'note 3' is not in 'note 2: x'" in markdown.read_text()
    assert page.read_text().index("End states") < page.read_text().index('id="answers"')
    assert "pass^2" in markdown.read_text()
    assert "end state: notes / log: FAILED: 'note 3' is not in 'note 2: x'" in log.read_text()


def test_nothing_is_checked_where_the_tools_were_not_executed(evaluated: Evaluate) -> None:
    checks = ({"command": "touch was-checked"},)
    wrong = {**NOTE, "parameters": {"text": "bread"}}
    report = evaluated_notes(
        evaluated, case("told not to", *checks, executeTools=False), case("wrong call", *checks, expectedOutput=wrong)
    )
    assert [details(report, at)[0].endState for at in range(2)] == [(), ()]
    assert [details(report, at)[0].passed for at in range(2)] == [True, False]
    assert not Path("was-checked").exists()
    assert any("endState is not checked where executeTools is false" in each for each in report.bakeoff.warnings)


def test_an_agent_that_made_other_calls_has_its_end_state_checked_too(evaluated: Evaluate) -> None:
    steps = [{"step": 0, "call": [{"name": "log", "arguments": {"text": "milk"}}]}, {"step": 1, "say": "done"}]
    Path("agent.json").write_text(json.dumps({"replies": steps}))
    report = evaluated_notes(
        evaluated,
        case("agent", {"query": QUERY, "expectedResults": "note 2"}),
        mode="agent",
        modelsToTest=["scripted:agent.json"],
    )
    [detail] = details(report)
    assert (detail.passed, [each.passed for each in detail.endState]) == (False, [True])


@pytest.mark.parametrize(
    ("check", "key", "told"),
    [
        ({}, "", "this checks nothing: write `command` or `query`"),
        ({"command": "ls", "query": QUERY}, "", "this has command and query: write `command` or `query`"),
        ({"comand": "ls"}, ".comand", "is not a key that is known here: did you mean 'command'?"),
        ({"query": {"serverName": "notes"}}, ".query.toolName", "is missing"),
        ({"query": QUERY, "serverName": "notes"}, ".serverName", "is the server in whose folder a `command` runs"),
        ({"command": "ls", "serverName": "note"}, ".serverName", "no server is called 'note': did you mean 'notes'?"),
    ],
)
def test_a_wrong_check_is_told_with_its_place(write_suite: Any, check: dict[str, Any], key: str, told: str) -> None:
    file = write_suite(testCases=[case("x", check)], mcpServers=[desk("notes")])
    with pytest.raises(UsageError) as caught:
        read_suite(file, {})
    assert f":1: testCases[0].endState[0]{key}: " in str(caught.value)
    assert told in str(caught.value)


def test_a_check_is_called_what_it_does() -> None:
    assert EndCheck(command=("ls", "-l")).label == "ls -l"
    assert EndCheck(command="ls", name="files").label == "files"

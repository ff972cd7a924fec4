"""`bakeoff mcp evaluate --watch`: what changed and what failed is asked again, and the rest is carried over."""

import asyncio
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from bakeoff.doors.mcp.api import evaluate
from bakeoff.doors.mcp.plan import EvaluationRequest, settings_of
from bakeoff.doors.mcp.suites import prepare, read_suites
from bakeoff.doors.mcp.watch import (
    CHANGED_TOOL,
    MORE_ROUNDS,
    Selection,
    newest_run,
    select,
    suite_sources,
    wanted_tools,
)
from bakeoff.engine.reuse import CARRIED_OVER, CHANGED, NEW, NOT_PASSED
from bakeoff.mcp import ServerSpec
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.storage.run_folder import RunFolder, run_folders

from ...cli.wizard_terminal import CTRL_C, Terminal
from ...warm_bakeoff import PROGRAM, Bakeoff
from .reader import BETTER, DESCRIPTIONS, PROMPTS, write_words

RESULTS = Path("results")
GOOD = {**DESCRIPTIONS, "remove": BETTER}
ALL = sum(map(len, PROMPTS.values()))


def planned(descriptions: dict[str, str], **fields: Any) -> Plan:
    """Return the plan of the configuration as it is now, with the tools that its server lists."""
    request = EvaluationRequest(path=write_words(Path.cwd(), descriptions, **fields))
    plan = asyncio.run(prepare(read_suites(request, RunOptions()).suites[0])).plan
    assert settings_of(plan).tools
    return plan


def evaluated(descriptions: dict[str, str], **fields: Any) -> RunFolder:
    config = write_words(Path.cwd(), descriptions, **fields)
    evaluate(EvaluationRequest(path=config))
    earlier = newest_run(RESULTS, str(config))
    assert earlier is not None
    return earlier


def why(selection: Selection) -> Counter[str]:
    return Counter(selection.asked.values())


def edited(plan: Plan, **case: Any) -> Plan:
    """Return the plan with another first case."""
    return plan.model_copy(update={"cases": (plan.cases[0].model_copy(update=case), *plan.cases[1:])})


@pytest.mark.usefixtures("nobody")
def test_cases_whose_tools_changed_are_asked_and_others_are_carried_over() -> None:
    earlier = evaluated(GOOD)
    plan = planned({**GOOD, "weather": "What the sky does: the forecast."})
    selection = select(plan, earlier)
    assert why(selection) == {CHANGED_TOOL: len(PROMPTS["weather"])}
    assert {case for case, _ in selection.asked} == {"The-forecast", "Which-forecast", "My-forecast"}
    assert [change.kind for change in selection.changes] == ["description-changed"]
    assert selection.cells_carried == len(selection.carried) == len(PROMPTS["remove"])
    for record in selection.carried:
        trial = plan.find(record.case, record.subject, record.round)
        assert trial is not None
        assert (record.attempt_key, record.score_key) == (trial.attempt_key, trial.score_key)
        assert record.transcript is not None
        assert record.transcript.metadata[CARRIED_OVER] == earlier.name
    assert "7 cells carried over" in settings_of(selection.noted_in(plan)).warnings[-1]
    assert not selection.is_empty


@pytest.mark.usefixtures("nobody")
def test_cases_that_did_not_pass_are_asked_though_nothing_changed() -> None:
    earlier = evaluated(DESCRIPTIONS)
    selection = select(planned(DESCRIPTIONS), earlier)
    assert why(selection) == {NOT_PASSED: len(PROMPTS["remove"])}
    assert not selection.changes
    renamed = {"archive": "Handle an item.", "forecast": "The forecast of a place.", "remove": "Handle an item."}
    selection = select(planned(renamed), earlier)
    assert why(selection) == {CHANGED_TOOL: len(PROMPTS["weather"]), NOT_PASSED: len(PROMPTS["remove"])}


@pytest.mark.usefixtures("nobody")
def test_new_and_changed_cases_models_and_rounds_are_asked() -> None:
    earlier = evaluated(GOOD)
    plan = planned(GOOD)
    assert select(plan, earlier).is_empty
    assert why(select(plan, None)) == {NEW: ALL}
    assert why(select(plan, earlier, anew="changed provider")) == {"changed provider": ALL}
    assert why(select(edited(plan, prompt="Delete all."), earlier)) == {CHANGED: 1}
    assert why(select(edited(plan, id="another"), earlier)) == {NEW: 1}
    more = select(plan.model_copy(update={"rounds": 2}), earlier)
    assert (why(more), len(more.carried)) == ({MORE_ROUNDS: ALL}, ALL)
    assert why(select(planned(GOOD, modelSettings={"temperature": 1}), earlier)) == {CHANGED: ALL}


@pytest.mark.usefixtures("nobody")
def test_changed_expectations_and_executed_tools_are_scored_again_without_asking() -> None:
    plan = planned(GOOD)
    earlier = evaluated(GOOD)
    other = {**plan.cases[0].expected, "rules": {"maxCalls": 1}}  # type: ignore[dict-item]
    selection = select(edited(plan, expected=other), earlier)
    assert not selection.asked
    assert [record.case for record in selection.carried if not record.score_key] == ["Delete-it"]
    assert not selection.is_empty
    executing = evaluated(GOOD, executeTools=True)
    selection = select(planned(GOOD, executeTools=True), executing)
    assert (selection.asked, {record.score_key for record in selection.carried}) == ({}, {""})


def test_tools_of_alternatives_and_turns_are_wanted_too() -> None:
    def call(tool: str) -> dict[str, Any]:
        return {"serverName": "s", "toolName": tool, "parameters": {"toolName": "none", "serverName": "none"}}

    expected: JsonValue = {"calls": [call("a")], "alternatives": [[call("b")], None], "turns": [{"calls": [call("c")]}]}
    assert [*wanted_tools(expected)] == ["s / a", "s / b", "s / c"]
    assert [*wanted_tools({"calls": None})] == []


def test_sources_are_those_of_the_folder_and_of_the_command_line(tmp_path: Path) -> None:
    suite, elsewhere = tmp_path / "suite", tmp_path / "elsewhere"
    for name in ("a.py", "src/b.ts", "data.bin", "results/c.json", "node_modules/d.js", ".bakeoff/e.json"):
        (suite / name).parent.mkdir(parents=True, exist_ok=True)
        (suite / name).touch()
    elsewhere.mkdir()
    for name in ("server.js", "other.js"):
        (elsewhere / name).touch()
    server = ServerSpec(name="s", command="node", args=("../elsewhere/server.js", "--port", "1", "x" * 5000))
    found = suite_sources(suite, [server], [suite / "results", suite / "mcp-report"])
    named = {str(Path(path).relative_to(tmp_path)) for path in found}
    assert named == {"suite/a.py", "suite/src/b.ts", "elsewhere/server.js"}


@pytest.mark.full
@pytest.mark.usefixtures("nobody")
def test_watching_asks_what_changed_and_outlives_broken_files(tmp_path: Path) -> None:
    config = write_words(tmp_path, DESCRIPTIONS)
    tools, text = tmp_path / "tools.json", config.read_text()
    command = [str(PROGRAM), "mcp", "evaluate", "--watch", "--no-open"]
    waiting = "Waiting for changes; Ctrl-C ends. Page: mcp-report/watch.html"
    page = tmp_path / "mcp-report" / "watch.html"
    with Terminal(command, tmp_path, {**os.environ, "NO_COLOR": "1", "COLUMNS": "120"}) as terminal:
        terminal.sees("10 cells asked")
        terminal.sees(waiting)
        tools.write_text(json.dumps(GOOD))
        terminal.sees("Changed: tools.json")
        terminal.sees("passed  Delete-it, words:reader")
        terminal.sees("+ Delete messages for good")
        terminal.sees("7 cells asked, 3 carried over; +70.0 points since the last cycle: 7 better, 0 worse")
        terminal.sees(waiting)
        assert "Delete messages for good" in page.read_text()
        assert "3 cells carried over" in page.read_text()
        assert 'width="2"' in page.with_name("watch.html.svg").read_text()
        tools.write_text("{")
        terminal.sees("error: mcp-testing-framework.yaml: MCP server 'words'")
        terminal.sees(waiting)
        config.write_text("modelsToTest: 3")
        terminal.sees("error: mcp-testing-framework.yaml:1: modelsToTest: 3")
        terminal.sees(waiting)
        tools.write_text(json.dumps({**GOOD, "weather": "The weather in a place."}))
        config.write_text(text)
        terminal.sees("3 cells asked, 7 carried over; -30.0 points since the last cycle: 0 better, 3 worse")
        terminal.answer(waiting, CTRL_C)
        assert terminal.ends() == 1
        assert "Traceback" not in terminal.text.partition("^C")[2]
    assert len(run_folders(tmp_path / "results")) == 1
    assert not page.with_name("watch.html.svg").exists()


@pytest.mark.usefixtures("nobody")
def test_options_for_one_evaluation_are_refused(bakeoff: Bakeoff) -> None:
    write_words(Path.cwd(), GOOD)
    for option in (["--json"], ["--junit", "j.xml"], ["--dry-run"], ["--until-decided"]):
        done = bakeoff("mcp", "evaluate", "--watch", *option)
        assert (done.returncode, f"{option[0]} is for one run" in done.stderr) == (2, True), done.stderr
    done = bakeoff("mcp", "evaluate", "nowhere.yaml", "--watch")
    assert (done.returncode, "does not exist" in done.stderr) == (2, True)

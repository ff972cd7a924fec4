"""Several descriptions of a tool: one is chosen on some cases, and confirmed on others."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bakeoff.errors import UsageError
from bakeoff.mcp import ServerTool
from bakeoff.mcp.tools import find_tool
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.report.compare.tool_versions import PRESENT, split_cases, versions_of
from bakeoff.scorers.mcp.calls import Call, CaseExpectation

from ...warm_bakeoff import Bakeoff
from .reader import BETTER, DESCRIPTIONS, write_words

VERBS = ("Delete", "Erase", "Wipe", "Destroy")
THINGS = ("this", "that", "them", "mine", "ours")
WORSE = "Destroy an item."


@pytest.fixture
def words(nobody: None) -> Path:
    """Twenty cases that want `remove`, and two that want `weather`."""
    prompts = {"remove": [f"{verb} {thing}." for verb in VERBS for thing in THINGS]}
    prompts["weather"] = ["The forecast?", "Which forecast?"]
    return write_words(Path.cwd(), DESCRIPTIONS, prompts)


def tune(bakeoff: Bakeoff, *arguments: str, tool: str = "remove") -> subprocess.CompletedProcess[str]:
    return bakeoff("mcp", "tune", tool, *arguments)


@pytest.mark.usefixtures("words")
def test_the_better_of_three_is_confirmed_on_other_cases(bakeoff: Bakeoff) -> None:
    done = tune(bakeoff, "--description", WORSE, "--description", BETTER, "--json", "--html", "tuned.html")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["winner"] == "version 2"
    assert [version["name"] for version in report["versions"]] == ["version 2", "version 1", PRESENT]
    assert report["ruling"]["verdict"] == "improved"
    trained, confirmed = (
        {json.loads(line)["case"] for line in _trials(report[name])} for name in ("training", "held_out")
    )
    assert trained.isdisjoint(confirmed)
    assert len(trained | confirmed) <= 22
    page = Path("tuned.html").read_text()
    assert f"- {DESCRIPTIONS['remove']}" in page
    assert f"+ {BETTER}" in page


def _trials(run: str) -> list[str]:
    lines = (Path("results/runs") / run / "journal.jsonl").read_text().splitlines()
    return [line for line in lines if json.loads(line).get("type") == "trial"]


@pytest.mark.usefixtures("words")
def test_the_present_description_is_kept_when_others_do_no_better(bakeoff: Bakeoff) -> None:
    done = tune(bakeoff, "--description", "Some thing.", tool="words/remove")
    assert done.returncode == 0, done.stderr
    assert "keep it" in done.stdout
    assert len(list(Path("results/runs").iterdir())) == 1, "nothing is confirmed"


@pytest.mark.usefixtures("words")
def test_a_model_proposes_descriptions_and_what_cannot_be_used_is_told(bakeoff: Bakeoff) -> None:
    Path("proposals.json").write_text(json.dumps({"replies": [{"to": "", "say": json.dumps({"description": BETTER})}]}))
    done = tune(bakeoff, "--propose", "2", "--proposer", "scripted:proposals.json")
    assert "version 1 is better" in done.stdout.lower(), done.stderr
    assert "version 2" not in done.stdout, "the same text again is no other version"
    done = tune(bakeoff, "--propose", "1", "--proposer", "scripted:I would rather not.")
    assert done.returncode == 2
    assert "cannot be used" in done.stderr
    assert "give one with --description" in done.stderr


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize(
    ("arguments", "tool", "told"),
    [
        (["--description", BETTER], "remov", "did you mean 'remove'"),
        (["--description", BETTER], "weather", "2 cases want words / weather: at least 4 are needed"),
        ([], "remove", "there is no other description of 'remove' to try"),
        (["--versions", "none.txt"], "remove", "--versions none.txt cannot be read"),
    ],
)
def test_what_cannot_be_tuned_is_told_before_anything_is_asked(
    arguments: list[str], tool: str, told: str, bakeoff: Bakeoff
) -> None:
    done = tune(bakeoff, *arguments, tool=tool)
    assert done.returncode == 2
    assert told in done.stderr
    assert not Path("results").exists()


def case(name: str, tool: str) -> Case:
    call = Call(serverName="words", toolName=tool, parameters={})
    expected = CaseExpectation.model_validate({"calls": [call.model_dump(mode="json")]})
    return Case(id=name, prompt=name, expected=expected.model_dump(mode="json"))


def test_both_parts_have_cases_of_the_tool_and_others() -> None:
    cases = tuple(case(f"{tool} {number}", tool) for tool in ("remove", "weather") for number in range(8))
    plan = Plan(name="p", cases=cases, subjects=(SubjectSpec(kind="a", name="a"),), scorers=(ScorerSpec(kind="exact"),))
    split = split_cases(plan, "words / remove", 0.25)
    counts = [sum(each.id.startswith("remove") for each in part) for part in split]
    assert ([len(part) for part in split], counts) == ([12, 4], [6, 2])
    assert {each.id for part in split for each in part} == {each.id for each in cases}


def tool(name: str, **more: Any) -> ServerTool:
    return ServerTool(server="words", name=name, description="Handle it.", input_schema={}, **more)


def test_tools_are_named_and_versions_counted_once() -> None:
    tools = [tool("a"), tool("b"), tool("b").model_copy(update={"server": "other"})]
    assert find_tool(tools, "other/b").server == "other"
    with pytest.raises(UsageError, match="'b' is the name of several tools: write one of words/b, other/b"):
        find_tool(tools, "b")
    assert [each.description for each in versions_of(tools[0], ["x", " x ", "Handle it.", ""])] == ["Handle it.", "x"]

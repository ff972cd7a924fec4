"""Several descriptions of a tool: one is chosen on some cases, and confirmed on others."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bakeoff.errors import UsageError
from bakeoff.mcp import ServerTool
from bakeoff.mcp.arguments import find_tool
from bakeoff.mcp.description_patch import description_patch
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


def test_the_better_of_three_is_confirmed_on_other_cases_and_handed_over_as_a_patch(
    words: Path, bakeoff: Bakeoff
) -> None:
    server = words.parent / "source.py"
    server.write_text(f'TOOLS = {{"remove": "{DESCRIPTIONS["remove"]}"}}\n')
    (words.parent / "tools.json").write_text(json.dumps({**DESCRIPTIONS, "archive": "Put it aside."}))
    words.parent.joinpath("tools.json").rename("descriptions.words")
    words.write_text(words.read_text().replace("tools.json", "descriptions.words"))
    done = tune(bakeoff, "--description", WORSE, "--description", BETTER, "--patch", "better.patch", "--json")
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
    subprocess.run(["git", "apply", "better.patch"], check=True)
    assert server.read_text() == f'TOOLS = {{"remove": "{BETTER}"}}\n'


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


@pytest.mark.parametrize(
    ("files", "after", "patched"),
    [
        ({"a.py": "'Old.'"}, "New.", True),
        ({"a.py": "'Old.'", "b/c.ts": "'Old.'"}, "New.", False),
        ({"a.py": "'Old.' + 'Old.'"}, "New.", False),
        ({"a.py": "'Old.'"}, "It's new.", False),
        ({"a.py": "'Old.'"}, "New.\nevil()", False),
        ({"a.bin": "'Old.'", "node_modules/a.js": "'Old.'"}, "New.", False),
        ({"a.py": "print(Old.name, 'An Old. one')"}, "New.", False),
        ({"a.ts": "class Old. {}; 'An Old. one'"}, "New.", False),
        ({"a.py": "f'Old.'"}, "New.", False),
        ({"a.py": "'Old.' % ()"}, "100% new.", False),
        ({"a.py": "# Old.\n'Old.'"}, "New.", True),
        ({"a.py": "'Old.'", "b.json": '{"format": "bakeoff-mcp-snapshot-1", "description": "Old."}'}, "New.", True),
    ],
)
def test_a_patch_is_made_only_for_one_place_and_a_text_that_stays_a_text(
    files: dict[str, str], after: str, patched: bool, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = description_patch(tmp_path, "Old.", after)
    assert (found.text is not None) is patched
    assert bool(found.refused) is not patched


@pytest.mark.parametrize("text", ["'Old.'", "a\r\n'Old.'\r\n", "a\x0cb\n'Old.'\n\x0c\n", "'Old.'\nno newline here"])
def test_a_patch_applies_whatever_the_lines_of_the_file_end_with(text: str, tmp_path: Path) -> None:
    file = tmp_path / "my server.py"
    file.write_bytes(text.encode())
    patch = description_patch(tmp_path, "Old.", "New.").text
    assert patch is not None
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), check=True)
    assert file.read_bytes() == text.replace("Old.", "New.").encode()


@pytest.mark.parametrize(
    ("text", "before", "changed"),
    [
        (
            'def f():\n    """\n    Old.\n\n    More.\n    """\n',
            "Old.\n\nMore.",
            'def f():\n    """\n    New.\n    """\n',
        ),
        ("ü = 1; x = r'It' + 'It\\'s old.'\n", "It's old.", "ü = 1; x = r'It' + 'New.'\n"),
    ],
)
def test_a_literal_of_python_is_found_by_its_value(text: str, before: str, changed: str, tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(text)
    patch = description_patch(tmp_path, before, "New.").text
    assert patch is not None
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), check=True)
    assert file.read_text() == changed


def test_a_refused_patch_names_both_places_or_the_character(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("\n'Old.'")
    (tmp_path / "b.ts").write_text("`Old.`")
    assert description_patch(tmp_path, "Old.", "New.").refused == "the present text is in 2 places: a.py:2, b.ts:1"
    assert description_patch(tmp_path, "Old.", "100% new").refused.startswith("the new text has '%'")

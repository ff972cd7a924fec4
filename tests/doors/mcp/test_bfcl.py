"""`bakeoff mcp import bfcl`: questions and answers become cases, and functions become tools."""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from bakeoff.doors.mcp.api import evaluate
from bakeoff.doors.mcp.bfcl import import_bfcl
from bakeoff.doors.mcp.config import read_suite
from bakeoff.doors.mcp.examples import write_example
from bakeoff.doors.mcp.plan import McpPlanSettings
from bakeoff.doors.mcp.subjects import SuiteModel
from bakeoff.errors import UsageError
from bakeoff.mcp import McpHub, ServerSpec, ServerTool
from bakeoff.mcp.snapshot import serve_snapshot
from bakeoff.mcp.tools import ToolCallResult, offered_tools
from bakeoff.plan import Plan, SubjectSpec

from ...warm_bakeoff import Bakeoff

PAINT = {
    "name": "paint.wall",
    "description": "Paints a wall.",
    "parameters": {
        "type": "dict",
        "properties": {
            "colour": {"type": "string", "enum": ["Red", "Blue"]},
            "area": {"type": "float"},
            "coats": {"type": "integer", "default": 1},
            "corners": {"type": "tuple", "items": {"type": "integer"}},
            "note": {"type": "any"},
            "finish": {"type": "dict", "properties": {"gloss": {"type": "string"}, "days": {"type": "integer"}}},
        },
        "required": ["colour", "area"],
    },
}
MIX = {
    "name": "mix",
    "description": "Mixes two.",
    "parameters": {"type": "dict", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]},
}


def question(name: str, text: str = "Please.", functions: Any = (PAINT,)) -> dict[str, Any]:
    return {"id": name, "question": [[{"role": "user", "content": text}]], "function": list(functions)}


def answer(name: str, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "ground_truth": list(calls)}


def write(file: Path, *entries: dict[str, Any]) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    return file


def cases_of(tmp_path: Path, *entries: dict[str, Any]) -> list[dict[str, Any]]:
    return import_bfcl([write(tmp_path / "entries.json", *entries)]).cases


def test_allowed_values_are_alternatives_and_an_empty_one_makes_a_parameter_optional(tmp_path: Path):
    allowed = {
        "colour": ["red"],
        "area": [12, 12.5],
        "coats": ["", 2],
        "corners": [[1, 2], [2, 1]],
        "note": ["Quick", "fast"],
        "finish": [{"gloss": ["High", "high gloss"], "days": ["", 3]}],
    }
    [case] = cases_of(tmp_path, question("simple_0"), answer("simple_0", {"paint.wall": allowed}))
    assert case == {
        "name": "simple_0",
        "prompt": "Please.",
        "expectedOutput": {
            "serverName": "functions",
            "toolName": "paint.wall",
            "parameters": {
                "colour": {"value": "Red", "caseInsensitive": True},
                "area": {"oneOf": [12, 12.5]},
                "coats": {"value": 2, "optional": True},
                "corners": {"oneOf": [[1, 2], [2, 1]]},
                "note": {"oneOf": ["Quick", "fast"], "caseInsensitive": True},
                "finish": {
                    "value": {
                        "gloss": {"oneOf": ["High", "high gloss"], "caseInsensitive": True},
                        "days": {"value": 3, "optional": True},
                    },
                    "caseInsensitive": True,
                },
            },
        },
        "tools": ["functions/paint.wall"],
        "tags": ["simple"],
    }


def test_a_parameter_that_must_be_absent_is_not_expected(tmp_path: Path):
    calls = {"paint.wall": {"colour": ["Blue"], "area": [3.0], "coats": [""]}}
    [case] = cases_of(tmp_path, question("simple_python_7"), answer("simple_python_7", calls))
    assert list(case["expectedOutput"]["parameters"]) == ["colour", "area"]


def test_parallel_calls_come_in_any_order_and_irrelevance_needs_no_answer(tmp_path: Path):
    calls = [{"mix": {"a": ["red"]}}, {"mix": {"a": ["blue"]}}]
    several, none = cases_of(
        tmp_path,
        question("parallel_multiple_3", functions=[PAINT, MIX]),
        answer("parallel_multiple_3", *calls),
        question("live_irrelevance_0-0-0", functions=[MIX]),
    )
    assert (several["order"], len(several["expectedOutput"])) == ("any", 2)
    assert several["tools"] == ["functions/paint.wall", "functions/mix"]
    assert (none["expectedOutput"], none["tags"]) == (None, ["live_irrelevance"])


def test_different_functions_of_one_name_are_tools_of_different_servers(tmp_path: Path):
    other = {**MIX, "description": "Stirs."}
    entries = [question(f"irrelevance_{at}", functions=[each]) for at, each in enumerate((MIX, other, MIX))]
    found = import_bfcl([write(tmp_path / "a.json", *entries)])
    assert [case["tools"] for case in found.cases] == [["functions/mix"], ["functions-2/mix"], ["functions/mix"]]
    assert {name: list(entry.tools) for name, entry in found.snapshot.servers.items()} == {
        "functions": ["mix"],
        "functions-2": ["mix"],
    }


def test_types_of_python_become_those_of_json_schema(tmp_path: Path):
    found = import_bfcl([write(tmp_path / "a.json", question("irrelevance_0"))])
    schema: Any = found.snapshot.servers["functions"].tools["paint.wall"].inputSchema
    assert schema["type"] == "object"
    kinds = {name: part.get("type") for name, part in schema["properties"].items()}
    assert kinds == {
        "colour": "string",
        "area": "number",
        "coats": "integer",
        "corners": "array",
        "note": None,
        "finish": "object",
    }


def test_answers_are_found_beside_the_questions_and_a_list_is_read_too(tmp_path: Path):
    file = tmp_path / "BFCL_v4_multiple.json"
    file.write_text(json.dumps([question("multiple_0", functions=[PAINT, MIX])]))
    write(tmp_path / "possible_answer" / file.name, answer("multiple_0", {"mix": {"a": ["red"]}}))
    expected: Any = import_bfcl([file]).cases[0]["expectedOutput"]
    assert expected["toolName"] == "mix"


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        (question("multi_turn_base_0"), "1 question of the category 'multi_turn_base' left out: not supported"),
        (question("simple_java_0"), "1 question of the category 'simple_java' left out: not supported"),
        (
            {**question("irrelevance_1"), "question": [[], []]},
            "a.json:2: irrelevance_1 is left out: it has several turns",
        ),
        (question("irrelevance_1", functions=[{"name": "f", "parameters": {"type": "HashMap"}}]), "the type 'HashMap'"),
    ],
)
def test_what_cannot_be_imported_is_told(tmp_path: Path, entry: dict[str, Any], note: str):
    found = import_bfcl([write(tmp_path / "a.json", question("irrelevance_0"), entry)])
    assert len(found.cases) == 1
    assert note in found.notes[0]


@pytest.mark.parametrize(
    ("allowed", "note"),
    [
        ({"bse": [10], "a": ["red"]}, "its answer has the parameter 'bse', which the function does not have"),
        ({"a": "red"}, "its answer has no list of allowed values for 'a'"),
        ({"a": []}, "its answer has no value for 'a', which the function requires"),
        ({}, "its answer has no value for 'a', which the function requires"),
    ],
)
def test_an_answer_that_no_right_call_can_give_is_left_out(tmp_path: Path, allowed: dict[str, Any], note: str):
    questions = write(tmp_path / "a.json", question("irrelevance_0"), question("simple_1", functions=[MIX]))
    found = import_bfcl([questions, write(tmp_path / "b.json", answer("simple_1", {"mix": allowed}))])
    assert len(found.cases) == 1
    assert note in found.notes[0]


def test_a_value_that_its_function_does_not_allow_is_no_alternative(tmp_path: Path):
    calls = {"paint.wall": {"colour": ["Red"], "area": ["wall_area", 4.0]}}
    [case] = cases_of(tmp_path, question("simple_0"), answer("simple_0", calls))
    assert case["expectedOutput"]["parameters"]["area"] == 4.0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "a.json:1: this is not JSON"),
        ("[1]", "a.json: this is no BFCL entry"),
        ('{"id": "simple_0"}', "a.json:1: this is no BFCL entry: it needs `id`, and `question` or `ground_truth`"),
        ('{"id": "simple_0", "ground_truth": []}', "has no questions"),
        (
            json.dumps(question("simple_0")),
            "a.json:1: there is no answer for 'simple_0': name the possible_answer file",
        ),
        (f"{json.dumps(question('irrelevance_0'))}\n" * 2, "a.json:2: the id 'irrelevance_0' is used twice"),
    ],
)
def test_what_is_no_file_of_bfcl_is_told_with_its_place(tmp_path: Path, text: str, told: str):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UsageError, match=re.escape(told)):
        import_bfcl([tmp_path / "a.json"])


def test_imported_cases_run_with_only_their_own_tools(
    tmp_path: Path, bakeoff: Bakeoff, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "questions.json", question("simple_0", "Mix red."), question("irrelevance_0", functions=[MIX]))
    write(tmp_path / "answers.json", answer("simple_0", {"paint.wall": {"colour": ["red"], "area": [4]}}))
    reply = {"serverName": "functions", "toolName": "paint.wall", "parameters": {"colour": "RED", "area": 4.0}}
    model = f"scripted:{json.dumps(reply)}"
    done = bakeoff("mcp", "import", "bfcl", "questions.json", "answers.json", "--model", model, "-o", "suite.yaml")
    assert done.returncode == 0, done.stderr
    assert "2 cases" in done.stderr
    suite = read_suite(tmp_path / "suite.yaml", {})
    assert [case.tools for case in suite.config.testCases] == [("functions/paint.wall",), ("functions/mix",)]
    report = evaluate("suite.yaml")
    assert [result.modelResults[0].passRate for result in report.results] == [1.0, 0.0]


def test_a_snapshot_is_served_and_nothing_is_executed(tmp_path: Path):
    found = import_bfcl([write(tmp_path / "a.json", question("irrelevance_0", functions=[MIX, PAINT]))])
    found.snapshot.write(tmp_path / "tools.json")
    words = ("-m", "bakeoff", "mcp", "serve", "tools.json")
    spec = ServerSpec(name="still", command=sys.executable, args=words, cwd=tmp_path, sandbox="none")

    async def used() -> tuple[list[str], ToolCallResult]:
        async with McpHub([spec]).open() as hub:
            return [tool.name for tool in await hub.tools()], await hub.call("still", "mix", {"a": "red"})

    names, result = asyncio.run(used())
    assert sorted(names) == ["mix", "paint.wall"]
    assert result.is_error
    assert "only describes its tools" in result.text


@pytest.mark.parametrize(
    ("content", "name", "told"),
    [
        (
            '{"format": "bakeoff-mcp-snapshot-1", "servers": {"a": {}, "b": {}}}',
            None,
            "has 2 servers: name one of a, b",
        ),
        ('{"format": "bakeoff-mcp-snapshot-1", "servers": {"a": {}}}', "c", "has no server 'c'"),
        ("{}", None, "is not a snapshot"),
        ("{", None, "this is not JSON"),
    ],
)
def test_a_snapshot_that_cannot_be_served_is_told(tmp_path: Path, content: str, name: str | None, told: str):
    (tmp_path / "tools.json").write_text(content)
    with pytest.raises(UsageError, match=told):
        serve_snapshot(tmp_path / "tools.json", name)


def test_line_separators_inside_of_texts_do_not_end_a_line(tmp_path: Path):
    entry = question("irrelevance_0", "one\u2028two\x85three")
    file = tmp_path / "questions.json"
    file.write_text(json.dumps(entry, ensure_ascii=False) + "\n")
    assert import_bfcl([file]).cases[0]["prompt"] == "one\u2028two\x85three"


def test_an_unknown_tool_of_a_case_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_example("getting-started", tmp_path)
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mcp-testing-framework.yaml"
    text = file.read_text().replace("local:smollm2", "scripted:null")
    file.write_text(
        text.replace("    prompt: Write me a poem", "    tools: [kitchen/set_timers]\n    prompt: Write me a poem")
    )
    with pytest.raises(UsageError, match=r"yaml:\d+: testCases\[4\].tools\[0\]: no server has .*did you mean"):
        evaluate(file)


def test_names_of_tools_may_have_that_of_their_server():
    tools = tuple(ServerTool(server="s", name=name, input_schema={"type": "object"}) for name in ("a", "b"))
    assert [tool.name for tool in offered_tools(tools, ("s/b",))] == ["b"]
    assert [tool.name for tool in offered_tools(tools, ("a",))] == ["a"]
    assert offered_tools(tools, None) == tools


@pytest.mark.parametrize("mode", ["json", "native", "agent"])
def test_a_case_offers_only_its_tools_in_every_mode(mode: str):
    tools = tuple(ServerTool(server="s", name=name, input_schema={"type": "object"}) for name in ("left", "right"))
    server = ServerSpec(name="s", command="x")
    settings = McpPlanSettings(
        file="a.yaml", report="r", servers=(server,), tools=tools, offered={"one": ("s/right",), "none": ("s/none",)}
    )
    spec = SubjectSpec(kind=f"mcp-{mode}", name="m", options={"model": "scripted:null"})
    model = SuiteModel.from_spec(spec, Plan(name="p", cases=(), subjects=(spec,), scorers=()), settings, {})

    def seen(case: str) -> set[str]:
        told = model.for_case(case)
        text = str(told.model.options.system) if mode == "json" else " ".join(told.offered)
        return {"left", "right"} & set(re.findall(r"\w+", text))

    assert [seen(case) for case in ("one", "other", "none")] == [{"right"}, {"left", "right"}, set()]

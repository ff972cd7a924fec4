"""Test what models are told, and what they are held to."""

import json
import re

import pytest
from jsonschema.validators import Draft202012Validator  # type: ignore[import-untyped]

from bakeoff.mcp import ServerTool
from bakeoff.mcp.prompt import reply_schema, system_prompt
from bakeoff.mcp.tools import offered_names
from bakeoff.scorers.mcp.calls import read_reply

TOOLS = (
    ServerTool(
        server="one",
        name="add",
        description="Add numbers.",
        input_schema={
            "type": "object",
            "properties": {
                "a": {"type": "number", "minimum": 0},
                "list": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["a"],
        },
    ),
    ServerTool(server="two", name="add", description="Add a row.", input_schema={"type": "object"}),
    ServerTool(server="two", name="get.row", input_schema={"type": "object"}),
)


def test_the_prompt_names_every_server_and_tool_with_description_and_schema() -> None:
    prompt = system_prompt(TOOLS, sequences=False)
    for tool in TOOLS:
        assert f"## Server: {tool.server}" in prompt
        assert f"### Tool: {tool.name}" in prompt
        assert tool.description in prompt
        assert json.dumps(tool.input_schema) in prompt
    assert "null" in prompt


def test_the_example_of_a_reply_is_valid_json_of_the_right_form() -> None:
    prompt = system_prompt(TOOLS, sequences=False)
    example = json.loads(prompt[prompt.index("three keys:") + len("three keys:") : prompt.index("# Examples")])
    assert list(example) == ["serverName", "toolName", "parameters"]


@pytest.mark.parametrize("server", ["one", "library"])
def test_examples_are_replies_that_can_be_read_and_of_no_server_that_is_there(server: str) -> None:
    tools = [tool.model_copy(update={"server": server}) for tool in TOOLS[:1]]
    prompt = system_prompt(tools, sequences=True)
    replies = [read_reply(line.split(" is replied to with ")[1], strict=True) for line in prompt.splitlines()[-3:]]
    assert [len(heard.calls) for heard in replies] == [1, 0, 2]
    assert not any(heard.problem for heard in replies)
    assert server not in {call.serverName for heard in replies for call in heard.calls}


def test_only_a_suite_with_sequences_is_told_of_them() -> None:
    assert "array" not in re.sub(r"Parameters: .*", "", system_prompt(TOOLS, sequences=False))
    assert "JSON array" in system_prompt(TOOLS, sequences=True)


def test_the_schema_of_a_reply_takes_calls_of_the_tools_or_null_and_nothing_else() -> None:
    schema = reply_schema(TOOLS, sequences=True)
    Draft202012Validator.check_schema(schema)
    fits = Draft202012Validator(schema).is_valid
    call = {"serverName": "one", "toolName": "add", "parameters": {"a": 1, "list": ["x"]}}
    assert fits(call)
    assert fits(None)
    assert fits([call, call])
    assert not fits({**call, "parameters": {"list": []}})
    assert not fits({**call, "parameters": {"a": 1, "b": 1}})
    assert not fits({**call, "serverName": "three"})
    assert not fits({**call, "toolName": "get.row"})
    assert not Draft202012Validator(reply_schema(TOOLS, sequences=False)).is_valid([call, call])


def test_names_in_function_calling_are_plain_unique_and_lead_back() -> None:
    offered = offered_names((*TOOLS, ServerTool(server="x", name="n" * 120, input_schema={"type": "object"})))
    assert {name: (tool.server, tool.name[:10]) for name, tool in offered.items()} == {
        "one__add": ("one", "add"),
        "two__add": ("two", "add"),
        "get_row": ("two", "get.row"),
        "n" * 64: ("x", "n" * 10),
    }


def test_names_that_only_differ_in_case_or_signs_are_told_apart() -> None:
    schema = {"type": "object"}
    tools = [ServerTool(server="s", name=name, input_schema=schema) for name in ("a.b", "a_b", "A_B")]
    offered = offered_names(tools)
    assert [tool.name for tool in offered.values()] == ["a.b", "a_b", "A_B"]
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in offered)

"""`bakeoff mcp generate`: drafts whose parameters the tools' schemas allow, and which all load and run."""

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema.validators import Draft202012Validator  # type: ignore[import-untyped]

from bakeoff.cli.mcp_tools import Servers, generate
from bakeoff.doors.mcp_suite.api import evaluate
from bakeoff.doors.mcp_suite.config import read_suite
from bakeoff.doors.mcp_suite.examples import write_example
from bakeoff.doors.mcp_suite.generate import added_to, cases_text, draft_cases, reworded, whole_config
from bakeoff.doors.mcp_suite.generate.values import Maker
from bakeoff.doors.mcp_suite.matching import parameter_differences
from bakeoff.errors import UsageError
from bakeoff.mcp import McpHub, ServerSpec, ServerTool

from ...fetched import fetch_package
from ...warm_bakeoff import Bakeoff

BAD = Path(__file__).with_name("servers") / "bad.py"
KITCHEN = ServerSpec(name="kitchen", command=sys.executable, args=("kitchen.py",))


def made(schema: dict[str, Any], root: dict[str, Any] | None = None) -> Any:
    return Maker(root or {}).checked(schema, "thing")


TABLE: list[tuple[dict[str, Any], Any]] = [
    ({"const": 7}, 7),
    ({"default": "x", "type": "string"}, "x"),
    ({"examples": ["Rome", "Oslo"]}, "Rome"),
    ({"enum": ["b", "a"]}, "b"),
    ({"type": "string"}, "example"),
    ({"type": "string", "maxLength": 3}, "exa"),
    ({"type": "string", "minLength": 10}, "example example"),
    ({"type": "string", "format": "date"}, "2026-03-04"),
    ({"type": "string", "format": "email"}, "ada@example.com"),
    ({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}, "2026-03-04"),
    ({"type": "string", "pattern": "^[A-Z]{3}$"}, "ABC"),
    ({"type": "integer"}, 5),
    ({"type": "integer", "minimum": 10}, 10),
    ({"type": "integer", "maximum": 3}, 3),
    ({"type": "integer", "exclusiveMinimum": 10}, 11),
    ({"type": "integer", "multipleOf": 7}, 7),
    ({"type": "number", "minimum": 0.25, "maximum": 0.5}, 0.5),
    ({"type": "boolean"}, True),
    ({"type": "null"}, None),
    ({"type": ["null", "integer"]}, 5),
    ({"type": "array", "items": {"type": "integer"}}, [5]),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True}, [5, 6, 7]),
    ({"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "integer"}]}, [True, 5]),
    ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}, {"a": 5}),
    ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 5),
    ({"oneOf": [{"type": "integer", "minimum": 9}, {"type": "string"}]}, 9),
    ({"allOf": [{"type": "integer"}, {"minimum": 8}]}, 8),
]


@pytest.mark.parametrize(("schema", "value"), TABLE)
def test_a_value_is_made_that_the_schema_allows(schema: dict[str, Any], value: Any):
    found = made(schema)
    assert (found.value, found.sure) == (value, True)
    Draft202012Validator(schema).validate(found.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^[xyz]{30}$"},
        {"type": "string", "pattern": "("},
        {"not": {}},
        {"type": "integer", "minimum": 5, "maximum": 4},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "#"},
        {"type": "string", "minLength": 100_000},
        False,
    ],
)
def test_what_cannot_be_made_is_said_to_be_unsure(schema: Any):
    assert not made(schema).sure


def test_references_are_followed_and_those_that_go_round_end():
    root = {
        "$defs": {
            "city": {"type": "string", "enum": ["Oslo"]},
            "tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}, "required": ["next"]},
        }
    }
    assert made({"$ref": "#/$defs/city"}, root).value == "Oslo"
    assert not made({"$ref": "#/$defs/tree"}, root).sure


def test_a_pattern_that_would_search_for_ever_does_not():
    evil = {"type": "string", "pattern": "^(a+)+$", "default": "a" * 60 + "!"}
    assert made(evil).value == evil["default"]
    assert made({"type": "object", "properties": {"default": evil}, "required": ["default"]}).value


SCHEMAS = st.recursive(
    st.one_of(
        st.builds(
            lambda low, more: {"type": "integer", "minimum": low, "maximum": low + more},
            st.integers(-99, 99),
            st.integers(0, 9),
        ),
        st.builds(lambda step: {"type": "integer", "multipleOf": step}, st.integers(1, 9)),
        st.builds(
            lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more},
            st.integers(0, 20),
            st.integers(0, 9),
        ),
        st.builds(
            lambda choices: {"enum": choices}, st.lists(st.text(max_size=5) | st.integers(), min_size=1, max_size=3)
        ),
        st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": "number", "exclusiveMinimum": 7}, {}]),
    ),
    lambda inner: st.one_of(
        st.builds(lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 3)),
        st.builds(lambda choices: {"anyOf": choices}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda parts: {"type": "object", "properties": parts, "required": list(parts)[:2]},
            st.dictionaries(st.text(min_size=1, max_size=6), inner, max_size=3),
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=8), SCHEMAS, max_size=4), st.text(max_size=60))
def test_whatever_the_schema_the_drafts_load_and_what_is_sure_is_allowed(
    tmp_path_factory: pytest.TempPathFactory, properties: dict[str, Any], description: str
):
    schema = {"type": "object", "properties": properties, "required": list(properties)[:2]}
    tool = ServerTool(server="s", name="t", description=description, input_schema=schema)
    drafts, _ = draft_cases([tool])
    for draft in drafts:
        for name, value in draft.values.items():
            Draft202012Validator(properties[name]).validate(value)
        if not any(expected == {"any": True} for expected in draft.parameters.values()):
            Draft202012Validator(schema).validate(draft.values)
            assert asyncio.run(parameter_differences(draft.parameters, draft.values)) == []
    if drafts:
        file = tmp_path_factory.getbasetemp() / "drafts.yaml"
        file.write_text(whole_config(drafts, [KITCHEN], ["local:smollm2"]))
        cases = read_suite(file, {}).config.testCases
        assert [case.prompt for case in cases] == [draft.prompt for draft in drafts]
        assert [(case.expectedOutput or ())[0].parameters for case in cases] == [draft.parameters for draft in drafts]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_example("getting-started", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mcp-testing-framework.yaml"


def test_drafts_are_added_behind_the_cases_and_nothing_else_changes(example: Path, capsys: pytest.CaptureFixture[str]):
    before = example.read_text()
    assert generate(Servers(), output=example) == 0
    after = example.read_text()
    assert after.startswith(before[: before.index("\nmcpServers:")].rstrip("\n"))
    assert after.endswith(before[before.index("\nmcpServers:") :])
    assert len(read_suite(example, {}).config.testCases) == 10
    with pytest.raises(UsageError, match="nothing to add"):
        generate(Servers(), output=example)
    assert example.read_text() == after
    assert "5 cases of 4 tools" in capsys.readouterr().err


def test_every_draft_of_the_example_is_a_call_that_its_server_carries_out(example: Path):
    async def check() -> list[bool]:
        async with McpHub([KITCHEN.model_copy(update={"cwd": example.parent})]).open() as hub:
            drafts, problems = draft_cases(await hub.tools())
            assert problems == []
            return [(await hub.call("kitchen", draft.tool, draft.values)).is_error for draft in drafts]

    assert asyncio.run(check()) == [False] * 5


def test_drafts_of_server_everything_all_load(tmp_path: Path):
    script = fetch_package("@modelcontextprotocol/server-everything@2026.8.31")
    script = script / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    file = tmp_path / "new.yaml"
    assert generate(Servers(commands=[shlex.join(["node", str(script), "stdio"])]), output=file) == 0
    config = read_suite(file, {}).config
    assert len(config.testCases) > 10
    assert {"echo", "get-sum"} <= {(case.expectedOutput or ())[0].toolName for case in config.testCases}


def test_drafts_run_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    command = shlex.join([sys.executable, str(BAD), "good"])
    generate(Servers(commands=[command]), output=Path("new.yaml"))
    text = Path("new.yaml").read_text().replace("local:smollm2", "scripted:null")
    Path("new.yaml").write_text(text)
    report = evaluate("new.yaml")
    assert report.summary.totalTests == 2


def test_what_is_printed_for_servers_that_are_given_directly_is_a_whole_configuration(bakeoff: Bakeoff, tmp_path: Path):
    done = bakeoff("mcp", "generate", "--command", shlex.join([sys.executable, str(BAD)]))
    assert done.returncode == 0, done.stderr
    (tmp_path / "new.yaml").write_text(done.stdout)
    assert len(read_suite(tmp_path / "new.yaml", {}).config.testCases) > 15
    assert "\u200b" not in done.stdout


TIMER = ServerTool(
    server="kitchen",
    name="set_timer",
    description="Start a timer.",
    input_schema={"type": "object", "properties": {"minutes": {"type": "integer"}}, "required": ["minutes"]},
)


@pytest.mark.parametrize(
    ("reply", "prompt", "told"),
    [
        ('{"prompt": "Wake me in 5 minutes, please."}', "Wake me in 5 minutes, please.", ""),
        ('Sure: {"prompt": "Wake me in 5 minutes."}', "Wake me in 5 minutes.", ""),
        ("I would rather not.", "Start a timer: minutes 5.", "the model did not answer with {prompt}"),
        ('{"prompt": "Wake me up later on."}', "Start a timer: minutes 5.", "the model left out minutes"),
        ('{"prompt": "Wake me in 5 ${HOME} minutes"}', "Start a timer: minutes 5.", "what a configuration cannot"),
    ],
)
def test_a_model_words_prompts_and_templates_stand_in_for_what_cannot_be_used(reply: str, prompt: str, told: str):
    drafts, _ = draft_cases([TIMER])
    better, problems = asyncio.run(reworded(drafts, [TIMER], f"scripted:{reply}", {}))
    assert [draft.prompt for draft in better] == [prompt]
    assert [draft.parameters for draft in better] == [draft.parameters for draft in drafts]
    assert told in "".join(problems)


def test_a_model_that_cannot_be_asked_is_told_before_anything_is_written():
    with pytest.raises(UsageError, match="no key: set OPENAI_API_KEY"):
        asyncio.run(reworded([], [], "openai:gpt-4o", {}))


def test_names_that_are_taken_are_not_used_again():
    drafts, _ = draft_cases([TIMER, TIMER], taken=["set_timer-1"])
    assert [draft.name for draft in drafts] == ["set_timer-2", "set_timer-3"]


@pytest.mark.parametrize(
    "text",
    [
        "testCases:\n- prompt: a\n  expectedOutput: null\nmodelsToTest: [a:b]\n",
        "testCases:\n    - prompt: a\n      expectedOutput: null   # why\n\n# the rest\nmodelsToTest: [a:b]\n",
        "modelsToTest: [a:b]\ntestCases:\n  - prompt: a\n    expectedOutput: null",
        "modelsToTest: [a:b]\ntestCases:\n  - prompt: |\n      a\n\n      b\n    expectedOutput: null\n\n",
    ],
)
def test_drafts_stand_where_the_list_ends_however_it_is_set(tmp_path: Path, text: str):
    drafts, _ = draft_cases([TIMER])
    servers = "" if text.endswith("\n") else "\n"
    file = tmp_path / "suite.yaml"
    file.write_text(added_to(text, drafts, file) + servers + "mcpServers: [{name: kitchen, command: x}]\n")
    names = [case.name for case in read_suite(file, {}).config.testCases]
    assert names == [None, "set_timer-1"]


def test_a_list_between_brackets_is_left_alone():
    drafts, _ = draft_cases([TIMER])
    with pytest.raises(UsageError, match="no list with a `-` before each"):
        added_to("testCases: [{prompt: a, expectedOutput: null}]\n", drafts, Path("x.yaml"))


def test_texts_that_look_like_something_else_stay_texts(tmp_path: Path):
    words = ["1e3", "0x1f", "null", "yes", "12:30", "# no", "a: b", "2026-03-04", "- x", "'", '"', "é", ""]
    schema = {"type": "object", "properties": {f"p{at}": {"const": word} for at, word in enumerate(words)}}
    tool = TIMER.model_copy(update={"input_schema": schema})
    drafts, _ = draft_cases([tool])
    file = tmp_path / "suite.yaml"
    file.write_text(cases_text(drafts) + "modelsToTest: [a:b]\nmcpServers: [{name: kitchen, command: x}]\n")
    cases = read_suite(file, {}).config.testCases
    assert list((cases[-1].expectedOutput or ())[0].parameters.values()) == words

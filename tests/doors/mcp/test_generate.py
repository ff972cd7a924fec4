"""`bakeoff mcp generate`: drafts whose parameters the tools' schemas allow, and which all load and run."""

import asyncio
import shlex
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema.validators import Draft202012Validator  # type: ignore[import-untyped]

from bakeoff._kernel.yaml import parse_yaml
from bakeoff.cli.mcp.servers import ServerFlags
from bakeoff.cli.mcp.tools import generate
from bakeoff.doors.mcp.api import evaluate
from bakeoff.doors.mcp.config import read_suite
from bakeoff.doors.mcp.examples import published_schema, write_example
from bakeoff.doors.mcp.generate.drafts import (
    Draft,
    DraftRequest,
    Frame,
    added_to,
    cases_text,
    draft_cases,
    whole_config,
)
from bakeoff.doors.mcp.generate.values import Maker, Surroundings
from bakeoff.doors.mcp.generate.wording import leaks
from bakeoff.doors.mcp.model_writing import reworded
from bakeoff.errors import UsageError
from bakeoff.mcp import McpHub, ServerSpec, ServerTool
from bakeoff.scorers.matchers import parameter_differences

from ...fetched import fetch_package
from ...warm_bakeoff import Bakeoff

BAD = Path(__file__).with_name("servers") / "bad.py"
ANY = {"any": True}
ONLY_TOOLS = DraftRequest(pairs=0, negatives=0)
KITCHEN = ServerSpec(name="kitchen", command=sys.executable, args=("kitchen.py",))


def made(schema: dict[str, Any] | bool, root: dict[str, Any] | None = None) -> Any:
    shared = {name: value for name, value in schema.items() if name == "$schema"} if isinstance(schema, dict) else {}
    return Maker(root or shared).checked(schema, "thing")


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
        {"$ref": "#/$defs/Missing"},
        {"$ref": "#/$defs/list/required/last", "$defs": {"list": {"required": ["a"]}}},
        {"type": "number", "multipleOf": 5e-324},
        {"type": "number", "minimum": 10**400},
        {"type": "number", "exclusiveMinimum": 10**400},
        {"type": "integer", "minimum": 1e308, "multipleOf": 0.3},
        {"default": 10**400, "multipleOf": 0.5},
        {"$schema": "http://json-schema.org/draft-04/schema#", "$ref": 5},
        {"$schema": "http://json-schema.org/draft-03/schema#", "type": "unheard-of"},
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


def test_a_number_of_hundreds_of_digits_is_left_open(tmp_path: Path):
    properties: dict[str, Any] = {"size": {"type": "integer", "minimum": 10**500}, "more": {"default": 10**500}}
    tool = TIMER.model_copy(update={"input_schema": {"type": "object", "properties": properties, "required": ["size"]}})
    drafts, problems = draft_cases([tool], ONLY_TOOLS)
    assert problems == []
    assert [draft.parameters for draft in drafts] == [{"size": ANY}]
    file = tmp_path / "suite.yaml"
    file.write_text(whole_config(drafts, Frame.given([KITCHEN], ["local:smollm2"])))
    assert len(read_suite(file, {}).config.testCases) == 1


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
    drafts, _ = draft_cases([tool], ONLY_TOOLS)
    for draft in drafts:
        for name, value in draft.values.items():
            Draft202012Validator(properties[name]).validate(value)
        if not any(expected == {"any": True} for expected in draft.parameters.values()):
            Draft202012Validator(schema).validate(draft.values)
            assert asyncio.run(parameter_differences(draft.parameters, draft.values)) == []
    if drafts:
        file = tmp_path_factory.getbasetemp() / "drafts.yaml"
        file.write_text(whole_config(drafts, Frame.given([KITCHEN], ["local:smollm2"])))
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
    assert generate(servers=ServerFlags(), output=example) == 0
    after = example.read_text()
    assert after.startswith(before[: before.index("\nmcpServers:")].rstrip("\n"))
    assert after.endswith(before[before.index("\nmcpServers:") :])
    assert len(read_suite(example, {}).config.testCases) == 14
    with pytest.raises(UsageError, match="nothing to add"):
        generate(servers=ServerFlags(), output=example)
    assert example.read_text() == after
    assert "9 cases for 4 tools" in capsys.readouterr().err


def test_every_draft_of_the_example_is_a_call_that_its_server_carries_out(example: Path):
    async def check() -> list[bool]:
        async with McpHub([KITCHEN.model_copy(update={"cwd": example.parent})]).open() as hub:
            drafts, problems = draft_cases(await hub.tools(), ONLY_TOOLS)
            assert problems == []
            return [(await hub.call("kitchen", str(draft.tool), draft.values)).is_error for draft in drafts]

    assert asyncio.run(check()) == [False] * 6


@pytest.mark.full
def test_drafts_of_server_everything_all_load(tmp_path: Path):
    script = fetch_package("@modelcontextprotocol/server-everything@2026.8.31")
    script = script / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    file = tmp_path / "new.yaml"
    assert generate(servers=ServerFlags(commands=[shlex.join(["node", str(script), "stdio"])]), output=file) == 0
    config = read_suite(file, {}).config
    assert len(config.testCases) > 10
    wanted = [case.expectedOutput[0].toolName if case.expectedOutput else None for case in config.testCases]
    assert {"echo", "get-sum", None} <= set(wanted)


def test_drafts_run_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    command = shlex.join([sys.executable, str(BAD), "good"])
    generate(servers=ServerFlags(commands=[command]), output=Path("new.yaml"))
    text = Path("new.yaml").read_text().replace("local:smollm2", "scripted:null")
    Path("new.yaml").write_text(text)
    report = evaluate("new.yaml")
    assert (report.summary.totalTests, report.summary.passedTests) == (5, 3)  # `null` is right where no tool is


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
        ('{"prompt": "Wake me in 12 minutes, please."}', "Wake me in 12 minutes, please.", ""),
        ('Sure: {"prompt": "Wake me in 12 minutes."}', "Wake me in 12 minutes.", ""),
        ("I would rather not.", "Let me know when 12 minutes are over.", "the model did not answer with {prompt}"),
        ('{"prompt": "Wake me up later on."}', "Let me know when 12 minutes are over.", "the model left out minutes"),
        (
            '{"prompt": "Wake me in 12 ${HOME} minutes"}',
            "Let me know when 12 minutes are over.",
            "characters that a configuration cannot",
        ),
    ],
)
def test_a_model_words_prompts_and_templates_stand_in_for_what_cannot_be_used(reply: str, prompt: str, told: str):
    drafts, _ = draft_cases([TIMER], ONLY_TOOLS)
    better, problems = asyncio.run(reworded(drafts, [TIMER], f"scripted:{reply}", {}))
    assert [draft.prompt for draft in better] == [prompt]
    assert [draft.parameters for draft in better] == [draft.parameters for draft in drafts]
    assert told in "".join(problems)


def test_a_model_that_cannot_be_asked_is_told_before_anything_is_written():
    with pytest.raises(UsageError, match="no key: set OPENAI_API_KEY"):
        asyncio.run(reworded([], [], "openai:gpt-4o", {}))


def test_names_that_are_taken_are_not_used_again():
    drafts, _ = draft_cases([TIMER, TIMER], ONLY_TOOLS, taken=["set_timer-1"])
    assert [draft.name for draft in drafts] == ["set_timer-2", "set_timer-3"]


@pytest.mark.parametrize(
    "marked",
    [
        "testCases:\n- prompt: a\n  expectedOutput: null\n@modelsToTest: [a:b]\n",
        "testCases:\n    - prompt: a\n      expectedOutput: null   # why\n@\n# the rest\nmodelsToTest: [a:b]\n",
        "modelsToTest: [a:b]\ntestCases:\n  - prompt: a\n    expectedOutput: null\n@",
        "modelsToTest: [a:b]\ntestCases:\n  - prompt: |\n      a\n\n      b\n    expectedOutput: null\n@\n",
        "modelsToTest: [a:b]\ntestCases:\n  - expectedOutput: null\n    prompt: |\n      1 and\n      # and 3\n@\n\n",
        "modelsToTest: [a:b]\ntestCases:\n  - expectedOutput: null\n    prompt: |+\n      1\n\n@# why\n",
        "testCases:\n-   prompt: a\n    expectedOutput: null\n@modelsToTest: [a:b]\n",
        "testCases: &cases\n  - expectedOutput: null\n    tags: &tags [x]\n    prompt: a\n@modelsToTest: [a:b]\n",
        "judge: &a b:c\nmodelsToTest: [a:b]\ntestCases:\n  - expectedOutput: null\n    prompt: *a\n@",
        "modelsToTest: [a:b]\ntestCases:\n  - expectedOutput: null\n    prompt: 'a\n\n      # b'\n@",
        "modelsToTest: [a:b]\ntestCases:\n  - {expectedOutput: null,\n     prompt: a\n     # b\n    }\n@# why\n",
    ],
)
def test_drafts_stand_where_the_list_ends_however_it_is_set(tmp_path: Path, marked: str):
    drafts, _ = draft_cases([TIMER], ONLY_TOOLS)
    file = tmp_path / "suite.yaml"
    place, text = marked.index("@"), marked.replace("@", "")
    added = added_to(text, drafts, file)
    assert added.startswith(text[:place])
    assert added.endswith(text[place:])
    servers = "mcpServers: [{name: kitchen, command: x}]\n"
    file.write_text(text + servers)
    before = read_suite(file, {}).config
    file.write_text(added + servers)
    after = read_suite(file, {}).config
    assert [case.name for case in after.testCases] == [None, "set_timer-1"]
    assert after.testCases[:1] == before.testCases


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_lines_end_as_they_do_in_the_file_that_is_added_to(example: Path, line_end: str):
    before = example.read_bytes().replace(b"\n", line_end.encode())
    example.write_bytes(before)
    generate(servers=ServerFlags(), output=example)
    after = example.read_bytes()
    assert after.count(line_end.encode()) == after.count(b"\n") > before.count(b"\n")


def test_what_only_its_owner_may_read_stays_so(example: Path):
    example.chmod(0o600)
    generate(servers=ServerFlags(), output=example)
    generate(servers=ServerFlags(path=example), output=example.with_name("new.yaml"))
    assert [stat.S_IMODE(example.with_name(name).stat().st_mode) for name in (example.name, "new.yaml")] == [0o600] * 2


SOURCE = """\
modelsToTest: ["${MAKER}:null"]
providers: {house: {baseUrl: "https://${HOST}/v1", apiKeyVariable: HOUSE_KEY}}
testCases: [{prompt: a, expectedOutput: null}]
mcpServers:
  - name: mine
    command: ${PYTHON}
    args: [bad.py, "${LIST}"]
    cwd: servers
    env: {TOKEN: "${TOKEN}", LEVEL: '3'}
  - {name: yours, transport: sse, url: "https://${HOST}/mcp", headers: {Authorization: "Bearer ${TOKEN}"}}
"""


@pytest.mark.parametrize(("output", "cwd"), [("new.yaml", "servers"), ("deep/down/new.yaml", "../../servers")])
def test_a_new_configuration_has_the_servers_and_providers_of_the_old_one_with_nothing_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, cwd: str
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "servers").mkdir()
    (tmp_path / "servers" / "bad.py").write_text(BAD.read_text())
    variables = {"MAKER": "scripted", "PYTHON": sys.executable, "LIST": "good", "HOST": "h.invalid", "TOKEN": "s3cr3t"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    source = tmp_path / "suite.yaml"
    source.write_text(SOURCE)
    assert generate(servers=ServerFlags(path=Path("suite.yaml"), only=["mine"]), output=Path(output)) == 0
    text = Path(output).read_text()
    assert not [value for value in ("s3cr3t", sys.executable, "h.invalid", "good") if value in text]
    old: Any = parse_yaml(SOURCE, source).value
    new: Any = parse_yaml(text, Path(output)).value
    assert (new["modelsToTest"], new["providers"]) == (old["modelsToTest"], old["providers"])
    assert new["mcpServers"] == [{**old["mcpServers"][0], "cwd": cwd}, old["mcpServers"][1]]
    again = Path(output).with_name("again.yaml")
    assert generate(servers=ServerFlags(path=Path(output), only=["mine"]), output=again) == 0
    assert again.read_text() == text


def test_an_address_that_was_given_directly_is_reached_the_same_way_again(tmp_path: Path):
    drafts, _ = draft_cases([TIMER.model_copy(update={"server": "far"})], ONLY_TOOLS)
    spec = ServerSpec(name="far", transport="http", url="https://h.invalid/sse")
    file = tmp_path / "new.yaml"
    file.write_text(whole_config(drafts, Frame.given([spec], ["local:smollm2"])))
    assert read_suite(file, {}).config.mcpServers == (spec,)


def test_a_file_without_a_last_line_end_is_given_one():
    drafts, _ = draft_cases([TIMER], ONLY_TOOLS)
    text = "testCases:\n  - prompt: a\n    expectedOutput: null"
    assert added_to(text, drafts, Path("x.yaml")) == added_to(f"{text}\n", drafts, Path("x.yaml"))


def test_what_would_not_be_right_is_not_written_and_told_by_the_name_of_its_file(tmp_path: Path):
    server, file = tmp_path / "server.py", tmp_path / "new.yaml"
    server.write_text(BAD.read_text().replace('{"id": TEXT}', '{"<<": TEXT}, required=["<<"]'))
    with pytest.raises(UsageError) as caught:
        generate(servers=ServerFlags(commands=[shlex.join([sys.executable, str(server)])]), output=file)
    told = str(caught.value)
    assert told.startswith(f"nothing was written, because the result would be invalid:\n{file}:")
    assert "`<<` merges are not supported" in told
    assert not file.exists()


def test_a_list_between_brackets_is_left_alone():
    drafts, _ = draft_cases([TIMER], ONLY_TOOLS)
    with pytest.raises(UsageError, match="not a list with a `-` before each"):
        added_to("testCases: [{prompt: a, expectedOutput: null}]\n", drafts, Path("x.yaml"))


def test_texts_that_look_like_something_else_stay_texts(tmp_path: Path):
    words = ["1e3", "0x1f", "null", "yes", "12:30", "# no", "a: b", "2026-03-04", "- x", "'", '"', "é", ""]
    properties = {f"p{at}": {"const": word} for at, word in enumerate(words)}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    tool = TIMER.model_copy(update={"input_schema": schema})
    drafts, _ = draft_cases([tool], ONLY_TOOLS)
    file = tmp_path / "suite.yaml"
    file.write_text(cases_text(drafts) + "modelsToTest: [a:b]\nmcpServers: [{name: kitchen, command: x}]\n")
    cases = read_suite(file, {}).config.testCases
    assert list((cases[-1].expectedOutput or ())[0].parameters.values()) == words


def tool(name: str, description: str = "", required: Any = None, **optional: Any) -> ServerTool:
    schema = {"type": "object", "properties": {**(required or {}), **optional}, "required": list(required or {})}
    return ServerTool(server="s", name=name, description=description, input_schema=schema)


def drafts_of(*tools: ServerTool, **around: Surroundings) -> list[Draft]:
    return draft_cases(tools, around=around)[0]


TEXT = {"type": "string"}
ZONE = {"type": "string", "description": "An IANA name (e.g., 'America/New_York', 'Europe/London')."}


@pytest.mark.parametrize(
    ("given", "prompt", "parameters"),
    [
        (
            tool("get_current_time", "Get current time in a specific timezone", {"timezone": ZONE}),
            "What time is it in New York right now?",
            {"timezone": "America/New_York"},
        ),
        (
            tool("create_issue", "Creates one.", {"owner": TEXT, "repo": TEXT, "title": TEXT}),
            "We need an issue in octocat/hello-world with the heading 'The login page is slow'.",
            {"owner": "octocat", "repo": "hello-world", "title": "The login page is slow"},
        ),
        (
            tool("list_orders", "", {"status": {"enum": ["open"]}}),
            "Which orders do we have that are open?",
            {"status": "open"},
        ),
        (tool("echo", "", {"line": TEXT}), "Say after me. Line: example.", {"line": "example"}),
        (
            tool("kubectl_get", "", {"resourceType": {"enum": ["pods"]}, "name": TEXT}),
            "I would like to see the kubectl called summer-plans. I mean pods.",
            {"resourceType": "pods", "name": "summer-plans"},
        ),
        (
            tool("add_to_list", "", {"item": TEXT}),
            "Do not forget this for the list: milk.",
            {"item": "milk"},
        ),
        (tool("get_user", "", {"user_id": TEXT}), "I would like to see the user U023BECGF.", {"user_id": "U023BECGF"}),
        (tool("widget_pairing", "", {"quux": TEXT}), "I need the widget pairing. Quux: example.", {"quux": "example"}),
    ],
)
def test_a_request_is_what_a_person_would_say(given: ServerTool, prompt: str, parameters: dict[str, Any]):
    first = drafts_of(given)[0]
    assert (first.prompt, first.parameters) == (prompt, parameters)


def test_a_request_avoids_the_words_of_the_description():
    found = [
        draft.prompt
        for text in (
            "",
            "I would like to see the report.",
            "I would like to see the report. Can you show me the report?",
        )
        for draft in drafts_of(tool("get_report", text))[:1]
    ]
    assert found == [
        "I would like to see the report.",
        "Can you show me the report?",
        "Let me have a look at the report.",
    ]


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        (
            "Please read the complete contents: todo.txt.",
            ["shares 'read the complete contents' with the description"],
        ),
        ("Use read_text on the thing.", ["spells the name 'read_text'"]),
        ("The file path is todo.txt.", ["spells the parameter 'file_path'"]),
        ("What does todo.txt say?", []),
    ],
)
def test_what_a_prompt_gives_away_is_found(prompt: str, told: list[str]):
    given = tool("read_text", "Read the complete contents of a file.", {"file_path": TEXT})
    assert leaks(prompt, given, {"file_path": "todo.txt"}) == told


def test_what_a_value_says_is_no_secret():
    given = tool("say", "Read the complete contents of a file.", {"text": TEXT})
    assert leaks("Say 'read the complete contents'.", given, {"text": "read the complete contents"}) == []


def test_dates_follow_one_another_and_cities_differ():
    date = {"type": "string", "format": "date"}
    [trip, *_] = drafts_of(
        tool("book_trip", "", {"start_date": date, "end_date": date, "from_city": TEXT, "to_city": TEXT})
    )
    assert str(trip.values["start_date"]) < str(trip.values["end_date"])
    assert trip.values["from_city"] != trip.values["to_city"]


def test_an_optional_parameter_is_asked_for_alone_with_a_value_other_than_its_default():
    given = tool(
        "list_orders", "", None, limit={"type": "integer", "default": 5}, quux=TEXT, sort={"enum": ["age", "size"]}
    )
    found = draft_cases([given], DraftRequest(per_tool=9, pairs=0, negatives=0))[0]
    assert [draft.values for draft in found] == [{}, {"limit": 6}, {"sort": "age"}, {"sort": "size"}]
    assert found[1].parameters == {"limit": 6}
    assert found[0].parameters == {"limit": {"value": 5, "optional": True}}


def test_nobody_asks_for_a_change_without_saying_which():
    found = draft_cases([tool("update_issue", "", {"issue_number": {"type": "integer"}}, title=TEXT)], ONLY_TOOLS)[0]
    assert [draft.values for draft in found] == [{"issue_number": 12, "title": "The login page is slow"}]


def test_what_cannot_be_said_is_left_to_the_model():
    [draft, *_] = drafts_of(tool("create_index", "", {"name": TEXT, "keys": {"type": "object"}}))
    assert draft.prompt == "We need an index called summer-plans. Choose the rest yourself."
    assert draft.parameters == {"name": "summer-plans", "keys": ANY}


def test_two_similar_tools_get_a_case_that_tells_them_apart():
    found = drafts_of(tool("get_invoice_lines"), tool("get_invoice_totals"), tool("send_letter"))
    pairs = [draft for draft in found if draft.tags == ("confusable",)]
    assert [(draft.tool, draft.prompt) for draft in pairs] == [
        (
            "get_invoice_lines",
            "I would like to see the invoice lines. I mean the lines, not the totals.",
        )
    ]


def test_cases_that_no_tool_is_for_avoid_what_the_tools_are_about():
    forecast = tool("get_forecast", "Tells the weather.", {"city": TEXT})
    found = draft_cases([forecast], DraftRequest(negatives=99))[0]
    none = [draft for draft in found if draft.tool is None]
    assert len(none) > 5
    assert not [draft for draft in none if "umbrella" in draft.prompt]
    assert none[0].as_case() == {
        "name": "no-tool-1",
        "prompt": none[0].prompt,
        "expectedOutput": None,
        "tags": ["negative"],
    }


def test_drafts_name_the_files_that_the_server_is_started_with(tmp_path: Path):
    box = tmp_path / "box"
    (box / ".git").mkdir(parents=True)
    (box / "a.txt").write_text("rent the boat")
    (box / ".env").write_text("SECRET=1")
    around = Surroundings.of(ServerSpec(name="s", command="x", args=("--root=box",)), tmp_path)
    assert (around.folder, around.files, around.repository) == (box, (str(box / "a.txt"),), box)
    drafts = drafts_of(
        tool("read_file", "", {"path": TEXT}),
        tool("create_file", "", {"path": TEXT}),
        tool("list_directory", "", {"path": TEXT}),
        tool("git_checkout", "", {"repo_path": TEXT, "branch_name": TEXT}),
        s=around,
    )
    assert [draft.values for draft in drafts[:4]] == [
        {"path": str(box / "a.txt")},
        {"path": str(box / "ideas.md")},
        {"path": str(box)},
        {"repo_path": str(box), "branch_name": "main"},
    ]
    assert Surroundings.of(ServerSpec(name="s", url="https://host/mcp"), tmp_path) == Surroundings()


def test_a_destructive_tool_is_not_executed_by_accident_and_a_deprecated_one_has_no_case():
    risky = tool("wipe_disk").model_copy(update={"annotations": {"destructiveHint": True}})
    old = tool("old_way", "DEPRECATED: use another.")
    drafts, problems = draft_cases([risky, old], ONLY_TOOLS)
    assert [draft.as_case()["executeTools"] for draft in drafts] == [False]
    assert problems == ["s/old_way: it is deprecated, so it has no case"]


def test_a_new_configuration_has_the_schema_line_the_schema_and_a_time_limit(tmp_path: Path, example: Path):
    new = tmp_path / "sub" / "new.yaml"
    assert generate(servers=ServerFlags(path=example), output=new) == 0
    assert new.read_text().startswith("# yaml-language-server: $schema=./mcp-testing-framework.schema.json\n")
    assert new.with_name("mcp-testing-framework.schema.json").read_text() == published_schema()
    assert read_suite(new, {}).config.modelSettings.timeout == 300


TELLS_ITS_KEY = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("tells")
@server.tool(description="Look up an order. My key is " + sys.argv[2] + ", backwards " + sys.argv[2][::-1])
def look_up(order: str) -> str:
    return order
server.run()
"""


def test_a_draft_names_a_variable_in_place_of_a_key(tmp_path: Path, bakeoff: Bakeoff, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    key = "sk-Zq8Wv3Lp0Xn5Rt7Yb2Kd9Mf4"
    (tmp_path / "tells.py").write_text(TELLS_ITS_KEY)
    command = shlex.join([sys.executable, str(tmp_path / "tells.py"), "--api-key", key])
    done = bakeoff("mcp", "generate", "--command", command, "-o", "drafts.yaml")
    assert done.returncode == 0, done.stderr
    drafts = (tmp_path / "drafts.yaml").read_text()
    assert "${" in drafts
    for text in (drafts, done.stdout, done.stderr):
        assert key not in text
        assert key[::-1] not in text

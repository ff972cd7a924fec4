"""Test what changed between two versions of a server, and how serious that is."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.errors import UsageError
from bakeoff.mcp import ServerTool
from bakeoff.mcp.changes import ToolChange, changes
from bakeoff.mcp.snapshot import (
    ArgumentEntry,
    ResourceEntry,
    ServerEntry,
    Snapshot,
    SnapshotPrompt,
    ToolEntry,
    read_snapshot,
)
from bakeoff.report.blocks import Quote, Table, as_datum
from bakeoff.report.tools import change_blocks

TEXT: dict[str, Any] = {"type": "string"}


def offering(**entry: Any) -> Snapshot:
    return Snapshot(servers={"desk": ServerEntry(**entry)})


def between(before: Snapshot, after: Snapshot) -> set[tuple[str, str, str]]:
    return {(change.level, change.kind, change.place or change.name) for change in changes(before, after)}


def inputs(before: Any, after: Any) -> set[tuple[str, str]]:
    """Compare two schemas of one parameter `p`."""
    one, other = (
        offering(tools={"t": ToolEntry(inputSchema={"type": "object", "properties": {"p": schema}})})
        for schema in (before, after)
    )
    return {(level, kind) for level, kind, _ in between(one, other)}


def tools(**schema: Any) -> Snapshot:
    return offering(tools={"t": ToolEntry(description="Find it.", inputSchema={"type": "object", **schema})})


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (TEXT, {"type": "integer"}, {("breaking", "type-changed")}),
        ({"type": "number"}, {"type": "integer"}, {("breaking", "type-removed")}),
        ({"type": "integer"}, {"type": "number"}, {("risky", "type-added")}),
        (TEXT, {}, {("risky", "type-added")}),
        ({}, TEXT, {("breaking", "type-removed")}),
        (TEXT, {"type": ["string", "null"]}, {("risky", "type-added")}),
        (TEXT, {"anyOf": [TEXT, {"type": "null"}]}, {("risky", "type-added")}),
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "null"}, TEXT]}, set()),
        ({"anyOf": [TEXT, {"type": "integer"}]}, {"anyOf": [TEXT]}, {("breaking", "type-removed")}),
        ({"enum": ["a", "b"]}, {"enum": ["a", "c"]}, {("breaking", "values-removed"), ("risky", "values-added")}),
        ({"enum": ["a"]}, {"const": "a"}, set()),
        ({"enum": [1]}, {"enum": [1, True]}, {("risky", "values-added"), ("risky", "type-added")}),
        (TEXT, {**TEXT, "enum": ["a"]}, {("breaking", "values-removed")}),
        ({**TEXT, "enum": ["a"]}, TEXT, {("risky", "values-added")}),
        ({"type": "integer", "maximum": 9}, {"type": "integer", "maximum": 5}, {("breaking", "limit-tightened")}),
        ({"type": "integer", "maximum": 5}, {"type": "integer", "maximum": 9}, {("risky", "limit-loosened")}),
        ({"type": "integer", "minimum": 5}, {"type": "integer"}, {("risky", "limit-loosened")}),
        (TEXT, {**TEXT, "pattern": "^a"}, {("breaking", "limit-tightened")}),
        ({**TEXT, "format": "uri"}, TEXT, {("risky", "limit-loosened")}),
        (
            {"type": "array", "items": TEXT},
            {"type": "array", "items": {"type": "integer"}},
            {("breaking", "type-changed")},
        ),
        ({"type": "array"}, {"type": "array", "items": TEXT}, {("breaking", "limit-tightened")}),
        ({**TEXT, "description": "A city."}, {**TEXT, "description": "A town."}, {("risky", "description-changed")}),
        ({**TEXT, "description": "A city."}, {**TEXT, "description": "A  city"}, {("cosmetic", "description-layout")}),
        ({**TEXT, "default": "a"}, {**TEXT, "default": "b"}, {("risky", "default-changed")}),
        ({**TEXT, "title": "P"}, {**TEXT, "title": "Q"}, {("cosmetic", "title-changed")}),
    ],
)
def test_a_parameter_that_refuses_more_is_breaking_and_one_that_says_something_else_is_risky(
    before: Any, after: Any, found: set[tuple[str, str]]
) -> None:
    assert inputs(before, after) == found


def test_parameters_come_and_go() -> None:
    before = tools(properties={"city": TEXT, "day": {"type": "integer"}, "old": {"type": "boolean"}}, required=["city"])
    after = tools(
        properties={"town": TEXT, "day": {"type": "integer"}, "more": {"type": "null"}, "must": {"type": "array"}},
        required=["town", "day", "must"],
    )
    assert between(before, after) == {
        ("breaking", "parameter-renamed", "city"),
        ("breaking", "parameter-required", "day"),
        ("breaking", "parameter-removed", "old"),
        ("breaking", "required-parameter-added", "must"),
        ("risky", "parameter-added", "more"),
    }


def test_undeclared_properties_are_no_reason_to_stop() -> None:
    assert between(tools(), tools(additionalProperties=False)) == {("risky", "undeclared-properties", "t")}


def test_references_are_followed_into_both_schemas() -> None:
    inline = tools(properties={"size": {"enum": ["s", "m"]}})
    by_name = tools(properties={"size": {"$ref": "#/$defs/Size"}}, **{"$defs": {"Size": {"enum": ["s", "m"]}}})
    fewer = tools(properties={"size": {"$ref": "#/$defs/Size"}}, **{"$defs": {"Size": {"enum": ["s"]}}})
    assert between(inline, by_name) == set()
    assert between(by_name, fewer) == {("breaking", "values-removed", "size")}


@pytest.mark.parametrize(
    "part",
    [
        {"properties": {"left": {"$ref": "#/$defs/a"}, "right": {"$ref": "#/$defs/a"}}},
        {"anyOf": [{"$ref": "#/$defs/a"}, {"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}]},
        {"$ref": "#/$defs/a"},
        {"items": {"$ref": "#"}},
    ],
)
def test_a_schema_that_refers_to_itself_is_compared_in_bounded_time(part: dict[str, Any]) -> None:
    before, after = (
        tools(properties={"p": {"$ref": "#/$defs/a"}, "q": q}, **{"$defs": {"a": part}}) for q in ({}, TEXT)
    )
    assert ("breaking", "type-removed", "q") in between(before, after)


def test_a_result_that_loses_a_field_is_breaking_and_one_that_gains_some_is_cosmetic() -> None:
    def giving(**fields: Any) -> Snapshot:
        schema = {"type": "object", "properties": fields, "required": list(fields)}
        return offering(tools={"t": ToolEntry(inputSchema={"type": "object"}, outputSchema=schema)})

    both, one = giving(id=TEXT, size={"type": "integer"}), giving(id=TEXT)
    assert between(both, one) == {("breaking", "parameter-removed", "result.size")}
    assert between(one, both) == {("cosmetic", "required-parameter-added", "result.size")}


def test_tools_that_are_removed_renamed_added_or_described_anew() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"id": TEXT}}

    def tool(description: str, **more: Any) -> ToolEntry:
        return ToolEntry(description=description, inputSchema=schema, **more)

    before = offering(
        tools={
            "gone": tool("Deletes a whole order at once."),
            "get": tool("Reads one note by its number."),
            "put": tool("Writes."),
        }
    )
    after = offering(
        tools={
            "get_note": tool("Reads one note by its number."),
            "put": tool("Writes a note.", annotations={"destructiveHint": True}),
            "new": tool("Says hello to somebody."),
        }
    )
    assert between(before, after) == {
        ("breaking", "tool-removed", "gone"),
        ("breaking", "tool-renamed", "get"),
        ("risky", "description-changed", "put"),
        ("risky", "hint-changed", "put"),
        ("risky", "tool-added", "new"),
    }
    described = next(change for change in changes(before, after) if change.kind == "description-changed")
    assert (described.before, described.after) == ("Writes.", "Writes a note.")


@pytest.mark.parametrize(
    ("before", "after", "level"),
    [
        ({}, {"destructiveHint": True}, "risky"),
        ({"readOnlyHint": True}, {}, "risky"),
        ({}, {"readOnlyHint": True, "openWorldHint": False}, "cosmetic"),
        ({"destructiveHint": True}, {"destructiveHint": False}, "cosmetic"),
        ({"title": "A"}, {"title": "B"}, "cosmetic"),
    ],
)
def test_hints_are_one_change_and_risky_only_if_the_tool_got_more_dangerous(
    before: dict[str, Any], after: dict[str, Any], level: str
) -> None:
    one, other = (
        offering(tools={"t": ToolEntry(inputSchema={"type": "object"}, annotations=hints)}) for hints in (before, after)
    )
    assert between(one, other) == {(level, "hint-changed", "t")}


def test_the_same_change_at_many_places_shares_a_row() -> None:
    one, other = (
        offering(tools={f"t{at}": ToolEntry(title=title, inputSchema={"type": "object"}) for at in range(5)})
        for title in ("A", "B")
    )
    table = next(block for block in change_blocks(changes(one, other)) if isinstance(block, Table))
    [(level, *others)] = table.rows
    assert as_datum(level).text == "cosmetic"
    assert others == ["5 places", Quote("its title changed: desk/t0, desk/t1 and 3 more")]


def test_resources_prompts_and_instructions_are_compared_too() -> None:
    before = offering(
        instructions="Ask first.",
        resources={"a://x": ResourceEntry(mimeType="text/plain"), "a://y": ResourceEntry(description="One.")},
        resourceTemplates={"a://{id}": ResourceEntry()},
        prompts={
            "greet": SnapshotPrompt(arguments={"who": ArgumentEntry(), "how": ArgumentEntry()}),
            "bye": SnapshotPrompt(),
        },
    )
    after = offering(
        instructions="Never ask.",
        resources={"a://x": ResourceEntry(mimeType="text/html"), "a://y": ResourceEntry(description="Two.")},
        prompts={"greet": SnapshotPrompt(arguments={"who": ArgumentEntry(required=True)}), "hi": SnapshotPrompt()},
    )
    assert between(before, after) == {
        ("risky", "instructions-changed", ""),
        ("breaking", "resource-changed", "a://x"),
        ("risky", "resource-changed", "a://y"),
        ("breaking", "resource-template-removed", "a://{id}"),
        ("breaking", "prompt-changed", "greet"),
        ("breaking", "prompt-removed", "bye"),
        ("cosmetic", "prompt-added", "hi"),
    }


def test_a_single_server_is_compared_whatever_its_name_is() -> None:
    one = Snapshot(servers={"python3": ServerEntry()})
    assert changes(offering(), one) == ()
    two = Snapshot(servers={"desk": ServerEntry(), "more": ServerEntry()})
    assert [change.kind for change in changes(offering(), two)] == ["server-added"]
    assert [change.kind for change in changes(two, offering())] == ["server-removed"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["string", "object", "#/$defs/a", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "anyOf", "items", "$ref", "$defs", "enum", "required", "minimum", "a", "default"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(["properties", "$defs", "anyOf", "required"]), JSON), JSON)
def test_any_two_schemas_can_be_compared(before: Any, after: Any) -> None:
    other = after if isinstance(after, dict) else {"properties": {"a": after}}
    found = changes(tools(**before), tools(**{key: value for key, value in other.items() if key != "type"}))
    assert all(isinstance(change, ToolChange) for change in found)
    assert changes(tools(**before), tools(**before)) == ()


def test_a_snapshot_is_the_same_text_for_the_same_servers_and_is_read_back(tmp_path: Path) -> None:
    listed = [
        ServerTool(server="desk", name=name, description="x\u202ey\U000e0041ü\ud800", input_schema={"type": "object"})
        for name in ("b", "a")
    ]
    one, other = (
        Snapshot.of({name: ServerEntry() for name in names}, tools)
        for names, tools in ((["desk", "empty"], listed), (["empty", "desk"], listed[::-1]))
    )
    assert one.text() == other.text()
    assert "\\u202ey\\udb40\\udc41ü\\ud800" in one.text()
    one.write(tmp_path / "snapshot.json")
    read = read_snapshot(tmp_path / "snapshot.json")
    assert read.snapshot == one
    line = (tmp_path / "snapshot.json").read_text().splitlines()[read.line("servers", "desk", "tools", "b") - 1]
    assert line.strip().startswith('"b": {')
    assert read.line("servers", "desk", "tools", "missing") == read.line("servers", "desk", "tools")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", ":1: this is not JSON"),
        ("[]", ":1: this is not a snapshot of MCP servers: write one with `bakeoff mcp snapshot`"),
        ('{"format": "bakeoff-mcp-snapshot-2", "servers": {}}', ":1: this is not a snapshot"),
        (
            '{"format": "bakeoff-mcp-snapshot-1",\n"servers": {"a": {"tools": {"t": {}}}}}',
            ":2: servers.a.tools.t.inputSchema",
        ),
        ('{"format": "bakeoff-mcp-snapshot-1", "servers": {"a": 1}}', "servers.a: 1: has to be an object"),
        ("[" * 100_000, "this is not JSON"),
    ],
)
def test_a_file_that_is_no_snapshot_is_an_error_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_snapshot(file)
    assert message in str(caught.value)
    with pytest.raises(UsageError, match="write it with `bakeoff mcp snapshot`"):
        read_snapshot(tmp_path / "none.json")


def test_a_snapshot_of_a_plan_has_its_tools() -> None:
    tool = ServerTool(server="desk", name="t", input_schema={"type": "object"}, annotations={"readOnlyHint": True})
    snapshot = Snapshot.of_tools([tool])
    assert json.loads(snapshot.text())["servers"] == {
        "desk": {"tools": {"t": {"annotations": {"readOnlyHint": True}, "inputSchema": {"type": "object"}}}}
    }

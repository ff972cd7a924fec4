"""Describe what servers offer for people."""

import json
import textwrap
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from bakeoff._kernel.text import count_of, visible
from bakeoff.doors.mcp.arguments import accepted_types, resolved
from bakeoff.doors.mcp.lint.schemas import Schema
from bakeoff.doors.mcp.snapshot.files import ServerEntry, Snapshot, SnapshotPrompt, ToolEntry
from bakeoff.report.blocks import Block, Quote, Table, columns, heading, paragraph

_WIDTH = 110  # of the lines of a description
_HINTS = {
    ("readOnlyHint", True): "read-only",
    ("destructiveHint", True): "destructive",
    ("idempotentHint", True): "idempotent",
    ("openWorldHint", True): "reaches other systems",
}


def listing_blocks(snapshot: Snapshot, *, whole: bool) -> Iterator[Block]:
    """Describe every server: with `whole`, every tool with its whole description and every parameter."""
    for name, server in snapshot.servers.items():
        yield heading(Quote(name), level=2)
        yield paragraph(_counted(server))
        if whole and server.instructions:
            yield from _text("instructions", server.instructions)
        if whole:
            for tool_name, tool in server.tools.items():
                yield from _whole_tool(tool_name, tool)
        elif server.tools:
            yield Table(
                columns("tool", "parameters", "description"),
                tuple(
                    (Quote(tool_name), Quote(_signature(tool)), Quote(_first_line(tool.description)))
                    for tool_name, tool in server.tools.items()
                ),
            )
        yield from _others(server)


def _counted(server: ServerEntry) -> str:
    counts = [
        count_of(len(server.tools), "tool"),
        count_of(len(server.resources), "resource"),
        count_of(len(server.resourceTemplates), "resource template"),
        count_of(len(server.prompts), "prompt"),
    ]
    return ", ".join(count for count in counts if not count.startswith("0 ")) or "nothing"


def _whole_tool(name: str, tool: ToolEntry) -> Iterator[Block]:
    hints = [text for (hint, value), text in _HINTS.items() if tool.annotations.get(hint) is value]
    title = visible(name, 80) + (f" ({', '.join(hints)})" if hints else "")
    yield from _text(title, tool.description or "no description")
    parameters = _properties(tool)
    if not parameters:
        return
    required = tool.inputSchema.get("required")
    needed = required if isinstance(required, list) else []
    yield Table(
        columns("parameter", "type", "required", "description"),
        tuple(
            (
                Quote(parameter),
                Quote(_type(resolved(schema, tool.inputSchema))),
                "yes" if parameter in needed else "",
                Quote(_first_line(str(resolved(schema, tool.inputSchema).get("description") or ""))),
            )
            for parameter, schema in parameters.items()
        ),
    )


def _text(title: str, text: str) -> Iterator[Block]:
    """Show a text of several lines below its title."""
    lines = [part for line in text.strip().splitlines() for part in textwrap.wrap(line, _WIDTH) or [""]]
    yield Table(columns(title), tuple((Quote(line),) for line in lines))


def _others(server: ServerEntry) -> Iterator[Block]:
    resources = [*server.resources.items(), *server.resourceTemplates.items()]
    if resources:
        yield Table(
            columns("resource", "type", "description"),
            tuple(
                (Quote(uri), Quote(each.mimeType), Quote(_first_line(each.description or each.title or each.name)))
                for uri, each in resources
            ),
        )
    if server.prompts:
        yield Table(
            columns("prompt", "arguments", "description"),
            tuple(
                (Quote(name), Quote(_arguments(each)), Quote(_first_line(each.description)))
                for name, each in server.prompts.items()
            ),
        )


def _signature(tool: ToolEntry) -> str:
    """Return the names of parameters; optional ones have a question mark."""
    required = tool.inputSchema.get("required")
    needed = required if isinstance(required, list) else []
    return ", ".join(name if name in needed else f"{name}?" for name in _properties(tool))


def _arguments(prompt: SnapshotPrompt) -> str:
    return ", ".join(name if each.required else f"{name}?" for name, each in prompt.arguments.items())


def _properties(tool: ToolEntry) -> Mapping[str, JsonValue]:
    properties = tool.inputSchema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _type(schema: Schema) -> str:
    choices = schema.get("enum")
    if isinstance(choices, list):
        kinds = " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    else:
        kinds = " | ".join(accepted_types(schema)) or "any"
    return f"{kinds} = {json.dumps(schema['default'], ensure_ascii=False)}" if "default" in schema else kinds


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0] if lines else ""

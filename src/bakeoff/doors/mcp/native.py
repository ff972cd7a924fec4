"""Say where function calling cannot offer a tool as its server describes it: another name, or a poorer schema."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from pydantic import JsonValue
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from bakeoff._kernel.text import count_of
from bakeoff.doors.mcp.plan import McpPlanSettings
from bakeoff.doors.mcp.subjects import model_of
from bakeoff.mcp import ServerTool
from bakeoff.mcp.tools import MAX_TOOL_NAME_LENGTH, offered_names, plain_name, tool_label
from bakeoff.plan import Plan

_NO_LOSS = {"title", "$schema", "$id", "$comment", "$ref", "$defs", "definitions"}
"""Keywords that say nothing about a value, or that are replaced by what they refer to."""

_OF_NAMES = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}  # hold schemas by name
_OF_VALUES = {"enum", "const", "default", "examples", "required"}  # hold no schema


def changed_names(tools: Sequence[ServerTool]) -> Iterator[str]:
    """Yield a sentence for each tool that models see under another name."""
    for name, tool in offered_names(tools).items():
        if name == tool.name:
            continue
        why = "another server has a tool of that name"
        if plain_name(tool.name) != tool.name:
            why = f"providers accept letters, digits, _ and - in names, at most {MAX_TOOL_NAME_LENGTH} characters"
        yield f"{tool_label(tool.server, tool.name)!r} is offered as {name!r}, because {why}"


async def changed_schemas(
    plan: Plan, settings: McpPlanSettings, environment: Mapping[str, str], tools: Sequence[ServerTool]
) -> AsyncIterator[str]:
    """Yield a sentence for each model whose provider is sent schemas without some of their keywords."""
    for spec in plan.subjects:
        model = model_of(spec, settings, environment)
        if model.access.provider.wire in ("scripted", "custom", "embedded"):
            continue
        definitions = [ToolDefinition(name="tool", parameters_json_schema=tool.input_schema) for tool in tools]
        asked = ModelRequestParameters(function_tools=definitions)
        async with model.access.open() as provider:  # makes no connection
            sent = provider.model(model.name.model).customize_request_parameters(asked)
        lost = [
            lost_keywords(tool.input_schema, definition.parameters_json_schema)
            for tool, definition in zip(tools, sent.function_tools, strict=True)
        ]
        if names := sorted(set().union(*lost)):
            without = f"{count_of(sum(map(bool, lost)), 'tool')} without {', '.join(names)}"
            yield f"{spec.name} sees the schemas of {without}: its provider does not accept that"


def lost_keywords(schema: JsonValue, sent: JsonValue) -> set[str]:
    """Return the keywords of a schema that the one that is sent does not have."""
    lost = set(_keywords(schema)) - set(_keywords(sent)) - _NO_LOSS
    return lost - {"const"} if "enum" in _keywords(sent) else lost  # an enum of one value is the same


def _keywords(schema: JsonValue) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _keywords(item)
    elif isinstance(schema, dict):
        for name, value in schema.items():
            yield name
            if name in _OF_NAMES and isinstance(value, dict):
                yield from _keywords([*value.values()])
            elif name not in _OF_VALUES:
                yield from _keywords(value)

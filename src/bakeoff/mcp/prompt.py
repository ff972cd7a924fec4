"""Build the system prompt of `json` mode: rules, tools of all servers, and reply format."""

import json
import tomllib
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import chain, count, groupby
from pathlib import Path

from pydantic import JsonValue

from bakeoff.mcp import ServerTool

PROMPT_VERSION = "2"
"""Part of every attempt key: another prompt may lead to other replies."""

_KEPT_KEYWORDS = ("type", "properties", "required", "items", "enum", "const", "anyOf", "minItems", "maxItems")


@cache
def _texts() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name("prompt.toml").read_text("utf-8"))


def system_prompt(tools: Sequence[ServerTool], *, sequences: bool) -> str:
    """Return the system prompt for these tools. It is the same for all models."""
    parts = [_texts()["rules"], "# Servers and tools"]
    for server, offered in groupby(tools, key=lambda tool: tool.server):
        parts.append(f"## Server: {server}")
        for tool in offered:
            described = [tool.description.strip()] if tool.description else []
            parameters = f"Parameters: {json.dumps(tool.input_schema, ensure_ascii=False)}"
            parts.append("\n".join([f"### Tool: {tool.name}", *described, parameters]))
    parts.append(
        _texts()["reply"].format(example=_example(tools)) + (_texts()["reply_with_several"] if sequences else "")
    )
    parts.append(_examples({tool.server for tool in tools}, sequences=sequences))
    return "\n\n".join(parts) + "\n"


def _example(tools: Sequence[ServerTool]) -> str:
    """Return a valid reply for an imaginary tool, because a real one could give an answer away."""
    name = tools[0].server if len({tool.server for tool in tools}) == 1 else "name of the server"
    return json.dumps(
        {
            "serverName": name,
            "toolName": "name of the tool",
            "parameters": {"name of a parameter": "its value", "name of another": 42},
        },
        indent=2,
        ensure_ascii=False,
    )


def _examples(servers: Collection[str], *, sequences: bool) -> str:
    """Return examples for an imaginary server, because real tools could give answers away."""
    server = next(
        name for name in chain(["library"], (f"library-{number}" for number in count(2))) if name not in servers
    )

    def call(tool: str, **parameters: JsonValue) -> dict[str, JsonValue]:
        return {"serverName": server, "toolName": tool, "parameters": parameters}

    text = _texts()["examples"].format(server=server, one=json.dumps(call("find_book", title="Emma", limit=2)))
    if not sequences:
        return text
    several = [call("reserve_book", id=number) for number in (7, 12)]
    return text + _texts()["example_of_several"].format(several=json.dumps(several))


def reply_schema(tools: Sequence[ServerTool], *, sequences: bool) -> dict[str, JsonValue]:
    """Return the JSON Schema of a reply, for structured output: a tool call or null."""
    calls: list[JsonValue] = [
        {
            "type": "object",
            "properties": {
                "serverName": {"const": tool.server},
                "toolName": {"const": tool.name},
                "parameters": _plain(tool.input_schema),
            },
            "required": ["serverName", "toolName", "parameters"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    choices: list[JsonValue] = [*calls, {"type": "null"}]
    if sequences:
        choices.insert(len(calls), {"type": "array", "items": {"anyOf": calls}, "minItems": 2})
    return {"anyOf": choices}


def _plain(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Keep only widely supported schema keywords, and forbid additional parameters."""
    kept = {name: value for name, value in schema.items() if name in _KEPT_KEYWORDS}
    properties = schema.get("properties")
    if isinstance(properties, dict):
        kept["properties"] = {
            name: _plain(value) if isinstance(value, dict) else {} for name, value in properties.items()
        }
    if isinstance(items := schema.get("items"), dict):
        kept["items"] = _plain(items)
    if isinstance(choices := schema.get("anyOf"), list):
        kept["anyOf"] = [_plain(choice) for choice in choices if isinstance(choice, dict)]
    if schema.get("type") == "object" and properties:
        kept["additionalProperties"] = False
    return kept

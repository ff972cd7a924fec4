"""Write the JSON Schema of `mcp-testing-framework.yaml` that the package ships. Run it after a change of the models."""

import json
from pathlib import Path
from typing import Any

from bakeoff.doors.eval.config import scorer_shape
from bakeoff.doors.mcp.cases import OF_A_TURN
from bakeoff.doors.mcp.config import SuiteConfig
from bakeoff.doors.mcp.examples import SCHEMA_NAME
from bakeoff.scorers.matchers import Matcher

_ALSO_HTTP = ["streamable-http", "streamableHttp"]


_IMPORT = {
    "title": "Import",
    "description": "The servers of a client's file, such as .mcp.json.",
    "type": "object",
    "properties": {
        "import": {"type": "string", "minLength": 1, "description": "a path from the folder of this file"},
        "only": {"type": "array", "items": {"type": "string"}, "description": "names of servers; absent: all"},
    },
    "required": ["import"],
    "additionalProperties": False,
}


def schema_text() -> str:
    return json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n"


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of what `read_suite` accepts."""
    schema = SuiteConfig.model_json_schema()
    shapes = schema["$defs"]
    shapes["Matcher"] = Matcher.model_json_schema()
    shapes["ScorerEntry"] = scorer_shape()
    for place in (schema, shapes["McpCase"]):
        one = {"$ref": "#/$defs/ScorerEntry"}
        several = {"type": "array", "items": one, "minItems": 1}
        about = place["properties"]["scorers"]["description"]
        place["properties"]["scorers"] = {"description": about, "anyOf": [one, several]}
    for name in ("McpCase", "McpTurn"):
        _accept_forms_of_calls(shapes[name])
    _accept_turns(shapes["McpCase"])
    shapes["EndCheck"]["oneOf"] = [{"required": [name]} for name in ("command", "query")]
    # Any value is accepted but a matcher with misspelt keys. The matcher is listed so that editors offer its keys.
    begins = ["value", *(name[:3] for name in Matcher.model_fields if name != "value")]
    misspelt = {"pattern": f"^({'|'.join(begins)})"}
    resembling = {"type": "object", "required": ["value"], "minProperties": 2, "propertyNames": misspelt}
    shapes["ExpectedMcpCall"]["properties"]["parameters"]["additionalProperties"] = {
        "anyOf": [{"$ref": "#/$defs/Matcher"}, {"not": resembling}]
    }
    server = shapes["ServerSpec"]
    server["properties"]["transport"]["enum"] += _ALSO_HTTP
    server["properties"]["transport"].pop("default", None)
    server["oneOf"] = [{"required": ["command"]}, {"required": ["url"]}]
    shapes["Import"] = _IMPORT
    schema["properties"]["mcpServers"]["items"] = {
        "anyOf": [{"$ref": "#/$defs/ServerSpec"}, {"$ref": "#/$defs/Import"}]
    }
    _accept_forms_of_providers(schema["properties"], shapes["ProviderConfig"])
    # Settings for all models and, under their names, for single models.
    del shapes["SuiteModelSettings"]
    single = {"patternProperties": {"[:/]": {"$ref": "#/$defs/ModelSettings"}}}
    schema["properties"]["modelSettings"] = {**shapes["ModelSettings"], **single}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "MCP evaluation",
        "description": "Test how well models understand the tools of MCP servers: prompts and the expected calls.",
    }


def _accept_forms_of_calls(shape: dict[str, Any]) -> None:
    """Accept one call, several or none, under either of two names."""
    call = {"$ref": "#/$defs/ExpectedMcpCall"}
    expected = {
        "description": shape["properties"]["expectedOutput"]["description"],
        "anyOf": [call, {"type": "array", "items": call, "minItems": 1}, {"type": "null"}],
    }
    for name in ("expectedOutput", "expectedToolUsage"):
        shape["properties"][name] = expected
    shape["properties"]["alternatives"]["items"] = {"anyOf": expected["anyOf"]}
    shape["required"] = ["prompt"]
    shape["oneOf"] = [{"required": [name]} for name in ("expectedOutput", "expectedToolUsage")]


def _accept_turns(case: dict[str, Any]) -> None:
    """Accept turns instead of a prompt. Keys of a turn are not accepted beside them."""
    case["properties"]["turns"] |= {"minItems": 1}
    case["properties"]["turns"].pop("default", None)
    alone = {"required": case.pop("required"), "oneOf": case.pop("oneOf"), "not": {"required": ["turns"]}}
    own = [{"required": [name]} for name in OF_A_TURN]
    case["oneOf"] = [alone, {"required": ["turns"], "not": {"anyOf": own}}]


def _accept_forms_of_providers(properties: dict[str, Any], shape: dict[str, Any]) -> None:
    """Accept the short form too, and all names of the keys."""
    given = shape["properties"]
    for name, others in {"target": ("class", "module"), "baseUrl": ("base_url", "url")}.items():
        given.update(dict.fromkeys(others, given[name]))
    given.update(dict.fromkeys(("key_variable", "apiKeyEnv"), given["apiKeyVariable"]))
    short = {"type": "string", "description": "`module:Class`, or the address of an OpenAI-compatible API"}
    properties["providers"]["additionalProperties"] = {"anyOf": [short, {"$ref": "#/$defs/ProviderConfig"}]}


if __name__ == "__main__":
    bundled = Path(__file__).parent.parent / "src/bakeoff/bundled/mcp"
    (bundled / SCHEMA_NAME).write_text(schema_text(), "utf-8")

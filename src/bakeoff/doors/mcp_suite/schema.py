"""The JSON Schema of a configuration, with which editors check it and complete it."""

import json
from importlib import resources
from typing import Any

from bakeoff.doors.mcp_suite.config import SuiteConfig
from bakeoff.doors.mcp_suite.matching import Matcher

SCHEMA_NAME = "mcp-testing-framework.schema.json"
_ALSO_HTTP = ["streamable-http", "streamableHttp"]


def published_schema() -> str:
    """The file that travels with the package; a test holds it to what `config_schema` says."""
    return resources.files("bakeoff.bundled").joinpath("mcp", SCHEMA_NAME).read_text("utf-8")


def schema_text() -> str:
    return json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n"


def config_schema() -> dict[str, Any]:
    """What `read_suite` takes, as far as a schema can say it."""
    schema = SuiteConfig.model_json_schema(by_alias=False)
    shapes = schema["$defs"]
    shapes["Matcher"] = Matcher.model_json_schema()
    _case(shapes["SuiteCase"])
    _call(shapes["ExpectedCall"])
    _server(shapes["ServerSpec"])
    _providers(schema["properties"], shapes["ProviderConfig"])
    _settings(schema["properties"], shapes["ModelSettings"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "MCP evaluation",
        "description": "How well models understand the tools of MCP servers: prompts, and the calls they lead to.",
    }


def _case(shape: dict[str, Any]) -> None:
    """One call, several, or none; under either of two names."""
    call = {"$ref": "#/$defs/ExpectedCall"}
    expected = {
        "description": shape["properties"]["expectedOutput"]["description"],
        "anyOf": [call, {"type": "array", "items": call, "minItems": 1}, {"type": "null"}],
    }
    for name in ("expectedOutput", "expectedToolUsage"):
        shape["properties"][name] = expected
    shape["required"] = ["prompt"]
    shape["oneOf"] = [{"required": [name]} for name in ("expectedOutput", "expectedToolUsage")]


def _call(shape: dict[str, Any]) -> None:
    """Any value may stand there; the matcher is named for editors to offer its keys."""
    shape["properties"]["parameters"]["additionalProperties"] = {"anyOf": [{"$ref": "#/$defs/Matcher"}, {}]}


def _server(shape: dict[str, Any]) -> None:
    shape["properties"]["transport"]["enum"] += _ALSO_HTTP
    shape["properties"]["transport"].pop("default", None)
    shape["oneOf"] = [{"required": ["command"]}, {"required": ["url"]}]


def _providers(properties: dict[str, Any], shape: dict[str, Any]) -> None:
    """By its short form too, and under every name that its keys have."""
    given = shape["properties"]
    for name, others in {"target": ("class", "module"), "baseUrl": ("base_url", "url")}.items():
        given.update(dict.fromkeys(others, given[name]))
    given.update(dict.fromkeys(("key_variable", "apiKeyEnv"), given["apiKeyVariable"]))
    short = {"type": "string", "description": "`module:Class`, or an address that speaks the OpenAI API"}
    properties["providers"]["additionalProperties"] = {"anyOf": [short, {"$ref": "#/$defs/ProviderConfig"}]}


def _settings(properties: dict[str, Any], shape: dict[str, Any]) -> None:
    """For all models, and beside these for single ones, under their names."""
    properties.pop("modelSettingsOf")
    of_one = {"$ref": "#/$defs/ModelSettings"}
    properties["modelSettings"] = {**shape, "patternProperties": {"[:/]": of_one}}

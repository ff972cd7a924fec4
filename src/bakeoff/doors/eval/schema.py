"""Write the JSON Schema of `bakeoff.yaml`, and a first configuration."""

import json
from functools import cache
from importlib import resources
from typing import Any

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema

from bakeoff.doors.eval.config import (
    CONFIG_NAME,
    CONTROLS,
    CaseEntry,
    EvalConfig,
    PromptEntry,
    SubjectEntry,
)
from bakeoff.scorers.entries import ScorerEntry, kinds_for_files

SCHEMA_NAME = "bakeoff.schema.json"
_ENTRIES: dict[str, type[BaseModel]] = {
    "prompts": PromptEntry,
    "subjects": SubjectEntry,
    "cases": CaseEntry,
    "scorers": ScorerEntry,
}


def schema_text() -> str:
    """Return the JSON schema of `bakeoff.yaml`, as `bakeoff init eval` writes it for editors."""
    return json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n"


@cache
def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of what a configuration may be, with all short forms."""
    schema = EvalConfig.model_json_schema()
    shapes = schema["$defs"]
    shapes["ScorerEntry"] = scorer_shape()
    for model in (PromptEntry, SubjectEntry):
        shapes[model.__name__]["oneOf"] = [{"required": [name]} for name in model.one_of]
    texts: dict[str, Any] = {
        "prompts": {"type": "string", "minLength": 1},
        "subjects": {"anyOf": [{"enum": list(CONTROLS)}, {"type": "string", "pattern": "[:/]"}]},
        "cases": {"type": "string", "description": "an input, or `file:cases.csv`"},
    }
    entries: list[tuple[Any, str, type[BaseModel]]] = [(schema["properties"], *entry) for entry in _ENTRIES.items()]
    entries.append((shapes["CaseEntry"]["properties"], "scorers", ScorerEntry))
    for properties, key, shape in entries:
        ref = {"$ref": f"#/$defs/{shape.__name__}"}
        item = {"anyOf": [texts[key], ref]} if key in texts else ref
        several = {"type": "array", "items": item, "minItems": 1}
        properties[key] = {"description": properties[key]["description"], "anyOf": [item, several]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Bakeoff",
        "description": "Compare models, commands and functions on your own prompts.",
    }


def scorer_shape() -> dict[str, Any]:
    """Return the shapes of a scorer: a kind, or a kind with its options."""
    properties: dict[str, Any] = {"name": {"type": "string", "description": "tells two of one kind apart"}}
    kinds = kinds_for_files()
    for kind, known in kinds.items():
        fields = _field_shapes(known.load().options_model())
        options: dict[str, Any] = {"type": "object"}
        if fields:
            options |= {"properties": fields, "additionalProperties": False}
        properties[kind] = {"anyOf": [options, {"type": "null"}]}
        if known.main:
            alone = f"alone: `{known.main}`"
            properties[kind] = {"anyOf": [options, {"not": {"type": "object"}}], "description": alone}
    one = [{"required": [kind]} for kind in kinds]
    whole = {"type": "object", "properties": properties, "additionalProperties": False, "oneOf": one}
    return {"title": "Scorer", "anyOf": [{"enum": list(kinds)}, whole]}


def _field_shapes(model: type[BaseModel]) -> dict[str, Any]:
    """Return the shape of each option; an option whose type has no schema, such as a function, may be anything."""
    try:
        shapes = model.model_json_schema()["properties"]
    except PydanticInvalidForJsonSchema:
        return {name: {} for name in model.model_fields}
    return {name: {} if "$ref" in json.dumps(shape) else shape for name, shape in shapes.items()}


def first_files() -> dict[str, str]:
    """Return a small configuration that works, and its schema, by their names."""
    config = resources.files("bakeoff.bundled").joinpath("eval", CONFIG_NAME).read_text("utf-8")
    return {CONFIG_NAME: config, SCHEMA_NAME: schema_text()}

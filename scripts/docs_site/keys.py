"""The reference of configuration keys, from JSON Schemas; and the schemas themselves, as files of the site."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from scripts.docs_site.markdown import code, table

from bakeoff import Case, Plan, Record
from bakeoff.doors.components.suites import Layout

Schema = Mapping[str, Any]
_PACKAGE = Path(str(resources.files("bakeoff")))


@cache
def config_schemas() -> dict[str, Schema]:
    """Return the schemas of the files that users write: those that ship, and that of `suite.toml`."""
    shipped = sorted(_PACKAGE.rglob("*.schema.json"))
    found: dict[str, Schema] = {path.name: json.loads(path.read_text("utf-8")) for path in shipped}
    return {**found, "suite.schema.json": {**Layout.model_json_schema(), "title": "suite.toml"}}


@cache
def data_schemas() -> dict[str, Schema]:
    """Return the schemas of what Bakeoff writes."""
    models: dict[str, type[BaseModel]] = {"plan": Plan, "case": Case, "record": Record}
    return {f"{name}.schema.json": model.model_json_schema() for name, model in models.items()}


def schema_files() -> dict[str, str]:
    """Return every schema as JSON text, by the name of its file."""
    schemas = {**config_schemas(), **data_schemas()}
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in schemas.items()}


def schema_reference() -> str:
    """Return a table of all schemas."""
    rows = [
        (f"[`{name}`](../schemas/{name})", str(schema.get("title", "")), str(schema.get("description", "")))
        for name, schema in {**config_schemas(), **data_schemas()}.items()
    ]
    return table(("schema", "of", ""), rows)


def key_reference() -> str:
    """Return the keys of each configuration file, with one table for each kind of object."""
    return "\n\n".join("\n\n".join(_sections(name, schema)) for name, schema in config_schemas().items())


def _sections(name: str, schema: Schema) -> Iterator[str]:
    title = name.removesuffix(".schema.json")
    yield f"## {schema.get('title', title)}"
    yield f"{schema.get('description', '')}\n\nSchema: [`{name}`](../schemas/{name})"
    for part in (schema, *({"title": key, **value} for key, value in schema.get("$defs", {}).items())):
        if rows := list(_rows(part)):
            if part is not schema:
                yield f"### {title}: {part['title']}"
            yield table(("key", "type", "default", ""), rows)


def _rows(schema: Schema) -> Iterator[tuple[str, str, str, str]]:
    required = schema.get("required", ())
    for key, value in schema.get("properties", {}).items():
        default = "required" if key in required else _default(value)
        yield code(key), type_of(value), default, str(value.get("description", ""))


def _default(value: Schema) -> str:
    default = value.get("default")
    return "" if default in (None, "", [], {}) else code(json.dumps(default, ensure_ascii=False))


def type_of(value: Schema) -> str:
    """Return the type of a value in words."""
    if "$ref" in value:
        return str(value["$ref"]).rsplit("/", 1)[-1]
    if "enum" in value:
        return " or ".join(code(str(each)) for each in value["enum"])
    if "const" in value:
        return code(str(value["const"]))
    for word in ("anyOf", "oneOf"):
        if word in value:
            return " or ".join(dict.fromkeys(type_of(each) for each in value[word] if each.get("type") != "null"))
    return _simple_type(value)


def _simple_type(value: Schema) -> str:
    kind = value.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        items = value.get("items")
        return f"list of {type_of(items)}" if isinstance(items, dict) else "list"
    further = value.get("additionalProperties")
    if kind == "object" and isinstance(further, dict):
        return f"map to {type_of(further)}"
    return {"object": "map", "string": "text", "boolean": "true or false"}.get(kind, str(kind))

"""Every part of a tool's schema, with the place where it stands."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pydantic import JsonValue

from bakeoff.mcp import ServerTool

Schema = Mapping[str, JsonValue]
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LITERAL = ("enum", "const", "default", "examples", "required")
_SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems")


@dataclass(frozen=True, slots=True)
class Part:
    """A schema inside a schema."""

    place: str  # `filters.tags[]`, as people would write it; empty at the top
    schema: Schema
    depth: int = 0
    name: str | None = None  # of the property that it is the schema of, which a model has to fill in


def parts_of(tool: ServerTool) -> Iterator[Part]:
    """The whole schema first. The hub has bounded its depth and size."""
    yield from _walk(Part("", tool.input_schema))


def _walk(part: Part) -> Iterator[Part]:
    yield part
    for keyword in _BY_NAME:
        inner = part.schema.get(keyword)
        for name, schema in inner.items() if isinstance(inner, dict) else ():
            if isinstance(schema, dict):
                place = _joined(part.place, name if keyword == "properties" else f"{keyword}.{name}")
                yield from _walk(Part(place, schema, part.depth + 1, name if keyword == "properties" else None))
    for keyword in _SINGLE:
        if isinstance(schema := part.schema.get(keyword), dict):
            place = f"{part.place}[]" if keyword == "items" else _joined(part.place, keyword)
            yield from _walk(Part(place, schema, part.depth + (keyword == "items")))
    for keyword in _SEVERAL:
        several = part.schema.get(keyword)
        for at, schema in enumerate(several if isinstance(several, list) else ()):
            if isinstance(schema, dict):
                yield from _walk(Part(_joined(part.place, f"{keyword}[{at}]"), schema, part.depth))


def types_of(schema: Schema) -> list[str]:
    given = schema.get("type")
    return [given] if isinstance(given, str) else [str(name) for name in given] if isinstance(given, list) else []


def pointed_at(root: Schema, reference: str) -> Any:
    """What a reference such as `#/$defs/city` leads to; None if to nothing here."""
    if not reference.startswith("#/"):
        return root if reference == "#" else None
    place: Any = root
    for part in unquote(reference[2:]).split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(place, list):
            place = dict(enumerate(place)).get(int(name)) if name.isdecimal() and len(name) < 10 else None
        else:
            place = place.get(name) if isinstance(place, Mapping) else None
    return place


def _joined(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def without_patterns(schema: Any) -> Any:
    """The same without regular expressions: a validator would try a server's on texts of any length, for ever."""
    if isinstance(schema, list):
        return [without_patterns(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _BY_NAME and isinstance(value, dict) and keyword != "patternProperties":
            plain[keyword] = {name: without_patterns(inner) for name, inner in value.items()}
        elif keyword in _LITERAL:
            plain[keyword] = value
        elif keyword not in ("pattern", "patternProperties"):
            plain[keyword] = without_patterns(value)
    return plain

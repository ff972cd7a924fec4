"""Walk the schemas of tools, validate values against them, and lint them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema.exceptions import UnknownType  # type: ignore[import-untyped]
from jsonschema.validators import Draft202012Validator, validator_for  # type: ignore[import-untyped]
from pydantic import JsonValue
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from bakeoff._kernel.text import quoted
from bakeoff.doors.mcp.lint.rules import LintFinding
from bakeoff.mcp import ServerTool

Schema = Mapping[str, JsonValue]
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LITERAL = ("enum", "const", "default", "examples", "required")
_SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems")


@dataclass(frozen=True, slots=True)
class SchemaPart:
    """One schema inside a tool's schema."""

    place: str  # such as `filters.tags[]`; empty at the top
    schema: Schema
    depth: int = 0
    name: str | None = None  # of the property that this schema describes


def parts_of(tool: ServerTool) -> Iterator[SchemaPart]:
    """Yield the whole schema first, then each schema inside it. The hub has limited its depth and size."""
    yield from _walk(SchemaPart("", tool.input_schema))


def _walk(part: SchemaPart) -> Iterator[SchemaPart]:
    yield part
    for keyword in _BY_NAME:
        inner = part.schema.get(keyword)
        for name, schema in inner.items() if isinstance(inner, dict) else ():
            if isinstance(schema, dict):
                place = _joined(part.place, name if keyword == "properties" else f"{keyword}.{name}")
                yield from _walk(SchemaPart(place, schema, part.depth + 1, name if keyword == "properties" else None))
    for keyword in _SINGLE:
        if isinstance(schema := part.schema.get(keyword), dict):
            place = f"{part.place}[]" if keyword == "items" else _joined(part.place, keyword)
            yield from _walk(SchemaPart(place, schema, part.depth + (keyword == "items")))
    for keyword in _SEVERAL:
        several = part.schema.get(keyword)
        for at, schema in enumerate(several if isinstance(several, list) else ()):
            if isinstance(schema, dict):
                yield from _walk(SchemaPart(_joined(part.place, f"{keyword}[{at}]"), schema, part.depth))


def types_of(schema: Schema) -> list[str]:
    given = schema.get("type")
    return [given] if isinstance(given, str) else [str(name) for name in given] if isinstance(given, list) else []


def pointed_at(root: Schema, reference: str) -> Any:
    """Return the target of a reference such as `#/$defs/city` in a schema, or None. Nothing is fetched."""
    try:
        return Registry().resolver_with_root(DRAFT202012.create_resource(root)).lookup(reference).contents
    except VALIDATOR_ERRORS:
        return None


def _joined(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def without_patterns(schema: Any) -> Any:
    """Remove regular expressions from a schema: a hostile one could keep a validator busy forever."""
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


# What a validator raises for schemas that the hub accepts: circular or missing references, numbers that are too large,
# and unchecked keywords of other JSON Schema versions.
VALIDATOR_ERRORS = (RecursionError, Unresolvable, ArithmeticError, UnknownType, AttributeError, TypeError, ValueError)


def allows(schema: Schema, value: JsonValue, root: Schema) -> bool | None:
    """Validate a value without patterns, by the JSON Schema version of `root`. Return None if that is not possible."""
    validator = validator_for(root, default=Draft202012Validator)
    try:
        return bool(validator(without_patterns(dict(schema))).is_valid(value))
    except VALIDATOR_ERRORS:
        return None


_DEEPEST = 10
_MAX_PARAMETERS = 20
_AT_TOP = ("anyOf", "oneOf", "allOf", "not", "enum")
_DROPPED = ("$schema", "additionalProperties")
_REFERENCES = ("$ref", "$dynamicRef")
_BOUNDS = ("maxLength", "enum", "const", "format", "pattern")
_UNTYPED = ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")

# Keywords that Google's function declarations support. All others are dropped, references, or refused.
_GOOGLE_KEYWORDS = frozenset(
    re.findall(
        r"[$\w]+",
        """type format title description nullable default example examples enum items prefixItems minItems maxItems
        properties required minProperties maxProperties minimum maximum minLength maxLength pattern anyOf
        propertyOrdering $id $comment $defs definitions""",
    )
)
_GOOGLE_FORMATS = ("enum", "date-time", "int32", "int64", "float", "double")


def schema_findings(tool: ServerTool) -> Iterator[LintFinding]:
    parts = list(parts_of(tool))
    choices = [keyword for keyword in _AT_TOP if keyword in tool.input_schema]
    if choices:
        yield LintFinding.of(tool, "schema-union-at-top", f"its schema has {_quoted(choices)} at the top")
    properties = tool.input_schema.get("properties")
    if isinstance(properties, dict) and len(properties) > _MAX_PARAMETERS:
        yield LintFinding.of(tool, "many-parameters", f"it has {len(properties)} parameters, over {_MAX_PARAMETERS}")
    for part in parts:
        if part.name is not None:
            yield from _parameter(tool, part, part.name)
        yield from _part(tool, part)
    yield from _dangling(tool, parts)
    yield from _keywords(tool, parts)
    deepest = max(part.depth for part in parts)
    if deepest > _DEEPEST:
        yield LintFinding.of(tool, "schema-deep", f"its parameters are nested {deepest} levels deep, over {_DEEPEST}")


def dropped_findings(tools: Sequence[ServerTool]) -> Iterator[LintFinding]:
    """Yield one finding for each server: libraries write these keywords into all schemas."""
    for server in dict.fromkeys(tool.server for tool in tools):
        own = [tool for tool in tools if tool.server == server]
        for keyword in _DROPPED:
            using = [tool for tool in own if any(keyword in part.schema for part in parts_of(tool))]
            if using:
                what = f"the schemas of {len(using)} of {len(own)} tools use {quoted(keyword)}"
                yield LintFinding(rule="schema-keyword-dropped", server=server, what=what)


def _parameter(tool: ServerTool, part: SchemaPart, name: str) -> Iterator[LintFinding]:
    if not _PROPERTY.fullmatch(name):
        yield LintFinding.of(
            tool, "parameter-name-not-portable", f"{quoted(name, 80)} is refused by Anthropic", part.place
        )
    if not str(part.schema.get("description") or part.schema.get("title") or "").strip():
        yield LintFinding.of(tool, "parameter-description-missing", "it has no description", part.place)
    if not any(keyword in part.schema for keyword in _UNTYPED):
        yield LintFinding.of(tool, "parameter-type-missing", "it has no type", part.place)
    elif types_of(part.schema) == ["string"] and not any(bound in part.schema for bound in _BOUNDS):
        yield LintFinding.of(tool, "parameter-unbounded-string", "it accepts any text of any length", part.place)


def _part(tool: ServerTool, part: SchemaPart) -> Iterator[LintFinding]:
    schema = part.schema
    if "array" in types_of(schema) and "items" not in schema and "prefixItems" not in schema:
        yield LintFinding.of(tool, "array-items-missing", "it is a list without `items`", part.place)
    properties, required = schema.get("properties", {}), schema.get("required", [])
    whole = "properties" in schema or "object" in types_of(schema)  # a branch of a union describes the schema around it
    if whole and isinstance(properties, dict) and isinstance(required, list):
        missing = [str(name) for name in required if str(name) not in properties]
        if missing:
            what = f"{_quoted(missing)} is required but not among the properties"
            yield LintFinding.of(tool, "required-not-declared", what, part.place)
    # The target of a reference is not available here.
    fits = _refers(schema) or "default" not in schema or allows(schema, schema["default"], tool.input_schema)
    if fits is False:
        what = f"its default {quoted(repr(schema['default']), 80)} does not match its schema"
        yield LintFinding.of(tool, "default-does-not-fit", what, part.place)


def _refers(value: JsonValue | Schema) -> bool:
    if isinstance(value, dict):
        return any(name in value for name in _REFERENCES) or any(map(_refers, value.values()))
    return isinstance(value, list) and any(map(_refers, value))


def _dangling(tool: ServerTool, parts: list[SchemaPart]) -> Iterator[LintFinding]:
    """Find references inside the schema that have no target. External references are never followed."""
    if any("$id" in part.schema for part in parts if part.place):  # a separate document: `#` means that one
        return
    for part in parts:
        reference = part.schema.get("$ref")
        within = isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))
        if within and pointed_at(tool.input_schema, str(reference)) is None:
            what = f"{quoted(str(reference), 80)} has no target in its schema"
            yield LintFinding.of(tool, "schema-reference-dangling", what, part.place)


def _keywords(tool: ServerTool, parts: list[SchemaPart]) -> Iterator[LintFinding]:
    """Yield one finding for each kind with all keywords of the tool. One for each place would hide the others."""
    used = {keyword for part in parts for keyword in part.schema}
    if references := sorted(used & set(_REFERENCES)):
        yield LintFinding.of(tool, "schema-reference", f"its schema uses {_quoted(references)}")
    refused = sorted(used - _GOOGLE_KEYWORDS - set(_DROPPED) - set(_REFERENCES))
    refused += sorted({value for part in parts for value in _refused_values(part.schema)})
    if refused:
        yield LintFinding.of(tool, "schema-keyword-refused", f"Google refuses {_quoted(refused)} in its schema")


def _refused_values(schema: Schema) -> Iterator[str]:
    """Yield the values that Google refuses for keywords that it accepts."""
    if isinstance(schema.get("type"), list):
        yield "a list of types"
    text = schema.get("format")
    if isinstance(text, str) and text not in _GOOGLE_FORMATS:
        yield f"format: {text}"
    choices = schema.get("enum")
    if isinstance(choices, list) and not all(isinstance(choice, str) for choice in choices):
        yield "an enum with values that are not texts"


def _quoted(names: list[str]) -> str:
    return ", ".join(quoted(name, 60) for name in names[:12]) + ("…" if len(names) > 12 else "")

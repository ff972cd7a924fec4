"""Walk the JSON Schemas of tools, validate values, and compare two versions of a schema."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

from jsonschema.exceptions import UnknownType  # type: ignore[import-untyped]
from jsonschema.validators import Draft202012Validator, validator_for  # type: ignore[import-untyped]
from pydantic import JsonValue
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from bakeoff._kernel.text import quoted
from bakeoff.mcp.tools import ServerTool, properties_of, required_by

Schema = Mapping[str, JsonValue]
Lookup = Callable[[str], Any]
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LITERAL = ("enum", "const", "default", "examples", "required")
_SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems")


@dataclass(frozen=True, slots=True)
class SchemaPart:
    """One schema inside the schema of a tool."""

    place: str  # such as `filters.tags[]`; empty at the top
    schema: Schema
    depth: int = 0
    name: str | None = None  # the name of the property that this schema describes


def parts_of(tool: ServerTool) -> Iterator[SchemaPart]:
    """Yield the whole schema, then every schema inside it. The hub limits depth and size."""
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
    """Return the types that a schema names. An empty list allows all types."""
    given = schema.get("type")
    return [given] if isinstance(given, str) else [str(name) for name in given] if isinstance(given, list) else []


def pointed_at(root: Schema, reference: str) -> Any:
    """Return the target of a reference such as `#/$defs/city`, or None. Nothing is fetched."""
    try:
        return Registry().resolver_with_root(DRAFT202012.create_resource(root)).lookup(reference).contents
    except VALIDATOR_ERRORS:
        return None


def _joined(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def without_patterns(schema: Any) -> Any:
    """Remove regular expressions from a schema, since hostile ones could hang a validator."""
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


# Errors of validators for schemas that the hub accepts: bad references, too large numbers,
# and keywords of other JSON Schema versions.
VALIDATOR_ERRORS = (RecursionError, Unresolvable, ArithmeticError, UnknownType, AttributeError, TypeError, ValueError)


def allows(schema: Schema, value: JsonValue, root: Schema) -> bool | None:
    """Return whether a schema allows a value, ignoring patterns; None if that is unknown."""
    validator = validator_for(root, default=Draft202012Validator)
    try:
        return bool(validator(without_patterns(dict(schema))).is_valid(value))
    except VALIDATOR_ERRORS:
        return None


def resolved(schema: Any, root: Schema | Lookup) -> Schema:
    """Return a schema with its reference replaced by the target. Other keywords take precedence.

    `root` is the whole schema, or a function that looks up its references.
    """
    if not isinstance(schema, Mapping):
        return {"not": {}} if schema is False else {}
    look_up = partial(pointed_at, root) if isinstance(root, Mapping) else root
    found: Schema = schema
    for _ in range(_MAX_DEPTH):
        reference = found.get("$ref")
        target = look_up(reference) if isinstance(reference, str) and reference.startswith("#") else None
        if not isinstance(target, dict):
            break
        found = {**target, **{name: value for name, value in found.items() if name != "$ref"}}
    return found


def accepted_types(schema: Schema) -> list[str]:
    """Return the types that a schema and its alternatives name. An empty list allows all."""
    found = types_of(schema)
    for keyword in ("anyOf", "oneOf"):
        several = schema.get(keyword)
        for each in several if isinstance(several, list) else ():
            found += types_of(each) if isinstance(each, dict) else []
    return list(dict.fromkeys(found))


Effect = Literal["changes", "narrows", "widens", "adds", "told", "untold"]
"""The effect of a change: values mean something else, fewer are accepted, more are accepted, there is a new optional
part, models see other texts about the same values, or models see no difference.
"""

_Trail = tuple[tuple[str | None, str | None], ...]
_MAX_DEPTH = 30  # schemas may refer to themselves
_MAX_PARTS = 5_000  # references may repeat parts endlessly
_MAX_BRANCHES = 50
_LOWEST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_HIGHEST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
_CONSTRAINTS = (
    *("pattern", "format", "uniqueItems", "multipleOf", "allOf", "not", "if", "then", "else", "contains"),
    *("propertyNames", "patternProperties", "dependentRequired", "dependentSchemas", "dependencies", "prefixItems"),
    *("unevaluatedProperties", "unevaluatedItems", "$ref", "$dynamicRef"),  # `$ref`: one without a target here
)
_TOLD = ("default", "examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType")
_ABOUT = ("title", "description", *_TOLD)  # keywords that restrict no value


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference. `place` is a path such as `filters.tags[]`, empty for the top level."""

    kind: str
    effect: Effect
    place: str
    what: str


def schema_changes(before: Schema, after: Schema) -> Iterator[SchemaChange]:
    """Yield the differences between two schemas. External references are not followed."""
    if before != after:
        yield from _SchemaComparison(before, after).part(before, after, "", (("#", "#"),))


class _SchemaComparison:
    """Two whole schemas, in which references are looked up."""

    def __init__(self, before: Schema, after: Schema) -> None:
        self._before, self._after = (cache(partial(pointed_at, root)) for root in (before, after))
        self._parts = 0

    def part(self, before: Any, after: Any, place: str, trail: _Trail) -> Iterator[SchemaChange]:
        """Compare two parts: first their descriptions, then the values that they accept.

        Circular references are followed once.
        """
        self._parts += 1
        if self._parts == _MAX_PARTS:
            yield SchemaChange("schema-large", "narrows", "", "the schemas are too large to be compared whole")
        references = _reference(before), _reference(after)
        if self._parts >= _MAX_PARTS or (any(references) and references in trail) or len(trail) > _MAX_DEPTH:
            return
        trail = (*trail, references)
        old, new = resolved(before, self._before), resolved(after, self._after)
        yield from _texts(old, new, place)
        gone, added, pairs = _paired(_branches(old, self._before), _branches(new, self._after))
        for one, other in pairs:
            yield from self._values(one, other, place, trail)
        if len(gone) == len(added) == 1:
            yield SchemaChange("type-changed", "changes", place, f"{_named(gone[0])} became {_named(added[0])}")
            return
        for branch in gone:
            yield SchemaChange("type-removed", "narrows", place, f"it no longer accepts {_named(branch)}")
        for branch in added:
            yield SchemaChange("type-added", "widens", place, f"it also accepts {_named(branch)}")

    def _values(self, old: Schema, new: Schema, place: str, trail: _Trail) -> Iterator[SchemaChange]:
        """Compare the accepted values of two schemas without alternatives."""
        types, types_now = {*_types(old)}, {*_types(new)}
        if types < types_now:
            yield SchemaChange("type-added", "widens", place, f"{_named(old)} became {_named(new)}")
        elif types_now < types:
            yield SchemaChange("type-removed", "narrows", place, f"{_named(old)} became {_named(new)}")
        yield from _choices(old, new, place)
        yield from _limits(old, new, place)
        for keyword in _CONSTRAINTS:
            if old.get(keyword) != new.get(keyword):
                yield _constraint(keyword, old.get(keyword), new.get(keyword), place)
        one, other = old.get("items"), new.get("items")
        if isinstance(one, dict) and isinstance(other, dict):
            yield from self.part(one, other, f"{place}[]", trail)
        elif one != other:
            yield _constraint("items", one, other, place)
        yield from self._properties(old, new, place, trail)
        yield from self._others(old, new, place, trail)

    def _others(self, old: Schema, new: Schema, place: str, trail: _Trail) -> Iterator[SchemaChange]:
        """Compare the rules for undeclared properties."""
        one, other = _open(old), _open(new)
        if isinstance(one, dict) and isinstance(other, dict):
            yield from self.part(one, other, _joined(place, "*"), trail)
        elif isinstance(one, dict) or isinstance(other, dict):
            yield _constraint("additionalProperties", None if one is True else one, other, place)
        elif one != other:
            what = "undeclared properties are accepted" if other else "undeclared properties are no longer accepted"
            yield SchemaChange("undeclared-properties", "told", place, what)

    def _properties(self, old: Schema, new: Schema, place: str, trail: _Trail) -> Iterator[SchemaChange]:
        before, after = properties_of(old), properties_of(new)
        needed, needed_now = required_by(old), required_by(new)
        renamed = _renamed(before, after)
        for name in before:
            at = _joined(place, name)
            if name in after:
                yield from self.part(before[name], after[name], at, trail)
                if (name in needed) != (name in needed_now):
                    now = name in needed_now
                    yield SchemaChange(
                        "parameter-required" if now else "parameter-optional",
                        "narrows" if now else "widens",
                        at,
                        "it was optional and is now required" if now else "it was required and is now optional",
                    )
            elif name in renamed:
                yield SchemaChange("parameter-renamed", "changes", at, f"it is now called {quoted(renamed[name], 80)}")
            else:
                yield SchemaChange("parameter-removed", "changes", at, "it was removed")
        for name in after:
            if name not in before and name not in renamed.values():
                required = name in needed_now
                yield SchemaChange(
                    "required-parameter-added" if required else "parameter-added",
                    "narrows" if required else "adds",
                    _joined(place, name),
                    f"it is new and {'required' if required else 'optional'}",
                )


def _reference(schema: Any) -> str | None:
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    return reference if isinstance(reference, str) else None


def _branches(schema: Schema, look_up: Lookup, depth: int = 0) -> list[Schema]:
    """Return the alternatives of a schema without descriptions. Each listed type is one."""
    plain = {name: value for name, value in schema.items() if name not in _ABOUT}
    keyword = next((name for name in ("anyOf", "oneOf") if isinstance(plain.get(name), list)), None)
    if keyword is not None and depth < 3:
        several = plain.pop(keyword)
        assert isinstance(several, list)
        inner = [{**plain, **resolved(each, look_up)} for each in several[:_MAX_BRANCHES]]
        return [branch for each in inner for branch in _branches(each, look_up, depth + 1)][:_MAX_BRANCHES]
    types = plain.get("type")
    return [{**plain, "type": each} for each in types] if isinstance(types, list) and types else [plain]


def _paired(
    before: list[Schema], after: list[Schema]
) -> tuple[list[Schema], list[Schema], list[tuple[Schema, Schema]]]:
    """Return unmatched alternatives before and after, and the matched pairs."""
    if len(before) == len(after) == 1 and not {*_types(before[0])}.isdisjoint(_types(after[0])):
        return [], [], [(before[0], after[0])]
    gone, added = list(before), list(after)
    pairs: list[tuple[Schema, Schema]] = []
    alike: tuple[Callable[[Schema, Schema], bool], ...] = (
        lambda one, other: json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True),
        lambda one, other: bool(_shape(one) == _shape(other)),
        lambda one, other: _types(one) == _types(other),
        lambda one, other: not {*_types(one)}.isdisjoint(_types(other)),  # for example, integer and number
    )
    for is_alike in alike:
        for one in list(gone):
            other = next((each for each in added if is_alike(one, each)), None)
            if other is not None:
                gone.remove(one)
                added.remove(other)
                pairs.append((one, other))
    return gone, added, pairs


def _texts(old: Schema, new: Schema, place: str) -> Iterator[SchemaChange]:
    """Yield changed descriptions, titles, defaults and examples."""
    yield from text_changes(str(old.get("description") or ""), str(new.get("description") or ""), place)
    if old.get("title") != new.get("title"):
        yield SchemaChange("title-changed", "untold", place, "its title changed")
    for keyword in _TOLD:
        if keyword in old or keyword in new:
            one, other = _json(old, keyword), _json(new, keyword)
            if one != other:
                yield SchemaChange(f"{keyword.lower()}-changed", "told", place, f"{keyword}: {one} became {other}")


def text_changes(before: str, after: str, place: str = "", name: str = "description") -> Iterator[SchemaChange]:
    """Yield a change of a description.

    Spaces, capitals and final punctuation are ignored, because they do not matter to models.
    """
    if before == after:
        return
    same = _words(before) == _words(after)
    if not before or not after:
        what = f"it has {'no' if before else 'a'} {name} now"
    else:
        what = f"its {name} is laid out differently" if same else f"its {name} changed"
    kind = f"{name}-layout" if same else f"{name}-changed"
    yield SchemaChange(kind, "untold" if same else "told", place, what)


def _words(text: str) -> list[str]:
    return re.sub(r"[\s.,;:!?]+", " ", text.casefold()).split()


def _choices(old: Schema, new: Schema, place: str) -> Iterator[SchemaChange]:
    """Yield the removed and added choices of an enum."""
    one, other = _enum(old), _enum(new)
    if one is None and other is not None:
        yield SchemaChange("values-removed", "narrows", place, f"it accepted any value, and now only {_listed(other)}")
    elif one is not None and other is None:
        yield SchemaChange("values-added", "widens", place, "it accepted only listed values, and now any")
    elif one is not None and other is not None:
        if gone := [value for value in one if not _has(other, value)]:
            yield SchemaChange("values-removed", "narrows", place, f"it no longer accepts {_listed(gone)}")
        if more := [value for value in other if not _has(one, value)]:
            yield SchemaChange("values-added", "widens", place, f"it also accepts {_listed(more)}")


def _has(values: Sequence[JsonValue], value: JsonValue) -> bool:
    """Return True if the values include this one, compared as in JSON: true is not 1."""
    return json.dumps(value, sort_keys=True) in [json.dumps(each, sort_keys=True) for each in values]


def _limits(old: Schema, new: Schema, place: str) -> Iterator[SchemaChange]:
    """Yield the bounds that became tighter or wider."""
    for keyword in (*_LOWEST, *_HIGHEST):
        one, other = old.get(keyword), new.get(keyword)
        if one == other and type(one) is type(other):
            continue
        if isinstance(one, int | float) and isinstance(other, int | float):
            tighter = other > one if keyword in _LOWEST else other < one
        else:
            tighter = other is not None
        what = f"{keyword}: {_json(old, keyword)} became {_json(new, keyword)}"
        yield _limit(place, what, tighter=tighter)


def _constraint(keyword: str, old: JsonValue, new: JsonValue, place: str) -> SchemaChange:
    """Return the change of a constraint, which may refuse formerly accepted values."""
    what = f"{keyword}: {_short(old)} became {_short(new)}"
    return _limit(place, what, tighter=new is not None and new is not False)


def _limit(place: str, what: str, *, tighter: bool) -> SchemaChange:
    if tighter:
        return SchemaChange("limit-tightened", "narrows", place, what)
    return SchemaChange("limit-loosened", "widens", place, what)


def _renamed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
    """Return new names by old names, for properties whose schema is unique on both sides."""
    gone = [name for name in before if name not in after]
    added = [name for name in after if name not in before]
    found: dict[str, str] = {}
    for name in gone:
        same = [each for each in added if _untitled(after[each]) == _untitled(before[name])]
        twins = [each for each in gone if _untitled(before[each]) == _untitled(before[name])]
        if len(same) == len(twins) == 1:
            found[name] = same[0]
    return found


def _untitled(schema: Any) -> Any:
    """Return a schema without its title, which libraries derive from a name."""
    return {key: value for key, value in schema.items() if key != "title"} if isinstance(schema, dict) else schema


_TYPE_NAMES = {bool: "boolean", str: "string", int: "integer", float: "number", dict: "object", list: "array"}


def _types(schema: Schema) -> tuple[str, ...]:
    """Return the accepted types. Integers are numbers, and a schema without types accepts all."""
    given = schema.get("type")
    every = ("string", "number", "integer", "boolean", "object", "array", "null")
    if isinstance(given, str):
        return ("integer", "number") if given == "number" else (given,)
    choices = _enum(schema)
    if choices is not None:
        return tuple(sorted({_TYPE_NAMES.get(type(value), "null") for value in choices}))
    return ("object",) if "properties" in schema else every


def _enum(schema: Schema) -> list[JsonValue] | None:
    choices = schema.get("enum")
    if isinstance(choices, list):
        return choices
    return [schema["const"]] if "const" in schema else None


def _shape(schema: Schema) -> Any:
    """Return what distinguishes an object among alternatives: its constants, or else its names."""
    parts = properties_of(schema)
    constants = {name: _enum(each) for name, each in parts.items() if isinstance(each, dict) and _enum(each)}
    return _types(schema), json.dumps(constants, sort_keys=True) if constants else sorted(parts)


def _open(schema: Schema) -> JsonValue:
    given = schema.get("additionalProperties", True)
    return True if given == {} else given


def _named(schema: Schema) -> str:
    """Return a short name for an alternative, for people."""
    choices = _enum(schema)
    if choices is not None:
        return _listed(choices)
    given = schema.get("type")
    if isinstance(given, str):
        items = schema.get("items")
        inner = items.get("type") if isinstance(items, dict) else None
        listed = f"{inner}s" if isinstance(inner, str) else "values"
        return f"a list of {listed}" if given == "array" else given
    return "an object" if "properties" in schema else "any value"


def _listed(values: Sequence[JsonValue]) -> str:
    shown = ", ".join(_short(value) for value in values[:8])
    return f"{shown} and {len(values) - 8} more" if len(values) > 8 else shown


def _json(schema: Schema, keyword: str) -> str:
    return _short(schema[keyword]) if keyword in schema else "none"


def _short(value: JsonValue) -> str:
    text = "none" if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= 80 else f"{text[:79]}…"

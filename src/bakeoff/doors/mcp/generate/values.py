"""Make values that match a JSON Schema. A value that may not match is marked as unsure.

Paths are taken from the server's arguments, so that the calls of drafts can be executed.

Schemas are untrusted: patterns are only tried on short texts, so that none takes long.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from bakeoff.doors.mcp.generate.wording import entry_for, group, name_words, wording
from bakeoff.mcp import ServerSpec, ServerTool
from bakeoff.mcp.schemas import Schema, allows, resolved, without_patterns

Suggest = Callable[[str, Schema], Iterable[JsonValue]]
"""A function that returns likely values for a parameter, by its name and schema. Values that do not fit are ignored."""

_MAX_DEPTH = 8
_MAX_TRIED_LENGTH = 12  # characters of a text on which a pattern is tried
_MAX_MADE_LENGTH = 1_000
_MAX_ITEMS = 50


@dataclass(frozen=True, slots=True)
class GeneratedValue:
    """A value. `sure` is False if it may not match the schema."""

    value: JsonValue
    sure: bool = True


class Maker:
    """A maker of values for the parts of one schema."""

    def __init__(self, root: Schema, suggest: Suggest | None = None) -> None:
        self._root, self._suggest = root, suggest
        self._used: list[JsonValue] = []  # suggestions in this call, so that a second city differs from the first

    def parameters(
        self, optional: Sequence[str] = (), fixed: Mapping[str, JsonValue] | None = None
    ) -> dict[str, GeneratedValue]:
        """Return values for the required and some optional parameters; `fixed` ones are given."""
        self._used = []
        parts, required = _properties(self._resolved(self._root))
        wanted = [*(required or []), *optional]
        chosen = [name for name in parts if name in wanted] + [name for name in wanted if name not in parts]
        given = fixed or {}
        return {
            name: GeneratedValue(given[name])
            if name in given
            else self._unusual(parts.get(name), name)
            if name in optional
            else self.checked(parts.get(name, {}), name)
            for name in chosen
        }

    @property
    def optional(self) -> dict[str, JsonValue]:
        """Return the schemas of the optional parameters."""
        parts, required = _properties(self._resolved(self._root))
        return {name: self.whole(part) for name, part in parts.items() if name not in (required or [])}

    def choices(self, name: str) -> list[JsonValue]:
        """Return the values in the `enum` of a parameter; none if it has no `enum`."""
        part = self.whole(_properties(self._resolved(self._root))[0].get(name))
        found = part.get("enum") if isinstance(part, dict) else None
        return list(found) if isinstance(found, list) else []

    def whole(self, schema: JsonValue) -> JsonValue:
        """Return a schema with resolved references, and with null removed from unions."""
        found = dict(self._resolved(schema))
        several = found.get("anyOf") or found.get("oneOf")
        real = (
            [each for each in several if not (isinstance(each, dict) and each.get("type") == "null")]
            if isinstance(several, list)
            else []
        )
        return {**found, **self._resolved(real[0])} if len(real) == 1 else found

    def _unusual(self, schema: JsonValue, name: str) -> GeneratedValue:
        """Return a value other than the default, if possible, so that calls show understanding."""
        if not isinstance(schema, dict) or schema.get("default") is None:
            return self.checked(schema, name)
        default = schema["default"]
        made = self.checked({key: value for key, value in schema.items() if key != "default"}, name)
        if made.sure and made.value != default:
            return made
        others = self.choices(name)
        if isinstance(default, bool):
            others = [not default]
        elif isinstance(default, int):
            others += [default + 1, default - 1]
        fitting = (other for other in others if other != default and self.allows(schema, other))
        return GeneratedValue(next(fitting, default))

    def checked(self, schema: JsonValue, name: str) -> GeneratedValue:
        """Return a value for a parameter, which is sure only if the schema allows it."""
        made = self._made(schema, name, 0)
        return GeneratedValue(made.value, made.sure and self.allows(schema, made.value))

    def allows(self, schema: Schema | JsonValue, value: JsonValue) -> bool:
        """Validate without patterns, which `_text` has tried. Return False if validation is not possible."""
        if not isinstance(schema, Mapping):
            return schema is not False
        shared = {name: self._root[name] for name in ("$schema", "$defs", "definitions") if name in self._root}
        plain = without_patterns({**shared, **schema})
        return not _leads_elsewhere(plain, whole=schema is self._root) and allows(plain, value, self._root) is True

    def _made(self, given: JsonValue, name: str, depth: int) -> GeneratedValue:
        """Return a value for a schema: a constant, an example, a suggestion, the default, or one of its type."""
        if depth > _MAX_DEPTH:
            return GeneratedValue(None, sure=False)
        schema = self._resolved(given)
        if schema.get("const") is not None:
            return GeneratedValue(schema["const"])
        for keyword in ("examples", "enum"):
            choices = schema.get(keyword)
            if isinstance(choices, list) and choices:
                return GeneratedValue(choices[0])
        if (suggested := self._suggested(name, schema)) is not None:
            return GeneratedValue(suggested)
        if schema.get("default") is not None:
            return GeneratedValue(schema["default"])
        for keyword in ("anyOf", "oneOf"):
            if isinstance(choices := schema.get(keyword), list) and choices:
                return self._chosen(schema, keyword, choices, name, depth)
        return self._of_type(_type_of(schema), schema, name, depth)

    def _suggested(self, name: str, schema: Schema) -> JsonValue:
        """Return the first fitting suggestion that this call does not use yet, or else the first fitting one."""
        if self._suggest is None or "pattern" in schema:
            return None
        fitting = [value for value in self._suggest(name, schema) if self.allows(schema, value)]
        if not fitting:
            return None
        chosen = next((value for value in fitting if value not in self._used), fitting[0])
        self._used.append(chosen)
        return chosen

    def _chosen(self, schema: Schema, keyword: str, choices: list[JsonValue], name: str, depth: int) -> GeneratedValue:
        """Return a value of the first alternative that the whole schema allows."""
        rest = {key: value for key, value in schema.items() if key != keyword}
        for choice in choices:
            if isinstance(choice, dict) and choice.get("type") != "null":
                made = self._made({**rest, **choice}, name, depth + 1)
                if made.sure and self.allows(schema, made.value):
                    return made
        return GeneratedValue(None, sure=False)

    def _of_type(self, kind: str, schema: Schema, name: str, depth: int) -> GeneratedValue:
        match kind:
            case "object":
                parts, required = _properties(schema)
                names = list(parts) if required is None else required
                made = {name: self._made(parts.get(name), name, depth + 1) for name in names}
                value: JsonValue = {name: each.value for name, each in made.items()}
                return GeneratedValue(value, all(each.sure for each in made.values()))
            case "array":
                return self._array(schema, name, depth)
            case "integer" | "number":
                return _number(schema, whole=kind == "integer")
            case "boolean":
                return GeneratedValue(True)
            case "null":
                return GeneratedValue(None)
            case _:
                return _text(schema)

    def _array(self, schema: Schema, name: str, depth: int) -> GeneratedValue:
        """Return a list with as many items as the schema requires, at least one. Numbers count up, texts repeat."""
        least = schema.get("minItems")
        size = min(max(1, least if isinstance(least, int) else 1), _MAX_ITEMS)
        one = self._made(schema.get("items"), name, depth + 1)
        value, several = one.value, [one.value] * size
        if schema.get("uniqueItems") and isinstance(value, int | float) and not isinstance(value, bool):
            several = [value + at for at in range(size)]
        return GeneratedValue(several, one.sure)

    def _resolved(self, schema: Schema | JsonValue) -> Schema:
        """Return a schema with `$ref` and `allOf` merged; unknown references allow no value."""
        found = dict(resolved(schema, self._root))
        for _ in range(_MAX_DEPTH):
            if found.pop("$ref", None) is not None:
                found = {"not": {}, **found}
            every = found.pop("allOf", None)
            if every is None:
                break
            for part in every if isinstance(every, list) else []:
                found = _merged(found, resolved(part, self._root))
        return found


def _properties(schema: Schema) -> tuple[Mapping[str, JsonValue], list[str] | None]:
    """Return the properties of an object, and the names of those that are required, or None."""
    properties, required = schema.get("properties"), schema.get("required")
    names = [str(name) for name in required] if isinstance(required, list) else None
    return properties if isinstance(properties, dict) else {}, names


def _leads_elsewhere(schema: Any, *, whole: bool) -> bool:
    """Return True if a schema has a reference that cannot be resolved here. Nothing is ever fetched.

    A reference to properties can only be resolved in a `whole` schema.
    """
    if isinstance(schema, list):
        return any(_leads_elsewhere(each, whole=whole) for each in schema)
    if not isinstance(schema, dict):
        return False
    known = ("#/$defs/", "#/definitions/", *(("#/properties/",) if whole else ()))
    inside = str(schema.get("$ref", "#/$defs/")).startswith(known)
    return not inside or "$dynamicRef" in schema or any(_leads_elsewhere(each, whole=whole) for each in schema.values())


def _merged(one: Mapping[str, JsonValue], other: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return one schema that combines the requirements and descriptions of both."""
    merged: dict[str, JsonValue] = {**one, **other}
    first, second = one.get("properties"), other.get("properties")
    if isinstance(first, dict) and isinstance(second, dict):
        merged["properties"] = {**first, **second}
    needed, also = one.get("required"), other.get("required")
    if isinstance(needed, list) and isinstance(also, list):
        merged["required"] = [*needed, *(name for name in also if name not in needed)]
    return merged


def _type_of(schema: Schema) -> str:
    """Return the type of a schema, guessed from its keywords if it names none."""
    given = schema.get("type")
    if isinstance(given, list):
        return next((str(kind) for kind in given if kind != "null"), "null")
    if isinstance(given, str):
        return given
    hints = {"properties": "object", "items": "array", "prefixItems": "array", "minimum": "number", "maximum": "number"}
    return next((kind for keyword, kind in hints.items() if keyword in schema), "string")


def _number(schema: Schema, *, whole: bool) -> GeneratedValue:
    """Return 5 if it is allowed, else the nearest limit."""
    inwards = 1 if whole else 1e-3
    step = schema.get("multipleOf")
    try:
        low = _limit(schema, "minimum", "exclusiveMinimum", inwards, -math.inf)
        high = _limit(schema, "maximum", "exclusiveMaximum", -inwards, math.inf)
        value = min(max(5, low), high)
        if isinstance(step, int | float) and step > 0:
            value = math.ceil(value / step) * step
        elif whole:
            value = math.ceil(value)
        if whole or float(value).is_integer():
            value = int(value)
    except OverflowError:  # limits with hundreds of digits, or tiny steps
        return GeneratedValue(5, sure=False)
    return GeneratedValue(value, low <= value <= high)


def _limit(schema: Schema, including: str, excluding: str, inwards: float, default: float) -> float:
    """Return the bound of a number, moved inwards if the bound itself is excluded."""
    for keyword, distance in ((including, 0), (excluding, inwards)):
        limit = schema.get(keyword)
        if isinstance(limit, int | float) and not isinstance(limit, bool):
            return limit + distance
    return default


def _text(schema: Schema) -> GeneratedValue:
    """Return a text of the schema's format, pattern or length."""
    kind = schema.get("format")
    if isinstance(kind, str) and (known := wording()["formats"].get(kind)):
        return GeneratedValue(known[0], sure="pattern" not in schema)
    pattern = schema.get("pattern")
    if not isinstance(pattern, str):
        return GeneratedValue(_of_length("example", schema))
    try:  # patterns are untrusted, so no text is derived from them
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return GeneratedValue("example", sure=False)
    for text in wording()["tried"]["patterns"].split():
        if len(text) <= _MAX_TRIED_LENGTH and compiled.search(text) and _of_length(text, schema) == text:
            return GeneratedValue(text)
    return GeneratedValue("example", sure=False)


def _of_length(text: str, schema: Schema) -> str:
    """Return a text with words added or cut off, to be within the limits of a schema."""
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(least, int) and len(text) < least:
        word = text
        while len(text) < min(least, _MAX_MADE_LENGTH):
            text += f" {word}"
    return text[:most] if isinstance(most, int) and most >= 0 else text


_EXAMPLES = re.compile(
    r"(?:\be\.g\.|\bfor example|\bsuch as|\blike\b)[:,]?\s*((?:[\"'`][^\"'`\n]{1,60}[\"'`][,\s]*(?:or |and )?)+)",
    re.IGNORECASE,
)
_LISTED = re.compile(r"\(e\.g\.,? ([a-z][\w/-]{2,30})(?:, [\w/-]+)*(?:,? etc\.?|,? \.\.\.)?\)")
_QUOTED = re.compile(r"[\"'`]([^\"'`\n]{1,60})[\"'`]")


def suggested_values(name: str, schema: Schema) -> Iterator[JsonValue]:
    """Yield likely values for a parameter: the examples in its description, then usual values for its name."""
    yield from _examples(str(schema.get("description", "")), schema)
    late = bool(group("late") & set(name_words(name)[:-1]))
    form = str(schema.get("format", "date" if "YYYY-MM-DD" in str(schema.get("description")) else ""))
    kind: list[JsonValue] = wording()["formats"].get(form, []) if form in ("date", "date-time", "time") else []
    usual: list[JsonValue] = entry_for(name, wording()["values"]) or []
    known = kind or ([] if "format" in schema else usual)
    yield from reversed(known) if late and len(known) > 1 else known


def _examples(description: str, schema: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
    """Yield the quoted examples of a description."""
    if schema.get("type") != "string":
        return
    for found in _LISTED.finditer(description):
        yield found[1]
    pairs = (("(", ")"), ("{", "}"), ("[", "]"))  # an open one is a part of an example that contains quotes itself
    for found in _EXAMPLES.finditer(description):
        yield from (
            text
            for text in _QUOTED.findall(found[1])
            if text.isprintable() and "${" not in text and all(text.count(a) == text.count(b) for a, b in pairs)
        )


_MAX_LOOKED_AT = 2_000
_FOLDERS = frozenset(("directory", "folder", "dir", "cwd"))
_REPOSITORY = frozenset(("repo path", "repository path", "repo dir"))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The files that a server can reach. Paths are absolute, because servers resolve relative ones differently."""

    folder: Path | None = None
    files: tuple[str, ...] = ()
    repository: Path | None = None

    @classmethod
    def of(cls, spec: ServerSpec, here: Path) -> "Surroundings":
        """Look for files in the folders that the server is started with. Nothing is started or changed."""
        if spec.command is None:
            return cls()
        cwd = (here / (spec.cwd or "")).resolve()
        given = [cwd / text for argument in spec.args if (text := argument.rpartition("=")[2])]
        folder = next((path.resolve() for path in given if path.is_dir()), None)
        places = [folder or cwd, *given]
        repository = next((path for path in places if (path / ".git").exists()), None)
        return cls(folder, tuple(islice(_files(folder), 2)) if folder else (), repository)

    def values(self, name: str, tool: ServerTool) -> Iterator[JsonValue]:
        """Yield likely values for a parameter of a tool: a new path for tools that make files, else an existing one."""
        words, about = name_words(name), set(name_words(tool.name))
        if " ".join(words) in _REPOSITORY and self.repository is not None:
            yield str(self.repository)
        if self.folder is None or not words or words[-1] not in group("paths"):
            return
        if words[-1] in _FOLDERS or (words[-1] == "path" and about & group("in-folders")):
            yield str(self.folder / "ideas" if about & group("makes") else self.folder)
        elif about & group("makes") or words[0] in ("destination", "output", "target"):
            yield str(self.folder / "ideas.md")
        elif self.files:
            yield [*self.files] if words[-1] in ("paths", "files") else self.files[0]


def _files(root: Path) -> list[str]:
    """Return the text files below a folder, those closest to it first. Hidden ones are left out."""
    with suppress(OSError):
        found = [path for path in islice(root.rglob("*"), _MAX_LOOKED_AT) if path.suffix.lower() in group("texts")]
        shown = [path for path in found if not any(part.startswith(".") for part in path.relative_to(root).parts)]
        return [str(path) for path in sorted(shown, key=lambda path: (len(path.parts), path.name)) if path.is_file()]
    return []

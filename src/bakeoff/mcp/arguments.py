"""Read what people type to name a call: the tool, and its arguments such as `city=Oslo`, by the types of its schema."""

import json
from collections.abc import Iterator, Mapping, Sequence

from jsonschema.validators import Draft202012Validator, validator_for  # type: ignore[import-untyped]
from pydantic import JsonValue

from bakeoff._kernel.text import near_names, quoted, visible
from bakeoff._kernel.yaml import gathered
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerTool
from bakeoff.mcp.schemas import VALIDATOR_ERRORS, Schema, accepted_types, resolved, without_patterns

_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
    "array": ((list,), "a list"),
    "object": ((dict,), "an object"),
    "null": ((type(None),), "null"),
}
_MAX_PROBLEMS = 10


def parse_arguments(words: Sequence[str], tool: ServerTool) -> dict[str, JsonValue]:
    """Read `name=value` words. A name that is repeated makes a list. One error lists all problems."""
    given: dict[str, list[str]] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise UsageError(f"{quoted(word, 80)} is not an argument: write it as name=value, or use --args '{{…}}'")
        given.setdefault(name, []).append(value)
    known = tool.parameters
    problems: list[str] = []
    arguments: dict[str, JsonValue] = {}
    for name, values in given.items():
        try:
            arguments[name] = _value(name, values, resolved(known.get(name), tool.input_schema))
        except UsageError as error:
            problems.append(str(error))
    gathered(problems)
    return arguments


def parse_json_arguments(text: str) -> dict[str, JsonValue]:
    """Read all arguments from one JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--args is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f'--args {visible(text, 80)} is not an object: write {{"name": value}}')
    return value


def argument_problems(arguments: Mapping[str, JsonValue], tool: ServerTool) -> Iterator[str]:
    """Yield what the schema of the tool says against the arguments: unknown and missing names, wrong values."""
    known = tool.parameters
    open_ended = tool.input_schema.get("additionalProperties") not in (None, False)
    for name in arguments:
        if name not in known and not open_ended:
            yield f"{quoted(tool.name, 80)} has no parameter {quoted(name, 80)}{near_names(name, known)}"
    for name in tool.required:
        if name not in arguments:
            about = visible(str(resolved(known.get(name), tool.input_schema).get("description") or ""), 120)
            yield f"{quoted(tool.name, 80)} needs {quoted(name, 80)}{about and f': {about}'}"
    schema = without_patterns(tool.input_schema)
    validator = validator_for(schema, default=Draft202012Validator)(schema)
    try:
        found = list(validator.iter_errors(dict(arguments)))
    except VALIDATOR_ERRORS:  # a schema that cannot be used says nothing
        return
    # Problems of the whole are told by name, above.
    inner = [error for error in found if error.absolute_path]
    for error in inner[:_MAX_PROBLEMS]:
        place = ".".join(str(part) for part in error.absolute_path)
        yield f"{visible(place, 80)}: {visible(error.message, 200)}"


def _value(name: str, values: Sequence[str], schema: Schema) -> JsonValue:
    """Return the value of a parameter. Repeated words are the items of a list."""
    types = accepted_types(schema)
    if "array" in types:
        whole = _json(values[0]) if len(values) == 1 else None
        if isinstance(whole, list):
            return whole
        items = schema.get("items")
        return [_value(name, [value], items if isinstance(items, dict) else {}) for value in values]
    if len(values) > 1:
        raise UsageError(f"{quoted(name, 80)} is given {len(values)} times, and is no list: give it once")
    return _single(name, values[0], types)


def _single(name: str, text: str, types: Sequence[str]) -> JsonValue:
    """Return the value as one of the types: a text if nothing else fits and texts are accepted."""
    if types == ["string"]:
        return text
    value = _json(text)
    if not types:
        return text if value is None and text != "null" else value
    for kind, (python, _) in _KINDS.items():
        right = isinstance(value, python) and not (isinstance(value, bool) and kind in ("integer", "number"))
        if kind in types and right and (value is not None or text == "null"):
            return value
    if "integer" in types and isinstance(value, float) and value.is_integer():
        return int(value)
    if "string" in types:
        return text
    wanted = " or ".join(_KINDS[kind][1] if kind in _KINDS else kind for kind in types)
    raise UsageError(f"{name}={visible(text, 80)} is not {wanted}")


def _json(text: str) -> JsonValue:
    """Return the value that a text is in JSON, or None."""
    try:
        value: JsonValue = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return value


def find_tool(tools: Sequence[ServerTool], wanted: str) -> ServerTool:
    """Return the tool of a name, or of `server/name` if several servers have it.

    Raises `UsageError` if there is no such tool, with similar names, or if the name alone is ambiguous.
    """
    found = [tool for tool in tools if wanted in (tool.name, f"{tool.server}/{tool.name}")]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(visible(f"{tool.server}/{tool.name}") for tool in found)
        raise UsageError(f"{quoted(wanted, 80)} is the name of several tools: write one of {names}")
    near = visible(near_names(wanted, [tool.name for tool in tools]))
    servers = ", ".join(dict.fromkeys(visible(tool.server) for tool in tools)) or "no server"
    raise UsageError(f"{servers} has no tool {quoted(wanted, 80)}{near}")

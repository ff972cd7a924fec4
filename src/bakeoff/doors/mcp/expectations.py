"""Check expected calls against the tools that servers offer, before a model is asked.

If an expectation contradicts a tool's schema, no correct call can meet it, and the cost of each
round would be wasted.
"""

import re
from collections.abc import Container, Iterable, Iterator

from pydantic import JsonValue

from bakeoff._kernel.text import near_names
from bakeoff._kernel.yaml import Key
from bakeoff.doors.mcp.cases import McpCase
from bakeoff.doors.mcp.config import McpSuite, expected_calls
from bakeoff.mcp import ServerTool
from bakeoff.mcp.schemas import Schema, allows, resolved, types_of
from bakeoff.mcp.tools import is_destructive
from bakeoff.scorers.matchers import Matcher, has_matcher, is_matcher
from bakeoff.scorers.mcp.calls import ExpectedMcpCall
from bakeoff.scorers.patterns import search

_Problem = tuple[Key, str]
_MAX_SHOWN = 10  # values of an enum
_SEARCH_SECONDS = 1.0
_CASES = (re.NOFLAG, re.IGNORECASE)  # an outer matcher may ignore case


def unknown_tools(suite: McpSuite, tools: Iterable[ServerTool], only: Container[int] | None = None) -> list[str]:
    """Return a sentence, with its place and similar names, for each expected call that no server offers.

    `only` contains the numbers of the cases to check, from 1.
    """
    offered: dict[str, list[str]] = {server.name: [] for server in suite.config.mcpServers}
    for tool in tools:
        offered.setdefault(tool.server, []).append(tool.name)
    found: list[str] = []
    for key, call in _selected_calls(suite, only):
        if call.serverName not in offered:
            what = f"no server is called {call.serverName!r}"
            found.append(suite.lines.problem((*key, "serverName"), f"{what}{near_names(call.serverName, offered)}"))
        elif call.toolName not in offered[call.serverName]:
            what = f"{call.serverName!r} has no tool {call.toolName!r}"
            owner = next((server for server, names in offered.items() if call.toolName in names), None)
            hint = f": {owner!r} has one" if owner else near_names(call.toolName, offered[call.serverName])
            found.append(suite.lines.problem((*key, "toolName"), f"{what}{hint}"))
    return found


def unknown_offers(suite: McpSuite, tools: Iterable[ServerTool], only: Container[int] | None = None) -> list[str]:
    """Return a sentence for each unknown tool that is offered, and each expected one that is not."""
    known = {name for tool in tools for name in (tool.name, f"{tool.server}/{tool.name}")}
    found: list[str] = []
    for at, case in _selected(suite, only):
        if case.tools is None:
            continue
        for place, name in enumerate(case.tools):
            if name not in known:
                what = f"no server has {name!r}{near_names(name, known)}"
                found.append(suite.lines.problem(("testCases", at, "tools", place), what))
        for key, call in expected_calls(suite.lines, at, case):
            names = (call.toolName, f"{call.serverName}/{call.toolName}")
            if "endState" not in key and not any(name in case.tools for name in names):
                what = f"this case does not offer {call.toolName!r}: add it to the case's `tools`"
                found.append(suite.lines.problem((*key, "toolName"), what))
    return found


def impossible_calls(suite: McpSuite, tools: Iterable[ServerTool], only: Container[int] | None = None) -> list[str]:
    """Return a sentence with its place for each expected parameter that the tool's schema does not allow."""
    schemas = {(tool.server, tool.name): tool.input_schema for tool in tools}
    return [
        suite.lines.problem((*key, "parameters", *place), problem)
        for key, call in _selected_calls(suite, only)
        if (schema := schemas.get((call.serverName, call.toolName))) is not None
        for place, problem in (
            *_object_problems(call.parameters, schema, schema, ()),
            *_missing_parameters(suite, key, call, schema),
        )
    ]


def destructive_calls(suite: McpSuite, tools: Iterable[ServerTool], only: Container[int] | None = None) -> list[str]:
    """Return a sentence for each expected call that would be executed though its tool may destroy something.

    Authors allow such calls by `executeTools: true` in a case, or `allowDestructive` for all.
    """
    config = suite.config
    if config.allowDestructive or config.mode == "agent":
        return []
    destructive = {(tool.server, tool.name) for tool in tools if is_destructive(tool)}
    found: list[str] = []
    for at, case in _selected(suite, only):
        if case.executeTools is True or not config.executes(case):
            continue
        for key, call in expected_calls(suite.lines, at, case):
            if (call.serverName, call.toolName) in destructive:
                what = f"{call.tool!r} is marked as destructive, and this case would execute it"
                way_out = "write `executeTools: true` in the case to allow that, or false"
                found.append(suite.lines.problem((*key, "toolName"), f"{what}: {way_out}"))
    return found


def _selected(suite: McpSuite, only: Container[int] | None) -> Iterator[tuple[int, McpCase]]:
    """Yield the selected cases with their indices."""
    return ((at, case) for at, case in enumerate(suite.config.testCases) if only is None or at + 1 in only)


def _selected_calls(suite: McpSuite, only: Container[int] | None) -> Iterator[tuple[Key, ExpectedMcpCall]]:
    """Yield the expected calls of the selected cases with their places."""
    return (call for at, case in _selected(suite, only) for call in expected_calls(suite.lines, at, case))


def _missing_parameters(suite: McpSuite, key: Key, call: ExpectedMcpCall, schema: Schema) -> Iterator[_Problem]:
    """Yield required parameters that the call lacks, unless the tool is expected to answer with an error."""
    required, case = schema.get("required"), suite.config.testCases[int(key[1])]
    part = case.turns[int(key[3])] if case.turns and key[2] == "turns" else case
    if not isinstance(required, list) or suite.config.extraParameters == "allow" or part.expectedError:
        return
    if missing := [name for name in required if isinstance(name, str) and name not in call.parameters]:
        names = ", ".join(map(repr, missing))
        way_out = "write `{any: true}` for any value, or `extraParameters: allow`"
        yield (), f"the tool requires {names}, and a call with more than expected does not pass: {way_out}"


def _object_problems(expected: dict[str, JsonValue], schema: Schema, root: Schema, place: Key) -> Iterator[_Problem]:
    """Yield parameters that the schema does not have, and values that it does not allow."""
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    open_ended = schema.get("additionalProperties") not in (None, False) or "patternProperties" in schema
    for name, value in expected.items():
        inner = known.get(name)
        if isinstance(inner, dict):
            yield from _problems(value, inner, root, (*place, name))
        elif inner is None and properties is not None and not open_ended:
            yield (*place, name), f"the tool has no parameter {name!r}{near_names(name, known)}"


def _problems(
    expected: JsonValue, schema: Schema, root: Schema, place: Key, *, literal: bool = False
) -> Iterator[_Problem]:
    """Yield the parts of an expected value that cannot match; `literal` values have no matchers."""
    schema = resolved(schema, root)
    if literal or not isinstance(expected, dict | list):
        if allows(schema, expected, root) is False:
            yield place, f"{expected!r} is not possible: {_allowed(schema)}"
    elif is_matcher(expected):
        yield from _matcher_problems(Matcher.model_validate(expected), schema, root, place)
    elif isinstance(expected, dict) and isinstance(schema.get("properties"), dict):
        yield from _object_problems(expected, schema, root, place)
    elif isinstance(expected, list) and isinstance(items := schema.get("items"), dict) and "array" in types_of(schema):
        for at, item in enumerate(expected):
            yield from _problems(item, items, root, (*place, at))
    elif not has_matcher(expected) and allows(schema, expected, root) is False:
        yield place, f"{expected!r} is not possible: {_allowed(schema)}"


def _matcher_problems(matcher: Matcher, schema: Schema, root: Schema, place: Key) -> Iterator[_Problem]:
    """Yield, for each kind of matcher, why it cannot match any value that the schema allows."""
    kinds = set(types_of(schema))
    if matcher.is_open:
        return
    if matcher.oneOf is not None:
        for at, choice in enumerate(matcher.oneOf):
            yield from _problems(choice, schema, root, (*place, "oneOf", at))
    elif matcher.regex is not None:
        if kinds and "string" not in kinds:
            yield (*place, "regex"), f"matches texts only: {_allowed(schema)}"
        elif not _matches_a_choice(matcher.regex, schema):
            yield (*place, "regex"), f"{matcher.regex!r} matches no possible value: {_allowed(schema)}"
    elif matcher.approx is not None:
        if kinds and not kinds & {"number", "integer"}:
            yield (*place, "approx"), f"compares numbers only: {_allowed(schema)}"
    elif "value" in matcher.model_fields_set and not _is_a_choice(matcher, schema):
        yield from _problems(matcher.value, schema, root, (*place, "value"), literal=matcher.exact)


def _matches_a_choice(pattern: str, schema: Schema) -> bool:
    """Return True if a choice of the enum contains the pattern in any case, or if there is no enum."""
    choices = schema.get("enum")
    if not isinstance(choices, list):
        return True
    texts = [choice for choice in choices if isinstance(choice, str)]
    try:
        return any(search(re.compile(pattern, flag), text, _SEARCH_SECONDS) for text in texts for flag in _CASES)
    except TimeoutError:
        return True


def _is_a_choice(matcher: Matcher, schema: Schema) -> bool:
    """Return True if a matcher that ignores case expects a value of an enum."""
    choices = schema.get("enum")
    if not matcher.caseInsensitive or not isinstance(choices, list):
        return False
    return str(matcher.value).casefold() in [str(choice).casefold() for choice in choices]


def _allowed(schema: Schema) -> str:
    """Say what a schema allows, in a few words."""
    choices = schema.get("enum")
    if isinstance(choices, list):
        shown = ", ".join(repr(choice) for choice in choices[:_MAX_SHOWN])
        return f"the tool accepts {shown}{' and others' if len(choices) > _MAX_SHOWN else ''}"
    limits = {
        name: schema[name] for name in ("minimum", "maximum", "minLength", "maxLength", "format") if name in schema
    }
    kind = " or ".join(types_of(schema)) or "another value"
    return f"the tool's schema says {', '.join([kind, *(f'{name} {value}' for name, value in limits.items())])}"

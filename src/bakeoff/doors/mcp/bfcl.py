"""Read files of the Berkeley Function Calling Leaderboard (BFCL) as cases: one turn, judged by the expected calls.

A question file has one JSON object in each line: `id`, `question` (turns, each a list of messages) and `function` (the
functions that this question offers). An answer file has `id` and `ground_truth`: for each call the allowed values of
each parameter, where an empty text among them means that the parameter may be absent. Questions of irrelevance have no
answer.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from bakeoff._kernel.files import read_text
from bakeoff._kernel.json import parse_json
from bakeoff._kernel.text import count_of, visible
from bakeoff.errors import UsageError
from bakeoff.mcp.schemas import allows
from bakeoff.mcp.snapshot import ServerEntry, Snapshot, ToolEntry
from bakeoff.scorers.matchers import is_matcher

Object = dict[str, JsonValue]

_TYPES = {"dict": "object", "float": "number", "double": "number", "tuple": "array"}
_KNOWN_TYPES = frozenset(("object", "number", "integer", "string", "boolean", "array", "null"))
_KEPT = ("description", "enum", "default", "minimum", "maximum", "format", "required")
_CATEGORY = re.compile(r"(.*?)_\d[\d_-]*$")
_SUPPORTED = re.compile(r"(live_)?(simple(_python)?|multiple|parallel|parallel_multiple|irrelevance)")
_NO_CALL = "irrelevance"
_MAX_BYTES = 200_000_000
SERVER = "functions"


class _UnusableEntry(Exception):
    """Raised for a question that cannot become a case. The message says why."""


@dataclass(frozen=True, slots=True)
class ImportedCases:
    """Cases as a configuration writes them, the functions as tools of servers, and what was left out."""

    cases: list[Object]
    snapshot: Snapshot
    notes: list[str]


@dataclass(slots=True)
class _BfclServers:
    """Functions by server. Questions may offer different functions of one name, which no server can have twice."""

    tools: list[dict[str, ToolEntry]] = field(default_factory=list)

    def add(self, functions: Mapping[str, ToolEntry]) -> str:
        """Add functions to the first server that they fit in, and return its name."""
        for at, known in enumerate([*self.tools, {}]):
            if all(known.get(name, entry) == entry for name, entry in functions.items()):
                if at == len(self.tools):
                    self.tools.append({})
                self.tools[at].update(functions)
                return self.name(at)
        raise AssertionError("the last server is empty")

    def name(self, at: int) -> str:
        return SERVER if at == 0 else f"{SERVER}-{at + 1}"

    def snapshot(self) -> Snapshot:
        return Snapshot(servers={self.name(at): ServerEntry(tools=tools) for at, tools in enumerate(self.tools)})


def import_bfcl(files: Sequence[Path]) -> ImportedCases:
    """Read question and answer files. Answers in `possible_answer/` beside a question file are found by its name."""
    questions: dict[str, tuple[str, Object]] = {}
    answers: dict[str, JsonValue] = {}
    beside = [file.parent / "possible_answer" / file.name for file in files]
    for file in dict.fromkeys((*files, *(path for path in beside if path.is_file()))):
        for place, entry in _lines(file):
            name = entry.get("id")
            if not isinstance(name, str) or not ("question" in entry or "ground_truth" in entry):
                raise UsageError(f"{place}: this is no BFCL entry: it needs `id`, and `question` or `ground_truth`")
            if "question" in entry:
                if name in questions:
                    raise UsageError(f"{place}: the id {name!r} is used twice, first at {questions[name][0]}")
                questions[name] = (place, entry)
            else:
                answers[name] = entry["ground_truth"]
    if not questions:
        raise UsageError(f"{files[0]} has no questions: name the file of the questions, too")
    return _imported(questions, answers)


def _imported(questions: Mapping[str, tuple[str, Object]], answers: Mapping[str, JsonValue]) -> ImportedCases:
    """Turn questions into cases, and note those that cannot be one. Raise `UsageError` if none can."""
    servers = _BfclServers()
    cases: list[Object] = []
    left_out: Counter[str] = Counter()
    notes: list[str] = []
    unanswered = [name for name in questions if name not in answers and _is_supported(name) and not _is_negative(name)]
    if unanswered:
        place = questions[unanswered[0]][0]
        more = f" and {len(unanswered) - 1} others" if len(unanswered) > 1 else ""
        raise UsageError(f"{place}: there is no answer for {unanswered[0]!r}{more}: name the possible_answer file, too")
    for name, (place, entry) in questions.items():
        if not _is_supported(name):
            left_out[_category(name)] += 1
            continue
        try:
            cases.append(_case(name, entry, answers.get(name), servers))
        except _UnusableEntry as problem:
            notes.append(f"{place}: {visible(name)} is left out: {problem}")
    for category, number in left_out.items():
        notes.append(f"{count_of(number, 'question')} of the category {visible(category)!r} left out: not supported")
    if not cases:
        raise UsageError("\n".join(["no question can be imported", *notes]))
    return ImportedCases(cases, servers.snapshot(), notes)


def _lines(file: Path) -> Iterator[tuple[str, Object]]:
    """Yield the objects of a file with their places. A file may also be one JSON list."""
    text = read_text(file, _MAX_BYTES, pipes=True)
    whole = text.lstrip().startswith("[")
    parts = [(f"{file}", text)] if whole else [(f"{file}:{at}", line) for at, line in enumerate(text.split("\n"), 1)]
    for place, part in parts:
        if not part.strip():
            continue
        try:
            found = parse_json(part)
        except ValueError as error:
            raise UsageError(f"{place}: this is not JSON: {error}") from error
        for entry in found if whole and isinstance(found, list) else [found]:
            if not isinstance(entry, dict):
                raise UsageError(f"{place}: this is no BFCL entry: it must be an object")
            yield place, entry


def _category(name: str) -> str:
    found = _CATEGORY.fullmatch(name)
    return found[1] if found else name


def _is_supported(name: str) -> bool:
    return _SUPPORTED.fullmatch(_category(name)) is not None


def _is_negative(name: str) -> bool:
    return _category(name).endswith(_NO_CALL)


def _case(name: str, entry: Object, answer: JsonValue, servers: _BfclServers) -> Object:
    """Return one question as a configuration writes a case, and add its functions to `servers`."""
    listed = entry.get("function")
    functions = dict(_function(each) for each in (listed if isinstance(listed, list) else [listed]))
    prompt = _prompt(entry["question"])
    calls = [] if _is_negative(name) else list(_calls(answer, functions))
    server = servers.add(functions)
    written: list[JsonValue] = [
        {"serverName": server, "toolName": tool, "parameters": parameters} for tool, parameters in calls
    ]
    case: Object = {"name": name, "prompt": prompt}
    case["expectedOutput"] = None if not written else written[0] if len(written) == 1 else written
    if len(written) > 1:
        case["order"] = "any"
    case["tools"] = [f"{server}/{tool}" for tool in functions]
    case["tags"] = [_category(name)]
    return case


def _prompt(question: JsonValue) -> str:
    """Return the messages of the only turn as one text. Older files have a text."""
    if isinstance(question, str):
        return _plain(question)
    turns = question if isinstance(question, list) else []
    if turns and all(isinstance(each, dict) for each in turns):
        turns = [turns]
    if len(turns) != 1 or not isinstance(turns[0], list):
        raise _UnusableEntry("it has several turns")
    messages = [each for each in turns[0] if isinstance(each, dict)]
    if any(each.get("role") == "assistant" for each in messages):
        raise _UnusableEntry("it contains answers of an assistant")
    text = "\n\n".join(str(each.get("content", "")) for each in messages)
    if not text.strip():
        raise _UnusableEntry("it has no text")
    return _plain(text)


def _plain(text: str) -> str:
    return text.replace("${", "$ {")  # a configuration would replace it by a variable


def _function(given: JsonValue) -> tuple[str, ToolEntry]:
    """Return a function's name, and the function as a tool."""
    if not isinstance(given, dict) or not isinstance(given.get("name"), str):
        raise _UnusableEntry("it has a function without a name")
    schema = _schema(given.get("parameters", {}))
    entry = ToolEntry(description=str(given.get("description", "")), inputSchema={**schema, "type": "object"})
    return str(given["name"]), entry


def _schema(given: JsonValue) -> Object:
    """Return a parameter of BFCL as JSON Schema, which has other names for some types."""
    if not isinstance(given, dict):
        return {}
    schema: Object = {name: given[name] for name in _KEPT if name in given}
    if not isinstance(schema.get("required", []), list):
        del schema["required"]
    kind = str(given.get("type", "any"))
    kind = _TYPES.get(kind, kind)
    if kind != "any":
        if kind not in _KNOWN_TYPES:
            raise _UnusableEntry(f"its functions have the type {kind!r}, which is not one of Python")
        schema["type"] = kind
    if isinstance(properties := given.get("properties"), dict):
        schema["properties"] = {name: _schema(inner) for name, inner in properties.items()}
    if isinstance(items := given.get("items"), dict):
        schema["items"] = _schema(items)
    return schema


def _calls(answer: JsonValue, functions: Mapping[str, ToolEntry]) -> Iterator[tuple[str, Object]]:
    """Yield the tool and the expected parameters of each call of an answer."""
    for call in answer if isinstance(answer, list) else [answer]:
        if not isinstance(call, dict) or len(call) != 1:
            raise _UnusableEntry("its answer is not a list of calls")
        [(name, allowed)] = call.items()
        if name not in functions or not isinstance(allowed, dict):
            raise _UnusableEntry(f"its answer calls {name!r}, which it does not offer")
        if bare := [each for each, values in allowed.items() if not isinstance(values, list)]:
            raise _UnusableEntry(f"its answer has no list of allowed values for {bare[0]!r}")
        yield name, _object(allowed, functions[name].inputSchema)


def _object(allowed: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> Object:
    """Return the expected parameters, or the expected keys of an object. Each has a list of allowed values."""
    parts, required = schema.get("properties"), schema.get("required")
    found: Object = {}
    for name, values in allowed.items():
        if isinstance(parts, dict) and name not in parts and values != [""]:
            raise _UnusableEntry(f"its answer has the parameter {name!r}, which the function does not have")
        part = parts.get(name, {}) if isinstance(parts, dict) else {}
        needed = isinstance(required, list) and name in required
        choices = values if isinstance(values, list) else [values]
        absent = "" in choices and not (needed and set(map(str, choices)) == {""})
        real = [value for value in choices if value != ""] if absent else choices
        if not real:
            continue  # an unexpected parameter fails, so nothing has to be said
        found[name] = _matcher(_fitting(real, part if isinstance(part, dict) else {}, name), optional=absent)
    if missing := [name for name in required if name not in found] if isinstance(required, list) else []:
        raise _UnusableEntry(f"its answer has no value for {missing[0]!r}, which the function requires")
    return found


def _fitting(values: Sequence[JsonValue], schema: Mapping[str, JsonValue], name: str) -> list[JsonValue]:
    """Return the values that the function's own schema allows: no right call can have another."""
    found = [_value(value, schema) for value in values]
    kept = [value for value, given in zip(found, values, strict=True) if _allowed(value, given, schema)]
    if not kept:
        raise _UnusableEntry(f"no allowed value of {name!r} matches the schema of its function")
    unique: list[JsonValue] = []
    for value in kept:
        if value not in unique:
            unique.append(value)
    return unique


def _allowed(value: JsonValue, given: JsonValue, schema: Mapping[str, JsonValue]) -> bool:
    nested = isinstance(given, dict) or (isinstance(given, list) and any(isinstance(each, dict) for each in given))
    return nested or allows(schema, value, schema) is not False


def _value(value: JsonValue, schema: Mapping[str, JsonValue]) -> JsonValue:
    """Return one allowed value: objects contain lists of allowed values again, and enums are compared without case."""
    items = schema.get("items")
    if isinstance(value, dict):
        made = _object(value, schema)
        if is_matcher(made):
            raise _UnusableEntry("an expected object has the keys of a matcher")
        return made
    if isinstance(value, list):
        return [_value(each, items if isinstance(items, dict) else {}) for each in value]
    choices = schema.get("enum")
    if isinstance(value, str) and isinstance(choices, list):
        same = (choice for choice in choices if isinstance(choice, str) and choice.casefold() == value.casefold())
        return next(same, value)
    return value


def _matcher(values: Sequence[JsonValue], *, optional: bool) -> JsonValue:
    """Return the expectation of one of these values. BFCL compares texts without case."""
    ignoring: Object = {"caseInsensitive": True} if any(map(_has_text, values)) else {}
    more: Object = {**ignoring, **({"optional": True} if optional else {})}
    if len(values) == 1:
        return {"value": values[0], **more} if more else values[0]
    return {"oneOf": list(values), **more}


def _has_text(value: JsonValue) -> bool:
    inner: Iterable[JsonValue] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, str) or any(map(_has_text, inner))

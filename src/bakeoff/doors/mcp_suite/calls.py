"""A call of a tool as a model meant it, and whether that is what was expected."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, Literal

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.mcp_suite.config import ExpectedCall
from bakeoff.doors.mcp_suite.matching import parameter_differences
from bakeoff.mcp import ServerTool


class Call(FrozenModel):
    """One call: which tool of which server, with what."""

    serverName: str
    toolName: str
    parameters: dict[str, JsonValue] = {}

    @property
    def tool(self) -> str:
        return tool_label(self.serverName, self.toolName)


class Expected(FrozenModel):
    """What a case expects, as the plan holds it: hidden from every model."""

    calls: tuple[ExpectedCall, ...] | None
    results: JsonValue = None
    grading: str | None = None


_DEEPEST = 64  # levels of parameters; no schema of a tool may have more either

NO_TOOL = "no tool"
"""How the absence of a call is named beside tools."""


def tool_label(server: str, tool: str) -> str:
    return f"{server} / {tool}"


async def call_differences(
    expected: Sequence[ExpectedCall] | None, actual: Sequence[Call], *, extra_allowed: bool
) -> list[str]:
    """Why the calls are not those that were expected, a sentence each; none means that they are."""
    wanted = expected or ()
    if not wanted and actual:
        return [f"no tool should be called, and {_named(actual)} was"]
    if wanted and not actual:
        return [f"no tool was called, expected {_named(wanted)}"]
    if len(wanted) != len(actual):
        return [f"{len(actual)} calls were made ({_named(actual)}), expected {len(wanted)} ({_named(wanted)})"]
    found: list[str] = []
    for at, (want, call) in enumerate(zip(wanted, actual, strict=True)):
        place = f"call {at + 1}: " if len(wanted) > 1 else ""
        found += [f"{place}{problem}" for problem in await _one(want, call, extra_allowed=extra_allowed)]
    return found


async def _one(wanted: ExpectedCall, call: Call, *, extra_allowed: bool) -> list[str]:
    names = [
        f"{key} is {given!r}, expected {want!r}"
        for key, given, want in (
            ("serverName", call.serverName, wanted.serverName),
            ("toolName", call.toolName, wanted.toolName),
        )
        if given != want
    ]
    if names:  # the parameters of another tool are others
        return names
    differences = await parameter_differences(wanted.parameters, call.parameters, extra_allowed=extra_allowed)
    return [f"parameters: {difference}" for difference in differences]


def _named(calls: Sequence[Call] | Sequence[ExpectedCall]) -> str:
    return ", ".join(repr(tool_label(call.serverName, call.toolName)) for call in calls)


def as_call(value: Mapping[str, JsonValue]) -> Call | str:
    """An object that a model wrote, as a call; or what is wrong with it."""
    for key in ("serverName", "toolName"):
        if key not in value:
            return f"the reply has no {key!r}"
        if not isinstance(value[key], str):
            return f"{key} is {value[key]!r}, not a text"[:300]
    parameters = value.get("parameters", {})
    if parameters is None:
        parameters = {}
    if not isinstance(parameters, dict):
        return f"parameters is {type(parameters).__name__}, not an object"
    extra = sorted(value.keys() - {"serverName", "toolName", "parameters"})
    if extra:
        return f"the reply has {', '.join(map(repr, extra[:5]))} besides serverName, toolName and parameters"
    return make_call(str(value["serverName"]), str(value["toolName"]), parameters)


def make_call(server: str, tool: str, parameters: Mapping[str, JsonValue]) -> Call | str:
    """A call; or, where its parameters are nothing that can be kept or sent, what is wrong with them.

    That is of the model's doing, and must not spare it the verdict.
    """
    if _is_deeper(parameters, _DEEPEST):
        return f"the parameters of {tool[:200]!r} are nested more than {_DEEPEST} levels deep"
    try:
        return Call(serverName=server, toolName=tool, parameters=dict(parameters))
    except ValidationError:  # there is nothing else that JSON can spell and a call cannot hold
        return f"the parameters of {tool[:200]!r} hold a number that is too large"


def _is_deeper(value: object, levels: int) -> bool:
    if not isinstance(value, Mapping | list):
        return False
    inner = value.values() if isinstance(value, Mapping) else value
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inner)


LONGEST = 64
"""What every provider takes, with letters, digits, `_` and `-`."""

_UNFIT = re.compile(r"[^A-Za-z0-9_-]")


def offered_names(tools: Sequence[ServerTool]) -> Mapping[str, ServerTool]:
    """Each tool under a name of its own: the tool's, with its server's before it where two servers offer the same."""
    plain = [_plain(tool.name) for tool in tools]
    often = Counter(name.casefold() for name in plain)
    offered: dict[str, ServerTool] = {}
    for tool, name in zip(tools, plain, strict=True):
        wanted = name if often[name.casefold()] == 1 else _plain(f"{tool.server}__{tool.name}")
        numbered = (f"{wanted[: LONGEST - 4]}_{number}" for number in count(2))
        free = next(name for name in chain([wanted], numbered) if name not in offered)
        offered[free] = tool
    return offered


def _plain(name: str) -> str:
    return _UNFIT.sub("_", name)[:LONGEST]


Manner = Literal["bare", "fenced", "surrounded", "prose", "native"]
"""How a call was said; anything but `bare` is worth telling in `json` mode, for not every client forgives it."""

_FENCE = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\n(.*?)```", re.DOTALL)  # nothing in it can be matched in two ways
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_LONGEST = 1_000_000  # characters of a reply that are looked at
_MOST_STARTS = 2_000  # places at which JSON may begin


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


class _Unreadable(ValueError):
    """Not the JSON that was asked for."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The calls of a reply, or why there is none to be had from it."""

    calls: tuple[Call, ...] = ()
    manner: Manner = "bare"
    problem: str = ""


def read_reply(text: str, *, strict: bool = False) -> Heard:
    """The calls that a reply asks for; `strict` takes bare JSON alone."""
    text = text[:_LONGEST].strip()
    if not text:
        return Heard(problem="the reply is empty")
    try:
        return _heard(_parsed(text), "bare")
    except _Unreadable as problem:
        if strict:
            return Heard(manner=_manner_of(text), problem=f"strictJson: the reply is not JSON alone: {problem}")
    return _forgiving(_THOUGHT.sub("", text).strip())


def _forgiving(text: str) -> Heard:
    fenced = [block for block in _FENCE.findall(text) if _is_json(block)]
    if fenced and all(_parsed(block) == _parsed(fenced[0]) for block in fenced):
        return _heard(_parsed(fenced[0]), "fenced")
    found = _distinct(value for value in _embedded(text) if _looks_like_call(value))
    if len(found) > 1:
        return Heard(
            manner="surrounded", problem=f"the reply holds {len(found)} different calls, apart from each other"
        )
    if found:
        return _heard(found[0], "surrounded")
    if any(sign in text for sign in ("serverName", "toolName")):
        return Heard(manner="surrounded", problem="the reply is not valid JSON")
    return Heard(manner="prose")  # it said something, and called nothing


def _heard(value: JsonValue, manner: Manner) -> Heard:
    if value is None or value == []:
        return Heard(manner=manner)
    items = value if isinstance(value, list) else [value]
    calls: list[Call] = []
    for item in items:
        call = as_call(item) if isinstance(item, dict) else f"the reply is {_kind(item)}, not an object"
        if isinstance(call, str):
            return Heard(manner=manner, problem=call)
        calls.append(call)
    return Heard(tuple(calls), manner)


def _parsed(text: str) -> JsonValue:
    try:
        parsed: JsonValue = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise _Unreadable(str(error)) from error
    return parsed


def _is_json(text: str) -> bool:
    try:
        _parsed(text)
    except _Unreadable:
        return False
    return True


def _embedded(text: str) -> Iterator[JsonValue]:
    """Every whole object or list among other words; what lies inside one is not told again."""
    at = 0
    for _ in range(_MOST_STARTS):
        starts = [place for sign in "{[" if (place := text.find(sign, at)) >= 0]
        if not starts:
            return
        at = min(starts)
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        yield value


def _looks_like_call(value: JsonValue) -> bool:
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(isinstance(item, dict) and "toolName" in item for item in items)


def _distinct(values: Iterator[JsonValue]) -> list[JsonValue]:
    found: dict[str, JsonValue] = {}
    for value in values:
        found.setdefault(json.dumps(value, sort_keys=True), value)
    return list(found.values())


def _manner_of(text: str) -> Manner:
    return _forgiving(_THOUGHT.sub("", text).strip()).manner


def _kind(value: JsonValue) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list of lists"}
    return names.get(type(value), "nothing")

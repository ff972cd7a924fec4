"""What a model meant by its reply: JSON alone, JSON in a fence, or JSON among other words."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import JsonValue

from bakeoff.doors.mcp_suite.calls import Call, as_call

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

"""Calling the tools that a model asked for, and comparing what they give with what they should."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.mcp_suite.calls import Call
from bakeoff.doors.mcp_suite.matching import Difference, is_matcher, parameter_differences, value_differences
from bakeoff.mcp import McpHub, OpenHub
from bakeoff.record import ToolCall

_LONGEST = 20_000  # characters of a result that a record keeps
_WRAPPED = "result"  # the key under which an SDK sends what is no object: structured content has to be one


class Executed(FrozenModel):
    """What came of one call."""

    tool: str
    text: str = ""
    structured: JsonValue = None
    is_error: bool = False

    @property
    def value(self) -> JsonValue:
        """What a report shows of it."""
        return self.structured if self.structured is not None else self.text


@dataclass(frozen=True, slots=True)
class Execution:
    """Where tools are called: on the servers of the run, or on fresh ones for each trial."""

    hub: McpHub
    own_hub: bool = False

    async def __call__(self, calls: Sequence[Call], resources: Mapping[str, Any]) -> list[Executed]:
        """Each call in turn, up to one that fails: those after it may build on it."""
        done: list[Executed] = []
        async with self._opened(resources) as hub:
            for call in calls:
                result = await hub.call(call.serverName, call.toolName, call.parameters)
                done.append(
                    Executed(
                        tool=call.tool,
                        text=result.text[:_LONGEST],
                        structured=_bounded(result.structured),
                        is_error=result.is_error,
                    )
                )
                if result.is_error:
                    break
        return done

    @asynccontextmanager
    async def _opened(self, resources: Mapping[str, Any]) -> AsyncIterator[OpenHub]:
        if not self.own_hub:
            yield resources[self.hub.key]
            return
        async with self.hub.open() as hub:
            yield hub


def executed_by_agent(calls: Sequence[ToolCall], meant: Sequence[Call]) -> list[Executed]:
    """What an agent's own calls gave."""
    return [
        Executed(
            tool=call.tool,
            text=(said.error if said.error is not None else _text(said.result))[:_LONGEST],
            structured=_bounded(said.result) if isinstance(said.result, dict | list) else None,
            is_error=said.error is not None,
        )
        for said, call in zip(calls, meant, strict=True)
    ]


async def result_differences(expected: JsonValue, executed: Sequence[Executed]) -> list[str]:
    """Why the results are not what was expected: of every call where that is a list of as many, else of the last."""
    if failed := [each for each in executed if each.is_error]:
        return [f"the tool {each.tool!r} answered with an error: {each.text[:300]}" for each in failed]
    if expected is None or not executed:
        return []
    if isinstance(expected, list) and len(executed) > 1 and len(expected) == len(executed):
        pairs = list(zip(expected, executed, strict=True))
    else:
        pairs = [(expected, executed[-1])]
    found: list[str] = []
    for wanted, result in pairs:
        found += [f"result of {result.tool!r}: {problem}" for problem in await _problems(wanted, result)]
    return found


async def _problems(expected: JsonValue, result: Executed) -> list[str]:
    if isinstance(expected, str):
        held = expected in result.text or expected in _text(result.structured)
        return [] if held else [f"{expected!r} is not in {result.text[:200]!r}"]
    told: list[str] | None = None
    for actual in _readings(expected, result):
        found = [str(each) for each in await _differences(expected, actual)]
        if not found:
            return []
        told = found if told is None else told
    return told or []


def _readings(expected: JsonValue, result: Executed) -> list[JsonValue]:
    """All that a result may be meant as, that which was most probably expected first."""
    found: list[JsonValue] = []
    if result.structured is not None:
        found.append(result.structured)
        if isinstance(result.structured, dict) and result.structured.keys() == {_WRAPPED}:
            bare_first = not isinstance(expected, dict) or _WRAPPED not in expected
            found.insert(0 if bare_first else 1, result.structured[_WRAPPED])
    found.append(_parsed(result.text))
    if is_matcher(expected) and result.text not in found:
        found.append(result.text)
    return found


async def _differences(expected: JsonValue, actual: JsonValue) -> list[Difference]:
    if isinstance(expected, dict) and isinstance(actual, dict) and not is_matcher(expected):
        return await parameter_differences(expected, actual, extra_allowed=True)
    return await value_differences(expected, actual)


def _parsed(text: str) -> JsonValue:
    try:
        parsed: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return parsed


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _bounded(value: JsonValue) -> JsonValue:
    """A result that is too long for a record is left to its text."""
    return value if value is None or len(_text(value)) <= _LONGEST else None

"""A call of a tool as a model meant it, and whether that is what was expected."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.mcp_suite.config import ExpectedCall
from bakeoff.doors.mcp_suite.matching import parameter_differences


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

"""Define calls, expected calls and results, and read the calls in a model's reply."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeVar

from pydantic import (
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from bakeoff._kernel.model import FrozenModel, sparse_field
from bakeoff.mcp import ServerTool
from bakeoff.mcp.tools import is_deeper, offered_names, tool_label
from bakeoff.record import Record, Step, Text, ToolCall
from bakeoff.scorers.text import DECODER, json_in

NO_TOOL = "no tool"
"""The name in place of a tool's where no call was made."""

UNREADABLE = "unreadable reply"
TURNS = "turns"
"""The key in the metadata of transcripts and scores for what happened in each turn of a case."""

ReplyForm = Literal["bare", "fenced", "surrounded", "prose", "native"]
"""The form in which a reply contains its call. Reports count all but `bare`: clients may refuse the others."""

GradedText = Literal["answer", "result", "both"]
"""The text that a judge grades: the model's answer after the tools ran, the results of the tools, or both."""

Noted = TypeVar("Noted", bound=FrozenModel)
_CHECKS = ("command", "query")
_MAX_DEPTH = 64  # levels of parameters; schemas of tools have the same limit
_MAX_REPLY_LENGTH = 1_000_000  # characters of a reply that are read
_FENCE = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\n(.*?)```", re.DOTALL)  # cannot backtrack: each part matches in one way
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)


class Call(FrozenModel):
    """One call of a tool."""

    serverName: str
    toolName: str
    parameters: dict[str, JsonValue] = {}

    @property
    def tool(self) -> str:
        """Return the label of the tool with its server, as reports and messages show it."""
        return tool_label(self.serverName, self.toolName)


class ExpectedMcpCall(Call):
    """One expected call."""

    serverName: str = Field(min_length=1)
    toolName: str = Field(min_length=1)


class CallRules(FrozenModel):
    """The ways in which the calls of a round may differ from the expected ones, with the keys of a configuration."""

    order: Literal["exact", "any"] = Field(default="exact", description="whether the calls must come in this order")
    extraCalls: Literal["forbid", "allow"] = Field(default="forbid", description="whether other calls may be made too")
    maxCalls: int | None = Field(default=None, ge=1, strict=True, description="the most calls that a round may make")
    expectedError: bool | str | None = Field(
        default=None, description="the last call must be answered with an error, which contains this text"
    )


def check_target(target: str, kind: str) -> str:
    """Refuse a text that is not `module:name`. The kind of object is part of the message."""
    module, _, attribute = target.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))):
        raise ValueError(f"{target!r} does not name a {kind.lower()}: write it as `module:{kind}`")
    return target


class EndCheck(FrozenModel):
    """One check after a case: a command or a query."""

    command: str | tuple[str, ...] | None = Field(
        default=None, description="a line for the shell, or a program and its arguments; it must exit with 0"
    )
    query: ExpectedMcpCall | None = Field(default=None, description="a call on the same server, which must succeed")
    serverName: str | None = Field(default=None, description="the server in whose folder a command runs; the first one")
    expectedResults: JsonValue = Field(default=None, description="what a command prints, or a query gives")
    name: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        given = [kind for kind in _CHECKS if getattr(self, kind) is not None]
        if len(given) != 1:
            has = f"has {' and '.join(given)}" if given else "checks nothing"
            raise ValueError(f"this {has}: write `command` or `query`")
        return self

    @property
    def label(self) -> str:
        """Return the name of the check, or else its command or query."""
        if self.name is not None:
            return self.name
        if self.query is not None:
            return self.query.tool
        return (self.command if isinstance(self.command, str) else " ".join(self.command or ()))[:80]


class CaseExpectation(FrozenModel):
    """The expectation of a case, as the plan contains it. No model sees this."""

    calls: tuple[ExpectedMcpCall, ...] | None
    results: JsonValue = None
    grading: str | None = None
    # Absent in plans that do not use them, so that older runs keep their keys.
    alternatives: tuple[tuple[ExpectedMcpCall, ...] | None, ...] = sparse_field(())
    rules: CallRules = sparse_field(CallRules())
    execute: bool | None = sparse_field(None)
    # Older versions graded results.
    graded: GradedText = sparse_field("result")
    # A case with checks of its end state has at least one turn: its tools are executed while the model is asked.
    turns: tuple["ExpectedTurn", ...] = sparse_field(())
    end_state: tuple[EndCheck, ...] = sparse_field(())


class ExpectedTurn(CaseExpectation):
    """One turn of a case, with the calls and results that are expected of it."""

    prompt: str


def written_calls(calls: Sequence[Call] | None) -> JsonValue:
    """Return calls as a configuration writes them: a single call, a list, or null for none."""
    if calls is None:
        return None
    written: list[JsonValue] = [call.model_dump(mode="json") for call in calls]
    return written[0] if len(written) == 1 else written


def make_call(server: str, tool: str, parameters: Mapping[str, JsonValue]) -> Call | str:
    """Return a call, or a sentence that says why its parameters cannot be stored or sent.

    In that case the round fails, because the model caused the problem.
    """
    if is_deeper(parameters, _MAX_DEPTH + 1):  # the values themselves are a level
        return f"the parameters of {tool[:200]!r} are nested more than {_MAX_DEPTH} levels deep"
    try:
        return Call(serverName=server, toolName=tool, parameters=dict(parameters))
    except ValidationError:  # JSON can contain nothing else that a call cannot
        return f"the parameters of {tool[:200]!r} contain a number that is too large"


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The calls of a reply, or the reason why it has none that can be read."""

    calls: tuple[Call, ...] = ()
    form: ReplyForm = "bare"
    problem: str = ""


def read_reply(text: str, *, strict: bool = False) -> ModelReply:
    """Read the calls of a reply. With `strict`, accept only JSON without surrounding text."""
    text = text[:_MAX_REPLY_LENGTH].strip()
    if not text:
        return ModelReply(problem="the reply is empty")
    try:
        return _reply_with(DECODER.decode(text), "bare")
    except (ValueError, RecursionError) as error:
        lenient = _read_lenient(_THOUGHT.sub("", text).strip())
        if strict:
            return ModelReply(form=lenient.form, problem=f"strictJson: the reply is not JSON alone: {error}")
        return lenient


def _read_lenient(text: str) -> ModelReply:
    """Find the calls in a reply with other text: in code fences, or else anywhere."""
    fenced: list[JsonValue] = []
    for block in _FENCE.findall(text):
        try:
            fenced.append(DECODER.decode(block))
        except (ValueError, RecursionError):
            continue
    if fenced and all(value == fenced[0] for value in fenced):
        return _reply_with(fenced[0], "fenced")
    found: dict[str, JsonValue] = {}
    for value in json_in(text):
        items = value if isinstance(value, list) else [value]
        if items and all(isinstance(item, dict) and "toolName" in item for item in items):
            found[json.dumps(value, sort_keys=True)] = value
    if len(found) > 1:
        return ModelReply(
            form="surrounded", problem=f"the reply contains {len(found)} different calls in separate places"
        )
    if found:
        return _reply_with(next(iter(found.values())), "surrounded")
    if any(sign in text for sign in ("serverName", "toolName")):
        return ModelReply(form="surrounded", problem="the reply is not valid JSON")
    return ModelReply(form="prose")  # text without a call


def _reply_with(value: JsonValue, form: ReplyForm) -> ModelReply:
    """Return the calls of a parsed reply, with the first wrong one as its problem."""
    if value is None or value == []:
        return ModelReply(form=form)
    calls: list[Call] = []
    for item in value if isinstance(value, list) else [value]:
        call = _as_call(item)
        if isinstance(call, str):
            return ModelReply(form=form, problem=call)
        calls.append(call)
    return ModelReply(tuple(calls), form)


def _as_call(value: JsonValue) -> Call | str:
    """Return the call that a model wrote as an object, or a sentence that says what is wrong with it."""
    if not isinstance(value, dict):
        names = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list of lists"}
        return f"the reply is {names.get(type(value), 'nothing')}, not an object"
    for key in ("serverName", "toolName"):
        if key not in value:
            return f"the reply has no {key!r}"
        if not isinstance(value[key], str):
            return f"{key} is {value[key]!r}, not a text"[:300]
    parameters = value.get("parameters")
    if parameters is None:
        parameters = {}
    if not isinstance(parameters, dict):
        return f"parameters is {type(parameters).__name__}, not an object"
    return make_call(str(value["serverName"]), str(value["toolName"]), parameters)


Mode = Literal["json", "native", "agent"]


UNKNOWN_SERVER = "unknown"
"""The server of a tool that a model invented in function calling, where calls do not name a server."""


@dataclass(frozen=True, slots=True)
class ReplyReader:
    """A reader of the calls in replies, in the mode of a suite."""

    mode: Mode
    tools: tuple[ServerTool, ...]
    strict: bool = False  # of `json` mode: nothing may be around the JSON

    def read(self, steps: Sequence[Step]) -> ModelReply:
        """Read the calls in the last text or, in function calling, in all steps."""
        if self.mode != "json":
            return self.native([part for step in steps for part in step.parts if isinstance(part, ToolCall)])
        return self.text("".join(part.text for part in (steps[-1].parts if steps else ()) if isinstance(part, Text)))

    def text(self, text: str) -> ModelReply:
        """Read the calls of a reply in `json` mode, as strictly as the suite says."""
        return read_reply(text, strict=self.strict)

    def native(self, called: Sequence[ToolCall]) -> ModelReply:
        """Read the calls of function calling. A tool that was not offered ends the reply with a problem.

        Without tools, as outside of a suite, every name is accepted, and its server is unknown.
        """
        offered = offered_names(self.tools)
        calls: list[Call] = []
        for call in called:
            if self.tools and call.name not in offered:
                invented = Call(serverName=UNKNOWN_SERVER, toolName=call.name[:200])
                problem = f"{invented.toolName!r} was called, but there is no such tool"
                return ModelReply((*calls, invented), "native", problem)
            if not isinstance(call.arguments, dict):
                return ModelReply(tuple(calls), "native", f"the arguments of {call.name[:200]!r} are not a JSON object")
            tool = offered.get(call.name)
            made = make_call(*((tool.server, tool.name) if tool else ("", call.name)), call.arguments)
            if isinstance(made, str):
                return ModelReply(tuple(calls), "native", made)
            calls.append(made)
        return ModelReply(tuple(calls), "native")


class ExecutedCall(FrozenModel):
    """The result of one executed call."""

    tool: str
    text: str = ""
    structured: JsonValue = None
    is_error: bool = False

    @property
    def value(self) -> JsonValue:
        """Return the structured content, else the text."""
        return self.structured if self.structured is not None else self.text


class TurnScore(FrozenModel):
    """The score of one turn of a case with several turns. `reason` is empty if the turn is as expected."""

    called: tuple[Call, ...] = ()
    executed: tuple[ExecutedCall, ...] = ()
    reason: str = ""


def noted_in(record: Record, key: str, kind: type[Noted]) -> list[Noted]:
    """Return the scorer's notes on a round; empty if not scored, or scored by another version."""
    return read_noted(record.scores[0].metadata if record.scores else {}, key, kind)


def read_noted(metadata: Mapping[str, JsonValue], key: str, kind: type[Noted]) -> list[Noted]:
    """Return a list in the metadata of a transcript or a score; an empty one if it cannot be read."""
    found = metadata.get(key)
    try:
        return [kind.model_validate(each) for each in found] if isinstance(found, list) else []
    except ValidationError:
        return []


def turns_in(record: Record) -> list[TurnScore]:
    """Return the turns of a round that were asked; empty if the case has none or was not scored."""
    return noted_in(record, TURNS, TurnScore)


def text_of(value: JsonValue) -> str:
    """Return a text unchanged, None as an empty string, and other values as JSON."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


SCORER = "mcp"

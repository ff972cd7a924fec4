"""Execute the calls of a model, and keep their results: of a round, or of each of its turns."""

import json
from collections.abc import Container, Sequence

from pydantic import JsonValue, TypeAdapter, ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.mcp.calls import TURNS, Call
from bakeoff.errors import ToolTimeout
from bakeoff.mcp import OpenHub
from bakeoff.record import Record, ToolCall

NOT_EXECUTED = "this tool may destroy something, and is not executed in this evaluation"
NOT_SHOWN = "done; the result is not shown"
"""Answer the calls of a model where `executeTools: false` forbids to execute them."""
_LONGEST = 20_000  # characters of a result that a record keeps


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
    """The score of one turn of a case with several. `reason` is empty if it is as expected."""

    called: tuple[Call, ...] = ()
    executed: tuple[ExecutedCall, ...] = ()
    reason: str = ""


_TURN_SCORES: TypeAdapter[list[TurnScore]] = TypeAdapter(list[TurnScore])


def turns_in(record: Record) -> list[TurnScore]:
    """Return the turns of a round that were asked. There are none if the case has no turns, or was not scored."""
    found = next((score.metadata.get(TURNS) for score in record.scores), None)
    try:
        return _TURN_SCORES.validate_python(found or [])
    except ValidationError:
        return []


async def execute_calls(hub: OpenHub, calls: Sequence[Call], refused: Container[str] = ()) -> list[ExecutedCall]:
    """Execute calls in turn, and stop after an error: later calls may depend on it.

    Calls of the tools in `refused`, by their labels, never reach a server.
    """
    done: list[ExecutedCall] = []
    for call in calls:
        if call.tool in refused:
            done.append(ExecutedCall(tool=call.tool, text=NOT_EXECUTED, is_error=True))
        else:
            done.append(await _execute_call(hub, call))
        if done[-1].is_error:
            break
    return done


async def _execute_call(hub: OpenHub, call: Call) -> ExecutedCall:
    """Execute a call. A tool that does not answer has failed; it is not the model's or our fault."""
    try:
        result = await hub.call(call.serverName, call.toolName, call.parameters)
    except ToolTimeout as late:
        return ExecutedCall(tool=call.tool, text=str(late), is_error=True)
    text, structured = result.text[:_LONGEST], _unless_long(result.structured)
    return ExecutedCall(tool=call.tool, text=text, structured=structured, is_error=result.is_error)


def executed_by_agent(calls: Sequence[ToolCall], read: Sequence[Call]) -> list[ExecutedCall]:
    """Return the results of the calls that an agent made itself."""
    return [
        ExecutedCall(
            tool=call.tool,
            text=(made.error if made.error is not None else text_of(made.result))[:_LONGEST],
            structured=_unless_long(made.result) if isinstance(made.result, dict | list) else None,
            is_error=made.error is not None,
        )
        for made, call in zip(calls, read, strict=True)
    ]


def text_of(value: JsonValue) -> str:
    """Return a text as it is, nothing as an empty text, and other values as JSON."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _unless_long(value: JsonValue) -> JsonValue:
    """Return a structured result, or None if it is too long for a record, which then keeps only its text."""
    return value if value is None or len(text_of(value)) <= _LONGEST else None

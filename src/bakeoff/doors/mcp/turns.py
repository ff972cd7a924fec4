"""Carry on a conversation of several turns: ask, compare the calls, execute them, and go on with their results.

A turn that fails ends the conversation: later turns build on results that do not exist then, and a call that is not
expected never reaches a server (in `agent` mode, the model has executed it by then).
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart

from bakeoff._kernel.clock import Clock
from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.mcp.calls import TURNS, Call, ExpectedMcpCall, ExpectedTurn, ModelReply
from bakeoff.doors.mcp.end_state import END_STATE, EndStateRunner, dumped
from bakeoff.doors.mcp.execution import NOT_SHOWN, ExecutedCall, execute_calls, executed_by_agent, text_of
from bakeoff.doors.mcp.expected_results import result_differences
from bakeoff.doors.mcp.plan import McpPlanSettings, ScorerOptions
from bakeoff.doors.mcp.replies import ReplyReader
from bakeoff.doors.mcp.sequences import call_differences
from bakeoff.doors.mcp.servers import expanded_servers
from bakeoff.errors import GraderError
from bakeoff.mcp import OpenHub
from bakeoff.mcp.tools import is_destructive, tool_label
from bakeoff.models.conversation import Conversation, begin
from bakeoff.record import Part, Step, ToolCall, Transcript

_NOT_MADE = "not made, because the call before it failed"
_LONGEST = 20_000  # characters of a result that a model reads

Ask = Callable[[Conversation], Awaitable[Conversation]]


class TurnTrace(FrozenModel):
    """What happened in one turn: its steps in the transcript, and the results of its calls."""

    steps: int
    executed: tuple[ExecutedCall, ...] = ()


_TRACES: TypeAdapter[list[TurnTrace]] = TypeAdapter(list[TurnTrace])


@dataclass(frozen=True, slots=True)
class ReadTurn:
    """A turn of a transcript: what the model replied, what its calls gave, and what is wrong with that."""

    reply: ModelReply
    executed: tuple[ExecutedCall, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnRules:
    """How the turns of a suite are read and compared."""

    reader: ReplyReader
    checks: EndStateRunner
    extra_allowed: bool = False
    destructive: frozenset[str] = frozenset()  # tools that are executed only where a case expects them

    @classmethod
    def of(cls, options: ScorerOptions, settings: McpPlanSettings, environment: Mapping[str, str]) -> Self:
        reader = ReplyReader(options.mode, settings.tools, options.strict_json)
        servers = expanded_servers(settings.servers, environment)
        checks = EndStateRunner(settings.folder, servers, settings.toolTimeout)
        tools = () if settings.allowDestructive else settings.tools
        destructive = frozenset(tool_label(tool.server, tool.name) for tool in tools if is_destructive(tool))
        return cls(reader, checks, options.extra_parameters == "allow", destructive)

    def refused(self, turn: ExpectedMcpCall) -> frozenset[str]:
        """Return the tools that must not be executed: nobody asked the author about calls that are merely allowed."""
        expected = (call.tool for calls in (turn.calls, *turn.alternatives) for call in calls or ())
        return self.destructive.difference(expected)

    async def call_problems(self, turn: ExpectedMcpCall, reply: ModelReply) -> list[str]:
        if reply.problem:
            return [reply.problem]
        return await call_differences(turn, reply.calls, extra_allowed=self.extra_allowed)

    async def carry_on(
        self, expected: ExpectedMcpCall, ask: Ask, system: str | None, hub: OpenHub | None, clock: Clock
    ) -> Transcript:
        """Ask one turn after the other until one fails, and return the whole conversation.

        Without a hub, calls are not executed. Agents call the tools themselves while they are asked. The end state is
        checked if the tools were executed.
        """
        turns = expected.turns
        problems: list[str] = []
        talk = begin(system, turns[0].prompt)
        traces: list[TurnTrace] = []
        for turn, following in zip(turns, (*turns[1:], None), strict=True):
            before = len(talk.steps)
            await ask(talk)
            own = talk.steps[before:]
            reply = self.reader.read(own)
            problems = await self.call_problems(turn, reply)
            executed = [] if problems else await self._execute(turn, reply.calls, own, hub, clock)
            problems += await result_differences(turn, executed)
            traces.append(TurnTrace(steps=len(own), executed=tuple(executed)))
            if self.reader.mode == "native" and own:
                talk.steps[-1] = _with_results(own[-1], executed)
            if problems or following is None:
                break
            self._add_prompt(talk, following.prompt, reply.calls, executed)
        transcript = talk.transcript()
        told: dict[str, JsonValue] = {TURNS: _TRACES.dump_python(traces, mode="json")}
        if expected.end_state and hub is not None and (self.reader.mode == "agent" or not problems):
            with clock.paused():
                told[END_STATE] = dumped(await self.checks.observe(expected.end_state, hub))
        return transcript.model_copy(update={"metadata": {**transcript.metadata, **told}})

    async def _execute(
        self, turn: ExpectedMcpCall, calls: Sequence[Call], steps: Sequence[Step], hub: OpenHub | None, clock: Clock
    ) -> list[ExecutedCall]:
        if hub is None or not calls:
            return []
        if self.reader.mode == "agent":
            return executed_by_agent(Transcript(steps=tuple(steps)).tool_calls, calls)
        with clock.paused():  # the model is not responsible for a slow server, which has a limit of its own
            return await execute_calls(hub, calls, self.refused(turn))

    def _add_prompt(
        self, talk: Conversation, prompt: str, calls: Sequence[Call], executed: Sequence[ExecutedCall]
    ) -> None:
        """Add the results of a turn and the next message of the user."""
        if self.reader.mode == "json":
            prompt = with_results(prompt, calls, executed)
        last = talk.messages[-1]
        if not isinstance(last, ModelRequest):
            talk.messages.append(ModelRequest(parts=[UserPromptPart(prompt)]))
            return
        parts = list(last.parts)  # what the tools gave back; models in function calling have not seen it yet
        if self.reader.mode == "native":
            contents = _contents(executed, len(parts))
            parts = [
                ToolReturnPart(part.tool_name, content, part.tool_call_id)
                for part, content in zip(last.parts, contents, strict=True)
                if isinstance(part, ToolReturnPart)
            ]
        talk.messages[-1] = replace(last, parts=[*parts, UserPromptPart(prompt)])

    async def read(self, turns: Sequence[ExpectedTurn], transcript: Transcript) -> list[ReadTurn]:
        """Compare the turns of a transcript with the expected ones, up to the one that failed."""
        try:
            traces = _TRACES.validate_python(transcript.metadata.get(TURNS))
        except ValidationError as error:
            raise GraderError("the answer has no turns, but its case has: start a new run") from error
        found: list[ReadTurn] = []
        at = 0
        for turn, trace in zip(turns, traces, strict=False):
            reply = self.reader.read(transcript.steps[at : at + trace.steps])
            at += trace.steps
            problems = await self.call_problems(turn, reply) or await result_differences(turn, trace.executed)
            found.append(ReadTurn(reply, trace.executed, tuple(problems)))
            if problems:
                return found
        if len(found) < len(turns):
            raise GraderError(f"the conversation ended after turn {len(found)} by other expectations: start a new run")
        return found


def with_results(prompt: str, calls: Sequence[Call], executed: Sequence[ExecutedCall]) -> str:
    """Return a message of the user with what the calls before it gave, for models that reply with JSON."""
    if not calls:
        return prompt
    results = [*(text_of(each.value)[:_LONGEST] for each in executed)]
    results += [_NOT_MADE if executed else NOT_SHOWN] * (len(calls) - len(results))
    lines = [
        f"{call.tool} {json.dumps(call.parameters, ensure_ascii=False)}: {result}"
        for call, result in zip(calls, results, strict=True)
    ]
    return "\n".join(["These calls were made, and gave back:", *lines, "", f"The user's next message: {prompt}"])


def _contents(executed: Sequence[ExecutedCall], calls: int) -> list[JsonValue]:
    """Return what each call of function calling gave back, as a model is told it."""
    given: list[JsonValue] = [{"error": each.text} if each.is_error else each.value for each in executed]
    return given + [{"error": _NOT_MADE} if executed else NOT_SHOWN] * (calls - len(given))


def _with_results(step: Step, executed: Sequence[ExecutedCall]) -> Step:
    """Return a step of function calling with the results of its calls, which were made after it."""
    given = iter(executed)
    parts: list[Part] = []
    for part in step.parts:
        result = next(given, None) if isinstance(part, ToolCall) else None
        changes: dict[str, Any] = {}
        if result is not None:
            changes = {"error": result.text} if result.is_error else {"result": result.value}
        parts.append(part.model_copy(update=changes) if changes else part)
    return step.model_copy(update={"parts": tuple(parts)})

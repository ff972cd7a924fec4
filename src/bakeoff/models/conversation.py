"""The tool loop: call the model, run the tools that it calls, send it the results, and repeat."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter, time
from typing import Any

from pydantic import JsonValue
from pydantic_ai.messages import (
    INVALID_JSON_KEY,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition
from pydantic_core import to_jsonable_python

from bakeoff._kernel.tracing import Attributes, Tracing
from bakeoff.errors import ToolError
from bakeoff.models.caller import Answer, Caller
from bakeoff.models.prices import Price
from bakeoff.models.prompt_templates import messages_in
from bakeoff.protocols import Tool
from bakeoff.record import NO_USAGE, Part, Reasoning, Step, Text, ToolCall, Transcript, Usage


@dataclass(slots=True)
class Conversation:
    """The messages and steps of a conversation so far."""

    messages: list[ModelMessage]
    steps: list[Step] = field(default_factory=list)
    price: Price | None = None  # the price of the last answer
    replayed: bool = False
    recorded: bool = False
    unmeasured: int = 0  # answers without a plausible usage
    out_of_steps: bool = False  # the model had not finished

    @property
    def usage(self) -> Usage:
        """Return the usage of all steps."""
        return sum((step.usage for step in self.steps), NO_USAGE)

    def transcript(self) -> Transcript:
        """Return the conversation as a transcript whose output is the last step's text."""
        last = self.steps[-1].parts if self.steps else ()
        output = "".join(part.text for part in last if isinstance(part, Text))
        facts: dict[str, JsonValue] = {
            "price": self.price.model_dump(mode="json") if self.price else None,
            "replayed": self.replayed,
            "recorded": self.recorded,
            "unmeasured": self.unmeasured,
            "out_of_steps": self.out_of_steps,
        }
        metadata = {name: value for name, value in facts.items() if value}
        return Transcript(output=output, steps=tuple(self.steps), usage=self.usage, metadata=metadata)


def begin(system: str | None, prompt: str, *, chat: bool = False) -> Conversation:
    """Start a conversation with an optional system prompt and a user prompt.

    With `chat`, a prompt that is a JSON list of messages with `role` and `content` stands for these messages.
    """
    said = (chat and messages_in(prompt)) or [("user", prompt)]
    messages: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart(system)])] if system else []
    for role, text in said:
        if role == "assistant":
            messages.append(ModelResponse(parts=[TextPart(text)]))
            continue
        part: ModelRequestPart = UserPromptPart(text) if role == "user" else SystemPromptPart(text)
        if messages and isinstance(last := messages[-1], ModelRequest):
            messages[-1] = replace(last, parts=[*last.parts, part])
        else:
            messages.append(ModelRequest(parts=[part]))
    return Conversation(messages)


async def converse(
    caller: Caller,
    talk: Conversation,
    tools: Sequence[Tool] = (),
    *,
    max_steps: int = 1,
    output_schema: dict[str, Any] | None = None,
) -> Conversation:
    """Continue until the model calls no tool, ends the attempt, or has used up its steps."""
    definitions = [
        ToolDefinition(name=tool.name, parameters_json_schema=dict(tool.parameters), description=tool.description)
        for tool in tools
    ]
    parameters = ModelRequestParameters(function_tools=definitions)
    if output_schema is not None:
        wanted = OutputObjectDefinition(json_schema=output_schema, name="answer")
        parameters = replace(parameters, output_mode="native", output_object=wanted)
    by_name = {tool.name: tool for tool in tools}
    for _ in range(max_steps):
        answer = await caller.ask(talk.messages, parameters)
        talk.messages.append(answer.response)
        talk.price = answer.price
        talk.replayed |= answer.replayed
        talk.recorded |= answer.recorded
        talk.unmeasured += not answer.measured
        calls = [part for part in answer.response.parts if isinstance(part, ToolCallPart)]
        done, over = await _run_tools(calls, by_name, caller.tracing)
        talk.steps.append(_step(answer, done))
        if over or not calls:
            return talk
        contents = [call.result if call.error is None else {"error": call.error} for call in done]
        returned = [
            ToolReturnPart(tool_name=part.tool_name, content=content, tool_call_id=part.tool_call_id)
            for part, content in zip(calls, contents, strict=True)
        ]
        talk.messages.append(ModelRequest(parts=returned))
    talk.out_of_steps = True
    return talk


async def _run_tools(
    calls: list[ToolCallPart], tools: dict[str, Tool], tracing: Tracing
) -> tuple[list[ToolCall], bool]:
    """Run the calls in order. Return them with results, and True if one ended the attempt.

    Calls after the end of the attempt are not run.
    """
    done: list[ToolCall] = []
    over = False
    for part in calls:
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": part.tool_name,
            "gen_ai.tool.call.id": part.tool_call_id,
            "gen_ai.tool.type": "function",
        }
        with tracing.span(f"execute_tool {part.tool_name}", attributes) as span:
            done.append(await use_tool(part, None if over else tools.get(part.tool_name), over=over, known=tools))
            if done[-1].error is not None:
                span.failed("ToolError")
        over = over or (part.tool_name in tools and tools[part.tool_name].ends and done[-1].error is None)
    return done, over


async def use_tool(part: ToolCallPart, tool: Tool | None, *, over: bool, known: dict[str, Tool]) -> ToolCall:
    """Run one call. The model sees its mistakes as the result; other errors end the trial."""
    called = ToolCall(name=part.tool_name, id=part.tool_call_id, started=time(), arguments=_given(part))
    if tool is None:
        reason = "the attempt was over" if over else f"there is no such tool; there are {', '.join(known) or 'none'}"
        return called.model_copy(update={"error": reason})
    if not isinstance(called.arguments, dict):
        wanted = "JSON, which has no NaN and no infinity" if _is_invalid(part) else "a JSON object"
        return called.model_copy(update={"error": f"the arguments are not {wanted}"})
    started = perf_counter()
    try:
        result, error = to_jsonable_python(await tool.call(called.arguments)), None
    except ToolError as problem:
        result, error = None, str(problem)
    took = 1000 * (perf_counter() - started)
    return called.model_copy(update={"result": result, "error": error, "duration_ms": took})


def _is_invalid(part: ToolCallPart) -> bool:
    """Return True if the arguments contain values that JSON cannot represent."""
    return isinstance(part.args, dict) and INVALID_JSON_KEY in part.args


def _given(part: ToolCallPart) -> JsonValue:
    if isinstance(part.args, dict) and _is_invalid(part):
        return str(part.args[INVALID_JSON_KEY])
    try:
        return part.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError):
        return part.args_as_json_str()


def _step(answer: Answer, calls: list[ToolCall]) -> Step:
    response = answer.response
    remaining = iter(calls)
    parts: list[Part] = []
    for part in response.parts:
        match part:
            case TextPart():
                parts.append(Text(text=part.content))
            case ThinkingPart():
                parts.append(Reasoning(text=part.content))
            case ToolCallPart():
                parts.append(next(remaining))
    refused = (response.provider_details or {}).get("refusal")
    if refused and not any(isinstance(part, Text) for part in parts):
        parts.append(Text(text=str(refused)))  # not always sent as text
    return Step(parts=tuple(parts), usage=answer.usage, finish_reason=response.finish_reason, seconds=answer.seconds)

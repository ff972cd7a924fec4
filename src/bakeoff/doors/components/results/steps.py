"""Convert steps between the blocks of a result file and transcripts, in which a call holds its own result."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import Field, JsonValue

from bakeoff.doors.components.results.model import (
    LONGEST,
    Block,
    ComponentsAdditions,
    ComponentsMetadata,
    OtherBlock,
    ReasoningBlock,
    StepResult,
    StepUsage,
    TextBlock,
    ToolCallBlock,
    ToolErrorBlock,
    ToolResultBlock,
)
from bakeoff.record import Part, Reasoning, Step, Text, ToolCall, Usage

SUITE = "suite"
"""The scorer that a verification belongs to."""
VERIFICATION = "verification"
"""Key of the verification in the metadata of its score."""


class RecordedSubject(ComponentsMetadata):
    """The options of an imported subject: the metadata that its file has. Totals are never recomputed."""

    bakeoff: ComponentsAdditions | None = Field(
        default=None, description="from a file that bakeoff wrote, without its trials"
    )


RESULT_WRITE = "ResultWrite"
TEST_COMPONENT = "TestComponent"
BUILT_IN = (RESULT_WRITE, TEST_COMPONENT)
"""Our own tools. All others are those of MCP servers."""

_OUR_REASONS = {"tool_call": "tool-calls", "content_filter": "content-filter"}
_THEIR_REASONS = {theirs: ours for ours, theirs in _OUR_REASONS.items()}


def extract_result_write_content(steps: Iterable[Step]) -> str | None:
    """Return what the subject handed in: the content of the first `ResultWrite` call that was accepted."""
    for step in steps:
        for part in step.parts:
            if isinstance(part, ToolCall) and part.name == RESULT_WRITE and part.error is None:
                content = part.arguments.get("content") if isinstance(part.arguments, dict) else None
                if isinstance(content, str):
                    return content
    return None


def write_step(step: Step) -> StepResult:
    """Return a step as a file has it: the model's text and calls first, then the results of the calls."""
    said = [_block(part, place) for place, part in enumerate(step.parts)]
    returned = [
        ToolResultBlock(**_call_names(part, place), input=part.arguments, output=_output(part))
        for place, part in enumerate(step.parts)
        if isinstance(part, ToolCall)
    ]
    used = step.usage
    counts = StepUsage(
        input_tokens=used.input,
        output_tokens=used.output,
        total_tokens=used.tokens,
        cached_input_tokens=used.cache_read,
        reasoning_tokens=used.reasoning,
    )
    reason = step.finish_reason or "unknown"
    return StepResult(
        content=(*said, *returned),
        finish_reason=_OUR_REASONS.get(reason, reason),
        usage=counts if used.tokens or not used.requests else StepUsage(),  # unknown where the provider sent none
        warnings=(),
        response={},
    )


def _output(call: ToolCall) -> JsonValue:
    """Return what a tool returned. Results of MCP servers get the form that the protocol gives them."""
    found = call.result
    if call.error is not None:
        return {"error": call.error}
    if call.name in BUILT_IN or found is None or (isinstance(found, dict) and isinstance(found.get("content"), list)):
        return found
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}]}


def _block(part: Part, place: int) -> Block:
    match part:
        case Text():
            return TextBlock(text=part.text)
        case Reasoning():
            return ReasoningBlock(text=part.text)
        case ToolCall():
            return ToolCallBlock(**_call_names(part, place), input=part.arguments)


def _call_names(call: ToolCall, place: int) -> dict[str, str]:
    called = call.id if call.id is not None else f"call-{place + 1}"
    return {"tool_call_id": called[:LONGEST], "tool_name": call.name[:LONGEST]}  # the model chooses both


def read_step(step: StepResult) -> Step:
    """Return a step of a file as part of a transcript."""
    reader = _StepReader()
    for block in step.content:
        reader.take(block)
    counts = step.usage or StepUsage()
    usage = Usage(
        requests=1,
        input=counts.input_tokens or 0,
        output=counts.output_tokens or 0,
        cache_read=counts.cached_input_tokens or 0,
        reasoning=counts.reasoning_tokens or 0,
    )
    reason = _THEIR_REASONS.get(step.finish_reason, step.finish_reason)
    return Step(parts=tuple(reader.parts), usage=usage, finish_reason=reason)


@dataclass(slots=True)
class _StepReader:
    """Collect parts. A result that follows its call, with the same name and input, is stored in the call."""

    parts: list[Part] = field(default_factory=list)
    waiting: dict[str, int] = field(default_factory=dict)  # calls without a result so far, by id

    def take(self, block: Block) -> None:
        match block:
            case TextBlock():
                self.parts.append(Text(text=block.text))
            case ReasoningBlock():
                self.parts.append(Reasoning(text=block.text))
            case ToolCallBlock():
                self.waiting[block.tool_call_id] = len(self.parts)
                self.parts.append(ToolCall(name=block.tool_name, arguments=block.input, id=block.tool_call_id))
            case ToolResultBlock():
                self._finish(block, {"result": block.output})
            case ToolErrorBlock():
                error = block.error if isinstance(block.error, str) else json.dumps(block.error)
                self._finish(block, {"error": error})
            case OtherBlock():
                pass

    def _finish(self, block: ToolResultBlock | ToolErrorBlock, returned: dict[str, JsonValue]) -> None:
        place = self.waiting.get(block.tool_call_id)
        call = None if place is None else self.parts[place]
        if place is None or not isinstance(call, ToolCall) or not _same(call, block):
            made = ToolCall(name=block.tool_name, arguments=block.input, id=block.tool_call_id)
            self.parts.append(made.model_copy(update=returned))
            return
        del self.waiting[block.tool_call_id]
        self.parts[place] = call.model_copy(update=returned)


def _same(call: ToolCall, block: ToolResultBlock | ToolErrorBlock) -> bool:
    return call.name == block.tool_name and ("input" not in block.model_fields_set or call.arguments == block.input)

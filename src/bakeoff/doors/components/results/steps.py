"""Convert steps between the blocks of a result file and transcripts, in which a call holds its own result."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from bakeoff.doors.components.results.imported import OWN_NOTES, BlockKind, FileDifference, StepNotes
from bakeoff.doors.components.results.model import (
    LONGEST,
    Block,
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

RESULT_WRITE = "ResultWrite"
TEST_COMPONENT = "TestComponent"
BUILT_IN = (RESULT_WRITE, TEST_COMPONENT)
"""Our own tools. All others are those of MCP servers."""

_OUR_REASONS = {"tool_call": "tool-calls", "content_filter": "content-filter"}
_THEIR_REASONS = {theirs: ours for ours, theirs in _OUR_REASONS.items()}

Order = tuple[tuple[int, BlockKind], ...]


def extract_result_write_content(steps: Iterable[Step]) -> str | None:
    """Return what the subject handed in: the content of the first `ResultWrite` call that was accepted."""
    for step in steps:
        for part in step.parts:
            if isinstance(part, ToolCall) and part.name == RESULT_WRITE and part.error is None:
                content = part.arguments.get("content") if isinstance(part.arguments, dict) else None
                if isinstance(content, str):
                    return content
    return None


def write_own_step(step: Step) -> StepResult:
    """Return a step of a run of ours. What tools of MCP servers returned has the form that the protocol gives it."""
    parts = tuple(_with_protocol_result(part) if isinstance(part, ToolCall) else part for part in step.parts)
    return write_step(step.model_copy(update={"parts": parts}))


def _with_protocol_result(call: ToolCall) -> ToolCall:
    if call.name in BUILT_IN or call.result is None or call.error is not None:
        return call
    if isinstance(call.result, dict) and isinstance(call.result.get("content"), list):
        return call
    text = call.result if isinstance(call.result, str) else json.dumps(call.result, ensure_ascii=False)
    return call.model_copy(update={"result": {"content": [{"type": "text", "text": text}]}})


def write_step(step: Step, notes: StepNotes = OWN_NOTES) -> StepResult:
    """Return a step as a file has it."""
    order = _usual_order(step.parts) if notes.order is None else notes.order
    content = tuple(_block(step.parts[place], place, kind) for place, kind in order)
    usual = _usual_step(step).model_copy(update={"content": content})
    usage = notes.usage.applied(usual.usage or StepUsage())
    return notes.step.applied(usual.model_copy(update={"usage": usage}))


def _usual_step(step: Step) -> StepResult:
    """Return the step without its content, as bakeoff would write it."""
    reason, used = step.finish_reason or "unknown", step.usage
    counts = StepUsage(
        input_tokens=used.input,
        output_tokens=used.output,
        total_tokens=used.tokens,
        cached_input_tokens=used.cache_read,
        reasoning_tokens=used.reasoning,
    )
    usage = counts if used.tokens or not used.requests else StepUsage()  # unknown where the provider sent none
    return StepResult(finish_reason=_OUR_REASONS.get(reason, reason), usage=usage, warnings=(), response={})


def _usual_order(parts: Sequence[Part]) -> Order:
    """Return the usual order of blocks: the model's text and calls first, then the results of the calls."""
    said: Order = tuple((place, "part") for place in range(len(parts)))
    return said + tuple((place, "result") for place, part in enumerate(parts) if isinstance(part, ToolCall))


def _block(part: Part, place: int, kind: BlockKind) -> Block:
    match part:
        case Text():
            return TextBlock(text=part.text)
        case Reasoning():
            return ReasoningBlock(text=part.text)
        case ToolCall():
            return _tool_block(part, place, kind)


def _tool_block(call: ToolCall, place: int, kind: BlockKind) -> Block:
    called = (call.id if call.id is not None else f"call-{place + 1}")[:LONGEST]  # the model chooses both
    name = call.name[:LONGEST]
    given: dict[str, JsonValue] = {"input": call.arguments} if kind in ("part", "result", "silent") else {}
    if kind in ("part", "bare"):
        return ToolCallBlock(tool_call_id=called, tool_name=name, **given)
    output: JsonValue = call.result if call.error is None else {"error": call.error}
    returned = {"output": output} if kind in ("result", "output") else {}
    return ToolResultBlock(tool_call_id=called, tool_name=name, **given, **returned)


def read_step(step: StepResult) -> tuple[Step, StepNotes]:
    """Return a step of a file, and what the file says besides."""
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
    read = Step(parts=tuple(reader.parts), usage=usage, finish_reason=reason)
    usual, order = _usual_step(read), tuple(reader.order)
    notes = StepNotes(
        step=FileDifference.between(step, usual, skip=("content", "usage") if step.usage else ("content",)),
        usage=FileDifference.between(counts, usual.usage or StepUsage()),
        order=None if order == _usual_order(reader.parts) else order,
    )
    return read, notes


@dataclass(slots=True)
class _StepReader:
    """Collect parts. A result that follows its call, with the same name and input, is stored in the call."""

    parts: list[Part] = field(default_factory=list)
    order: list[tuple[int, BlockKind]] = field(default_factory=list)
    waiting: dict[str, int] = field(default_factory=dict)  # calls without a result so far, by id

    def take(self, block: Block) -> None:
        match block:
            case TextBlock():
                self._add(Text(text=block.text))
            case ReasoningBlock():
                self._add(Reasoning(text=block.text))
            case ToolCallBlock():
                self.waiting[block.tool_call_id] = len(self.parts)
                call = ToolCall(name=block.tool_name, arguments=block.input, id=block.tool_call_id)
                self._add(call, "part" if "input" in block.model_fields_set else "bare")
            case ToolResultBlock():
                self._finish(block, block.output, None)
            case ToolErrorBlock():
                error = block.error if isinstance(block.error, str) else json.dumps(block.error)
                self._finish(block, None, error)
            case OtherBlock():
                pass

    def _add(self, part: Part, kind: BlockKind = "part") -> None:
        self.order.append((len(self.parts), kind))
        self.parts.append(part)

    def _finish(self, block: ToolResultBlock | ToolErrorBlock, result: JsonValue, error: str | None) -> None:
        kind = _kind_of(block)
        place = self.waiting.get(block.tool_call_id)
        call = None if place is None else self.parts[place]
        if place is None or not isinstance(call, ToolCall) or not _same(call, block):
            made = ToolCall(name=block.tool_name, arguments=block.input, id=block.tool_call_id)
            self._add(made.model_copy(update={"result": result, "error": error}), kind)
            return
        del self.waiting[block.tool_call_id]
        self.parts[place] = call.model_copy(update={"result": result, "error": error})
        self.order.append((place, kind))


def _kind_of(block: ToolResultBlock | ToolErrorBlock) -> BlockKind:
    told = isinstance(block, ToolErrorBlock) or "output" in block.model_fields_set
    if "input" in block.model_fields_set:
        return "result" if told else "silent"
    return "output" if told else "nothing"


def _same(call: ToolCall, block: ToolResultBlock | ToolErrorBlock) -> bool:
    return call.name == block.tool_name and ("input" not in block.model_fields_set or call.arguments == block.input)

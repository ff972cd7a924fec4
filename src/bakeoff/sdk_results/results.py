"""Whole results: what one call of an SDK gives back."""

import sys
from typing import Any

from bakeoff.sdk_results.data import as_dict, data_of, dicts, fields_of, first, inside, text_in
from bakeoff.sdk_results.gathered import GOOGLE, OPENAI, PYDANTIC_AI, VERCEL, Gathered, usage_in
from bakeoff.sdk_results.messages import is_conversation, read_conversation, read_message

_CALLED = ("function_call", "custom_tool_call", "mcp_call")
_PROVIDER_RUN = (
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "computer_call",
    "image_generation_call",
)


def read_completion(data: dict[str, Any]) -> Gathered:
    """OpenAI's chat completion; of several choices the first."""
    gathered = Gathered()
    choice = next(dicts(data.get("choices")), {})
    read_message({"role": "assistant", **as_dict(choice.get("message"))}, gathered)
    gathered.usage = usage_in(data.get("usage"), OPENAI)
    gathered.note(model=data.get("model"), finish_reason=choice.get("finish_reason"))
    return gathered


def read_response(data: dict[str, Any]) -> Gathered:
    """OpenAI's response: a list of items, messages and calls among them."""
    gathered = Gathered()
    texts: list[str] = []
    for item in dicts(data.get("output")):
        _read_item(item, gathered, texts)
    gathered.answer = "".join(texts) if texts else None
    gathered.usage = usage_in(data.get("usage"), OPENAI)
    gathered.note(model=data.get("model"), finish_reason=data.get("status"))
    return gathered


def _read_item(item: dict[str, Any], gathered: Gathered, texts: list[str]) -> None:
    kind, id_ = str(item.get("type")), item.get("call_id") or item.get("id")
    if kind == "message":
        texts += [text for text in [text_in(item.get("content"))] if text is not None]
        gathered.note(refusal=next((part["refusal"] for part in dicts(item.get("content")) if "refusal" in part), None))
    elif kind in _CALLED:
        gathered.call(item.get("name"), first(item, "arguments", "input"), id_)
        if item.get("output") is not None or item.get("error"):
            gathered.returned(item.get("output"), id_=id_, error=item.get("error"))
    elif kind in _PROVIDER_RUN:
        gathered.call(kind.removesuffix("_call"), first(item, "action", "queries", "code") or {}, id_)
    elif kind.endswith("_call_output"):
        gathered.returned(item.get("output"), id_=id_)


def read_google(data: dict[str, Any]) -> Gathered:
    """Google's `GenerateContentResponse`, with the calls that its SDK made by itself."""
    gathered = Gathered()
    candidate = next(dicts(data.get("candidates")), {})
    history = list(dicts(first(data, "automatic_function_calling_history", "automaticFunctionCallingHistory")))
    spoken = as_dict(candidate.get("content"))
    for content in [*history, spoken]:
        for part in dicts(content.get("parts")):
            _read_google_part(part, gathered)
    gathered.answer = first(data, "parsed") or text_in(spoken.get("parts"))
    gathered.usage = usage_in(first(data, "usage_metadata", "usageMetadata"), GOOGLE)
    model, finish = first(data, "model_version", "modelVersion"), first(candidate, "finish_reason", "finishReason")
    gathered.note(model=model, finish_reason=finish)
    return gathered


def _read_google_part(part: dict[str, Any], gathered: Gathered) -> None:
    if call := first(part, "function_call", "functionCall"):
        gathered.call(inside(call, "name"), inside(call, "args") or {}, inside(call, "id"))
    if back := as_dict(first(part, "function_response", "functionResponse")):
        response = back.get("response")
        error = inside(response, "error")
        gathered.returned(response, id_=back.get("id"), name=back.get("name"), error=error)


def is_vercel(data: dict[str, Any]) -> bool:
    """A result of `generateText`, `streamText` or `generateObject`, written down as JSON."""
    if not ({"text", "object", "steps", "output"} & data.keys()):
        return False
    steps, called = data.get("steps"), data.get("toolCalls")
    has_steps = isinstance(steps, list) and bool(steps) and all(_is_step(step) for step in steps)
    has_calls = isinstance(called, list) and "text" in data and all(_call_name(call) for call in called)
    counted = any(usage_in(data.get(name), VERCEL).requests for name in ("usage", "totalUsage"))
    return has_steps or has_calls or (counted and "finishReason" in data)


def _is_step(step: Any) -> bool:
    """By what a step of the SDK has besides its words: steps of a recipe have words too."""
    return isinstance(step, dict) and bool({"toolCalls", "finishReason", "usage", "stepType"} & step.keys())


def _call_name(call: Any) -> Any:
    return first(call, "toolName", "name") if isinstance(call, dict) else None


def read_vercel(data: dict[str, Any]) -> Gathered:
    """Version 4 says `args` and `result`, version 5 and later `input` and `output`, and may have all in `content`."""
    gathered = Gathered()
    steps = list(dicts(data.get("steps")))
    for step in steps or [data]:
        _read_step(step, gathered)
    last = steps[-1] if steps else {}
    gathered.answer = first(data, "object", "experimental_output", "text", "output")
    if gathered.answer is None:
        gathered.answer = first(last, "text") or text_in(last.get("content"))
    whole = usage_in(data.get("totalUsage"), VERCEL, requests=len(steps) or 1)
    gathered.usage = whole if whole.requests else _vercel_usage(data, steps)
    gathered.note(model=inside(data, "response", "modelId"), finish_reason=data.get("finishReason"))
    return gathered


def _vercel_usage(data: dict[str, Any], steps: list[dict[str, Any]]) -> Any:
    """Version 4 has the sum in `usage`; where only the steps have been counted, theirs."""
    whole = usage_in(data.get("usage"), VERCEL, requests=len(steps) or 1)
    if whole.requests:
        return whole
    for step in steps:
        whole += usage_in(step.get("usage"), VERCEL)
    return whole


def _read_step(step: dict[str, Any], gathered: Gathered) -> None:
    content = list(dicts(step.get("content")))
    for call in [*dicts(step.get("toolCalls")), *(part for part in content if part.get("type") == "tool-call")]:
        gathered.call(_call_name(call), first(call, "input", "args", "arguments"), first(call, "toolCallId", "id"))
    results = [part for part in content if part.get("type") in ("tool-result", "tool-error")]
    for back in [*dicts(step.get("toolResults")), *results]:
        id_, found = first(back, "toolCallId", "id"), first(back, "output", "result")
        gathered.returned(found, id_=id_, name=_call_name(back), error=back.get("error"))


def is_pydantic_ai(value: Any) -> bool:
    """Its methods will be called, so it must be the class itself. Where its module is not loaded it cannot be one."""
    loaded = sys.modules.get("pydantic_ai.run")
    return loaded is not None and isinstance(value, loaded.AgentRunResult)


def read_pydantic_ai(value: Any) -> Gathered:
    gathered = Gathered()
    messages = [as_dict(data_of(message)) for message in value.new_messages()]
    answers = [message for message in messages if message.get("kind") == "response"]
    for part in (part for message in messages for part in dicts(message.get("parts"))):
        _read_pydantic_part(part, gathered)
    output_tool = fields_of(value).get("_output_tool_name")
    gathered.calls = [
        call for call in gathered.calls if call["name"] != output_tool
    ]  # how it answered, not what it did
    gathered.answer = value.output
    for answer in answers:
        gathered.usage += usage_in(answer.get("usage"), PYDANTIC_AI)
    gathered.note(model=answers[-1].get("model_name") if answers else None)
    return gathered


def _read_pydantic_part(part: dict[str, Any], gathered: Gathered) -> None:
    kind, id_ = str(part.get("part_kind")), part.get("tool_call_id")
    if kind in ("tool-call", "builtin-tool-call"):
        gathered.call(part.get("tool_name"), part.get("args") or {}, id_)
    elif kind in ("tool-return", "builtin-tool-return"):
        failed = part.get("outcome", "success") != "success"
        gathered.returned(part.get("content"), id_=id_, error=part.get("content") if failed else None)
    elif kind == "retry-prompt" and part.get("tool_name"):
        gathered.returned(None, id_=id_, error=part.get("content"))


def is_state(data: dict[str, Any]) -> bool:
    """A LangGraph state: messages under that name, and whatever else the graph keeps."""
    return is_conversation(data.get("messages"))


def read_state(data: dict[str, Any]) -> Gathered:
    gathered = read_conversation(data["messages"])
    if data.get("structured_response") is not None:
        gathered.answer = data["structured_response"]
    return gathered

"""Read results and messages of OpenAI, its Agents SDK, Anthropic, Google, LangChain and others."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bakeoff._kernel.json import as_json
from bakeoff.models.replies import Reply, reported_counts
from bakeoff.record import NO_USAGE, ToolCall, Usage
from bakeoff.sdk_results.plain_data import (
    TaskResult,
    arguments_in,
    as_dict,
    dicts,
    fields_of,
    first,
    has_class,
    inside,
    plain_data,
    text_in,
)

_MAX_TOKENS = 10**12  # a larger count is an error of the SDK
_LANGCHAIN = ("AIMessage", "HumanMessage", "SystemMessage", "ToolMessage", "FunctionMessage", "ChatMessage")
_ROLES = {"ai": "assistant", "AIMessageChunk": "assistant", "human": "user", "function": "tool", "model": "assistant"}
_KNOWN = ("assistant", "user", "system", "developer", "tool")
_CALLED = ("function_call", "custom_tool_call", "mcp_call")
_OF_CALLS = ("_call", "_call_output")  # suffixes of the types of call items
_OTHER_ITEMS = ("reasoning", "compaction", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response")
_PROVIDER_RUN = ("web_search", "file_search", "code_interpreter", "computer", "image_generation")


# --- building a result ----------------------------------------------------------------------------------------------


@dataclass
class ResultBuilder:
    """Builds a `TaskResult` from messages. A call's result may come much later than the call."""

    answer: Any = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    usage: Usage = NO_USAGE
    metadata: dict[str, Any] = field(default_factory=dict)

    def add_call(self, name: Any, arguments: Any, id_: Any = None) -> None:
        """Add a tool call. Its result may follow under the same id."""
        made = {"name": str(name), "arguments": arguments_in(arguments), "id": None if id_ is None else str(id_)}
        unanswered = (call for call in self.calls if not call.get("answered"))
        if not made["id"] or made not in unanswered:  # some servers reuse ids in every turn
            self.calls.append(made)

    def add_result(self, result: Any, *, id_: Any = None, name: Any = None, error: Any = None) -> None:
        """Add the result of the call with this id, or else of the first unanswered call of this name."""
        wanted = ("id", str(id_)) if id_ is not None else ("name", name)
        for call in self.calls:
            if call[wanted[0]] == wanted[1] and not call.get("answered"):
                call["answered"] = True
                told = {"error": error, "status": "failed"} if error else {"result": as_json(result)}
                call |= {"status": "completed", **told}
                return

    def note(self, **facts: Any) -> None:
        """Add the facts that are not None to the metadata."""
        self.metadata |= {name: fact for name, fact in facts.items() if fact is not None}

    def result(self) -> TaskResult:
        """Return the collected result."""
        calls = [{name: value for name, value in call.items() if name != "answered"} for call in self.calls]
        return TaskResult(
            result=self.answer,
            tool_calls=tuple(ToolCall.model_validate(call) for call in calls),
            usage=self.usage,
            metadata=self.metadata,
        )


def usage_of_reply(usage: Any, format: Reply) -> Usage:
    """Return the usage in a provider's reply."""
    return _usage(reported_counts(usage, format) or {}, 1)


Names = Mapping[str, tuple[tuple[str, ...], ...]]
"""The places of each count in the usage object of an SDK, by the field of `Usage`."""

LANGCHAIN: Names = {
    "input": (("input_tokens",),),
    "output": (("output_tokens",),),
    "cache_read": (("input_token_details", "cache_read"),),
    "cache_write": (("input_token_details", "cache_creation"),),
    "reasoning": (("output_token_details", "reasoning"),),
}
PYDANTIC_AI: Names = {
    "input": (("input_tokens",),),
    "output": (("output_tokens",),),
    "cache_read": (("cache_read_tokens",),),
    "cache_write": (("cache_write_tokens",),),
    "reasoning": (("details", "reasoning_tokens"),),
}
OPENAI_AGENTS: Names = {
    "input": (("input_tokens",),),
    "output": (("output_tokens",),),
    "cache_read": (("input_tokens_details", "cached_tokens"),),
    "cache_write": (("input_tokens_details", "cache_write_tokens"),),
    "reasoning": (("output_tokens_details", "reasoning_tokens"),),
}
VERCEL: Names = {
    "input": (("inputTokens",), ("promptTokens",)),
    "output": (("outputTokens",), ("completionTokens",)),
    "cache_read": (("cachedInputTokens",), ("inputTokenDetails", "cacheReadTokens")),
    "cache_write": (("inputTokenDetails", "cacheWriteTokens"),),
    "reasoning": (("reasoningTokens",), ("outputTokenDetails", "reasoningTokens")),
}


def usage_of_sdk(data: Any, names: Names, requests: int = 1) -> Usage:
    """Return the usage in an SDK's usage object; NO_USAGE if it has no counts."""
    return _usage({ours: _count(data, places) for ours, places in names.items()}, requests)


def _count(data: Any, places: tuple[tuple[str, ...], ...]) -> int:
    found = (inside(as_dict(data), *place) for place in places)
    return next((count for count in found if type(count) is int and 0 < count < _MAX_TOKENS), 0)


def _usage(counts: Mapping[str, int], requests: int) -> Usage:
    usable = any(counts.values()) and all(count < _MAX_TOKENS for count in counts.values())
    return Usage(requests=requests, **counts) if usable else NO_USAGE


# --- conversations --------------------------------------------------------------------------------------------------


def is_message(value: Any) -> bool:
    """Return True for a message of a known SDK."""
    return (
        has_class(value, "langchain_core", *_LANGCHAIN)
        or has_class(value, "anthropic.types", "Message", "BetaMessage")
        or has_class(value, "openai.types.chat", "ChatCompletionMessage")
        or (isinstance(value, dict) and _role(value) in _KNOWN and ("content" in value or "tool_calls" in value))
    )


def is_conversation(value: Any) -> bool:
    """Return True for a list of messages with at least one model answer."""
    if not isinstance(value, list | tuple) or not value or not all(is_message(each) for each in value):
        return False
    return any(_role(plain_data(each)) == "assistant" for each in value)


def read_conversation(messages: Sequence[Any], builder: ResultBuilder) -> None:
    """Read a list of messages. The last model message is the answer; all usage is added up."""
    plain = [as_dict(plain_data(message)) for message in messages]
    for message in plain:
        read_message(message, builder)
    if any(_role(message) == "user" for message in plain):  # for scorers of conversations
        texts = [{"role": _role(message), "content": text_in(message.get("content")) or ""} for message in plain]
        builder.note(messages=texts)


def read_message(message: dict[str, Any], builder: ResultBuilder) -> None:
    """Add the text, tool calls and usage of one message."""
    role = _role(message)
    if role == "assistant":
        _read_answer(message, builder)
    elif role == "tool":
        failed = message.get("status") == "error"
        content = _content(message.get("content"))
        id_, name = message.get("tool_call_id"), message.get("name")
        builder.add_result(content, id_=id_, name=name, error=content if failed else None)
    # Anthropic puts tool results into the content of a user or model message.
    for block in dicts(message.get("content")):
        if str(block.get("type", "")).endswith("tool_result"):
            content = _content(block.get("content"))
            builder.add_result(content, id_=block.get("tool_use_id"), error=content if block.get("is_error") else None)


def _role(message: Any) -> str:
    said = message.get("role") or message.get("type") if isinstance(message, dict) else None
    return _ROLES.get(str(said), str(said))


def _read_answer(message: dict[str, Any], builder: ResultBuilder) -> None:
    builder.answer = first(message, "parsed") or text_in(message.get("content"))
    for call in dicts(message.get("tool_calls")):
        asked = as_dict(call.get("function") or call.get("custom") or call)  # OpenAI has one more layer than LangChain
        builder.add_call(asked.get("name"), first(asked, "arguments", "args", "input"), call.get("id"))
    for block in dicts(message.get("content")):
        if block.get("type") in ("tool_use", "server_tool_use", "mcp_tool_use"):
            builder.add_call(block.get("name"), block.get("input"), block.get("id"))
    usage, counts = message.get("usage"), message.get("usage_metadata")
    chat: Reply = "chat" if inside(usage, "prompt_tokens") else "anthropic"
    builder.usage += usage_of_sdk(counts, LANGCHAIN) if counts else usage_of_reply(usage, chat)
    facts = message.get("response_metadata")
    builder.note(
        model=message.get("model") or first(facts, "model_name", "model"),
        finish_reason=message.get("stop_reason") or first(facts, "finish_reason", "stop_reason"),
        refusal=message.get("refusal"),
    )


def _content(content: Any) -> Any:
    """Return the result of a tool, parsed if it is JSON."""
    text = text_in(content)
    return content if text is None else arguments_in(text) if text[:1] in ("{", "[") else text


# --- whole results --------------------------------------------------------------------------------------------------


def read_completion(data: dict[str, Any], builder: ResultBuilder) -> None:
    """Read an OpenAI chat completion. If it has several choices, use the first."""
    choice = next(dicts(data.get("choices")), {})
    read_message({"role": "assistant", **as_dict(choice.get("message"))}, builder)
    builder.usage = usage_of_reply(data.get("usage"), "chat")
    builder.note(model=data.get("model"), finish_reason=choice.get("finish_reason"))


def read_response(data: dict[str, Any], builder: ResultBuilder) -> None:
    """Read an OpenAI response, which consists of messages and calls."""
    texts: list[str] = []
    for item in dicts(data.get("output")):
        _read_item(item, builder, texts)
    builder.answer = "".join(texts) if texts else None
    builder.usage = usage_of_reply(data.get("usage"), "responses")
    builder.note(model=data.get("model"), finish_reason=data.get("status"))


def _read_item(item: dict[str, Any], builder: ResultBuilder, texts: list[str]) -> None:
    kind, id_ = str(item.get("type")), item.get("call_id") or item.get("id")
    if kind == "message":
        texts += [text for text in [text_in(item.get("content"))] if text is not None]
        builder.note(refusal=next((part["refusal"] for part in dicts(item.get("content")) if "refusal" in part), None))
    elif kind in _CALLED:
        builder.add_call(item.get("name"), first(item, "arguments", "input"), id_)
        if item.get("output") is not None or item.get("error"):
            builder.add_result(item.get("output"), id_=id_, error=item.get("error"))
    elif (tool := kind.removesuffix("_call")) in _PROVIDER_RUN and tool != kind:
        builder.add_call(tool, first(item, "action", "queries", "code") or {}, id_)
    elif kind.endswith("_call_output"):
        builder.add_result(_content(item.get("output")), id_=id_)


def is_items(value: Any) -> bool:
    """Return True for a list of items of OpenAI's responses, such as from `to_input_list()`."""
    if not isinstance(value, list | tuple) or not value or not all(isinstance(item, dict) for item in value):
        return False
    kinds = [str(item.get("type")) for item in value]
    known = (kind.endswith((*_OF_CALLS, *_OTHER_ITEMS)) for kind in kinds)
    if not all(is_message(item) or known_kind for item, known_kind in zip(value, known, strict=True)):
        return False
    by_model = any("assistant" in (_role(item), item.get("role")) for item in value)
    return any(kind.endswith(_OF_CALLS) for kind in kinds) and (by_model or any(k.endswith("_call") for k in kinds))


def read_items(items: Sequence[dict[str, Any]], builder: ResultBuilder) -> None:
    """Read a list of items. The text of the last model message is the answer."""
    for item in items:
        texts: list[str] = []
        if item.get("role", "assistant") == "assistant":
            _read_item({"type": "message", **plain_data(item)}, builder, texts)
        if texts:
            builder.answer = "".join(texts)


def is_agents_run(value: Any) -> bool:
    """Return True for a finished run of OpenAI's Agents SDK."""
    if not has_class(value, "agents", "RunResultBase"):
        return False
    fields = fields_of(value)
    return fields.keys() >= {"final_output", "new_items", "raw_responses"} and fields.get("is_complete", True) is True


def read_agents_run(value: Any, builder: ResultBuilder) -> None:
    """Read a run of OpenAI's Agents SDK: new items, final output, usage."""
    fields = fields_of(value)
    texts: list[str] = []
    for item in fields["new_items"]:
        _read_item(as_dict(plain_data(fields_of(item).get("raw_item"))), builder, texts)
    builder.answer = fields["final_output"] if fields["final_output"] is not None else texts[-1] if texts else None
    for response in fields["raw_responses"]:
        usage = as_dict(plain_data(fields_of(response).get("usage")))
        builder.usage += usage_of_sdk(usage, OPENAI_AGENTS, requests=usage.get("requests") or 1)


def read_google(data: dict[str, Any], builder: ResultBuilder) -> None:
    """Read Google's `GenerateContentResponse`, with calls made by its SDK."""
    candidate = next(dicts(data.get("candidates")), {})
    history = dicts(first(data, "automatic_function_calling_history", "automaticFunctionCallingHistory"))
    spoken = as_dict(candidate.get("content"))
    for content in [*history, spoken]:
        for part in dicts(content.get("parts")):
            if call := first(part, "function_call", "functionCall"):
                builder.add_call(inside(call, "name"), inside(call, "args") or {}, inside(call, "id"))
            if back := as_dict(first(part, "function_response", "functionResponse")):
                found = back.get("response")
                builder.add_result(found, id_=back.get("id"), name=back.get("name"), error=inside(found, "error"))
    builder.answer = first(data, "parsed") or text_in(spoken.get("parts"))
    counts = as_dict(first(data, "usage_metadata", "usageMetadata"))  # Python's SDK uses snake case
    camel_case = {re.sub(r"_([a-z])", lambda found: found[1].upper(), name): count for name, count in counts.items()}
    builder.usage = usage_of_reply(camel_case, "google")
    model, finish = first(data, "model_version", "modelVersion"), first(candidate, "finish_reason", "finishReason")
    builder.note(model=model, finish_reason=finish)


def is_vercel(data: dict[str, Any]) -> bool:
    """Return True for JSON of a `generateText`, `streamText` or `generateObject` result."""
    if not ({"text", "object", "steps", "output"} & data.keys()):
        return False
    steps, called = data.get("steps"), data.get("toolCalls")
    # Other data with steps, such as a recipe, has texts too.
    signs = {"toolCalls", "finishReason", "usage", "stepType"}
    has_steps = isinstance(steps, list) and bool(steps) and all(signs & as_dict(step).keys() for step in steps)
    has_calls = isinstance(called, list) and "text" in data and all(_call_name(call) for call in called)
    counted = any(usage_of_sdk(data.get(name), VERCEL).requests for name in ("usage", "totalUsage"))
    return has_steps or has_calls or (counted and "finishReason" in data)


def _call_name(call: Any) -> Any:
    return first(call, "toolName", "name") if isinstance(call, dict) else None


def read_vercel(data: dict[str, Any], builder: ResultBuilder) -> None:
    """Read a result of Vercel's AI SDK.

    Version 4 uses the keys `args` and `result`. Later versions use `input` and `output`, and may
    put everything into `content`.
    """
    steps = list(dicts(data.get("steps")))
    for step in steps or [data]:
        _read_step(step, builder)
    last = steps[-1] if steps else {}
    builder.answer = first(data, "object", "experimental_output", "text", "output")
    if builder.answer is None:
        builder.answer = first(last, "text") or text_in(last.get("content"))
    # Version 4 has the sum in `usage`. Without a sum, add up the steps.
    sums = (usage_of_sdk(data.get(name), VERCEL, requests=len(steps) or 1) for name in ("totalUsage", "usage"))
    of_steps = (usage_of_sdk(step.get("usage"), VERCEL) for step in steps)
    builder.usage = next((usage for usage in sums if usage.requests), None) or sum(of_steps, NO_USAGE)
    builder.note(model=inside(data, "response", "modelId"), finish_reason=data.get("finishReason"))


def _read_step(step: dict[str, Any], builder: ResultBuilder) -> None:
    content = list(dicts(step.get("content")))
    for call in [*dicts(step.get("toolCalls")), *(part for part in content if part.get("type") == "tool-call")]:
        builder.add_call(_call_name(call), first(call, "input", "args", "arguments"), first(call, "toolCallId", "id"))
    results = [part for part in content if part.get("type") in ("tool-result", "tool-error")]
    for back in [*dicts(step.get("toolResults")), *results]:
        id_, found = first(back, "toolCallId", "id"), first(back, "output", "result")
        builder.add_result(found, id_=id_, name=_call_name(back), error=back.get("error"))


def is_pydantic_ai(value: Any) -> bool:
    """Return True for a run result of pydantic-ai, checking the class, whose methods are called."""
    loaded = sys.modules.get("pydantic_ai.run")
    return loaded is not None and isinstance(value, loaded.AgentRunResult)


def read_pydantic_ai(value: Any, builder: ResultBuilder) -> None:
    """Read the new messages of a pydantic-ai agent run."""
    messages = [as_dict(plain_data(message)) for message in value.new_messages()]
    answers = [message for message in messages if message.get("kind") == "response"]
    for part in (part for message in messages for part in dicts(message.get("parts"))):
        kind, id_, content = str(part.get("part_kind")), part.get("tool_call_id"), part.get("content")
        if kind in ("tool-call", "builtin-tool-call"):
            builder.add_call(part.get("tool_name"), part.get("args") or {}, id_)
        elif kind in ("tool-return", "builtin-tool-return"):
            failed = part.get("outcome", "success") != "success"
            builder.add_result(content, id_=id_, error=content if failed else None)
        elif kind == "retry-prompt" and part.get("tool_name"):
            builder.add_result(None, id_=id_, error=content)
    output_tool = fields_of(value).get("_output_tool_name")
    # The call that returns the final answer is not a tool call.
    builder.calls = [call for call in builder.calls if call["name"] != output_tool]
    builder.answer = value.output
    for answer in answers:
        builder.usage += usage_of_sdk(answer.get("usage"), PYDANTIC_AI)
    builder.note(model=answers[-1].get("model_name") if answers else None)


def read_langgraph_state(data: dict[str, Any], builder: ResultBuilder) -> None:
    """Read the state of a LangGraph graph: its `messages` and other values."""
    read_conversation(data["messages"], builder)
    if data.get("structured_response") is not None:
        builder.answer = data["structured_response"]

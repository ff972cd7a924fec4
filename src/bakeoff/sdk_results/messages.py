"""Conversations: lists of messages as OpenAI, Anthropic and LangChain have them, as objects or as dicts."""

from collections.abc import Sequence
from typing import Any

from bakeoff.sdk_results.data import arguments_in, as_dict, data_of, dicts, first, inside, of_class, text_in
from bakeoff.sdk_results.gathered import ANTHROPIC, LANGCHAIN, OPENAI, Gathered, Names, usage_in

_LANGCHAIN = ("AIMessage", "HumanMessage", "SystemMessage", "ToolMessage", "FunctionMessage", "ChatMessage")
_ROLES = {"ai": "assistant", "AIMessageChunk": "assistant", "human": "user", "function": "tool", "model": "assistant"}
_KNOWN = ("assistant", "user", "system", "developer", "tool")


def is_message(value: Any) -> bool:
    return (
        of_class(value, "langchain_core", *_LANGCHAIN)
        or of_class(value, "anthropic.types", "Message", "BetaMessage")
        or of_class(value, "openai.types.chat", "ChatCompletionMessage")
        or (isinstance(value, dict) and _role(value) in _KNOWN and ("content" in value or "tool_calls" in value))
    )


def is_conversation(value: Any) -> bool:
    """Messages and nothing else, with an answer among them."""
    if not isinstance(value, list | tuple) or not value or not all(is_message(each) for each in value):
        return False
    return any(_role(data_of(each)) == "assistant" for each in value)


def read_conversation(messages: Sequence[Any]) -> Gathered:
    """The last thing that was said is the answer; calls and usage are those of all messages."""
    gathered = Gathered()
    for message in messages:
        read_message(as_dict(data_of(message)), gathered)
    return gathered


def read_message(message: dict[str, Any], gathered: Gathered) -> None:
    role = _role(message)
    if role == "assistant":
        _read_answer(message, gathered)
    elif role == "tool":
        failed = message.get("status") == "error"
        content = _content(message.get("content"))
        id_, name = message.get("tool_call_id"), message.get("name")
        gathered.returned(content, id_=id_, name=name, error=content if failed else None)
    for block in dicts(message.get("content")):
        _read_result(block, gathered)


def _role(message: Any) -> str:
    said = message.get("role") or message.get("type") if isinstance(message, dict) else None
    return _ROLES.get(str(said), str(said))


def _read_answer(message: dict[str, Any], gathered: Gathered) -> None:
    gathered.answer = first(message, "parsed") or text_in(message.get("content"))
    for call in dicts(message.get("tool_calls")):
        asked = as_dict(call.get("function") or call.get("custom") or call)  # OpenAI has one more layer than LangChain
        gathered.call(asked.get("name"), first(asked, "arguments", "args", "input"), call.get("id"))
    for block in dicts(message.get("content")):
        if block.get("type") in ("tool_use", "server_tool_use", "mcp_tool_use"):
            gathered.call(block.get("name"), block.get("input"), block.get("id"))
    gathered.usage += usage_in(*_usage(message))
    facts = message.get("response_metadata")
    gathered.note(
        model=message.get("model") or first(facts, "model_name", "model"),
        finish_reason=message.get("stop_reason") or first(facts, "finish_reason", "stop_reason"),
        refusal=message.get("refusal"),
    )


def _usage(message: dict[str, Any]) -> tuple[Any, Names]:
    if message.get("usage_metadata"):
        return message["usage_metadata"], LANGCHAIN
    counted = message.get("usage")
    return counted, OPENAI if inside(counted, "prompt_tokens") else ANTHROPIC


def _read_result(block: dict[str, Any], gathered: Gathered) -> None:
    """Anthropic puts what tools returned into the content of a user's message, or beside the call when it ran them."""
    if not str(block.get("type", "")).endswith("tool_result"):
        return
    content = _content(block.get("content"))
    gathered.returned(content, id_=block.get("tool_use_id"), error=content if block.get("is_error") else None)


def _content(content: Any) -> Any:
    """What a tool returned: its words as data where they are JSON, and otherwise what there is."""
    text = text_in(content)
    return content if text is None else arguments_in(text) if text[:1] in ("{", "[") else text

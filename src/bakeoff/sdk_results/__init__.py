"""Convert result objects of well-known SDKs to a `TaskResult`, without importing the SDKs.

Objects are recognised by the name and module of their class, dicts by their keys. Therefore, JSON
written by an SDK in any language is recognised too.
"""

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ValidationError

from bakeoff.errors import SubjectError
from bakeoff.record import Transcript
from bakeoff.sdk_results.plain_data import TaskResult, as_dict, has_class, is_a, plain_data
from bakeoff.sdk_results.readers import (
    ResultBuilder,
    is_agents_run,
    is_conversation,
    is_items,
    is_message,
    is_pydantic_ai,
    is_vercel,
    read_agents_run,
    read_completion,
    read_conversation,
    read_google,
    read_items,
    read_langgraph_state,
    read_pydantic_ai,
    read_response,
    read_vercel,
)
from bakeoff.sdk_results.unknown_parts import foreign_class, unknown_part

__all__ = ["foreign_class", "recognise", "unknown_part"]

_PLAIN = (str, bool, int, float, Decimal, date, time, timedelta, UUID, Enum, dict, list, tuple, BaseModel)


def recognise(value: Any) -> TaskResult | None:
    """Return the answer, tool calls and usage found in a value.

    Return None for unknown objects and for data with them, since the answer would be unclear.
    """
    if is_a(value, TaskResult):
        found: TaskResult = value
        return found
    builder = ResultBuilder()
    if is_pydantic_ai(value):
        read_pydantic_ai(value, builder)
    elif is_agents_run(value):
        read_agents_run(value, builder)
    elif is_items(value):
        read_items(value, builder)
    elif (reader := _reader(value)) is not None:
        reader(as_dict(plain_data(value)), builder)
    elif (messages := _messages(value)) is not None:
        read_conversation(messages, builder)
    elif isinstance(value, dict) and is_conversation(value.get("messages")):
        read_langgraph_state(value, builder)
    else:
        return _plain_result(value)
    return builder.result()


def _reader(value: Any) -> Callable[[dict[str, Any], ResultBuilder], None] | None:
    """Return the reader of a provider's reply, which is an SDK object or its JSON."""
    if isinstance(value, dict):
        if value.get("object") == "chat.completion" and "choices" in value:
            return read_completion
        if value.get("object") == "response" and "output" in value:
            return read_response
        if isinstance(value.get("candidates"), list) and value.keys() & {"usageMetadata", "usage_metadata"}:
            return read_google
        is_other = is_conversation(value.get("messages")) or _is_anthropic(value) or not is_vercel(value)
        return None if is_other else read_vercel
    if has_class(value, "openai.types.chat", "ChatCompletion", "ParsedChatCompletion"):
        return read_completion
    if has_class(value, "openai.types.responses", "Response", "ParsedResponse"):
        return read_response
    return read_google if has_class(value, "google.genai", "GenerateContentResponse") else None


def _is_anthropic(value: dict[str, Any]) -> bool:
    return value.get("type") == "message" and value.get("role") == "assistant" and "content" in value


def _messages(value: Any) -> Sequence[Any] | None:
    """Return the value as a list if it is one or more messages; otherwise None."""
    if isinstance(value, dict):
        return [value] if _is_anthropic(value) else None
    if is_message(value):
        return [value]
    return value if is_conversation(value) else None


def _plain_result(value: Any) -> TaskResult | None:
    """Return plain data as a `TaskResult`, by its fields or as the answer; None for objects."""
    if isinstance(value, dict) and "result" in value and value.keys() & {"tool_calls", "toolCalls"}:
        with suppress(ValidationError):
            return TaskResult.model_validate(value)
    plain = value is None or is_a(value, *_PLAIN) or dataclasses.is_dataclass(type(value))
    known = plain and foreign_class(value) is None and unknown_part(value) is None
    return TaskResult(result=value) if known else None


def transcript_of(answer: Any) -> Transcript:
    """Return a task's result as a transcript. Raise SubjectError if it cannot be scored."""
    if isinstance(answer, str):
        return Transcript(output=answer)
    if answer is None:
        raise SubjectError("the task returned None: return the output to score")
    if isinstance(answer, Transcript):
        return answer
    if inspect.isgenerator(answer):
        return Transcript(output=joined(list(answer)))
    result = recognise(answer)
    if result is None:
        raise SubjectError(_refusal(answer))
    return result.transcript()


def _refusal(answer: Any) -> str:
    """Describe the unknown part of an answer, its place, and how to fix it."""
    kind, part = foreign_class(answer), unknown_part(answer)
    what = f"an object of {kind.__module__}.{kind.__qualname__}" if kind else part.what if part else "something"
    place = part.place if part and not kind else ""
    held = "" if kind is type(answer) or (part and not part.place and not kind) else f"a {type(answer).__name__} with "
    return (
        f"the task returned {held}{what}, which is unknown{f' (at {place})' if place else ''}: return its "
        "text, data of your own (text, number, list, dict, dataclass, model), the result object of a known SDK, or "
        "`TaskResult(result=…)` with what is to be scored"
    )


def joined(pieces: Sequence[Any]) -> str:
    """Join texts that a generator has yielded."""
    for piece in pieces:
        if not isinstance(piece, str):
            kind = type(piece)
            raise SubjectError(
                f"the task yielded an object of {kind.__module__}.{kind.__qualname__}: "
                "yield texts, which are joined, or return the whole output"
            )
    return "".join(pieces)

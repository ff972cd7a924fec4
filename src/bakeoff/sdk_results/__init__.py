"""From the result objects of known SDKs to a `TaskResult`, without importing any of them.

Objects are told apart by the name and the module of their class, dicts by their shape, so the JSON that an SDK, or its
sister in another language, has written is recognised too.
"""

import dataclasses
from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ValidationError

from bakeoff.sdk_results.data import as_dict, data_of, is_a, of_class
from bakeoff.sdk_results.gathered import Gathered
from bakeoff.sdk_results.messages import is_conversation, is_message, read_conversation
from bakeoff.sdk_results.results import (
    is_pydantic_ai,
    is_state,
    is_vercel,
    read_completion,
    read_google,
    read_pydantic_ai,
    read_response,
    read_state,
    read_vercel,
)
from bakeoff.sdk_results.task_result import TaskResult

__all__ = ["recognise"]

_PLAIN = (str, bool, int, float, Decimal, date, time, timedelta, UUID, Enum, dict, list, tuple, BaseModel)
_Reader = Callable[[Any], Gathered]


def recognise(value: Any) -> TaskResult | None:
    """What the value says of an answer; None where it is an object that nobody knows."""
    if is_a(value, TaskResult):
        found: TaskResult = value
        return found
    if is_pydantic_ai(value):
        return read_pydantic_ai(value).result()
    reader = _of_dict(value) if isinstance(value, dict) else _of_object(value)
    if reader is not None:
        return reader(value).result()
    if isinstance(value, dict) and (made := _made_by_hand(value)):
        return made
    return TaskResult(result=value) if _is_plain(value) else None


def _is_plain(value: Any) -> bool:
    return value is None or is_a(value, *_PLAIN) or dataclasses.is_dataclass(type(value))


def _of_object(value: Any) -> _Reader | None:
    if of_class(value, "openai.types.chat", "ChatCompletion", "ParsedChatCompletion"):
        return lambda given: read_completion(as_dict(data_of(given)))
    if of_class(value, "openai.types.responses", "Response", "ParsedResponse"):
        return lambda given: read_response(as_dict(data_of(given)))
    if of_class(value, "google.genai", "GenerateContentResponse"):
        return lambda given: read_google(as_dict(data_of(given)))
    if is_message(value):
        return lambda given: read_conversation([given])
    return read_conversation if is_conversation(value) else None


def _of_dict(value: dict[str, Any]) -> _Reader | None:
    if value.get("object") == "chat.completion" and "choices" in value:
        return lambda given: read_completion(as_dict(data_of(given)))
    if value.get("object") == "response" and "output" in value:
        return lambda given: read_response(as_dict(data_of(given)))
    if value.get("type") == "message" and value.get("role") == "assistant" and "content" in value:
        return lambda given: read_conversation([given])
    if isinstance(value.get("candidates"), list) and value.keys() & {"usageMetadata", "usage_metadata"}:
        return lambda given: read_google(as_dict(data_of(given)))
    if is_state(value):
        return read_state
    return (lambda given: read_vercel(as_dict(data_of(given)))) if is_vercel(value) else None


def _made_by_hand(value: dict[str, Any]) -> TaskResult | None:
    """A dict in the shape of a `TaskResult`."""
    if "result" not in value or not value.keys() & {"tool_calls", "toolCalls"}:
        return None
    try:
        return TaskResult.model_validate(value)
    except ValidationError:
        return None

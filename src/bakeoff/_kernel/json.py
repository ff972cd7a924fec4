"""Any object of the user's as JSON. Their code may run while it is read, and whatever that raises is said instead."""

from math import isfinite
from typing import Any

from pydantic import BaseModel, JsonValue
from pydantic_core import PydanticSerializationError, SchemaSerializer, from_json, to_json, to_jsonable_python


def as_json(value: Any) -> JsonValue:
    """The value as JSON has it; for what JSON has no words for, its `repr`, or a word on why there is none."""
    if value is None or isinstance(value, str | bool):
        return str(value) if isinstance(value, str) else value
    if type(value) is int or (type(value) is float and isfinite(value)):
        return value
    try:
        found: JsonValue = from_json(_written(value))
    except PydanticSerializationError as error:  # this is what pydantic makes of all that is raised inside
        return _otherwise(value, str(error))
    except ValueError as error:
        return _unwritten(value, str(error))
    return found


def writable(text: str) -> str:
    """The text with halves of surrogate pairs, for which no format has bytes, as the escapes that they are."""
    return text.encode("utf-8", "backslashreplace").decode()


def _written(value: Any) -> bytes:
    if issubclass(
        type(value), BaseModel
    ):  # built by an SDK without validation, it may hold what its types do not allow
        serializer: SchemaSerializer = value.__pydantic_serializer__
        return serializer.to_json(value, fallback=_shown, warnings=False)
    return to_json(value, fallback=_shown, inf_nan_mode="strings", bytes_mode="base64")


def _otherwise(value: Any, reason: str) -> JsonValue:
    if "surrogates not allowed" not in reason:
        return _unwritten(value, reason)
    try:  # the journal knows what to do with these
        found: JsonValue = to_jsonable_python(value, fallback=_shown, inf_nan_mode="strings", bytes_mode="base64")
    except UnicodeEncodeError:  # in a key
        return _unwritten(value, reason)
    return found


def _unwritten(value: Any, reason: str) -> str:
    return f"<{type(value).__name__} that JSON cannot hold: {reason.splitlines()[0][:200]}>"


def _shown(value: Any) -> str:
    return repr(value)

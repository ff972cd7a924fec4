"""Convert any object to JSON data, and escape text that UTF-8 cannot encode."""

import json
from contextlib import suppress
from math import isfinite
from typing import Annotated, Any, TypeGuard

from pydantic import AfterValidator, BaseModel, JsonValue
from pydantic_core import SchemaSerializer, from_json, to_json, to_jsonable_python


def is_number(value: object) -> TypeGuard[float]:
    """Return True for a JSON number. Booleans are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def clean_text(text: str) -> str:
    """Return the text with lone surrogates, which UTF-8 cannot encode, written as escapes such as `\\ud83d`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def clean(value: Any) -> Any:
    """Return the value with every text in its dicts, lists and tuples cleaned by `clean_text`."""
    if isinstance(value, str):
        return clean_text(value)
    if type(value) is dict:
        return {clean(name): clean(item) for name, item in value.items()}
    if type(value) is list or type(value) is tuple:
        return type(value)(map(clean, value))
    return value


CleanText = Annotated[str, AfterValidator(clean_text)]
CleanJson = Annotated[JsonValue, AfterValidator(clean)]
CleanObject = Annotated[dict[str, JsonValue], AfterValidator(clean)]
"""The types of all texts and free data in plans, transcripts and records: cleaned, so that all can be written."""


_MAX_DEPTH = 200  # levels of nesting, the limit of pydantic


def parse_json(data: str | bytes) -> Any:
    """Parse JSON from an untrusted source. Raise ValueError if it is invalid or nested too deeply.

    Unlike pydantic's parser, this one accepts lone surrogates, which models emit.
    """
    try:
        value = json.loads(data)
    except RecursionError:
        raise ValueError(f"it is nested more than {_MAX_DEPTH} levels deep") from None
    brackets = ("[", "{") if isinstance(data, str) else (b"[", b"{")
    if sum(map(data.count, brackets)) > _MAX_DEPTH:  # type: ignore[arg-type]
        _refuse_deep(value)
    return value


def json_object(data: str | bytes) -> dict[str, Any] | None:
    """Return the JSON object that a program wrote, or None for any other output."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse_deep(value: Any) -> None:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            item
            for each in level
            if isinstance(each, dict | list)
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise ValueError(f"it is nested more than {_MAX_DEPTH} levels deep")


def as_json(value: Any) -> JsonValue:
    """Return the value as clean JSON data.

    Objects that JSON cannot represent become their `repr`. Reading the value may run user code; if
    that code raises, the result is a text with the reason.
    """
    if isinstance(value, str):
        return clean_text(str(value))
    if value is None or isinstance(value, bool) or type(value) is int or (type(value) is float and isfinite(value)):
        return value
    try:
        if issubclass(type(value), BaseModel):
            # An SDK may have built it without validation, with values that its types do not allow.
            serializer: SchemaSerializer = value.__pydantic_serializer__
            data = serializer.to_json(value, fallback=repr, warnings=False)
        else:
            data = to_json(value, fallback=repr, inf_nan_mode="strings", bytes_mode="base64")
        found: JsonValue = from_json(data)
        return found
    except ValueError as error:  # pydantic wraps every error that user code raises
        reason = str(error)
    if "surrogates not allowed" in reason:
        with suppress(UnicodeEncodeError):  # if keys of a custom mapping hold surrogates
            found = to_jsonable_python(clean(value), fallback=repr, inf_nan_mode="strings", bytes_mode="base64")
            cleaned: JsonValue = clean(found)
            return cleaned
    return f"<{type(value).__name__} that JSON cannot hold: {clean_text(reason).splitlines()[0][:200]}>"

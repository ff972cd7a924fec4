"""Convert SDK objects to plain data, reading only fields: properties and methods would run code."""

import base64
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, JsonValue, model_validator
from pydantic_core import from_json

from bakeoff._kernel.json import as_json
from bakeoff._kernel.model import FrozenModel
from bakeoff.record import NO_USAGE, Step, ToolCall, Transcript, Usage

_MAX_DEPTH = 40
_MAX_COUNT = 200_000  # values in one object


def has_class(value: Any, package: str, *names: str) -> bool:
    """Return True if the object's class, or a base class, has one of the names in the package."""
    return named_in(type(value).__mro__, package, *names)


def classes_of(value: Any) -> tuple[type, ...]:
    """Return the class of an object, or the object if it is a class, and all base classes."""
    return value.__mro__ if isinstance(value, type) else type(value).__mro__


def named_in(classes: tuple[type, ...], package: str, *names: str) -> bool:
    """Return True if one of the classes has one of these names and is in the package."""
    return any(
        base.__name__.partition("[")[0] in names and f"{base.__module__}.".startswith(f"{package}.") for base in classes
    )


def is_a(value: Any, *classes: type) -> bool:
    """Do the same as `isinstance`, but without running code of the object."""
    return issubclass(type(value), classes)


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a pydantic model or a dataclass."""
    if is_a(value, BaseModel):
        return {**_own(value, "__dict__"), **(_own(value, "__pydantic_extra__") or {})}
    if dataclasses.is_dataclass(type(value)):
        own = _own(value, "__dict__") or {}
        return {field.name: own[field.name] for field in dataclasses.fields(value) if field.name in own}
    return {}


def _own(value: Any, name: str) -> Any:
    try:
        return object.__getattribute__(value, name)
    except AttributeError:  # a class with slots, or an uninitialised model
        return None


def plain_data(value: Any) -> Any:
    """Convert models and dataclasses to dicts at every depth.

    Parts that are nested too deeply or exceed the limit become `…`.
    """
    left = count(_MAX_COUNT, -1)

    def data(value: Any, depth: int) -> Any:
        if isinstance(value, Enum):
            value = value.value
        exhausted = next(left) <= 0
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return str(value)
        if depth > _MAX_DEPTH or exhausted:
            return "…"
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        if isinstance(value, list | tuple):
            return [data(item, depth + 1) for item in value]
        fields = value if isinstance(value, dict) else fields_of(value)
        if fields or isinstance(value, dict):
            return {str(name): data(item, depth + 1) for name, item in fields.items()}
        return value.isoformat() if isinstance(value, date | datetime) else f"<{type(value).__name__}>"

    return data(value, 0)


def dicts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the dicts in a list; nothing if the value is not a list."""
    if isinstance(value, list | tuple):
        yield from (item for item in value if isinstance(item, dict))


def inside(value: Any, *names: str) -> Any:
    """Return the value at a path of keys; None if a key is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def as_dict(value: Any) -> dict[str, Any]:
    """Return the value if it is a dict, or else an empty dict."""
    return value if isinstance(value, dict) else {}


def first(value: Any, *names: str) -> Any:
    """Return the value of the first of these keys whose value is present and not None."""
    known = as_dict(value)
    return next((known[name] for name in names if known.get(name) is not None), None)


def arguments_in(given: Any) -> JsonValue:
    """Return a call's arguments as data. Most SDKs keep JSON text, which may be invalid."""
    if not isinstance(given, str):
        return plain_data(given)  # type: ignore[no-any-return]
    try:
        return from_json(given) if given else {}
    except ValueError:
        return given


def text_in(content: Any) -> str | None:
    """Return the text of a message's content without other parts; None if it has no text."""
    if isinstance(content, str):
        return content
    parts = [content] if isinstance(content, dict) else content if isinstance(content, list) else []
    spoken = [
        part.get("text") if isinstance(part, dict) else part
        for part in parts
        if not isinstance(part, dict)
        or (part.get("type", "text") in ("text", "output_text") and not part.get("thought"))
    ]
    texts = [text for text in spoken if isinstance(text, str)]
    return "".join(texts) if texts else None


_OPTIONAL = ("tool_calls", "usage", "metadata")


class TaskResult(FrozenModel):
    """An answer with tool calls and usage. `result` may be any object, kept as JSON."""

    result: Any = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = NO_USAGE
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            result: Any = None,
            tool_calls: Sequence[ToolCall | Mapping[str, Any]] | None = None,
            usage: Usage | None = None,
            metadata: Mapping[str, Any] | None = None,
        ) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _as_given(cls, data: Any) -> Any:
        """Accept JavaScript's `toolCalls`, None for missing measurements, and any metadata."""
        if not isinstance(data, dict):
            return data
        if "toolCalls" in data and "tool_calls" not in data:
            data = {("tool_calls" if name == "toolCalls" else name): value for name, value in data.items()}
        given = {name: value for name, value in data.items() if value is not None or name not in _OPTIONAL}
        return {**given, "metadata": as_json(given["metadata"])} if "metadata" in given else given

    def transcript(self) -> Transcript:
        """Return the result as a transcript of a trial."""
        return Transcript(
            output=as_json(self.result),
            steps=(Step(parts=self.tool_calls),) if self.tool_calls else (),
            usage=self.usage,
            metadata=self.metadata,
        )

"""Known secret values never reach the disk: every byte of a run folder passes through a `Redactor` first."""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeVar, get_origin
from urllib.parse import quote, quote_plus

from pydantic import BaseModel, JsonValue
from pydantic_core import PydanticSerializationError

SHORTEST = 8
"""Shorter values are left alone: blanking every "test" or "1234" would destroy results and protect nothing."""

_SECRET_NAME = re.compile(r"(api_?key|token|secret|password|passwd|credential|private_?key)", re.IGNORECASE)
_JSON_DEPTH = 3  # JSON inside JSON inside JSON: a tool result, in a transcript, in a journal
_LONGEST_NUMBER = 1000  # bits; Python refuses to write out really long ones

Model = TypeVar("Model", bound=BaseModel)


def secrets_in(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables whose names say that their values are secret."""
    return {name: value for name, value in environment.items() if value and _SECRET_NAME.search(name)}


class Redactor:
    """Replaces secret values by their names: as they are, JSON-escaped, URL-encoded, in base64 or in hex."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        names = {form: name for name, value in secrets.items() if len(value) >= SHORTEST for form in _forms(value)}
        # The longest first, so that an escaped form is never cut in the middle by the plain one.
        self._forms = sorted(names, key=len, reverse=True)
        self._names = names
        self._labels = {form: f"[redacted {_label(name)}]".encode() for form, name in names.items()}
        self._pattern = re.compile(b"|".join(map(re.escape, self._forms)))

    def finds(self, data: bytes) -> bool:
        """Whether there is anything to replace. Plain substring search is many times faster than the pattern."""
        return any(form in data for form in self._forms)

    def __call__(self, data: bytes) -> bytes:
        if not self.finds(data):
            return data
        return self._pattern.sub(lambda match: self._labels[match.group()], data)

    def text(self, text: str) -> str:
        return self(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def names_in(self, model: BaseModel) -> list[str]:
        """Which secrets the data holds."""
        if not self._may_hold(model):
            return []
        found: set[str] = set()

        def look(text: str) -> str:
            data = text.encode("utf-8", "surrogatepass")
            found.update(self._names[form] for form in self._forms if form in data)
            return text

        with_texts(model, look)
        return sorted(found)

    def _may_hold(self, model: BaseModel) -> bool:
        """A quick look at the whole: it may see a secret where there is none, never the reverse."""
        try:
            return bool(self._forms) and self.finds(model.model_dump_json().encode())
        except PydanticSerializationError:  # lone surrogates
            return True

    def model(self, model: Model) -> Model:
        """The same data without secrets. JSON is never redacted as text: in `\\nkey` the `n` belongs to the escape."""
        return with_texts(model, self.text)


def with_texts(model: Model, change: Callable[[str], str]) -> Model:
    """The same data with every text in it changed, keys of free data too; what only the code may say stays."""
    fields = {name: getattr(model, name) for name in type(model).model_fields}
    return model.model_copy(update={name: _changed(type(model), name, value, change) for name, value in fields.items()})


def _changed(model: type[BaseModel], name: str, value: Any, change: Callable[[str], str]) -> Any:
    annotation = model.model_fields[name].annotation
    if get_origin(annotation) is Literal or (isinstance(value, int | float) and annotation != JsonValue):
        return value
    return _change(value, change)


def _change(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, BaseModel):
        return with_texts(value, change)
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _change(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_change(item, change) for item in value)
    if isinstance(value, float) or (type(value) is int and value.bit_length() < _LONGEST_NUMBER):
        number = str(value)  # in free data: some secrets are numbers
        return value if (changed := change(number)) == number else changed
    return value


def _label(name: str) -> str:
    """Only what can stand inside a JSON string unescaped."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)


def _forms(value: str) -> Iterator[bytes]:
    raw = value.encode("utf-8", "surrogatepass")
    for text in {value, quote(value, safe=""), quote(value), quote_plus(value)}:
        yield from _escaped(text)
    for text in {quote(value, safe=""), quote_plus(value)}:
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match.group().lower(), text).encode()
    yield from (raw.hex().encode(), raw.hex().upper().encode())
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield from _in_base64(raw, encode)


def _escaped(text: str) -> Iterator[bytes]:
    """The text at each depth of JSON-in-JSON, with and without `\\uXXXX` for what is not ASCII."""
    levels = {text}
    for _ in range(_JSON_DEPTH + 1):
        yield from (level.encode("utf-8", "surrogatepass") for level in levels)
        levels = {json.dumps(level, ensure_ascii=ascii)[1:-1] for level in levels for ascii in (True, False)}


def _in_base64(raw: bytes, encode: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """The whole value, and the part that does not depend on its neighbours at each of the three alignments."""
    yield encode(raw)
    yield encode(raw).rstrip(b"=")
    for shift in range(3):
        encoded = encode(b"\0" * shift + raw).rstrip(b"=")
        first = (shift * 8 + 5) // 6
        last = (shift + len(raw)) * 8 // 6
        yield encoded[first:last]

"""Keep secret values off the disk: everything that is written to a run folder passes through a `Redactor`."""

import base64
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar, get_origin
from urllib.parse import quote, quote_plus

from pydantic import BaseModel, JsonValue
from pydantic_core import PydanticSerializationError

SHORTEST = 8
"""The length of the shortest secret. Redacting every "test" or "1234" would destroy results and protect nothing."""

CUT = "…"
"""Marks where a text was shortened. The rest of a secret may stand beside it."""

_SECRET_NAME = re.compile(
    r"apikey|privatekey|token|secret|password|passwd|passphrase|credential"
    r"|(^|[_.-])(keys?|pat|pass|auth)([_.-]|\d*$)|_pwd$",  # whole words: PATH and KEYBOARD_LAYOUT are not secret
    re.IGNORECASE,
)
_CUT_MARKS = (CUT.encode(), b"...")
# Line ends, plain or escaped, with the indentation of the next line.
_BREAK = re.compile(rb"(?:(?:[\r\n]|\\+[rn])[ \t]*)+")
_BREAK_SIGNS = (b"\n", b"\\n", b"\r", b"\\r")
_JSON_DEPTH = 3  # such as a tool result in a transcript in a journal
_LONGEST_NUMBER = 1000  # bits: Python refuses to format very long numbers

Model = TypeVar("Model", bound=BaseModel)


def secrets_in(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables whose names say that their values are secret."""
    return {name: value for name, value in environment.items() if value and _SECRET_NAME.search(name)}


_SECRET_FIELD = re.compile(
    r"(?:proxy-)?authorization(?:_token)?|(?:x-)?api[_-]?key|(?:access|auth|refresh|bearer|api)[_-]?token|client[_-]?secret|password",
    re.IGNORECASE,
)  # narrower than names of variables: another `key` or `token` in a question may mean another question
_SCHEME = re.compile(r"^(?:bearer|basic|token) +", re.IGNORECASE)  # a password itself may hold blanks


def secrets_within(data: Any, place: str = "") -> dict[str, str]:
    """Return the texts in JSON data whose field names say that they are secret, by their paths."""
    if isinstance(data, dict):
        found: dict[str, str] = {}
        for name, item in data.items():
            if isinstance(item, str) and _SECRET_FIELD.fullmatch(str(name)):
                found[f"{place}{name}"] = _SCHEME.sub("", item)
            else:
                found |= secrets_within(item, f"{place}{name}.")
        return found
    if isinstance(data, list):
        return {k: v for at, item in enumerate(data) for k, v in secrets_within(item, f"{place}{at}.").items()}
    return {}


@dataclass(frozen=True, slots=True)
class _Found:
    """The place of a secret, or of a part of one."""

    start: int
    end: int
    name: str


class Redactor:
    """Replace secret values by their names: plain, JSON-escaped, URL-encoded, in base64 and in hex.

    Base64 and hex are found across line breaks too. With `cut`, for texts that may have been shortened, the rest of a
    secret at the edge of a text or beside a `CUT` mark is replaced as well.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        known = {name: value for name, value in secrets.items() if len(value) >= SHORTEST}
        encoded = {form: name for name, value in known.items() for form in _encoded(value)}
        self._encoded = encoded
        self._forms = encoded | {form: name for name, value in known.items() for form in _spelled(value)}
        self._edges = _edges(self._forms)
        self._encoded_edges = _edges(encoded)

    def finds(self, data: bytes) -> bool:
        """Return True if the data may hold a secret. Fast, and never wrong if it returns False.

        The data may be JSON: every replaceable string contains the first or the last bytes of a secret.
        """
        if any(edge in data for edge in self._edges):
            return True
        if not self._encoded_edges or not _has_breaks(data):
            return False
        unbroken = _BREAK.sub(b"", data)
        return any(edge in unbroken for edge in self._encoded_edges)

    def __call__(self, data: bytes, *, cut: bool = False) -> bytes:
        """Return the data without secrets."""
        if not self.finds(data):
            return data
        return _replaced(data, _apart(self._found(data, cut=cut)))

    def text(self, text: str, *, cut: bool = False) -> str:
        """Return the text without secrets."""
        return self(text.encode("utf-8", "surrogatepass"), cut=cut).decode("utf-8", "surrogatepass")

    def names_in(self, model: BaseModel) -> list[str]:
        """Return the names of the secrets in the data."""
        if not self._may_hold(model):
            return []
        found: set[str] = set()

        def look(text: str) -> str:
            found.update(each.name for each in self._found(text.encode("utf-8", "surrogatepass"), cut=False))
            return text

        with_texts(model, look)
        return sorted(found)

    def _may_hold(self, model: BaseModel) -> bool:
        """Return True if the data may hold a secret, like `finds`."""
        try:
            return bool(self._forms) and self.finds(model.model_dump_json().encode())
        except PydanticSerializationError:  # lone surrogates
            return True

    def model(self, model: Model, *, cut: bool = False) -> Model:
        """Return the data without secrets. Redacting its JSON is wrong: in `\\nkey` the `n` belongs to the escape."""
        return with_texts(model, partial(self.text, cut=cut))

    def _found(self, data: bytes, *, cut: bool) -> Iterator[_Found]:
        yield from _found_in(data, self._forms, cut=cut)
        if _has_breaks(data):
            unbroken, original = _without_breaks(data)
            for found in _found_in(unbroken, self._encoded, cut=cut):
                yield _Found(original(found.start), original(found.end - 1) + 1, found.name)


def _edges(forms: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple({edge for form in forms for edge in (form[:SHORTEST], form[-SHORTEST:])})


def _found_in(data: bytes, forms: Mapping[bytes, str], *, cut: bool) -> Iterator[_Found]:
    for form, name in forms.items():
        yield from (_Found(at, at + len(form), name) for at in _places(form, data))
        if cut:
            yield from _rests(data, form, name)


def _places(form: bytes, data: bytes) -> Iterator[int]:
    at = data.find(form)
    while at >= 0:
        yield at
        at = data.find(form, at + len(form))


def _rests(data: bytes, form: bytes, name: str) -> Iterator[_Found]:
    """Yield the parts of a form whose other end was cut off."""
    for at in _places(form[:SHORTEST], data):
        marks = (data.find(mark, at + SHORTEST, at + len(form) + len(mark)) for mark in _CUT_MARKS)
        end = min((mark for mark in marks if mark >= 0), default=len(data))
        if end - at < len(form) and form.startswith(data[at:end]):
            yield _Found(at, end, name)
    for at in _places(form[-SHORTEST:], data):
        end = at + SHORTEST
        found = ((data.rfind(mark, max(0, end - len(form) - len(mark)), at), mark) for mark in _CUT_MARKS)
        start = max((place + len(mark) for place, mark in found if place >= 0), default=0)
        if end - start < len(form) and form.endswith(data[start:end]):
            yield _Found(start, end, name)


def _has_breaks(data: bytes) -> bool:
    return any(sign in data for sign in _BREAK_SIGNS)


def _without_breaks(data: bytes) -> tuple[bytes, Callable[[int], int]]:
    """Return the data as one line, and a function from a place in it to the place in the original."""
    kept: list[int] = []  # bytes of the one line before each break
    removed = [0]
    for match in _BREAK.finditer(data):
        kept.append(match.start() - removed[-1])
        removed.append(removed[-1] + len(match.group()))
    return _BREAK.sub(b"", data), lambda place: place + removed[bisect_right(kept, place)]


def _apart(found: Iterable[_Found]) -> Iterator[_Found]:
    """Yield the places in order. Overlapping ones become one, with the name of the longest."""
    whole: _Found | None = None
    longest = 0
    for each in sorted(found, key=lambda found: (found.start, -found.end)):
        length = each.end - each.start
        if whole is None or each.start >= whole.end:
            if whole is not None:
                yield whole
            whole, longest = each, length
        else:
            name = each.name if length > longest else whole.name
            whole, longest = _Found(whole.start, max(whole.end, each.end), name), max(length, longest)
    if whole is not None:
        yield whole


def _replaced(data: bytes, found: Iterable[_Found]) -> bytes:
    pieces: list[bytes] = []
    end = 0
    for each in found:
        pieces += (data[end : each.start], f"[redacted {_label(each.name)}]".encode())
        end = each.end
    return b"".join((*pieces, data[end:])) if pieces else data


def with_texts(model: Model, change: Callable[[str], str]) -> Model:
    """Return the model with every text changed, keys of free data included. Fields with literal types stay."""
    fields = type(model).model_fields.items()
    return model.model_copy(
        update={name: _change(getattr(model, name), change, info.annotation) for name, info in fields}
    )


def _change(value: Any, change: Callable[[str], str], annotation: Any = JsonValue) -> Any:
    if get_origin(annotation) is Literal or (isinstance(value, int | float) and annotation != JsonValue):
        return value
    if isinstance(value, BaseModel):
        return with_texts(value, change)
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _change(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_change(item, change) for item in value)
    if isinstance(value, float) or (type(value) is int and value.bit_length() < _LONGEST_NUMBER):
        number = str(value)  # some secrets in free data are numbers
        return value if (changed := change(number)) == number else changed
    return value


def _label(name: str) -> str:
    """Return the name with only those characters that need no escape in JSON."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)


def _spelled(value: str) -> Iterator[bytes]:
    """Yield the value plain, URL-encoded and JSON-escaped."""
    for text in {value, quote(value, safe=""), quote(value), quote_plus(value)}:
        yield from _escaped(text)
    for text in {quote(value, safe=""), quote_plus(value)}:
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match.group().lower(), text).encode()


def _encoded(value: str) -> Iterator[bytes]:
    """Yield the value in hex and base64, which programs may break into lines anywhere."""
    raw = value.encode("utf-8", "surrogatepass")
    yield from (raw.hex().encode(), raw.hex().upper().encode())
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield from _in_base64(raw, encode)


def _escaped(text: str) -> Iterator[bytes]:
    """Yield the text at each depth of JSON in JSON, with and without `\\uXXXX` for characters outside ASCII."""
    levels = {text}
    for _ in range(_JSON_DEPTH + 1):
        yield from (level.encode("utf-8", "surrogatepass") for level in levels)
        levels = {json.dumps(level, ensure_ascii=ascii)[1:-1] for level in levels for ascii in (True, False)}


def _in_base64(raw: bytes, encode: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Yield the whole value, and at each of the three alignments the part that does not depend on its neighbours."""
    yield encode(raw)
    yield encode(raw).rstrip(b"=")
    for shift in range(3):
        encoded = encode(b"\0" * shift + raw).rstrip(b"=")
        first = (shift * 8 + 5) // 6
        last = (shift + len(raw)) * 8 // 6
        yield encoded[first:last]

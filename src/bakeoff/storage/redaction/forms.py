"""Spell a secret in all forms that are recognised.

Data is searched in *folded* form: only ASCII letters and digits, in lower case. So one form covers
all spellings that differ in case, separators, line breaks, or invisible characters.
"""

import base64
import html
import json
import re
import string
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, quote_plus

SHORTEST = 8
"""The length of the shortest secret. Redacting every "test" or "1234" would destroy results and protect nothing."""

KEPT = (string.ascii_letters + string.digits).encode()
_DROPPED = bytes(set(range(256)) - set(KEPT))
_LOWER = bytes(range(256)).lower()
_JSON_DEPTH = 3  # levels, such as a tool result in a transcript in a journal
_DIGITS = 2 * SHORTEST  # shorter numbers with separators are common in tables
_MAX_ENCODED = 65_536  # longest value, in bytes, that is also encoded
_NUMBERS = (
    "{:02x}",  # hexadecimal, also as `73 6b`, `73:6b` and `%73%6B`
    "x{:02x}",  # `\x73` and `&#x73;`
    "0x{:02x}",  # `0x73, 0x6b`, as in hexdumps
    "{:03o}",  # octal, as `\163\153`
    "u{:04x}",  # `\u0073`
    "{:d}",  # `115, 107` and `&#115;&#107;`
)
"""The ways in which texts spell single bytes. Separators between the bytes are not part of folded data."""


class Form(NamedTuple):
    """One spelling of a secret.

    Attributes:
        needle: The bytes to search for, in folded data if `folded`, or else in the original data.
        before: The bytes before `inner`, which are not in folded data.
        inner: The spelling from its first to its last letter or digit.
        after: The bytes after `inner`.
        words: Whether the secret has only letters, so that ordinary words may match it.
    """

    needle: bytes
    folded: bool
    before: bytes = b""
    inner: bytes = b""
    after: bytes = b""
    words: bool = False

    def around(self, data: bytes, start: int, end: int) -> tuple[int, int]:
        """Return the start and end of the whole spelling, given those of its `inner` part."""
        first = start - len(self.before) if data.endswith(self.before, 0, start) else start
        return first, end + len(self.after) if data.startswith(self.after, end) else end


def fold(data: bytes) -> bytes:
    """Return the ASCII letters and digits of the data in lower case."""
    return data.translate(_LOWER, _DROPPED)


@lru_cache(maxsize=1024)
def forms_of(value: str) -> tuple[Form, ...]:
    """Return all forms of a secret. Different forms may have the same needle."""
    words = value.isascii() and not any(map(str.isdigit, value))
    spelled = set(_spelled(value))
    encoded = set(_encoded(_bytes(value))) - spelled if len(value) <= _MAX_ENCODED else set()
    found = [*(_form(spelling, words=words) for spelling in sorted(spelled)), *map(_form, sorted(encoded))]
    return tuple(form for form in found if len(form.needle) >= SHORTEST)


def _form(spelling: bytes, *, words: bool = False) -> Form:
    needle = fold(spelling)
    if len(needle) < SHORTEST or (needle.isdigit() and len(needle) < _DIGITS):
        return Form(spelling, folded=False)
    inner = spelling.strip(_DROPPED)
    start = spelling.index(inner)
    return Form(needle, True, spelling[:start], inner, spelling[start + len(inner) :], words)


def _spelled(value: str) -> Iterator[bytes]:
    """Yield the value plain and as written in other formats: JSON, `repr`, URLs, HTML."""
    levels = {value, quote(value, safe=""), quote(value), quote_plus(value)}
    for _ in range(_JSON_DEPTH + 1):  # JSON in JSON, with and without `\\uXXXX`
        yield from map(_bytes, levels)
        levels = {json.dumps(level, ensure_ascii=ascii)[1:-1] for level in levels for ascii in (True, False)}
    for text in {quote(value, safe=""), quote_plus(value)}:
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match.group().lower(), text).encode()
    marked = html.escape(value)
    others = (marked.replace("&#x27;", "&#39;"), marked.replace("&quot;", "&#34;"), html.escape(value, quote=False))
    yield from map(_bytes, (marked, *others, repr(value)[1:-1], ascii(value)[1:-1]))


def _encoded(raw: bytes) -> Iterator[bytes]:
    """Yield the value with encoded bytes, and in base64 at every alignment."""
    for written in _NUMBERS:
        yield "".join(map(written.format, raw)).encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(raw)
        for shift in range(3):
            encoded = encode(bytes(shift) + raw).rstrip(b"=")
            yield encoded[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")

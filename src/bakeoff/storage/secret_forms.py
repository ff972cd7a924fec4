"""Spell a secret in every form in which it is recognised.

Data is searched in its *folded* form: ASCII letters and digits alone, in lower case. Case, separators, line breaks,
invisible characters and the NULs of UTF-16 are not in it, so that one form stands for all of these spellings.
"""

import base64
import codecs
import html
import json
import quopri
import re
import string
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, quote_plus

SHORTEST = 8
"""The length of the shortest secret. Redacting every "test" or "1234" would destroy results and protect nothing."""

_KEPT = (string.ascii_letters + string.digits).encode()
_DROPPED = bytes(set(range(256)) - set(_KEPT))
_LOWER = bytes(range(256)).lower()
_JSON_DEPTH = 3  # such as a tool result in a transcript in a journal
_DIGITS = 2 * SHORTEST  # shorter numbers with separators stand in every table of numbers
_LONGEST = 65_536  # bytes of a value that are spelled in all forms


class Form(NamedTuple):
    """One spelling of a secret.

    Attributes:
        needle: What is searched for: in folded data if `folded`, otherwise in the data as it is.
        before: Bytes that stand before `inner` in this spelling and are not in folded data.
        inner: The spelling from its first to its last letter or digit.
        after: Bytes that stand after it.
        words: The secret consists of letters alone, so that ordinary words may say the same with blanks between them.
    """

    needle: bytes
    folded: bool
    before: bytes = b""
    inner: bytes = b""
    after: bytes = b""
    words: bool = False

    def around(self, data: bytes, start: int, end: int) -> tuple[int, int]:
        """Return the place of the whole spelling if `inner` stands between `start` and `end`."""
        first = start - len(self.before) if data.endswith(self.before, 0, start) else start
        return first, end + len(self.after) if data.startswith(self.after, end) else end


def fold(data: bytes) -> bytes:
    """Return the ASCII letters and digits of the data, in lower case."""
    return data.translate(_LOWER, _DROPPED)


def is_dropped(byte: int) -> bool:
    """Tell whether folded data is without this byte."""
    return byte in _DROPPED


@lru_cache(maxsize=1024)
def forms_of(value: str) -> tuple[Form, ...]:
    """Return all forms of a secret. Some have the same needle."""
    words = value.isascii() and not any(map(str.isdigit, value))
    spelled = set(_spelled(value))
    encoded = set(_encoded(value)) - spelled if len(value) <= _LONGEST else set()
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
    """Yield the value plain and as texts of other formats write it: JSON, URLs, HTML, quoted-printable."""
    raw = _bytes(value)
    for text in {value, quote(value, safe=""), quote(value), quote_plus(value)}:
        yield from _escaped(text)
    for text in {quote(value, safe=""), quote_plus(value)}:
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match.group().lower(), text).encode()
    marked = html.escape(value)
    for text in {
        marked,
        marked.replace("&#x27;", "&#39;"),
        marked.replace("&quot;", "&#34;"),
        html.escape(value, quote=False),
    }:
        yield _bytes(text)
    yield quopri.encodestring(raw, quotetabs=True)


def _escaped(text: str) -> Iterator[bytes]:
    """Yield the text at each depth of JSON in JSON, with and without `\\uXXXX` for characters outside ASCII."""
    levels = {text}
    for _ in range(_JSON_DEPTH + 1):
        yield from map(_bytes, levels)
        levels = {json.dumps(level, ensure_ascii=ascii)[1:-1] for level in levels for ascii in (True, False)}


def _encoded(value: str) -> Iterator[bytes]:
    """Yield the value backwards, in rot13, byte by byte as numbers, and in the usual encodings of bytes as text."""
    raw = _bytes(value)
    yield from (_bytes(value[::-1]), _bytes(codecs.encode(value, "rot13")))
    wide = [value.encode(encoding, "surrogatepass") for encoding in ("utf-16-le", "utf-16-be")]
    yield from _numbered(raw)
    yield from (data.hex().encode() for data in wide)
    for data in (raw, *wide):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield from _aligned(data, encode, bits=6, group=3)
    yield from _aligned(raw, base64.b32encode, bits=5, group=5)
    yield from _in_base85(raw, base64.b85encode)
    yield from _in_base85(raw, base64.a85encode)


_NUMBERS = tuple(
    tuple(map(written.format, range(256)))
    for written in (
        "{:02x}",  # also `73 6b`, `73:6b`, `%73%6B` and `=73=6B`
        "0x{:02x}",
        "x{:02x}",  # `\x73` and `&#x73;`
        "{:d}",  # `115, 107` and `&#115;&#107;`
        "{:03d}",
        "{:o}",
        "{:03o}",  # `\163\153`
        "0o{:o}",
        "{:b}",
        "0b{:b}",
        "{:08b}",
        "u{:04x}",  # `\u0073` and `U+0073`
        "x{:04x}",
        "u{:x}",  # `\u{73}`
        "u{:08x}",
    )
)


def _numbered(raw: bytes) -> Iterator[bytes]:
    """Yield the bytes as numbers. What stands between them is not in folded data."""
    for written in _NUMBERS:
        yield "".join([written[byte] for byte in raw]).encode()


def _aligned(raw: bytes, encode: Callable[[bytes], bytes], *, bits: int, group: int) -> Iterator[bytes]:
    """Yield the whole value, and at each alignment the part that does not depend on its neighbours."""
    yield encode(raw)
    yield encode(raw).rstrip(b"=")
    for shift in range(group):
        encoded = encode(b"\0" * shift + raw).rstrip(b"=")
        first = -(-shift * 8 // bits)
        last = (shift + len(raw)) * 8 // bits
        yield encoded[first:last]


def _in_base85(raw: bytes, encode: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Yield the whole value, and at each alignment its whole groups of four bytes."""
    yield encode(raw)
    for skipped in range(4):
        whole = raw[skipped:]
        yield encode(whole[: len(whole) // 4 * 4])


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def edges(needles: Iterable[bytes]) -> frozenset[bytes]:
    """Return the first and the last bytes of each needle: one of them is in whatever a cut left of it."""
    return frozenset(edge for needle in needles for edge in (needle[:SHORTEST], needle[-SHORTEST:]))

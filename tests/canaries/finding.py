"""Find encoded keys in what was written, printed and served. Uses nothing of the code that it checks."""

import base64
import gzip
import html
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

_WINDOW = 8  # bytes that are looked up at every place
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(64 - 20)
_CHUNK = re.compile(rb'<script type="application/gzip" data-chunk="[^"]*">([^<]*)</script>')
_ESCAPE = re.compile(rb'\\(?:(["\\/bfnrt\'])|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))')
_LETTERS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_DEPTH = 4  # such as a repr in a tool result in a transcript in a journal


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A key that is readable in an output."""

    source: str
    door: str
    place: str
    encoding: str


class Finder:
    """Look for many needles at once: those whose first bytes stand at a place are compared there."""

    def __init__(self, needles: Mapping[bytes, tuple[str, str]]) -> None:
        """Take needles, each with the source and the encoding that it is of."""
        self.needles = dict(needles)
        self._starting: dict[bytes, list[bytes]] = {}
        for needle in needles:
            self._starting.setdefault(needle[:_WINDOW], []).append(needle)
        self._table = np.zeros(1 << 20, np.bool_)
        self._table[_slots(np.frombuffer(b"".join(self._starting), "<u8"))] = True

    def found_in(self, data: bytes) -> set[tuple[str, str]]:
        """Return the source and the encoding of each needle that the data holds, also escaped or packed."""
        views = {view for part in _parts(data) for view in _views(part)}
        return {self.needles[needle] for view in views for needle in self._in_view(view)}

    def _in_view(self, data: bytes) -> Iterator[bytes]:
        if len(data) < _WINDOW:
            return
        codes: Any = np.ndarray(len(data) - _WINDOW + 1, "<u8", data, 0, (1,))
        for at in np.flatnonzero(self._table[_slots(codes)]).tolist():
            for needle in self._starting.get(data[at : at + _WINDOW], ()):
                if data.startswith(needle, at):
                    yield needle


def _slots(codes: Any) -> Any:
    return ((codes * _FACTOR) >> _SHIFT).view(np.int64)


def _parts(data: bytes) -> Iterator[bytes]:
    """Yield the data, and what is packed in it: chunks of pages, archives, gzip, columns of Parquet."""
    yield data
    for packed in _CHUNK.findall(data):
        yield gzip.decompress(base64.b64decode(packed))
    if data.startswith(b"\x1f\x8b"):
        yield zlib.decompress(data, 47)
    if data.startswith(b"PK\3\4"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from map(archive.read, archive.namelist())
    if data.startswith(b"PAR1"):
        from pyarrow import parquet

        yield str(parquet.read_table(io.BytesIO(data)).to_pylist()).encode()


def _views(data: bytes) -> Iterator[bytes]:
    """Yield the data, and what is left of it after removing each level of escapes, and those of HTML."""
    yield data
    yield html.unescape(data.decode("utf-8", "replace")).encode()
    for _ in range(_DEPTH):
        if b"\\" not in data:
            return
        yield (data := _ESCAPE.sub(_unescaped, data))


def _unescaped(match: "re.Match[bytes]") -> bytes:
    letter, wide, narrow = match.groups()
    if letter:
        return _LETTERS.get(letter, letter)
    return chr(int(wide or narrow, 16)).encode("utf-8", "surrogatepass")

"""Search data for many needles at once, in time that does not depend on how many there are."""

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from typing import Any

from bakeoff.storage.secret_forms import SHORTEST, fold, is_dropped

# What programs put between the characters of a text, although no reader sees it: escapes of control characters,
# colours, and the mark that pytest puts before the lines of an error.
_ESCAPES = re.compile(
    rb"\\(?<!\\\\)\\*+(?:(?:x1[bB]|u001[bB]|033|e)\[[0-9;?]*+[A-Za-z]"
    rb"|[nrtbfv]|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[0-7]{3})"
    rb"|\x1b(?:\[[0-9;?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\))"
    rb"|\nE(?=[ \t])"
)
_BLOCK = 4096  # bytes whose places are worked out at once
_STRIDE = 1 << 20  # bytes that are hashed at once
_FACTOR = 0x9E3779B97F4A7C15  # spreads 64 bits evenly
_FEW = 16  # edges that are found faster one by one
_WORTH_IMPORTING = 400_000_000  # bytes compared one edge at a time, which takes as long as to import numpy
_WORD = 4  # bytes; half an edge, so that an edge at any place holds a whole word
_LITTLE = 4096  # bytes whose words are looked up faster than each edge
_FOR_TABLE = 512  # bytes whose words are looked up faster than with numpy
_CALL = 250  # bytes that are compared in the time of one call


class Scanner:
    """Find which of many edges, all `SHORTEST` bytes long, are in data.

    Whether little data holds an edge shows at its words of four bytes: one of them is inside of the edge. Few edges are
    searched for one by one. Otherwise numpy looks up a hash of the bytes at every place.
    """

    def __init__(self, edges: Iterable[bytes]) -> None:
        self._edges = frozenset(edges)
        self._with_word: dict[int, list[bytes]] = {}  # edges by the words in them, at every alignment
        for edge in self._edges:
            for at in range(_WORD):
                self._with_word.setdefault(int.from_bytes(edge[at : at + _WORD], sys.byteorder), []).append(edge)
        self._words = frozenset(self._with_word)
        self._compared = 0
        self._table: Any = None
        self._array: Any = None
        self._slots: Any = None
        self._bits = min(22, max(16, len(self._edges).bit_length() + 12))

    def finds(self, data: bytes) -> bool:
        """Return True if an edge is in the data."""
        if not self._edges or len(data) < SHORTEST:
            return False
        if len(data) <= (_LITTLE if self._table is None else _FOR_TABLE):
            seen = self._words.intersection(memoryview(data)[: len(data) // _WORD * _WORD].cast("I"))
            return any(edge in data for word in seen for edge in self._with_word[word])
        if not self._has_table(len(data)):
            return any(edge in data for edge in self._edges)
        return any(self._verified(data, start, hit) for start, hit in self._hashed(data))

    def places(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the places of edges in order, each with its edge."""
        if not self._edges or len(data) < SHORTEST:
            return
        if self._has_table(len(data)):
            for start, hit in self._hashed(data):
                yield from self._verified(data, start, hit)
        else:
            yield from sorted((at, edge) for edge in self._edges for at in _places(edge, data))

    def _has_table(self, size: int) -> bool:
        if self._table is not None:
            return True
        if len(self._edges) <= _FEW and size < _STRIDE:
            return False
        self._compared += len(self._edges) * (size + _CALL)
        if self._compared < _WORTH_IMPORTING and "numpy" not in sys.modules:
            return False
        import numpy as np

        factor, shift = np.uint64(_FACTOR), np.uint64(64 - self._bits)
        self._array, self._slots = np.ndarray, lambda codes: ((codes * factor) >> shift).view(np.int64)
        table = np.zeros(1 << self._bits, np.bool_)
        table[self._slots(np.frombuffer(b"".join(self._edges), "<u8"))] = True
        self._table = table
        return True

    def _hashed(self, data: bytes) -> Iterator[tuple[int, Any]]:
        """Yield the start of each stretch of the data that may hold edges, and an array that is true where they are."""
        for start in range(0, len(data) - SHORTEST + 1, _STRIDE):
            codes = self._array(min(_STRIDE, len(data) - SHORTEST + 1 - start), "<u8", data, start, (1,))
            hit = self._table[self._slots(codes)]
            if hit.any():
                yield start, hit

    def _verified(self, data: bytes, start: int, hit: Any) -> list[tuple[int, bytes]]:
        places = (start + place for place in hit.nonzero()[0].tolist())
        return [(at, data[at : at + SHORTEST]) for at in places if data[at : at + SHORTEST] in self._edges]


def _places(edge: bytes, data: bytes) -> Iterator[int]:
    at = data.find(edge)
    while at >= 0:
        yield at
        at = data.find(edge, at + 1)


def without_escapes(data: bytes) -> bytes | None:
    """Return the data without escapes, colours and marks of lines, or None if there are none."""
    if b"\\" not in data and b"\x1b" not in data and (b"\n" not in data or b"\nE" not in data):
        return None
    stripped = _ESCAPES.sub(b"", data)
    return None if len(stripped) == len(data) else stripped


class Places:
    """Translate places in folded data into places in the original. The places must be asked for in order."""

    def __init__(self, data: bytes, *, escapes: bool = False) -> None:
        """Prepare for folded `data`, or with `escapes` for data that was folded after `without_escapes`."""
        self._kept: list[int] = []  # bytes without escapes before each escape
        self._removed = [0]
        if escapes:
            for match in _ESCAPES.finditer(data):
                self._kept.append(match.start() - self._removed[-1])
                self._removed.append(self._removed[-1] + len(match.group()))
            data = _ESCAPES.sub(b"", data)
        self.data = data
        sizes = (len(fold(data[start : start + _BLOCK])) for start in range(0, len(data), _BLOCK))
        self._starts = [*accumulate(sizes, initial=0)]  # folded places at which blocks begin
        self._block = -1
        self._in_block: list[int] = []

    def original(self, place: int) -> int:
        """Return the place in the original of one byte of the folded data."""
        block = bisect_right(self._starts, place) - 1
        if block != self._block:
            start = block * _BLOCK
            bytes_of = self.data[start : start + _BLOCK]
            self._in_block = [start + at for at, byte in enumerate(bytes_of) if not is_dropped(byte)]
            self._block = block
        stripped = self._in_block[place - self._starts[block]]
        return stripped + self._removed[bisect_right(self._kept, stripped)]

    def folded(self, places: Iterable[int]) -> list[int]:
        """Return how much folded data stands before each of these places of the original, which are in order."""
        found: list[int] = []
        total = 0
        for start, end in pairwise([0, *places]):
            total += len(fold(self.data[start:end]))
            found.append(total)
        return found

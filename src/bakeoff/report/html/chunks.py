"""Data inside a page: JSON, compressed and in base64, in blocks that no browser executes and that are read on demand."""

import base64
import gzip
import json
from collections.abc import Iterable
from typing import IO, Any

CHUNK_BYTES = 256 * 1024
"""Uncompressed. A reader who opens one trial decodes one chunk: small enough to take no time, large enough to pack."""


def packed(data: Any) -> bytes:
    """JSON as gzip as base64, whose letters mean nothing to HTML. The same data gives the same bytes."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(errors="replace"), compresslevel=6, mtime=0))


def block(name: str, data: Any) -> bytes:
    """A block of data under a name of our own."""
    return b'<script type="application/gzip" data-chunk="%s">%s</script>\n' % (name.encode("ascii"), packed(data))


class ChunkWriter:
    """Writes items to a file in chunks and says where each went, so that memory holds one chunk."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._items: list[str] = []
        self._bytes = 0
        self.number = 0

    def add(self, item: Any) -> tuple[int, int]:
        """The number of the chunk, and the place in it."""
        text = json.dumps(item, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        if self._items and self._bytes + len(text) > CHUNK_BYTES:
            self.close()
        self._items.append(text)
        self._bytes += len(text)
        return self.number, len(self._items) - 1

    def add_all(self, items: Iterable[Any]) -> list[int]:
        """The number of each item's chunk."""
        return [self.add(item)[0] for item in items]

    def close(self) -> None:
        if not self._items:
            return
        text = f"[{','.join(self._items)}]"
        data = base64.b64encode(gzip.compress(text.encode(errors="replace"), compresslevel=6, mtime=0))
        name = f"{self._name}-{self.number}".encode("ascii")
        self._file.write(b'<script type="application/gzip" data-chunk="%s">%s</script>\n' % (name, data))
        self._items, self._bytes = [], 0
        self.number += 1

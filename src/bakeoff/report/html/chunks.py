"""Data inside a page: JSON, compressed, in base64, in blocks that no browser executes and that are read on demand."""

import base64
import gzip
import json
from typing import IO, Any

CHUNK_BYTES = 256 * 1024
"""Uncompressed. A reader who opens one trial decodes one chunk: small enough to take no time, large enough to pack."""


_LEVEL = 4  # of compression: two thirds of the time of the usual 6, and 4 % more bytes


def block(name: str, data: Any) -> bytes:
    """A block of data under a name of our own. The same data gives the same bytes."""
    return _block(name, _json(data))


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _block(name: str, text: str) -> bytes:
    """JSON as gzip as base64, whose letters mean nothing to HTML."""
    packed = base64.b64encode(gzip.compress(text.encode(errors="replace"), compresslevel=_LEVEL, mtime=0))
    return b'<script type="application/gzip" data-chunk="%s">%s</script>\n' % (name.encode("ascii"), packed)


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
        text = _json(item)
        if self._items and self._bytes + len(text) > CHUNK_BYTES:
            self.close()
        self._items.append(text)
        self._bytes += len(text)
        return self.number, len(self._items) - 1

    def close(self) -> None:
        if not self._items:
            return
        self._file.write(_block(f"{self._name}-{self.number}", f"[{','.join(self._items)}]"))
        self._items, self._bytes = [], 0
        self.number += 1

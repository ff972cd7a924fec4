"""Split a stream of bytes into server-sent events without changing them."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bakeoff.errors import InfraError

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINES = re.compile(rb"\r\n|\n|\r")
_MAX_END_LENGTH = 4


class EventSplitter:
    """Yields complete events with their separators, so that joining them gives the stream again."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._pending = bytearray()
        self._looked = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        self._pending += chunk
        while found := _END.search(self._pending, max(0, self._looked - _MAX_END_LENGTH)):
            event = bytes(self._pending[: found.end()])
            del self._pending[: found.end()]
            self._looked = 0
            yield event
        self._looked = len(self._pending)
        if self._looked > self._most_bytes:
            raise InfraError(f"the provider sent an event of more than {self._most_bytes >> 20} MiB")

    def rest(self) -> bytes:
        """Return the bytes after the last complete event."""
        rest = bytes(self._pending)
        self._pending.clear()
        return rest


def data_of(event: bytes) -> Mapping[str, Any] | None:
    """Return the JSON object of an event; None for comments, `[DONE]` and other data."""
    lines = [line[5:].removeprefix(b" ") for line in _LINES.split(event) if line.startswith(b"data:")]
    return object_of(b"\n".join(lines)) if lines else None


def object_of(body: bytes) -> dict[str, Any] | None:
    found = objects_of(body)
    return found[0] if len(found) == 1 else None


def objects_of(body: bytes) -> list[dict[str, Any]]:
    """Return the JSON object of a body, or the objects of its list, as Gemini streams without events."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return []
    return [item for item in (data if isinstance(data, list) else [data]) if isinstance(item, dict)]

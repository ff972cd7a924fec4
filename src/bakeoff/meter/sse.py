"""Server-sent events, cut out of a stream of bytes without changing any of them."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bakeoff.errors import InfraError

MOST_BYTES = 16 << 20  # of one event
_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINES = re.compile(rb"\r\n|\n|\r")
_LONGEST_END = 4


class EventSplitter:
    """Gives events as soon as they are whole, with their ends, so that joining them gives the stream again."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._looked = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        self._pending += chunk
        while found := _END.search(self._pending, max(0, self._looked - _LONGEST_END)):
            event = bytes(self._pending[: found.end()])
            del self._pending[: found.end()]
            self._looked = 0
            yield event
        self._looked = len(self._pending)
        if self._looked > MOST_BYTES:
            raise InfraError(f"the provider sent an event of more than {MOST_BYTES >> 20} MiB")

    def rest(self) -> bytes:
        """What came after the last end."""
        rest = bytes(self._pending)
        self._pending.clear()
        return rest


def data_of(event: bytes) -> Mapping[str, Any] | None:
    """The object that an event carries; None for comments, `[DONE]` and what is no object."""
    lines = [line[5:].removeprefix(b" ") for line in _LINES.split(event) if line.startswith(b"data:")]
    return object_of(b"\n".join(lines)) if lines else None


def object_of(body: bytes) -> dict[str, Any] | None:
    found = objects_of(body)
    return found[0] if len(found) == 1 else None


def objects_of(body: bytes) -> list[dict[str, Any]]:
    """The object that a body is, or those that it lists, which is how Gemini streams to who asks for no events."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return []
    return [item for item in (data if isinstance(data, list) else [data]) if isinstance(item, dict)]

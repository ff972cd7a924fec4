"""What servers say, made fit for people: nothing a terminal would obey, no secret, and not too much of it."""

from collections import deque

from bakeoff.storage.redaction import Redactor

LINES_KEPT = 20
LINE_LENGTH = 300


def visible(text: str, longest: int = LINE_LENGTH) -> str:
    """On one line, with control characters written out."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in cut
    )


def quoted(text: str, longest: int = LINE_LENGTH) -> str:
    """The same between quotes; `repr` would escape the escapes."""
    return f"'{visible(text, longest)}'"


class LastLines:
    """The end of a stream of bytes, however long it is and however its lines are."""

    def __init__(self, redactor: Redactor) -> None:
        self._lines: deque[bytes] = deque(maxlen=LINES_KEPT)
        self._open = b""
        self._redactor = redactor

    def feed(self, chunk: bytes) -> None:
        *whole, rest = (self._open + chunk).split(b"\n")
        self._lines.extend(whole[-LINES_KEPT:])
        self._open = rest[: 16 * LINE_LENGTH]  # of a line that never ends, the beginning will do

    def shown(self) -> list[str]:
        lines = [*self._lines, *([self._open] if self._open else [])]
        texts = [self._redactor(line).decode("utf-8", "replace").rstrip() for line in lines]
        return [visible(text) for text in texts if text][-LINES_KEPT:]

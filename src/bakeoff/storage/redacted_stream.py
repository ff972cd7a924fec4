"""Keep secrets out of printed output. The command line loads this module, so it imports little."""

import io
import sys
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bakeoff.storage.redaction import Redactor

_MAX_HELD = 65_536  # characters of an incomplete line to buffer


class PrintedSecrets:
    """Secrets that must not be printed: those of the environment, and later additions."""

    def __init__(self) -> None:
        self._learnt: dict[str, str] = {}

    def learn(self, secrets: Mapping[str, str]) -> None:
        """Add secrets that must not be printed."""
        self._learnt |= secrets
        self.__dict__.pop("_redactor", None)

    def redact(self, text: str) -> str:
        """Return the text without secrets. At both ends, also remove parts of a secret."""
        return self._redactor.text(text, cut=True)

    @cached_property
    def _redactor(self) -> "Redactor":
        from bakeoff.storage.redaction import Redactor, known_secrets

        return Redactor({**known_secrets(), **self._learnt})


class RedactedStream(io.TextIOWrapper):
    """A stream that redacts text line by line, because a secret may arrive in several pieces.

    Like any line-buffered stream, it writes incomplete lines when flushed.
    """

    def __init__(self, stream: io.TextIOWrapper, secrets: PrintedSecrets) -> None:
        stream.flush()
        super().__init__(stream.buffer, stream.encoding, stream.errors, line_buffering=stream.line_buffering)
        self.secrets = secrets
        self._held: list[str] = []
        self._size = 0

    def write(self, text: str) -> int:
        """Write complete lines and buffer the rest."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")  # some callers try bytes first
        self._held.append(text)
        self._size += len(text)
        if "\r" in text or self._size > _MAX_HELD:
            self._release()
        elif "\n" in text:
            lines, end, rest = "".join(self._held).rpartition("\n")
            self._held, self._size = [lines + end], 0
            self._release()
            self._held, self._size = [rest], len(rest)
        return len(text)

    def flush(self) -> None:
        """Write the buffered text."""
        if not self.closed:
            self._release()
        super().flush()

    def _release(self) -> None:
        held, self._held, self._size = "".join(self._held), [], 0
        if held:
            super().write(self.secrets.redact(held))


def printed_secrets() -> PrintedSecrets:
    """Return the secrets that stdout and stderr redact, or a new object if they do not."""
    found = (stream.secrets for stream in (sys.stdout, sys.stderr) if isinstance(stream, RedactedStream))
    return next(found, None) or PrintedSecrets()


def redact_streams() -> None:
    """Redact everything printed to stdout and stderr from now on."""
    secrets = printed_secrets()
    # A program that was started without a stream has None there, despite the declared type.
    if type(sys.stdout) is io.TextIOWrapper:
        sys.stdout = RedactedStream(sys.stdout, secrets)
    if type(sys.stderr) is io.TextIOWrapper:
        sys.stderr = RedactedStream(sys.stderr, secrets)

"""The last resort: an error nobody foresaw becomes a sentence and a file, never a traceback on the screen."""

import io
import os
import sys
import tempfile
import traceback
from types import TracebackType

READER_GONE = 141  # as a shell reports a program that SIGPIPE ended
INTERNAL = 70  # "internal software error" in sysexits.h; none of the codes that say something about a run


def report_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """For `sys.excepthook`."""
    if isinstance(error, BrokenPipeError):
        os._exit(READER_GONE)
    with tempfile.NamedTemporaryFile(
        "w", prefix="bakeoff-crash-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
    ) as file:
        file.write("".join(traceback.format_exception(kind, error, trace)))
    sys.stderr.write(
        f"bakeoff has a bug: {kind.__name__}: {shown(str(error))}\nFinished work is in the run's folder. "
        f"The details are in {file.name}; please send them with a report.\n"
    )
    sys.stderr.flush()
    os._exit(INTERNAL)


def accept_every_character() -> None:
    """What the encoding of a terminal or pipe has no character for is written as an escape, not refused."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def shown(text: str) -> str:
    """Untrusted text of several lines: control characters are shown, never emitted."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)

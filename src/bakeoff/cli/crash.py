"""Report an unexpected error in a sentence and a file instead of a traceback."""

import io
import os
import sys
from typing import TYPE_CHECKING

from bakeoff._kernel.text import escaped

if TYPE_CHECKING:
    from types import TracebackType

READER_GONE = 141  # what a shell reports for a program that SIGPIPE ended
INTERNAL = 70  # "internal software error" in sysexits.h; no exit code of a run


def report_crash(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    """Write the traceback to a file, say where it is, and end the process. For `sys.excepthook`."""
    if isinstance(error, BrokenPipeError):
        os._exit(READER_GONE)
    import tempfile  # not loaded at start-up: few programs crash
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", prefix="bakeoff-crash-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
    ) as file:
        file.write(_redacted("".join(traceback.format_exception(kind, error, trace))))
    sys.stderr.write(
        f"bakeoff has a bug: {kind.__name__}: {shown(str(error))}\nFinished trials are safe in the run's folder. "
        f"The details are in {file.name}; please attach them to a bug report.\n"
    )
    sys.stderr.flush()
    os._exit(INTERNAL)


def _redacted(text: str) -> str:
    from bakeoff.storage.redacted_stream import printed_secrets

    try:
        return printed_secrets().redact(text)
    except Exception as error:  # noqa: BLE001 - the error may be one of redaction itself
        return f"the details are left out: they could not be redacted ({type(error).__name__})\n"


def accept_every_character() -> None:
    """Write characters that the encoding of stdout or stderr lacks as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def shown(text: str) -> str:
    """Return text with its control characters made visible, except line breaks."""
    return "\n".join(map(escaped, text.split("\n")))

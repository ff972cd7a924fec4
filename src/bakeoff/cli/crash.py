"""The last resort: an error nobody foresaw becomes a sentence and a file, never a traceback on the screen."""

import os
import sys
import tempfile
import traceback
from types import TracebackType

INTERNAL = 70  # "internal software error" in sysexits.h; none of the codes that say something about a run


def report_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """For `sys.excepthook`."""
    if isinstance(error, BrokenPipeError):  # the reader of our output went away, as `| head` does
        os._exit(0)
    with tempfile.NamedTemporaryFile("w", prefix="bakeoff-crash-", suffix=".txt", delete=False) as file:
        file.write("".join(traceback.format_exception(kind, error, trace)))
    sys.stderr.write(
        f"bakeoff has a bug: {kind.__name__}: {error}\nFinished work is in the run's folder. "
        f"The details are in {file.name}; please send them with a report.\n"
    )
    sys.stderr.flush()
    os._exit(INTERNAL)

"""Switch replay on for a whole process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bakeoff._kernel.choices import REPLAY_MODES, ReplayMode
from bakeoff.errors import UsageError
from bakeoff.replay.application import activated
from bakeoff.replay.http import http_hooks
from bakeoff.replay.store import Store
from bakeoff.storage.redaction import Redactor


@contextmanager
def replaying(mode: ReplayMode, folder: Path, redactor: Redactor) -> Iterator[None]:
    """Record or replay model calls and `@replayable` tools during the block."""
    if mode not in REPLAY_MODES:
        raise UsageError(f"replay: {mode!r} is not one of {', '.join(REPLAY_MODES)}")
    if mode == "off":
        yield
        return
    with activated(Store(mode, folder.absolute(), redactor)), http_hooks():
        yield

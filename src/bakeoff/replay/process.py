"""Switch replay on for a whole process, and for the processes that it starts."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bakeoff._kernel.choices import REPLAY_MODES, ReplayMode
from bakeoff.errors import UsageError
from bakeoff.replay.application import activated
from bakeoff.replay.http import http_hooks
from bakeoff.replay.store import Store
from bakeoff.storage.redaction import Redactor, known_secrets

_INHERITED = "BAKEOFF_REPLAYING"  # the mode and the folder, as JSON


@contextmanager
def replaying(mode: ReplayMode, folder: Path, redactor: Redactor) -> Iterator[None]:
    """Record or replay model calls through SDKs and `@replayable` tools inside the `with` block."""
    if mode not in REPLAY_MODES:
        raise UsageError(f"replay: {mode!r} is not one of {', '.join(REPLAY_MODES)}")
    if mode == "off":
        yield
        return
    folder = folder.absolute()
    before = os.environ.get(_INHERITED)
    os.environ[_INHERITED] = json.dumps([mode, str(folder)])
    try:
        with activated(Store(mode, folder, redactor)), http_hooks():
            yield
    finally:
        if before is None:
            os.environ.pop(_INHERITED, None)
        else:
            os.environ[_INHERITED] = before


@contextmanager
def replaying_as_inherited() -> Iterator[None]:
    """Replay like the process that started this one. Do nothing if that one does not replay."""
    inherited = os.environ.get(_INHERITED)
    if not inherited:
        yield
        return
    mode, folder = json.loads(inherited)
    with replaying(mode, Path(folder), Redactor(known_secrets())):
        yield

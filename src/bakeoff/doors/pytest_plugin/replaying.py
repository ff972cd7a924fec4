"""`--eval-replay`: the tape that is on while the tests run, and its way into the processes they start."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from bakeoff.options import RunOptions
    from bakeoff.storage.redaction import Redactor

_HANDED_ON = "BAKEOFF_REPLAYING"  # to processes of isolated tasks: the mode and the folder


def start_replay(config: "pytest.Config", options: "RunOptions") -> None:
    """From now to the end of the session, what tasks and scorers ask passes the recordings."""
    session = ExitStack()
    session.enter_context(replaying(options.replay, options.recordings, options.redactor()))
    config.add_cleanup(session.close)


@contextmanager
def replaying(mode: str, folder: Path, redactor: "Redactor") -> Iterator[None]:
    """While this lasts, model calls through SDKs and @replayable tools pass the recordings."""
    if mode == "off":
        yield
        return
    from bakeoff.errors import UsageError
    from bakeoff.replay.store import MODES, Tape

    if mode not in MODES:
        raise UsageError(f"replay: {mode!r} is not one of {', '.join(MODES)}")
    from bakeoff.models.httpx_replay import httpx_on_tape

    place = folder.absolute()
    with _handed_on(json.dumps([mode, str(place)])), Tape(mode, place, redactor).on(), httpx_on_tape():
        yield


@contextmanager
def _handed_on(words: str) -> Iterator[None]:
    before = os.environ.get(_HANDED_ON)
    os.environ[_HANDED_ON] = words
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_HANDED_ON, None)
        else:
            os.environ[_HANDED_ON] = before


@contextmanager
def replaying_as_handed_on() -> Iterator[None]:
    """In the process of an isolated task: the replay of the process that started it."""
    handed_on = os.environ.get(_HANDED_ON)
    if not handed_on:
        yield
        return
    from bakeoff._kernel.environment import read_environment
    from bakeoff.storage.redaction import Redactor, secrets_in

    mode, folder = json.loads(handed_on)
    with replaying(mode, Path(folder), Redactor(secrets_in(read_environment()))):
        yield


def asking(round_: int) -> AbstractContextManager[Any]:
    """Around one round of one case: what is asked twice has two answers, and what is missing is the case's error."""
    tapes = sys.modules.get("bakeoff.replay.store")  # whoever has put one on has imported it
    return nullcontext() if tapes is None or tapes.tape_on() is None else tapes.Asking(round_)

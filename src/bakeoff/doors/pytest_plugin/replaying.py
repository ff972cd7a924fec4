"""`--eval-replay`: replay for the whole session. Nothing is imported for it while replay is off."""

import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from bakeoff.options import RunOptions


def start_replay(config: "pytest.Config", options: "RunOptions") -> None:
    """Replay what tasks and scorers ask until the session ends, if the options say so."""
    if options.replay == "off":
        return
    from bakeoff.replay.process import replaying

    session = ExitStack()
    session.enter_context(replaying(options.replay, options.recordings, options.redactor()))
    config.add_cleanup(session.close)


def replay_round(number: int) -> AbstractContextManager[Any]:
    """Return the context of one round of one case for the calls of its application."""
    replay = sys.modules.get("bakeoff.replay.application")
    return nullcontext() if replay is None or replay.active_store() is None else replay.ReplayRound(number)

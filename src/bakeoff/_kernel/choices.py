"""Choices that the options, the command line and the pytest plugin share. A light module: all of them load it."""

from typing import Literal, get_args

ReplayMode = Literal["off", "auto", "record", "strict"]
"""`auto` replays and records what is missing, `record` records everything again, `strict` only replays."""

REPLAY_MODES: tuple[ReplayMode, ...] = get_args(ReplayMode)

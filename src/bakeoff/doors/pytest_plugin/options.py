"""The options of evals on pytest's command line. Every pytest run loads this."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bakeoff._kernel.choices import REPLAY_MODES, ReplayMode

if TYPE_CHECKING:
    from bakeoff.doors.pytest_plugin.settings import Settings
    from bakeoff.options import RunOptions

DEFAULT_CONCURRENCY = 10
FOLDER = ".bakeoff"


def add_options(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--eval-concurrency",
        type=_count,
        metavar="N",
        help=f"cases of a suite that run at a time (default {DEFAULT_CONCURRENCY})",
    )
    group.addoption("--eval-rounds", type=_count, metavar="K", help="how often each task is repeated (default 1)")
    group.addoption(
        "--eval-results",
        type=Path,
        metavar="DIR",
        help=f"where runs are kept for `bakeoff report` and `compare` (default {FOLDER}, the last 20)",
    )
    group.addoption("--eval-no-record", action="store_true", help="keep no run of these evals")
    group.addoption(
        "--eval-replay",
        choices=REPLAY_MODES,
        help="answer model calls from recordings: auto records what is missing, record all, strict nothing (default "
        "BAKEOFF_REPLAY, or off)",
    )


def _count(text: str) -> int:
    value = int(text)  # what is no number is told by the parser
    if value < 1:
        raise ValueError
    return value


def concurrency_of(config: pytest.Config, settings: "Settings") -> int:
    """The command line's word where there is one: it is said last."""
    chosen: int | None = config.getoption("eval_concurrency")
    return chosen or settings.concurrency or DEFAULT_CONCURRENCY


def rounds_of(config: pytest.Config, settings: "Settings") -> int:
    chosen: int | None = config.getoption("eval_rounds")
    return chosen or settings.rounds or 1


def run_options(config: pytest.Config) -> "RunOptions":
    """How the core carries out trials here."""
    from bakeoff.options import RunOptions

    folder = results_folder(config)
    return RunOptions(results=folder, replay=replay_mode(config), recordings=config.rootpath / FOLDER / "recordings")


def results_folder(config: pytest.Config) -> Path:
    chosen: Path | None = config.getoption("eval_results")
    return config.invocation_params.dir / chosen if chosen else config.rootpath / FOLDER


def replay_mode(config: pytest.Config) -> ReplayMode:
    """The option, or the variable; what the variable says must be one of the modes too."""
    import os

    chosen: str = config.getoption("eval_replay") or os.environ.get("BAKEOFF_REPLAY") or "off"
    for mode in REPLAY_MODES:
        if mode == chosen:
            return mode
    raise pytest.UsageError(f"BAKEOFF_REPLAY={chosen!r} is not one of {', '.join(REPLAY_MODES)}")

"""Add the options of evals to pytest's command line. Every pytest run loads this module."""

from argparse import ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bakeoff._kernel.choices import REPLAY_MODES, ReplayMode

if TYPE_CHECKING:
    from bakeoff.doors.pytest_plugin.suite import Settings
    from bakeoff.options import RunOptions

DEFAULT_CONCURRENCY = 10
FOLDER = ".bakeoff"
SPENDING_FILE = "bakeoff_spending"
"""The key under which an xdist worker is told the file in which all workers count what they spend."""


def add_options(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--eval-concurrency",
        type=_count,
        metavar="N",
        help=f"cases of a suite that run at a time (default {DEFAULT_CONCURRENCY})",
    )
    group.addoption("--eval-rounds", type=_count, metavar="K", help="how often each task is repeated (default 1)")
    group.addoption(
        "--eval-max-cost",
        type=_dollars,
        metavar="USD",
        help="start no further case once the evals have cost this much; the rest is undecided (verdict budget)",
    )
    group.addoption(
        "--eval-max-total-tokens",
        type=_count,
        metavar="N",
        help="start no further case once the evals have used this many tokens; the rest is undecided (verdict budget)",
    )
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
        help="answer model calls from recordings: auto records what is missing, record records all, strict records "
        "nothing (default BAKEOFF_REPLAY, or off)",
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _dollars(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def concurrency_of(config: pytest.Config, settings: "Settings") -> int:
    """Return the cases at a time: the command line wins over the suite."""
    chosen: int | None = config.getoption("eval_concurrency")
    return chosen or settings.concurrency or DEFAULT_CONCURRENCY


def rounds_of(config: pytest.Config, settings: "Settings") -> int:
    """Return the rounds: the command line wins over the suite."""
    chosen: int | None = config.getoption("eval_rounds")
    return chosen or settings.rounds or 1


def is_limited(config: pytest.Config) -> bool:
    """Return whether there is a limit on what evals may spend."""
    return config.getoption("eval_max_cost") is not None or config.getoption("eval_max_total_tokens") is not None


def run_options(config: pytest.Config) -> "RunOptions":
    """Return the options with which the core runs trials."""
    from bakeoff.options import RunOptions

    return RunOptions(
        results=results_folder(config),
        max_cost=config.getoption("eval_max_cost"),
        max_total_tokens=config.getoption("eval_max_total_tokens"),
        replay=replay_mode(config),
        recordings=config.rootpath / FOLDER / "recordings",
    )


def results_folder(config: pytest.Config) -> Path:
    chosen: Path | None = config.getoption("eval_results")
    return config.invocation_params.dir / chosen if chosen else config.rootpath / FOLDER


def replay_mode(config: pytest.Config) -> ReplayMode:
    """Return the option or, without one, the variable, which must be one of the modes too."""
    import os

    chosen: str = config.getoption("eval_replay") or os.environ.get("BAKEOFF_REPLAY") or "off"
    for mode in REPLAY_MODES:
        if mode == chosen:
            return mode
    raise pytest.UsageError(f"BAKEOFF_REPLAY={chosen!r} is not one of {', '.join(REPLAY_MODES)}")

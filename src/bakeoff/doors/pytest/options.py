"""Add the options of evals to pytest's command line. Every pytest run loads this module."""

import os
import sys
from argparse import SUPPRESS, ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from bakeoff._kernel.choices import REPLAY_MODES, RESULTS, SHARD_FORM, UNDECIDABLE_RULES, ReplayMode, shard_in

if TYPE_CHECKING:
    from bakeoff.doors.pytest.suite import Settings
    from bakeoff.options import RunOptions
    from bakeoff.report.gates import Allowance


Value = TypeVar("Value")

DEFAULT_CONCURRENCY = 10
RECORDINGS = Path(".bakeoff/recordings")
"""The folder of recordings, relative to the root folder of the project."""

FIXTURES = frozenset({"to_eval", "run_eval"})
"""The fixtures that make a test an eval."""
_LOGGING_MODULE, _LOGGING = "bakeoff.doors.pytest.in_tests", frozenset({"log_input", "log_output", "log_score"})
"""The module and the names of the logging functions: a test that calls one of them is an eval."""

SPENDING_FILE, COLLECTED_FILE = "bakeoff_spending", "bakeoff_collected"
"""The keys that tell an xdist worker the files for the spending of all workers, and for the evals that it collects."""

COLLECTION = pytest.StashKey[str]()
"""A digest of the evals before they were parted into shards; xdist workers report it under the key `COLLECTION_KEY`."""
COLLECTION_KEY = "bakeoff_collection"
_SELECTING = ("keyword", "markexpr", "deselect", "lf")  # options of pytest that deselect tests of a shard later

WATCH_CYCLE = "--eval-watch-cycle"
"""The option by which `--eval-watch` starts a cycle. Its file lists the tests to run."""

TERMINAL_WIDTH = "bakeoff_width"
"""The key that tells an xdist worker the width of the terminal, in columns."""


def add_options(group: pytest.OptionGroup) -> None:
    """Add the options of evals, their reports and their gates, for `pytest_addoption`."""
    add, rest = group.addoption, "the rest is undecided (verdict budget)"
    at_a_time = f"cases of a suite that run at a time (default {DEFAULT_CONCURRENCY})"
    add("--eval-jobs", "--eval-concurrency", type=_count, metavar="N", help=at_a_time)
    add("--eval-rounds", type=_count, metavar="K", help="how often each task is repeated (default 1)")
    part = "run only part I of N of the evals, such as 2/4 (default BAKEOFF_SHARD, or all); `bakeoff merge` joins all"
    add("--eval-shard", type=_shard, metavar="I/N", help=part)
    spent = "start no further case once the evals have"
    add("--eval-max-cost", type=_above_0, metavar="USD", help=f"{spent} cost this much; {rest}")
    add("--eval-max-total-tokens", type=_count, metavar="N", help=f"{spent} used this many tokens; {rest}")
    kept = f"where runs are kept for `bakeoff report` and `compare` (default {RESULTS} in the root folder, the last 20)"
    add("--eval-results", type=_folder, metavar="DIR", help=kept)
    add("--eval-no-record", action="store_true", help="keep no run of these evals")
    modes = "auto records what is missing, record records all, strict records nothing (default BAKEOFF_REPLAY, or off)"
    add("--eval-replay", choices=REPLAY_MODES, help=f"answer model calls from recordings: {modes}")
    again = "run again what a change of a file concerns, and what failed, until Ctrl-C; the page follows"
    add("--eval-watch", action="store_true", help=again)
    add(WATCH_CYCLE, type=Path, help=SUPPRESS)
    scores = "write scores, reasons, rounds and costs of all evals to FILE"
    add("--eval-json", type=Path, metavar="FILE", help=scores)
    add("--eval-html", type=Path, metavar="FILE", help="write a self-contained HTML page with every eval to FILE")
    add("--eval-junit", action="store_true", help="add scores to the --junitxml file, as properties of each test")
    share = "share of evals that must reach their thresholds, 0 to 1; single misses then do not fail the run"
    add("--eval-min-pass-rate", type=_share, metavar="SHARE", help=share)
    add(
        "--eval-fail-under",
        "--eval-min-score",
        type=_share,
        metavar="SCORE",
        help="lowest mean score that passes, 0 to 1",
    )
    undecided = (
        "a number (3) or share (0.05) of evals that may be undecided (broken scorers, fixtures, providers, workers)"
    )
    add("--eval-allow-undecided", type=_allowance, metavar="N", help=f"{undecided}; default none")
    decided = "compare the sets of parameters of a suite (or each with --eval-baseline) after every case"
    add("--eval-until-decided", action="store_true", help=f"{decided}, and skip the cases that decide nothing")
    lower = "an earlier --eval-json file: fail if scores are significantly lower than there"
    add("--eval-baseline", type=Path, metavar="FILE", help=lower)
    series = "a folder of earlier --eval-json files: fail if they show, with this run, a loss since some run"
    add("--eval-history", type=Path, metavar="DIR", help=series)
    pinned = "the --eval-json file that --eval-history compares with (default the oldest); older ones are left out"
    add("--eval-history-baseline", type=Path, metavar="FILE", help=pinned)
    rule = "what fails --eval-baseline: a regression that is shown (default), or any case that newly fails every round"
    add("--eval-gate", choices=("regression", "no-new-failures"), help=rule)
    small = "the largest difference that does not matter to --eval-baseline and --eval-until-decided, such as 0.05"
    add("--eval-margin", type=_share, metavar="SHARE", help=small)
    nothing = "what --eval-baseline does if neither a regression nor its absence is shown (default pass)"
    add("--eval-undecidable", choices=UNDECIDABLE_RULES, default="pass", help=nothing)
    labels = "fail unless each model judge has enough labels (`bakeoff label`) in a kept run"
    add("--eval-require-calibrated-judge", action="store_true", help=labels)


REPORT_OPTIONS = (
    "eval_json",
    "eval_html",
    "eval_junit",
    "eval_min_pass_rate",
    "eval_fail_under",
    "eval_baseline",
    "eval_gate",
    "eval_history",
    "eval_history_baseline",
    "eval_until_decided",
    "eval_require_calibrated_judge",
)


def _checked(
    parse: Callable[[str], Value], wanted: str, is_right: Callable[[Value], bool] = lambda _: True
) -> Callable[[str], Value]:
    """Return the type of an option: a parser that refuses invalid text and forbidden values."""

    def checked(text: str) -> Value:
        with suppress(ValueError):
            if is_right(value := parse(text)):
                return value
        raise ArgumentTypeError(f"{text!r}{wanted}")

    return checked


def _allowance_in(text: str) -> "Allowance":
    from bakeoff.report.gates import Allowance

    return Allowance.parse(text)


def _folder(text: str) -> Path:
    if "://" in text:
        raise ArgumentTypeError(f"{text!r} is an address: runs of evals are kept in a folder on this machine")
    return Path(text)


_count = _checked(int, " is not a whole number above 0", lambda count: count > 0)
_above_0 = _checked(float, " is not a number above 0", lambda number: number > 0)
_share = _checked(float, " is not a number between 0 and 1", lambda number: 0 <= number <= 1)
_shard = _checked(shard_in, f": {SHARD_FORM}")
_allowance = _checked(_allowance_in, " is neither a number such as 3 nor a share such as 0.05 or 5%")


def shard_of(config: pytest.Config) -> tuple[int, int] | None:
    """Return number and count of `--eval-shard` or, without it, of the variable BAKEOFF_SHARD; None if neither is set.

    Raises `pytest.UsageError` if the variable cannot be read.
    """
    chosen: tuple[int, int] | None = config.getoption("eval_shard")
    if chosen is None and (text := os.environ.get("BAKEOFF_SHARD")):
        try:
            return shard_in(text)
        except ValueError as error:
            raise pytest.UsageError(f"BAKEOFF_SHARD={text!r}: {SHARD_FORM}") from error
    return chosen


def concurrency_of(config: pytest.Config, settings: "Settings") -> int:
    """Return how many cases run at a time: the option wins over the suite."""
    chosen: int | None = config.getoption("eval_jobs")
    return chosen or settings.concurrency or DEFAULT_CONCURRENCY


def rounds_of(config: pytest.Config, settings: "Settings") -> int:
    """Return the number of rounds: the option wins over the suite."""
    chosen: int | None = config.getoption("eval_rounds")
    return chosen or settings.rounds or 1


def is_limited(config: pytest.Config) -> bool:
    """Return True if the spending of evals is limited."""
    return config.getoption("eval_max_cost") is not None or config.getoption("eval_max_total_tokens") is not None


def run_options(config: pytest.Config) -> "RunOptions":
    """Return the options with which the core runs the trials."""
    from bakeoff.options import RunOptions

    return RunOptions(
        results=results_folder(config),
        max_cost=config.getoption("eval_max_cost"),
        max_total_tokens=config.getoption("eval_max_total_tokens"),
        replay=replay_mode(config),
        recordings=config.rootpath / RECORDINGS,
    )


def results_folder(config: pytest.Config) -> Path:
    """Return the folder of runs: `--eval-results`, or the default in the root folder."""
    chosen: Path | None = config.getoption("eval_results")
    return config.invocation_params.dir / chosen if chosen else config.rootpath / RESULTS


def replay_mode(config: pytest.Config) -> ReplayMode:
    """Return the replay mode of the option or, without it, the checked value of BAKEOFF_REPLAY."""
    chosen: str = config.getoption("eval_replay") or os.environ.get("BAKEOFF_REPLAY") or "off"
    for mode in REPLAY_MODES:
        if mode == chosen:
            return mode
    raise pytest.UsageError(f"BAKEOFF_REPLAY={chosen!r} is not one of {', '.join(REPLAY_MODES)}")


def has_eval(item: Any) -> bool:
    """Tell whether an item is a case of a suite, or a test that uses a fixture of evals or logs scores."""
    if hasattr(item, "group") or not FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
        return True
    info = getattr(item, "_fixtureinfo", None)
    if _LOGGING_MODULE not in sys.modules or info is None:
        return False
    fixtures = (info.name2fixturedefs[name][-1].func for name in info.argnames if name in info.name2fixturedefs)
    return any(_logs(function, set()) for function in (item.function, *fixtures))


def _logs(function: Any, seen: set[CodeType]) -> bool:
    """Tell whether a function uses a logging function, itself or through functions that it names.

    Only functions in its module, and those that it imports, are followed.
    """
    function = getattr(function, "__wrapped__", function)
    code: CodeType | None = getattr(function, "__code__", None)
    if code is None or code in seen:
        return False
    seen.add(code)
    names, known = set(_names(code)), function.__globals__
    if "bakeoff" in names and not _LOGGING.isdisjoint(names):
        return True
    found = [known[name] for name in names if name in known]
    found += [vars(each)[name] for each in found if isinstance(each, ModuleType) for name in names & vars(each).keys()]
    called = {each for each in found if isinstance(each, FunctionType)}
    if any(each.__module__ == _LOGGING_MODULE and each.__name__ in _LOGGING for each in called):
        return True
    return any(_logs(each, seen) for each in called if {"bakeoff", *_LOGGING} & each.__globals__.keys())


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that a function and those inside of it use."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def name_of_test(item: pytest.Item) -> str:
    """Return the name of a test without its parameters."""
    return getattr(item, "originalname", None) or item.name


def _judged_by(config: pytest.Config, item: Any) -> list[Any]:
    """Return the facts that all shards must share: the eval and its scorers, rule and rounds."""
    if getattr(item, "row", None) is None:
        return [item.nodeid, config.getoption("eval_rounds")]
    settings = item.group.described.settings
    return [item.nodeid, dict(item.group.scorers), item.row.rule(settings.rule), rounds_of(config, settings)]


def keep_shard(config: pytest.Config, items: list[pytest.Item], number: int, of: int) -> None:
    """Deselect the evals of other shards. Each shard has every n-th case, with all its parameters, and all tests."""
    from bakeoff._kernel.model import fingerprint

    selected = [config.getoption(name, None) or None for name in _SELECTING]
    digest = fingerprint([_judged_by(config, item) for item in items if has_eval(item)], selected)
    getattr(config, "workeroutput", {})[COLLECTION_KEY] = config.stash[COLLECTION] = digest
    places: dict[tuple[str, str], int] = {}
    kept: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        row = getattr(item, "row", None)
        case = (item.nodeid, "") if row is None else (item.nodeid.partition("[")[0], row.id)
        place = places.setdefault(case, len(places)) if has_eval(item) else number - 1
        (kept if place % of == number - 1 else others).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = kept

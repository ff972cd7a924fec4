"""pytest's hooks for reports. Every project that has bakeoff installed loads this module, so it imports only pytest:
what a report needs is imported when there is an eval to report, or a file was asked for."""

import os
from argparse import ArgumentTypeError
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bakeoff.doors.pytest_plugin.gather import gathered, outcomes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
    from bakeoff.doors.pytest_plugin.reporting.ending import Ending, Keeper, Wanted
    from bakeoff.doors.pytest_plugin.reporting.numbers import Tallies

NAME = "bakeoff-reports"
FINAL = ("passed", "failed", "skipped")
"""Outcomes of tests that count; rerunfailures has another word for a try that does not."""

_ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
"""How a session ends that ran what it was asked to; anything else stays as it is."""


def add_options(group: pytest.OptionGroup) -> None:
    """The options of reports and gates, for `pytest_addoption`."""
    group.addoption(
        "--eval-json", type=Path, metavar="FILE", help="write scores, reasons, rounds and costs of all evals"
    )
    group.addoption(
        "--eval-html", type=Path, metavar="FILE", help="write a page with every eval, which needs no network"
    )
    group.addoption(
        "--eval-junit", action="store_true", help="add scores to the file of --junitxml, as properties of each test"
    )
    group.addoption(
        "--eval-min-pass-rate",
        type=_share,
        metavar="SHARE",
        help="the share of evals that must reach their thresholds, 0 to 1; single misses then do not fail the run",
    )
    group.addoption("--eval-min-score", type=_share, metavar="SCORE", help="the least mean score of all evals, 0 to 1")
    group.addoption(
        "--eval-baseline",
        type=Path,
        metavar="FILE",
        help="an earlier --eval-json: fail if scores are significantly lower than in it",
    )


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return value


def register(config: pytest.Config) -> None:
    """For `pytest_configure`: refuse what cannot work, and report on the process that reports."""
    if hasattr(config, "workerinput"):  # the controller reports
        return
    wanted = None
    if any(value is not None and value is not False for value in map(config.getoption, _OPTIONS)):  # 0 is a gate
        from bakeoff.doors.pytest_plugin.reporting.ending import read_options

        wanted = read_options(config)
    config.pluginmanager.register(EvalReporter(config, wanted), NAME)
    if config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) >= 0:
        config.pluginmanager.register(LineWriter(config), f"{NAME}-lines")


_OPTIONS = ("eval_json", "eval_html", "eval_junit", "eval_min_pass_rate", "eval_min_score", "eval_baseline")


class EvalReporter:
    """Lines while tests run; summary, files and gates at the end."""

    def __init__(self, config: pytest.Config, wanted: "Wanted | None" = None) -> None:
        self._config = config
        self._wanted = wanted
        self._verbosity = config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES)
        self._tallies: Tallies | None = None
        self._ending: Ending | None = None
        self._places: dict[str, tuple[Path, int | None]] = {}  # file and line of tests that failed, for annotations
        self._properties: dict[tuple[str, object], list[tuple[str, object]]] = {}
        self._failed_otherwise = 0
        self._forgiven = 0  # tests that failed by their scores alone, which the pass rate allows

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport, config: pytest.Config
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """pytest's own words with score and time; with -q its letters, coloured by score."""
        if report.when != "call" or not _is_result(report) or not (outcomes := outcomes_of(config, report)):
            return None
        from bakeoff.doors.pytest_plugin.reporting.lines import colour_of, score_words

        word, letter = ("PASSED", ".") if report.passed else ("FAILED", "F")
        if self._verbosity > 0:
            word = f"{word} {score_words(outcomes)}"
        return report.outcome, "" if self._verbosity == 0 else letter, (word, {colour_of(outcomes): True})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count; and let whoever writes reports to a file see the properties."""
        outcomes = outcomes_of(self._config, report) if report.when == "call" else ()
        if outcomes and report.outcome in FINAL:
            self._count(outcomes)
        if report.failed:
            self._failed_otherwise += not _missed(outcomes)
            self._places[report.nodeid] = self._config.rootpath / report.location[0], report.location[1]
        if self._wanted is not None and self._wanted.junit:
            self._add_properties(report, outcomes)

    def _count(self, outcomes: "Sequence[EvalOutcome]") -> None:
        """While they are at hand: what is kept of them has to be read again."""
        if self._tallies is None:
            from bakeoff.doors.pytest_plugin.reporting.numbers import Tallies

            self._tallies = Tallies()
        for outcome in outcomes:
            self._tallies.add(outcome)

    def _add_properties(self, report: pytest.TestReport, outcomes: "Sequence[EvalOutcome]") -> None:
        """Of the reports of a test, only the last one's properties are written."""
        key = report.nodeid, getattr(report, "node", None)
        if outcomes:
            from bakeoff.doors.pytest_plugin.reporting.junit import properties_of

            self._properties[key] = properties_of([self._keeper(outcome) for outcome in outcomes])
        report.user_properties.extend(self._properties.get(key, ()))
        if report.when == "teardown":
            self._properties.pop(key, None)

    @cached_property
    def _keeper(self) -> "Keeper":
        from bakeoff.doors.pytest_plugin.reporting.ending import Keeper

        return Keeper(os.environ)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge and write. Whatever stopped the session, what was reported until then is kept."""
        if session.config.option.collectonly:
            return
        if self._tallies is None and self._wanted is None:
            return
        from bakeoff.doors.pytest_plugin.reporting.ending import NOTHING_WANTED, end
        from bakeoff.doors.pytest_plugin.reporting.numbers import Tallies

        stopped = bool(session.shouldfail or session.shouldstop) or exitstatus not in _ENDED
        outcomes, tallies = gathered(session.config), self._tallies or Tallies()
        self._ending = end(self._wanted or NOTHING_WANTED, tallies, outcomes, stopped=stopped, places=self._places)
        if exitstatus in _ENDED:
            session.exitstatus = self._exit_status(session, exitstatus, stopped=stopped)

    def _exit_status(self, session: pytest.Session, exitstatus: int, *, stopped: bool) -> int:
        assert self._ending is not None
        if self._ending.failed:
            return pytest.ExitCode.TESTS_FAILED
        only_misses = session.testsfailed > 0 and not self._failed_otherwise
        if self._ending.forgives and only_misses and not stopped:
            self._forgiven = session.testsfailed
            return pytest.ExitCode.OK
        return exitstatus

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._ending is None:
            return
        from bakeoff.doors.pytest_plugin.reporting.terminal import print_ending

        print_ending(terminalreporter, self._ending, verbosity=self._verbosity, forgiven=self._forgiven)


class LineWriter:
    """Prints what pytest has no words for: after its own part, a line for each eval, and with -v the tool calls."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._verbosity = config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" or not _is_result(report):
            return
        if not (outcomes := outcomes_of(self._config, report)):
            return
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        if terminal is None:
            return
        from bakeoff.doors.pytest_plugin.reporting.terminal import print_item, print_tools

        if self._verbosity == 0:
            print_item(terminal, report, outcomes)
        else:
            print_tools(terminal, outcomes)


def _is_result(report: object) -> bool:
    """Whether this is how a test went, and not a skip, an expected failure or a try that does not count."""
    return (
        isinstance(report, pytest.TestReport)
        and report.when == "call"
        and report.outcome in ("passed", "failed")
        and not hasattr(report, "wasxfail")
    )


def _missed(outcomes: "Sequence[EvalOutcome]") -> bool:
    """Whether a test failed by nothing but its scores."""
    return any(outcome.passed is False for outcome in outcomes) and not any(outcome.problem for outcome in outcomes)

"""pytest's hooks for reports.

Every project that has bakeoff installed loads this module, so it imports only pytest. The rest is imported when
there is an eval to report, or a report was requested.
"""

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bakeoff.doors.pytest.gather import FINAL, UNREAD, gathering
from bakeoff.doors.pytest.options import REPORT_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from bakeoff.doors.pytest.ending import RequestedFiles, SessionEnd
    from bakeoff.report.suites.files import OutcomeRedactor
    from bakeoff.report.suites.numbers import SuiteTallies
    from bakeoff.report.suites.outcomes import EvalOutcome

_ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
"""Exit codes of a session that ran to its end; any other stays as it is."""


def register(config: pytest.Config) -> None:
    """Check the options and register the reporter, for `pytest_configure`; under xdist, in the controller only."""
    if hasattr(config, "workerinput"):
        return
    requested = None
    if any(value is not None and value is not False for value in map(config.getoption, REPORT_OPTIONS)):  # 0 is a gate
        from bakeoff.doors.pytest.ending import read_options

        requested = read_options(config)
    gathering(config).keeps_outcomes = requested is not None or config.option.eval_watch_cycle is not None
    config.pluginmanager.register(EvalReporter(config, requested), "bakeoff-reports")


class EvalReporter:
    """Counts and prints evals while tests run; judges gates, writes files and prints the summary at the end."""

    def __init__(self, config: pytest.Config, requested: "RequestedFiles | None" = None) -> None:
        self._config = config
        self._requested = requested
        self._gathered = gathering(config)
        self._verbosity = config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES)
        self._tallies: SuiteTallies | None = None
        self._ending: SessionEnd | None = None
        self._places: dict[str, tuple[Path, int | None]] = {}  # file and line of tests that failed, for annotations
        self._properties: dict[tuple[str, object], list[tuple[str, object]]] = {}
        self._failed_otherwise = 0
        self.incomplete = False  # evals were not run, or files or data could not be read
        self._forgiven = 0  # tests that failed by their scores alone, which the pass rate allows

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """Add score and time to pytest's own words; with -q, colour its letters by score."""
        if not (outcomes := self._gathered.of(report)) or not _is_result(report):
            return None
        full = all(outcome.score == 1 and not outcome.problem for outcome in outcomes)
        if self._verbosity <= 0 and report.passed and full:  # most are: their colour is known without loading more
            return report.outcome, "" if self._verbosity == 0 else ".", ("PASSED", {"green": True})
        from bakeoff.report.suites.outcome_lines import colour_of, score_words

        word, letter = ("PASSED", ".") if report.passed else ("FAILED", "F")
        if self._verbosity > 0:
            word = f"{word} {score_words(outcomes)}"
        return report.outcome, "" if self._verbosity == 0 else letter, (word, {colour_of(outcomes): True})

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> "Generator[None]":
        """Count outcomes, add JUnit properties before other plugins write the report, and print after pytest did."""
        outcomes = self._gathered.of(report)
        if outcomes and report.outcome in FINAL:
            self.count(outcomes)
        if report.failed:
            self._failed_otherwise += not _missed(outcomes)
            self._places[report.nodeid] = self._config.rootpath / report.location[0], report.location[1]
        if self._requested is not None and self._requested.junit:
            self._add_properties(report, outcomes)
        yield
        if not outcomes or self._verbosity < 0 or not _is_result(report):
            return
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None:
            from bakeoff.doors.pytest.ending import print_item, print_tools

            if self._verbosity == 0:
                print_item(terminal, report, outcomes)
            else:
                print_tools(terminal, outcomes)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.incomplete |= report.failed

    def count(self, outcomes: "Sequence[EvalOutcome]") -> None:
        """Count outcomes now, since reading them back later costs time."""
        if self._tallies is None:
            from bakeoff.report.suites.numbers import SuiteTallies

            self._tallies = SuiteTallies()
        for outcome in outcomes:
            self._tallies.add(outcome)
            self.incomplete |= outcome.problem is not None and outcome.problem.startswith(UNREAD)

    def _add_properties(self, report: pytest.TestReport, outcomes: "Sequence[EvalOutcome]") -> None:
        """Add properties to every report of a test: only those of the last one are written."""
        key = report.nodeid, getattr(report, "node", None)
        if outcomes:
            from bakeoff.report.suites.outcome_lines import properties_of

            self._properties[key] = properties_of([self._redact(outcome) for outcome in outcomes])
        report.user_properties.extend(self._properties.get(key, ()))
        if report.when == "teardown":
            self._properties.pop(key, None)

    @cached_property
    def _redact(self) -> "OutcomeRedactor":
        from bakeoff.report.suites.files import OutcomeRedactor

        return OutcomeRedactor(os.environ)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Replace results of an earlier session: if this one dies, nobody may take them for its own."""
        if self._requested is not None and self._requested.json is not None and not session.config.option.collectonly:
            from bakeoff.report.suites.files import write_incomplete

            write_incomplete(self._requested.json)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge gates and write files, whatever stopped the session."""
        if session.config.option.collectonly or (self._tallies is None and self._requested is None):
            return
        from bakeoff.doors.pytest.ending import RequestedFiles, end
        from bakeoff.report.suites.numbers import SuiteTallies

        stopped = bool(session.shouldfail or session.shouldstop) or exitstatus not in _ENDED or self.incomplete
        requested, tallies = self._requested or RequestedFiles(), self._tallies or SuiteTallies()
        self._ending = end(requested, tallies, gathering(session.config).outcomes, stopped=stopped, places=self._places)
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
        """Print the summary."""
        if self._ending is None:
            return
        from bakeoff.doors.pytest.ending import print_ending

        print_ending(terminalreporter, self._ending, verbosity=self._verbosity, forgiven=self._forgiven)


def _is_result(report: object) -> bool:
    """Tell whether a report is a pass or failure that counts: not a skip, an expected failure or a rerun."""
    return (
        isinstance(report, pytest.TestReport)
        and report.when == "call"
        and report.outcome in ("passed", "failed")
        and not hasattr(report, "wasxfail")
    )


def _missed(outcomes: "Sequence[EvalOutcome]") -> bool:
    """Tell whether a pass rate forgives the failure of a test: no `assert` of its own failed, and its evals were tried.

    A pass rate is not met if more evals are undecided than are allowed, so that evals which broke need no rule here.
    """
    for outcome in outcomes:
        never_tried = outcome.problem is not None and not any(record.tries for record in outcome.records)
        failures = [record.failure for record in outcome.records if record.failure is not None]
        if never_tried or any(failure.type == "AssertionError" for failure in failures):
            return False
    last = outcomes[-1] if outcomes else None  # what failed after the last eval is no miss
    return last is not None and (last.passed is False or last.problem is not None)

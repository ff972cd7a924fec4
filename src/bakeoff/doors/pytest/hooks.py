"""pytest's hooks that need the session's configuration.

Every project that has bakeoff installed loads this module, so it imports only pytest. The rest is imported when there
is an eval, or a report was requested.
"""

import os
import sys
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bakeoff._kernel.imports import existing_objects_frozen
from bakeoff.doors.pytest.gather import CALLED, FINAL, LOGGED, RUNNING, UNREAD, gathering
from bakeoff.doors.pytest.options import (
    COLLECTED_FILE,
    COLLECTION,
    COLLECTION_KEY,
    REPORT_OPTIONS,
    SPENDING_FILE,
    TERMINAL_WIDTH,
    has_eval,
    is_limited,
    keep_shard,
    replay_mode,
    shard_of,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from bakeoff.doors.pytest.ending import SessionEnd
    from bakeoff.doors.pytest.run_writer import RunWriter
    from bakeoff.doors.pytest.watch import WatchCycle
    from bakeoff.report.suites.files import OutcomeRedactor
    from bakeoff.report.suites.gates import SuiteGates
    from bakeoff.report.suites.numbers import SuiteTallies
    from bakeoff.report.suites.outcomes import EvalOutcome

SUITE_MODULE = "bakeoff.doors.pytest.suite"
"""The module that every file with a suite imports: without it, there is no suite in the session."""

AT_THE_END = pytest.StashKey[ExitStack]()
"""The resources that must stay open until pytest has collected garbage for the last time."""

_SESSION_MODULE = "bakeoff.doors.pytest.session"
_MAX_REMARKS = 20
_RUN_AGAIN = "was run again: its first result counts for scores and gates"
_ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
"""Exit codes of a session that ran to its end; other codes are not changed."""


class EvalHooks:
    """Hooks that keep, count and print evals, then judge gates, write files and print the summary.

    Under xdist, the workers run the evals and send their outcomes with the reports, and the
    controller does the rest. Creating the object raises pytest.UsageError for invalid options.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._gathered = gathering(config)
        self._is_worker = hasattr(config, "workerinput")
        self._gates: SuiteGates | None = None  # None: neither a gate nor a file was asked for
        asked_for = map(config.getoption, REPORT_OPTIONS)
        if not self._is_worker and any(value is not None and value is not False for value in asked_for):  # 0 is a gate
            from bakeoff.doors.pytest.ending import read_gates

            if getattr(config.option, "dist", None) == "each":
                raise pytest.UsageError("--dist=each counts every eval once for each worker: use --dist=load")
            self._gates = read_gates(config)
        self._gathered.keeps_outcomes = self._gates is not None or config.option.eval_watch_cycle is not None
        self._verbosity = config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES)
        self._writer: RunWriter | None = None
        self._folder: Path | None = None  # with the files that workers of xdist share
        self._planned: list[pytest.Item] = []  # evals that were collected and not deselected
        self._seen: set[str] = set()  # tests that were reported, by node id
        self._missed_first: set[str] = (
            set()
        )  # of these, tests whose evals missed their threshold and that were run again
        self._crashed: dict[str, str] = {}  # what is known of tests whose worker crashed, by node id
        self._remarks: list[str] = []  # on evals that disturbed others
        self._over_budget: list[str] = []  # for each undecided case, which limit was reached
        self._tallies: SuiteTallies | None = None
        self._ending: SessionEnd | None = None
        self._places: dict[str, tuple[Path, int | None]] = {}  # file and line of tests that failed, for annotations
        self._properties: dict[tuple[str, object], list[tuple[str, object]]] = {}
        self._failed_otherwise = 0
        self._incomplete = False  # evals were not run, or files or data could not be read
        self._forgiven = 0  # tests that failed by their scores alone, which the pass rate allows

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remove the results of an earlier session, in case this one ends without writing any."""
        option = session.config.option
        if self._is_worker or option.collectonly:
            return
        if option.eval_json is not None:
            from bakeoff.report.suites.files import write_incomplete

            write_incomplete(option.eval_json)
        page = option.eval_html if option.eval_watch_cycle is None else None  # a browser shows it between two cycles
        for path in filter(None, (page, self._gates and getattr(option, "xmlpath", None))):
            Path(path).unlink(missing_ok=True)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give each xdist worker the files for its collected evals and its limited spending."""
        node.workerinput[TERMINAL_WIDTH] = self._config.get_terminal_writer().fullwidth
        if self._folder is None:
            from bakeoff._kernel.temporary import temporary_folder

            until_end = ExitStack()
            self._folder = until_end.enter_context(temporary_folder("bakeoff-pytest-"))
            self._config.add_cleanup(until_end.close)
            (self._folder / SPENDING_FILE).touch()
            node.workerinput[COLLECTED_FILE] = str(self._folder / COLLECTED_FILE)  # one writes it: all collect the same
        if is_limited(self._config):
            node.workerinput[SPENDING_FILE] = str(self._folder / SPENDING_FILE)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Store the digest of the tests that the workers of xdist collected; all of them collect the same."""
        if (digest := getattr(node, "workeroutput", {}).get(COLLECTION_KEY)) is not None:
            self._config.stash[COLLECTION] = digest

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # a shard must not depend on what failed last time
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> "Generator[None]":
        """Note all evals, and leave out those of other shards.

        A cycle of `--eval-watch` runs only the tests that it is given.
        """
        self._planned = [item for item in items if has_eval(item)]
        shard = shard_of(config)
        if shard is not None and config.option.eval_watch_cycle is None:
            keep_shard(config, items, *shard)
        return (yield)

    def pytest_deselected(self, items: "Sequence[pytest.Item]") -> None:
        """Remove deselected tests from the planned evals."""
        left_out = set(map(id, items))
        self._planned = [item for item in self._planned if id(item) not in left_out]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note that a file could not be collected, or that one with evals was skipped, so that no gate passes."""
        self._incomplete |= report.failed or (report.skipped and _has_evals(report.nodeid, self._config.rootpath))

    def pytest_keyboard_interrupt(self) -> None:
        """Note that Ctrl-C or `pytest.exit` ended the session, whichever exit code `pytest.exit` was given."""
        self._incomplete = True

    def pytest_collection_finish(self) -> None:
        """Warn of suites that pytest does not collect, and start replay before the first fixture."""
        told = getattr(self._config, "workerinput", {})
        if SUITE_MODULE in sys.modules and told.get("workerid", "gw0") == "gw0":
            from bakeoff.doors.pytest.collecting import warn_of_uncollected

            warn_of_uncollected()
        if SUITE_MODULE in sys.modules and (until_end := self._config.stash.get(AT_THE_END, None)) is not None:
            until_end.enter_context(existing_objects_frozen())
        collected = told.get(COLLECTED_FILE)
        replays = replay_mode(self._config) != "off" and not self._config.option.collectonly
        if not (collected or replays) or not self._planned:
            return
        if collected:
            from bakeoff.doors.pytest.lost import write_collected

            write_collected(Path(collected), self._planned)
        if replays:
            from bakeoff.doors.pytest.session import session_of

            session_of(self._config)

    def pytest_report_collectionfinish(self, config: pytest.Config, items: list[pytest.Item]) -> list[str]:
        """Say under `-v` which suites run one case at a time, and why."""
        if config.get_verbosity() <= 0 or SUITE_MODULE not in sys.modules:
            return []
        from bakeoff.doors.pytest.groups import serial_notes

        return serial_notes(items)

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Set the next item of a suite, and route the streams between tests."""
        if (group := getattr(item, "group", None)) is not None:
            group.following = nextitem
            from bakeoff.doors.pytest.printing import printing_of

            printing_of(self._config).route()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Note the running test, for `log_input`, `log_output` and `log_score`."""
        RUNNING.append(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """End the test for `log_score`, which refuses later scores, because they would not be counted."""
        if item in RUNNING:
            RUNNING.remove(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> "Generator[None]":
        """Fail a test that left an eval unfinished, whichever plugin runs it."""
        if CALLED not in item.stash:
            return (yield)
        from bakeoff.doors.pytest.in_tests import add_unfinished

        try:
            result = yield
        except BaseException as error:
            add_unfinished(item, error)
            raise
        if (unfinished := add_unfinished(item)) is not None:
            pytest.fail(unfinished, pytrace=False)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Before the report is made, add the eval that the test logged, or that an error prevented.

        The time of a case is the time of its task, however long pytest waited for it.
        """
        if call.when == "call" and not hasattr(item, "group") and LOGGED in item.stash:
            from bakeoff.doors.pytest.in_tests import add_logged

            add_logged(item, call)
        if call.when == "call" and hasattr(item, "group"):
            call.duration = self._gathered.seconds(item.nodeid, call.duration)
        if call.excinfo is not None or call.when == "call":
            self._note_lost(item, call)

    def _note_lost(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Add the outcome of an eval whose test failed or was skipped first, or never called it."""
        if call.when == "teardown" or not (has_eval(item) or LOGGED in item.stash):
            return
        if call.when == "setup":
            self._gathered.begin(item.nodeid)
        elif self._gathered.has(item.nodeid):
            return
        from bakeoff.doors.pytest.lost import lost_in

        if (outcome := lost_in(item, call)) is not None:
            self._gathered.add(item.nodeid, outcome)

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
        """Take the outcomes before other hooks report them, and print them after pytest has printed the test.

        A worker sends them with the report instead.
        """
        if report.when == "call" or (report.when == "setup" and not report.passed):
            self._take(report)
        elif report.when not in ("setup", "teardown"):  # of xdist: the worker crashed
            said = str(report.longrepr).replace("while running", "while pytest was at")
            self._crashed[report.nodeid] = f"it was not finished: {said}; a case beside it may be the cause"
        outcomes = self._gathered.of(report)
        if report.failed:
            self._failed_otherwise += not (_missed(outcomes) or report.nodeid in self._missed_first)
            self._places[report.nodeid] = self._config.rootpath / report.location[0], report.location[1]
        if self._config.option.eval_junit and not self._is_worker:
            self._add_properties(report, outcomes)
        yield
        if not outcomes or self._verbosity < 0 or not _is_result(report):
            return
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None:
            from bakeoff.doors.pytest.ending import print_details, print_item

            if self._verbosity == 0:
                print_item(terminal, report, outcomes)
            else:
                print_details(terminal, report, outcomes)

    def _take(self, report: pytest.TestReport) -> None:
        (self._gathered.attach if self._is_worker else self._gathered.take)(report)
        outcomes = self._gathered.of(report)
        for outcome in outcomes:
            self._keep(outcome)
            if report.nodeid in self._gathered.counted:
                self._count(outcome)
        if report.outcome not in FINAL and outcomes and report.nodeid in self._gathered.counted:
            self._remarks.append(f"{report.nodeid} {_RUN_AGAIN}")
            self._missed_first |= {report.nodeid} if _missed(outcomes) else set()
        if outcomes and (report.sections or not report.passed):
            from bakeoff.doors.pytest.report_texts import break_up_commands

            break_up_commands(report)
        if report.outcome in FINAL:
            self._seen.add(report.nodeid)

    def _keep(self, outcome: "EvalOutcome") -> None:
        failures = (record.failure for record in outcome.records)
        self._over_budget += [each.message for each in failures if each is not None and each.kind == "budget"][:1]
        for record in outcome.records:
            for phase in (record.attempt, record.score):
                if phase is not None and phase.remarks:
                    self._remarks += [f"{outcome.nodeid}: {remark}" for remark in phase.remarks]
        self._write(outcome)

    def _write(self, outcome: "EvalOutcome", *, earlier: bool = False) -> None:
        if self._config.option.eval_no_record:
            return
        if self._writer is None:
            from bakeoff.doors.pytest.run_writer import RunWriter

            self._writer = RunWriter(self._config)
        self._writer.add(outcome, earlier=earlier)

    def _count(self, outcome: "EvalOutcome") -> None:
        """Count an outcome at once, because reading it again later would be slow."""
        if self._tallies is None:
            from bakeoff.report.suites.numbers import SuiteTallies

            self._tallies = SuiteTallies()
        self._tallies.add(outcome)
        self._incomplete |= outcome.problem is not None and outcome.problem.startswith(UNREAD)

    def _add_properties(self, report: pytest.TestReport, outcomes: "Sequence[EvalOutcome]") -> None:
        """Add properties to every report of a test, because JUnit contains only those of the last one."""
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

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> "Generator[None]":
        """Judge the evals before pytest sums up, and print the verdict of the gates below its last line."""
        self._finish(session, exitstatus)
        yield
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        if self._ending is not None and terminal is not None and (self._ending.failed or not session.exitstatus):
            from bakeoff.doors.pytest.ending import print_verdict

            print_verdict(terminal, self._ending)

    def _finish(self, session: pytest.Session, exitstatus: int) -> None:
        """Cancel unreported cases before fixtures are torn down, and then judge the session."""
        if _SESSION_MODULE in sys.modules:
            from bakeoff.doors.pytest.session import close_session

            close_session(self._config)
        watch: WatchCycle | None = self._config.pluginmanager.getplugin("bakeoff-watch")
        if not self._is_worker:
            self._add_lost(session, exitstatus)
            for outcome in watch.kept_outcomes() if watch is not None else ():
                self._gathered.outcomes.add(outcome)
                self._count(outcome)
                self._write(outcome, earlier=True)
        nothing = self._tallies is None and self._gates is None
        if not self._is_worker and not nothing and not session.config.option.collectonly:
            self._end(session, exitstatus)
        if self._writer is not None:
            stopped = exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
            stopped = stopped or bool(session.shouldfail or session.shouldstop)
            self._writer.finish(interrupted=stopped, conclusion=self._ending.conclusion if self._ending else {})
            if watch is not None:
                watch.run = self._writer.path

    def _add_lost(self, session: pytest.Session, exitstatus: int) -> None:
        """Add the evals that were collected and never reported."""
        if self._folder is None and all(item.nodeid in self._seen for item in self._planned):
            return
        from bakeoff.doors.pytest.lost import all_lost

        written = None if self._folder is None else self._folder / COLLECTED_FILE
        stopped = self._was_stopped(session, exitstatus) or bool(self._crashed)
        for outcome in all_lost(session.config, written or self._planned, self._seen, self._crashed, stopped=stopped):
            self._gathered.outcomes.add(outcome)
            self._count(outcome)
            self._keep(outcome)

    def _was_stopped(self, session: pytest.Session, exitstatus: int) -> bool:
        """Tell whether a part of the session was not run or not read."""
        return bool(session.shouldfail or session.shouldstop) or exitstatus not in _ENDED or self._incomplete

    def _end(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge gates, write files and set the exit code, even if the session was stopped."""
        from bakeoff.doors.pytest.ending import end
        from bakeoff.report.suites.numbers import SuiteTallies

        stopped = self._was_stopped(session, exitstatus)
        counts, outcomes = self._tallies or SuiteTallies(), self._gathered.outcomes
        self._ending = end(self._config, self._gates, counts, outcomes, stopped=stopped, places=self._places)
        if exitstatus in _ENDED and self._ending.failed:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif self._ending.forgives and session.testsfailed and not self._failed_otherwise and not stopped:
            self._forgiven = session.testsfailed
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the summary, and then notes about the whole session."""
        if self._ending is not None:
            from bakeoff.doors.pytest.ending import print_ending

            print_ending(terminalreporter, self._ending, verbosity=self._verbosity, forgiven=self._forgiven)
        if spent := self._over_budget:
            cases = "1 case is" if len(spent) == 1 else f"{len(spent):,} cases are"
            terminalreporter.write_line(f"evals: {cases} undecided (budget): {spent[-1]}", yellow=True)
        for remark in self._remarks[:_MAX_REMARKS]:
            from bakeoff._kernel.text import visible, without_command

            terminalreporter.write_line(without_command(f"evals: {visible(remark, 300)}"), yellow=True)
        if self._writer is not None and self._writer.problem is not None:
            terminalreporter.write_line(f"evals: this run is not kept: {self._writer.problem}", yellow=True)
        elif self._writer is not None and self._writer.path is not None and self._config.get_verbosity() > 0:
            terminalreporter.write_line(f"evals: this run is kept in {self._writer.path}")
        if self._ending is not None:
            from bakeoff.doors.pytest.ending import print_gates

            print_gates(terminalreporter, self._ending.summary.gates)


def _is_result(report: object) -> bool:
    """Tell whether a report is a pass or failure that counts, and not a skip, an expected failure or a rerun."""
    return (
        isinstance(report, pytest.TestReport)
        and report.when == "call"
        and report.outcome in ("passed", "failed")
        and not hasattr(report, "wasxfail")
    )


def _missed(outcomes: "Sequence[EvalOutcome]") -> bool:
    """Tell whether a pass rate forgives a test: its evals were tried, and no `assert` failed.

    Broken evals need no rule here: a pass rate is not met if more are undecided than allowed.
    """
    for outcome in outcomes:
        never_tried = outcome.problem is not None and not any(record.tries for record in outcome.records)
        failures = [record.failure for record in outcome.records if record.failure is not None]
        if never_tried or any(failure.type == "AssertionError" for failure in failures):
            return False
    last = outcomes[-1] if outcomes else None  # a failure after the last eval is not a miss
    return last is not None and (last.passed is False or last.problem is not None)


def _has_evals(nodeid: str, root: Path) -> bool:
    """Tell whether a file that was skipped as a whole contains names that evals use."""
    try:
        text = (root / nodeid.partition("::")[0]).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return "bakeoff" in text or "to_eval" in text or "run_eval" in text

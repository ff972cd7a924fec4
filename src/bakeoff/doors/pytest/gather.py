"""Gather the outcomes of a session in the process that reports: the controller under xdist, otherwise the only one.

A process that runs items adds outcomes under the node id of their test. `pytest_runtest_logreport`
takes them from there, so that a repeated test counts once. A worker sends them to the controller as
JSON on the report. Use these in or after any hook that is given a report:

    gathering(config).outcomes    every outcome so far, in the order in which pytest reported them; none on a worker
    gathering(config).of(report)  those of the report that is being logged (also in `pytest_report_teststatus`)
"""

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.outcomes import Skipped

from bakeoff.doors.pytest.options import TERMINAL_WIDTH

if TYPE_CHECKING:  # every pytest run loads this module, and most have no evals
    from bakeoff.report.suites.outcomes import EvalOutcome

ON_REPORT = "bakeoff"  # attribute of a report that travels from a worker: a list of JSON texts
_MAX_DIGITS = 1000  # a longer number becomes a text
LOGGED = pytest.StashKey[Any]()  # what an ordinary test has logged
CALLED = pytest.StashKey[list[Any]]()  # the fixtures of evals that a test was given
RUNNING: list[pytest.Item] = []  # the tests that run, the innermost last: a test may run pytest in its own process
UNREAD = "its data could not be read"  # the start of the problem of an eval that stands for unknown rows
FOR_PYTEST = (pytest.skip.Exception, pytest.xfail.Exception, pytest.exit.Exception)
"""What a test or task may raise to tell pytest something, instead of a result."""


class NotNeeded(Skipped):
    """The skip of a case because all of its comparisons are decided."""


FINAL = ("passed", "failed", "skipped")  # rerunfailures has another word for a try that does not count


class Outcomes:
    """Outcomes in the order added, as compressed JSON, which takes much less memory than objects.

    Iterating parses them again, so iterate once rather than often.
    """

    def __init__(self) -> None:
        self._packed: list[bytes] = []

    def add(self, outcome: "EvalOutcome") -> None:
        """Keep an outcome as compressed JSON."""
        self._packed.append(zlib.compress(outcome.__pydantic_serializer__.to_json(outcome, exclude_defaults=True), 1))

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> "Iterator[EvalOutcome]":
        return (_read(zlib.decompress(packed)) for packed in self._packed)


def _read(kept: bytes | str) -> "EvalOutcome":
    from pydantic import ValidationError

    from bakeoff.report.suites.outcomes import EvalOutcome

    try:
        return EvalOutcome.model_validate_json(kept)
    except ValidationError:  # pydantic writes a number of any length, but does not read a very long one
        short = json.loads(kept, parse_int=lambda digits: int(digits) if len(digits) <= _MAX_DIGITS else digits)
        return EvalOutcome.model_validate(short)


class GatheredEvals:
    """The outcomes of one session."""

    def __init__(self) -> None:
        self.outcomes = Outcomes()
        self.keeps_outcomes = True  # False: no report will read them, so that they need not be packed
        self._made: dict[str, list[EvalOutcome]] = {}  # in this process, by node id; their report is not logged yet
        self._logged: tuple[object, Sequence[EvalOutcome]] = (None, ())
        self.counted: set[str] = set()  # tests that have a result, by node id

    def begin(self, nodeid: str) -> None:
        """Forget the unreported outcomes of an earlier attempt at a test."""
        self._made.pop(nodeid, None)

    def add(self, nodeid: str, outcome: "EvalOutcome") -> None:
        """Add an outcome whose report is still to come."""
        self._made.setdefault(nodeid, []).append(outcome)

    def has(self, nodeid: str) -> bool:
        """Tell whether a test has made an outcome whose report is still to come."""
        return nodeid in self._made

    def seconds(self, nodeid: str, otherwise: float) -> float:
        """Return the seconds that a test's task took, not how long pytest waited for it."""
        made = self._made.get(nodeid, ())
        return sum(outcome.seconds for outcome in made) if any(outcome.records for outcome in made) else otherwise

    def attach(self, report: pytest.TestReport) -> None:
        """On a worker, add the outcomes of a report to the report."""
        if made := self._made.pop(report.nodeid, None):
            setattr(report, ON_REPORT, [outcome.model_dump_json(exclude_defaults=True) for outcome in made])

    def take(self, report: pytest.TestReport) -> None:
        """On the reporting process, keep the outcomes of a report that is being logged.

        If a test is run again, its first result counts: the best of several tries would be too good. Tries that could
        not be judged are no result.
        """
        carried: Sequence[str] = report.__dict__.pop(ON_REPORT, ())
        found = self._made.pop(report.nodeid, None) or [_read(text) for text in carried]
        found = [] if report.nodeid in self.counted else found
        self._logged = (report, found)
        if found and (report.outcome in FINAL or not any(outcome.problem for outcome in found)):
            self.counted.add(report.nodeid)
            for outcome in found if self.keeps_outcomes else ():
                self.outcomes.add(outcome)

    def of(self, report: object) -> "Sequence[EvalOutcome]":
        """Return the outcomes of the report that is being logged; nothing for other reports."""
        return self._logged[1] if self._logged[0] is report else ()


_KEY = pytest.StashKey[GatheredEvals]()


def gathering(config: pytest.Config) -> GatheredEvals:
    """Return the outcomes of the session and of the tests that run."""
    return config.stash.setdefault(_KEY, GatheredEvals())


class EvalFailed(AssertionError):
    """The failure of a test whose eval has too low a score or none. The message has all details."""

    def __init__(self, outcome: "EvalOutcome", width: int = 80) -> None:
        from bakeoff.report.suites.outcome_lines import failure_line, failure_text

        super().__init__(failure_text(outcome, width))
        self.outcome = outcome
        self.short = failure_line(outcome)


def report(config: pytest.Config, outcome: "EvalOutcome", errors: "Mapping[int, BaseException]") -> None:
    """Add an outcome to the reports. If the eval failed, raise the error of its task, or else EvalFailed.

    Args:
        config: the configuration of the session.
        outcome: the outcome of a case, or of an eval inside of a test.
        errors: the errors that the task raised, by round.
    """
    __tracebackhide__ = True
    gathering(config).add(outcome.nodeid, outcome)
    if outcome.passed is not False and not outcome.problem:
        return
    from asyncio import CancelledError

    from bakeoff.errors import BakeoffError

    described = (BakeoffError, CancelledError)  # errors whose traceback says nothing more than the outcome
    raised = [errors[round_] for round_ in sorted(errors) if not isinstance(errors[round_], described)]
    if raised and outcome.problem is None:
        raise raised[0]
    told: int | None = getattr(config, "workerinput", {}).get(TERMINAL_WIDTH)  # a worker of xdist has no terminal
    raise EvalFailed(outcome, told or config.get_terminal_writer().fullwidth)

"""Run evals as pytest items: one for each row."""

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pluggy
import pytest

import bakeoff
from bakeoff._kernel.json import clean_text
from bakeoff.doors.pytest.gather import FOR_PYTEST, EvalFailed, NotNeeded, gathering, report
from bakeoff.doors.pytest.groups import Group
from bakeoff.doors.pytest.parallel import PendingCase
from bakeoff.doors.pytest.rows import EvalRow
from bakeoff.doors.pytest.session import EvalSession, session_of
from bakeoff.report.suites.outcomes import EvalOutcome
from bakeoff.storage.ledger import NOT_RUN

_JUDGED_IN_SETUP = ("skip", "skipif", "xfail")  # marks

_FRAMES_OF_OTHERS = tuple(
    str(Path(inspect.getfile(part)).parent) for part in (bakeoff, pytest.Item, pluggy, asyncio)
)  # left out at the start of a traceback


class EvalItem(pytest.Function):
    """A case of a suite, for which pytest provides fixtures and parameters as for any function."""

    def __init__(self, *, group: Group, row: EvalRow, **given: Any) -> None:
        super().__init__(**given)
        self.group = group
        self.row = row
        wanted = f"{self.parent.nodeid}::{self.name}"  # type: ignore[union-attr]
        if self.nodeid != wanted:  # pytest 9 makes it from the parameters, to which the row does not belong
            self._id = type(self._id).parse(wanted)

    def may_be_skipped(self) -> bool:
        """Return True if a mark of the item itself, for example from a conftest, may keep pytest from running it."""
        return any(mark.name in _JUDGED_IN_SETUP for mark in self.own_markers)

    def runtest(self) -> None:
        """Wait for the case, which may be finished already, and report its outcome.

        Raises EvalFailed for a low score, or the error of the task; skips a case that is not needed.
        """
        row = self.row
        gathering(self.config).begin(self.nodeid)
        if row.problem is not None:
            self._report_problem(row.problem, row.error)
            return
        session = session_of(self.config)
        if session.decisions is not None and session.is_not_needed(self):
            session.decisions.save(self.nodeid)
            raise NotNeeded("not needed: every comparison of it is decided")
        arguments = {name: self.funcargs[name] for name in self._fixtureinfo.argnames}
        case = session.result(self, arguments, self.instance if self.group.holder else None)
        for error in case.errors.values():
            if isinstance(error, FOR_PYTEST):
                raise error
        if (broken := case.broken.result()) is not None:
            report(self.config, self._lost(str(broken), "InfraError"), {})
            return
        outcome = self._judged(case, session)
        if session.decisions is not None:
            session.decisions.followed.add(self.nodeid, outcome.records)
        report(self.config, outcome, case.errors)

    def _report_problem(self, problem: str, error: BaseException | None) -> None:
        """Report a row that cannot be run, with the error that the user's code raised when the row was read."""
        if error is None:
            report(self.config, self._lost(problem), {})
            return
        if not isinstance(error, FOR_PYTEST):
            gathering(self.config).add(self.nodeid, self._lost(problem))
        raise error

    def _judged(self, case: PendingCase, session: EvalSession) -> EvalOutcome:
        """Return the outcome of a case that ran."""
        records = sorted(case.records, key=lambda record: record.round)
        return self.unjudged().judged(records, subject=session.subject_to_tell(self.group.parameters))

    def unjudged(self) -> EvalOutcome:
        """Return the outcome of the case without records."""
        group, row = self.group, self.row
        return EvalOutcome(
            nodeid=clean_text(self.nodeid),
            suite=group.suite,
            case=row.id,
            input=row.shown_input,
            expected=row.expected,
            rule=row.rule(group.described.settings.rule),
            scorers=dict(group.scorers),
            parameters=group.parameters,
        )

    def _lost(self, why: str, kind: str = NOT_RUN) -> EvalOutcome:
        from bakeoff.doors.pytest.lost import lost_eval

        return lost_eval(self.unjudged(), why, session_of(self.config).subjects, kind)

    def setup(self) -> None:
        if self.group.skipped is not None:
            pytest.skip(self.group.skipped)
        super().setup()

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return file, line counted from 0, and name of the test, for reports of skips and errors."""
        return self.group.file, self.group.location[1] or 0, self.location[2]  # pytest skips no test without a line

    @property
    def location(self) -> tuple[str, int | None, str]:
        """Return pytest's location; compute the part that all rows share only once."""
        file, line, before = self.group.location
        return file, line, before + self.name

    @property
    def ihook(self) -> Any:
        """Return pytest's hooks for the file, looked up once for all rows."""
        if self.group.hooks is None:
            self.group.hooks = super().ihook
        return self.group.hooks

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show a low score as its message alone, at the line of the function; show other errors with a traceback."""
        if isinstance(excinfo.value, EvalFailed):
            shown: Any = excinfo.getrepr(
                style="value", tbfilter=False, chain=False
            )  # travels unchanged from a worker to the controller
            shown.reprcrash.path = str(self.group.file)
            shown.reprcrash.lineno = (self.group.location[1] or 0) + 1
            return shown
        chosen = self.config.getoption("tbstyle", "auto")
        return self._repr_failure_py(excinfo, style=style or ("long" if chosen == "auto" else chosen))

    def _traceback_filter(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:
        """Start the traceback at the first frame of the user's code."""
        trace = excinfo.traceback
        if self.config.getoption("fulltrace", False):
            return trace
        for place, entry in enumerate(trace):
            path = str(entry.path)
            if not path.startswith(_FRAMES_OF_OTHERS) and not path.endswith(("threading.py", "bdb.py")):
                return type(trace)(trace[place:]).filter(excinfo)
        return type(trace)(trace[-1:])  # the call itself was wrong: no frame is the user's

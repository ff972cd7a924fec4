"""Run evals as pytest items: one for each row, light where the suite needs no fixtures."""

import asyncio
import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pluggy
import pytest
from _pytest.logging import caplog_records_key
from _pytest.mark.structures import NodeKeywords
from _pytest.runner import call_and_report

import bakeoff
from bakeoff._kernel.json import clean_text
from bakeoff.doors.pytest.adapters import raise_at
from bakeoff.doors.pytest.gather import EvalFailed, gathering, report
from bakeoff.doors.pytest.groups import Group
from bakeoff.doors.pytest.loops import runner_of
from bakeoff.doors.pytest.parallel import PendingCase
from bakeoff.doors.pytest.rows import EvalCase, EvalRow
from bakeoff.doors.pytest.session import EvalSession, session_of
from bakeoff.doors.pytest.suite import EvalSuite
from bakeoff.report.suites.outcomes import EvalOutcome

_STRUCTURED_IDS = hasattr(pytest.Item, "_id")  # from pytest 9 on
_FOR_PYTEST = (pytest.skip.Exception, pytest.xfail.Exception, pytest.exit.Exception)
"""What a task may raise to tell pytest something, instead of returning an output."""

_JUDGED_IN_SETUP = ("skip", "skipif", "xfail")  # marks

_FRAMES_OF_OTHERS = tuple(
    str(Path(inspect.getfile(part)).parent) for part in (bakeoff, pytest.Item, pluggy, asyncio)
)  # left out at the start of a traceback


class Eval(pytest.Item):
    """The common part of both kinds of items."""

    group: Group
    row: EvalRow

    def _arguments(self) -> Mapping[str, Any]:
        """Return the fixtures that the function asks for."""
        return {}

    def _holder(self) -> Any:
        return None

    def runner(self) -> tuple[object, Callable[..., object]] | None:
        """Return the runner of its async fixtures; it has none."""
        return None

    def may_be_skipped(self) -> bool:
        """Return True if a mark of its own, such as one from a conftest, may keep pytest from running it."""
        return any(mark.name in _JUDGED_IN_SETUP for mark in self.own_markers)

    def runtest(self) -> None:
        """Wait for the case, which may be finished already, and report its outcome.

        Raise EvalFailed for a score that is too low, or what the task raised; skip a case that decides nothing.
        """
        group, row = self.group, self.row
        gathering(self.config).begin(self.nodeid)
        if row.problem is not None:
            self._report_problem(row.problem, row.error)
            return
        session = session_of(self.config)
        if session.decisions is not None and session.is_not_needed(self):
            session.decisions.followed.save(self.nodeid)
            pytest.skip("not needed: every comparison of it is decided")
        case = session.result(self, self._arguments(), self._holder())
        for error in case.errors.values():
            if isinstance(error, _FOR_PYTEST):
                raise error
        if case.broken is not None:
            report(self.config, self._lost(str(case.broken)), {})
            return
        outcome = self._judged(case, session)
        if session.decisions is not None:
            session.decisions.followed.add(self.nodeid, outcome.records)
        try:
            report(self.config, outcome, case.errors)
        except EvalFailed as failed:
            if not self.config.getoption("usepdb", False):
                raise
            raise_at(failed, group.described.function, {"case": EvalCase(row), "outcome": failed.outcome})

    def _report_problem(self, problem: str, error: BaseException | None) -> None:
        """Report a row that cannot be run, with what the user's code raised when it was asked for it."""
        if error is None:
            report(self.config, self._lost(problem), {})
            return
        if not isinstance(error, _FOR_PYTEST):
            gathering(self.config).add(self.nodeid, self._lost(problem))
        raise error

    def _judged(self, case: PendingCase, session: EvalSession) -> EvalOutcome:
        """Return the outcome of a case that ran. What all rows have in common is validated once."""
        if case.outcome is not None:
            return case.outcome
        group, row = self.group, self.row
        if group.outcome is None:
            rule = group.described.settings.rule
            made = EvalOutcome(nodeid="", case="", input="", suite=group.suite, parameters=group.parameters, rule=rule)
            group.outcome = made
        records = case.records if len(case.records) == 1 else sorted(case.records, key=lambda record: record.round)
        common: EvalOutcome = group.outcome
        if (rule := row.rule(common.rule)) is not common.rule:
            common = common.model_copy(update={"rule": rule})
        case.outcome = common.judged(
            records,
            nodeid=clean_text(self.nodeid),
            case=row.id,
            input=row.shown_input,
            expected=row.expected,
            subject=session.subject_to_tell(group.parameters),
        )
        return case.outcome

    def _lost(self, why: str) -> EvalOutcome:
        from bakeoff.doors.pytest.lost import collected

        one = collected(self)
        assert one is not None
        return one.lost(why, session_of(self.config).subjects)

    def setup(self) -> None:
        if self.group.skipped is not None:
            pytest.skip(self.group.skipped)
        super().setup()

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return file, line counted from 0, and name of the test, for reports of skips and errors."""
        return self.group.file, self.group.location[1] or 0, self.location[2]  # pytest skips no test without a line

    @property
    def location(self) -> tuple[str, int | None, str]:
        """Return pytest's location, without computing for each row what all rows have in common."""
        file, line, before = self.group.location
        return file, line, before + self.name

    @property
    def ihook(self) -> Any:
        """Return pytest's hooks for the file, looked up once for all rows."""
        if self.group.hooks is None:
            self.group.hooks = super().ihook
        return self.group.hooks

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show a low score as its message alone, at the line of the function; any other error with its traceback."""
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


class _Lazy:
    """An attribute that is made when it is first used, and kept in the item's `kept`.

    There may be many thousands of items, of which one runs: most of them never need these attributes.
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, item: Any, owner: type | None = None) -> Any:
        kept = item.kept
        if kept is None:
            kept = item.kept = {}
        elif self._name in kept:
            return kept[self._name]
        made = kept[self._name] = self._make(item)
        return made

    def __set__(self, item: Any, value: Any) -> None:
        item.kept = {**(item.kept or {}), self._name: value}


_KEPT_AFTER_THE_RUN = ("own_markers", "user_properties")


class EvalItem(Eval):
    """An eval that needs no fixtures. It is made without the attributes that pytest may never use."""

    kept: dict[str, Any] | None = None
    fixturenames: Sequence[str] = ()  # conftests may ask every item for it
    keywords = _Lazy(NodeKeywords)
    own_markers = _Lazy(lambda _: [])
    extra_keyword_matches = _Lazy(lambda _: set())
    stash = _Lazy(lambda _: pytest.Stash())
    _report_sections = _Lazy(lambda _: [])
    user_properties = _Lazy(lambda _: [])

    def __init__(self, *, group: Group, row: EvalRow, name: str, parent: Any) -> None:
        self.name = name
        self.parent = parent
        self.config = parent.config
        self.session = parent.session
        self.path = parent.path
        self.group = group
        self.row = row
        if _STRUCTURED_IDS:
            base, _, parameters = name.partition("[")
            if group.stem is None:
                group.stem = parent.id.child(base)
            self._id = group.stem.with_params(parameters.removesuffix("]"))
        else:
            self._nodeid = f"{parent.nodeid}::{name}"

    @property
    def obj(self) -> EvalSuite:
        """Return the suite, as pytest's functions return theirs: plugins and conftests ask for it."""
        found: EvalSuite = getattr(self.parent.obj, self.originalname)  # type: ignore[union-attr]
        return found

    function = obj

    @property
    def originalname(self) -> str:
        return self.name.partition("[")[0]

    @property
    def module(self) -> Any:
        return getattr(self.getparent(pytest.Module), "obj", None)

    @property
    def cls(self) -> Any:
        return getattr(self.getparent(pytest.Class), "obj", None)

    def may_be_skipped(self) -> bool:
        return self.kept is not None and super().may_be_skipped()

    def take_over(self) -> None:
        """Become the item that runs: the one before it drops what is needed only while it runs."""
        group = self.group
        if group.last is not None and group.last is not self:
            kept = group.last.kept or {}
            group.last.kept = {name: kept[name] for name in _KEPT_AFTER_THE_RUN if kept.get(name)} or None
        group.last = self

    def setup(self) -> None:
        self.take_over()
        super().setup()

    def _holder(self) -> Any:
        return self.group.holder() if self.group.serial and self.group.holder else None

    def run_call_phase_only(self, nextitem: pytest.Item | None) -> bool:
        """Run without setup and teardown if that makes no difference; return False if the whole protocol is needed.

        pytest goes through three phases for each test and reports each of them. Between two cases of a suite without
        fixtures, two of the phases do nothing.
        """
        if nextitem is None or nextitem.parent is not self.parent:
            return False
        group, stack = self.group, self.session._setupstate.stack
        if group.unnoticed is None:
            group.unnoticed = group.skipped is None and _nobody_would_notice(self)
        if not group.unnoticed or self.may_be_skipped() or next(reversed(stack), None) is not self.parent:
            return False
        if any(failed for _, failed in stack.values()):
            return False
        if not self.report_if_finished():
            with self._announced():
                self.take_over()
                self.stash[caplog_records_key] = {}  # pytest's setup phase would have added it
                call_and_report(self, "call")
                self._end_alone()
        return True

    def report_if_finished(self) -> bool:
        """Report a case that has passed already and printed nothing; return False if there is more to do.

        Nothing is left to happen in its call phase, so that the hooks around it have nothing to capture.
        """
        kept = self.kept
        if kept is not None and (kept.get("user_properties") or kept.get("_report_sections")):
            return False
        session = session_of(self.config)
        case = session.finished(self)
        if case is None or not self._makes_reports():
            return False
        outcome = self._judged(case, session)
        if outcome.passed is False or outcome.problem:
            return False
        session.forget(self)
        if kept is not None:
            self.take_over()
        with self._announced():
            gathering(self.config).begin(self.nodeid)
            gathering(self.config).add(self.nodeid, outcome)
            now = time.time()
            self.ihook.pytest_runtest_logreport(report=self._passed("call", outcome.seconds, now, now))
            self._end_alone()
        return True

    def _end_alone(self) -> None:
        """Tear down the remaining fixtures if no test follows."""
        if self.session.shouldfail or self.session.shouldstop:
            self.stash.setdefault(caplog_records_key, {})
            call_and_report(self, "teardown", nextitem=None)

    @contextmanager
    def _announced(self) -> Iterator[None]:
        """Report the begin and the end of the test to the plugins that show it."""
        silent = self._is_silent()
        if not silent:
            self.ihook.pytest_runtest_logstart(nodeid=self.nodeid, location=self.location)
        yield
        if not silent:
            self.ihook.pytest_runtest_logfinish(nodeid=self.nodeid, location=self.location)

    def _is_silent(self) -> bool:
        """Tell whether no plugin shows that a test begins or ends: with -q, pytest does not."""
        if self.group.silent is None:
            config, hooks = self.config, self.ihook
            quiet = config.get_verbosity() < 0 and config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) < 0
            live = config.getini("log_cli") or config.getoption("log_cli_level", None)
            both = (hooks.pytest_runtest_logstart, hooks.pytest_runtest_logfinish)
            self.group.silent = quiet and not live and all(all_known(hook, ("terminal", "logging")) for hook in both)
        return self.group.silent

    def passing_report(self, call: pytest.CallInfo[None]) -> pytest.TestReport | None:
        """Return the report of a phase that went well, as pytest makes it; None if others want to make it.

        The parts that all rows have in common are shared.
        """
        if not self._makes_reports():
            return None
        assert call.when != "collect"
        return self._passed(call.when, call.duration, call.start, call.stop)

    def _makes_reports(self) -> bool:
        if self.group.reports is None:
            makers = self.ihook.pytest_runtest_makereport
            self.group.reports = all_known(makers, _KNOWN["pytest_runtest_makereport"], wrappers=False)
        return self.group.reports

    def _passed(
        self, when: Literal["setup", "call", "teardown"], seconds: float, start: float, stop: float
    ) -> pytest.TestReport:
        if self.group.keywords is None:
            self.group.keywords = {name: 1 for name in self.keywords if name != self.name}
        kept = self.kept or {}
        sections = [(f"Captured {key} {when}", content) for when, key, content in kept.get("_report_sections", ())]
        return pytest.TestReport(
            self._id if _STRUCTURED_IDS else self.nodeid,
            self.location,
            self.group.keywords,
            "passed",
            None,
            when,
            sections,
            seconds,
            start,
            stop,
            kept.get("user_properties"),
        )


class EvalFunction(Eval, pytest.Function):
    """An eval with fixtures or parameters, which pytest provides as for any function."""

    def __init__(self, *, group: Group, row: EvalRow, **given: Any) -> None:
        super().__init__(**given)
        self.group = group
        self.row = row
        wanted = f"{self.parent.nodeid}::{self.name}"  # type: ignore[union-attr]
        if self.nodeid != wanted:  # pytest 9 makes it from the parameters, and the row is none of them
            self._id = type(self._id).parse(wanted)

    def _arguments(self) -> Mapping[str, Any]:
        return {name: self.funcargs[name] for name in self._fixtureinfo.argnames}

    def _holder(self) -> Any:
        return self.instance if self.group.holder else None

    def runner(self) -> tuple[object, Callable[..., object]] | None:
        """Return the runner of its async fixtures, and how that runs a coroutine."""
        return runner_of(self)


_AROUND_A_PHASE = ("runner", "capture", "logging", "skipping", "threadexception", "unraisableexception")
_KNOWN = {
    "pytest_runtest_setup": _AROUND_A_PHASE,
    "pytest_runtest_call": _AROUND_A_PHASE,
    "pytest_runtest_teardown": _AROUND_A_PHASE,
    "pytest_runtest_makereport": ("runner", "skipping", "tmpdir", "unittest"),
    "pytest_runtest_logreport": ("main", "terminal", "logging", "cacheprovider"),
}
"""Modules of pytest, by hook, that do nothing in a phase in which nothing happens."""

_SHOWING_PHASES = ("setuponly", "setupshow", "setupplan", "durations")  # options


def _nobody_would_notice(item: EvalItem) -> bool:
    """Return True if no option, mark or hook needs the phases in which nothing happens."""
    option, hooks = item.config.option, item.ihook
    asked_for = (getattr(option, name, None) for name in _SHOWING_PHASES)
    if any(value is not None and value is not False for value in asked_for):  # 0 asks for all durations
        return False
    if any(mark.name in _JUDGED_IN_SETUP for node in item.listchain()[:-1] for mark in node.own_markers):
        return False
    return all_known(hooks.pytest_runtest_protocol, ("runner",), wrappers=False) and all(
        all_known(getattr(hooks, name), known) for name, known in _KNOWN.items()
    )


def all_known(hook: Any, known: tuple[str, ...], *, wrappers: bool = True) -> bool:
    """Return True if each implementation of a hook is ours or in one of these modules of pytest."""
    modules = (
        each.function.__module__ for each in hook.get_hookimpls() if wrappers or not (each.wrapper or each.hookwrapper)
    )
    return all(name.startswith("bakeoff.") or name.removeprefix("_pytest.") in known for name in modules)

"""Evals as pytest's items: one for each row, light where the suite needs no fixtures."""

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import _pytest
import pluggy
import pytest
from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback
from _pytest.mark.structures import NodeKeywords

import bakeoff
from bakeoff.doors.pytest_plugin.columns import MOST
from bakeoff.doors.pytest_plugin.failures import EvalFailed, failure_of, headline
from bakeoff.doors.pytest_plugin.gather import gathering
from bakeoff.doors.pytest_plugin.groups import Group
from bakeoff.doors.pytest_plugin.judging import outcome_of, undecided
from bakeoff.doors.pytest_plugin.loops import run_here
from bakeoff.doors.pytest_plugin.rows import Row, printable, read_rows
from bakeoff.doors.pytest_plugin.session import session_of
from bakeoff.doors.pytest_plugin.short import nobody_else_makes_reports, run_shortly
from bakeoff.doors.pytest_plugin.suite import Described, EvalSuite
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
    from bakeoff.doors.pytest_plugin.parallel import Ticket

_STRUCTURED_IDS = hasattr(pytest.Item, "_id")  # from pytest 9 on
_DIRECT = "get_direct_param_fixture_func"  # what pytest calls the function behind a value of parametrize
_FOR_PYTEST = (pytest.skip.Exception, pytest.xfail.Exception, pytest.exit.Exception)
"""What a task may raise to tell pytest something, instead of giving an output."""

_FOR_ALL = (KeyboardInterrupt, pytest.exit.Exception)
"""What ends the session, wherever it is raised."""

_FOR_SETUP = ("skip", "skipif", "xfail")  # marks that pytest judges before a test is asked

_FRAMES_OF_OTHERS = tuple(
    str(Path(module.__file__ or "").parent) for module in (bakeoff, _pytest, pluggy, asyncio)
)  # where a traceback begins that is shown to the author of a task


def collect(collector: Any, name: str, suite: EvalSuite) -> list[pytest.Item]:
    """The items of a suite. What is wrong with its data is the failure of an item, and so stops nothing else."""
    described = suite._bakeoff
    # The user's code may raise anything where it is asked; pytest keeps that as it does for tests.
    asked = pytest.CallInfo.from_call(lambda: _asked(described, collector.path.parent), "collect", _FOR_ALL)
    rows, skipped = ([Row("data", {})], None) if asked.excinfo else asked.result
    error = asked.excinfo.value if asked.excinfo else None
    templates = list(collector._genfunctions(name, suite))
    columns = len(templates) <= MOST
    groups = [
        (template, _group(collector, template, described, rows, skipped, error, columns=columns))
        for template in templates
    ]
    return [item for template, group in groups for item in _items(collector, template, group)]


def _asked(described: Described, folder: Path) -> tuple[list[Row], str | None]:
    """The rows, and why they are skipped if they are."""
    skip = described.skip_if() if callable(described.skip_if) else described.skip_if
    skip = run_here(skip) if inspect.isawaitable(skip) else skip
    if skip:
        return [Row("skipped", {})], skip if isinstance(skip, str) else "skip_if"
    return _rows(described, folder), None


def _rows(described: Described, folder: Path) -> list[Row]:
    try:
        return read_rows(described.data, folder)
    except UsageError as error:
        return [Row("data", {}, str(error))]


def _group(
    collector: Any,
    template: pytest.Function,
    described: Described,
    rows: list[Row],
    skipped: str | None,
    error: BaseException | None,
    *,
    columns: bool,
) -> Group:
    code = getattr(inspect.unwrap(described.function), "__code__", None)
    inside = code is not None and code.co_filename == str(collector.path)
    file = template.session._node_location_to_relpath(collector.path)
    before = template.getmodpath().removesuffix(template.name)  # the class, if there is one
    location = (file, code.co_firstlineno - 1 if inside and code else None, before)
    holder = collector.newinstance if isinstance(collector, pytest.Class) and described.given_a_case else None
    base, _, parameters = template.name.partition("[")
    shared = "" if columns or not parameters else f"{parameters[:-1]}-"  # what tells cases apart, and not subjects
    around = (printable(f"{collector.nodeid}::{base}[{shared}"), "]")
    column = printable(parameters[:-1]) if columns else ""
    serial = _serial_because(template)
    return Group(described, rows, location, collector.path, around, column, holder, serial, skipped, error)


def _serial_because(template: pytest.Function) -> str | None:
    """Why cases of a suite cannot run side by side: a fixture that each of them has to have for itself."""
    info = template._fixtureinfo
    asked_for = {*info.argnames, *(name for mark in template.iter_markers("usefixtures") for name in mark.args)}
    if "request" in asked_for:
        return "it asks for 'request'"
    for name in info.names_closure:
        definitions = info.name2fixturedefs.get(name)
        if not definitions or definitions[-1].scope != "function":
            continue
        function = definitions[-1].func
        if getattr(function, "__name__", "") == _DIRECT:
            continue
        if name in asked_for:
            return f"it asks for the function-scoped fixture {name!r}"
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            return f"the function-scoped fixture {name!r} has something to do after each case"
    return None


def _items(collector: Any, template: pytest.Function, group: Group) -> Iterator[pytest.Item]:
    base, _, parameters = template.name.partition("[")
    opening = f"{base}[{parameters[:-1]}-" if parameters else f"{base}["
    marks = template.own_markers
    for row in group.rows:
        name = f"{opening}{row.id}]"
        if template.fixturenames:
            yield EvalFunction.from_parent(
                collector,
                name=name,
                callspec=getattr(template, "callspec", None),
                fixtureinfo=template._fixtureinfo,
                originalname=base,
                group=group,
                row=row,
            )
        else:
            item: EvalItem = EvalItem.from_parent(collector, name=name, group=group, row=row)
            if marks:
                item.own_markers.extend(marks)
                item.keywords.update((mark.name, mark) for mark in marks)
            yield item


class Eval(pytest.Item):
    """What both kinds of items do."""

    group: Group
    row: Row

    def _arguments(self) -> Mapping[str, Any]:
        """The fixtures that the function asks for."""
        return {}

    def _holder(self) -> Any:
        return None

    def may_be_skipped(self) -> bool:
        """By a mark of its own, such as a conftest gives: nobody pays for what pytest may not ask for."""
        return any(mark.name in _FOR_SETUP for mark in self.own_markers)

    def runtest(self) -> None:
        group, row = self.group, self.row
        gathering(self.config).begin(self.nodeid)
        if group.error is not None:
            raise group.error
        if row.problem is not None:
            self._end(undecided(self.nodeid, group.suite, row, group.described.settings, row.problem))
            return
        ticket = session_of(self.config).result(self, self._arguments(), self._holder())
        for error in ticket.errors.values():
            if isinstance(error, _FOR_PYTEST):
                raise error
        self._end(self._outcome(ticket), ticket.errors)

    def _outcome(self, ticket: "Ticket") -> "EvalOutcome":
        described = self.group.described
        if ticket.broken is not None:
            return undecided(self.nodeid, self.group.suite, self.row, described.settings, str(ticket.broken))
        records = sorted(ticket.records, key=lambda record: record.round)
        column = self.group.parameters, session_of(self.config).subject_to_tell(self.session, self.group.parameters)
        return outcome_of(self.nodeid, self.group.suite, self.row, described.settings, records, column)

    def _end(self, outcome: "EvalOutcome", errors: Mapping[int, BaseException] | None = None) -> None:
        gathering(self.config).add(self.nodeid, outcome)
        if (failure := failure_of(outcome, errors or {})) is not None:
            raise failure

    def setup(self) -> None:
        if self.group.skipped is not None:
            pytest.skip(self.group.skipped)
        super().setup()

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.group.file, self.group.location[1], self.location[2]

    @property
    def location(self) -> tuple[str, int | None, str]:
        """As pytest has it, without working out for each row what all rows have in common."""
        file, line, before = self.group.location
        return file, line, before + self.name

    @property
    def ihook(self) -> Any:
        if self.group.hooks is None:
            self.group.hooks = super().ihook
        return self.group.hooks

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, EvalFailed):
            return self._told(excinfo.value)
        chosen = self.config.getoption("tbstyle", "auto")
        return self._repr_failure_py(excinfo, style=style or ("long" if chosen == "auto" else chosen))

    def _told(self, failed: EvalFailed) -> ReprExceptionInfo:
        """A failure as text, in the shape that goes from a worker to the controller as it is."""
        line = self.group.location[1]
        crash = ReprFileLocation(str(self.group.file), (line or 0) + 1, headline(failed.outcome))
        entry = ReprEntryNative([f"{text}\n" for text in str(failed).splitlines()])
        return ReprExceptionInfo(reprtraceback=ReprTraceback([entry], None, style="native"), reprcrash=crash)

    def _traceback_filter(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:
        """From the first frame of the user's own."""
        trace = excinfo.traceback
        if self.config.getoption("fulltrace", False):
            return trace
        for place, entry in enumerate(trace):
            if not str(entry.path).startswith(_FRAMES_OF_OTHERS) and "threading.py" not in str(entry.path):
                return type(trace)(trace[place:]).filter(excinfo)
        return type(trace)(trace[-1:])  # it was called wrongly: no line of the user's own is in it


class _Later:
    """An attribute that is made when it is first asked for, and kept with others of its kind.

    There may be many thousands of items, one of which runs: most of the time, most of them need none of these.
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


_OUTLIVES_ITS_RUN = ("own_markers", "user_properties")


class EvalItem(Eval):
    """An eval that needs no fixtures. It is made without what pytest may never ask it for."""

    kept: dict[str, Any] | None = None
    fixturenames: Sequence[str] = ()  # what conftests ask of every item
    keywords = _Later(NodeKeywords)
    own_markers = _Later(lambda _: [])
    extra_keyword_matches = _Later(lambda _: set())
    stash = _Later(lambda _: pytest.Stash())
    _report_sections = _Later(lambda _: [])
    user_properties = _Later(lambda _: [])

    def __init__(self, *, group: Group, row: Row, name: str, parent: Any) -> None:
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

    def run_shortly(self, nextitem: pytest.Item | None) -> bool:
        return run_shortly(self, nextitem)

    def may_be_skipped(self) -> bool:
        return self.kept is not None and super().may_be_skipped()

    def take_over(self) -> None:
        """Become the item that runs."""
        group = self.group
        if group.last is not None and group.last is not self:
            kept = group.last.kept or {}
            group.last.kept = {name: kept[name] for name in _OUTLIVES_ITS_RUN if kept.get(name)} or None
        group.last = self

    def setup(self) -> None:
        self.take_over()
        super().setup()

    def _holder(self) -> Any:
        return self.group.holder() if self.group.serial and self.group.holder else None

    def passing_report(self, call: pytest.CallInfo[None]) -> pytest.TestReport | None:
        """As pytest makes it of a phase that went well; what all rows have in common is there once."""
        if self.group.reports is None:
            self.group.reports = nobody_else_makes_reports(self)
        if not self.group.reports:
            return None
        if self.group.keywords is None:
            self.group.keywords = {name: 1 for name in self.keywords if name != self.name}
        assert call.when != "collect"
        sections = [(f"Captured {key} {when}", content) for when, key, content in self._report_sections]
        return pytest.TestReport(
            self._id if _STRUCTURED_IDS else self.nodeid,
            self.location,
            self.group.keywords,
            "passed",
            None,
            call.when,
            sections,
            call.duration,
            call.start,
            call.stop,
            self.user_properties,
        )


class EvalFunction(Eval, pytest.Function):
    """An eval with fixtures or parameters, which pytest provides as for any function."""

    def __init__(self, *, group: Group, row: Row, **given: Any) -> None:
        super().__init__(**given)
        self.group = group
        self.row = row
        wanted = f"{self.parent.nodeid}::{self.name}"  # type: ignore[union-attr]
        if self.nodeid != wanted:  # pytest 9 makes it from the parameters, of which the row is none
            self._id = type(self._id).parse(wanted)

    def _arguments(self) -> Mapping[str, Any]:
        return {name: self.funcargs[name] for name in self._fixtureinfo.argnames}

    def _holder(self) -> Any:
        return self.instance if self.group.holder else None

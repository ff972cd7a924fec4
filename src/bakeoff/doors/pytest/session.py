"""Run the evals of one pytest process: on one event loop, and ahead of pytest where their suites allow."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pytest

from bakeoff.doors.pytest.adapters import (
    Call,
    Errors,
    EvalSubject,
    call_with_case,
    call_with_row,
    is_debugging,
    named_scorers,
    refuse_incomplete,
)
from bakeoff.doors.pytest.groups import Group, by_group, subjects_of
from bakeoff.doors.pytest.loops import BorrowedLoop, EvalLoop, LoopThread, on_asyncio, run_here, runner_of
from bakeoff.doors.pytest.options import SPENDING_FILE, concurrency_of, rounds_of, run_options
from bakeoff.doors.pytest.parallel import PendingCase, SuiteExecution, SuiteTrials
from bakeoff.doors.pytest.printing import printing_of
from bakeoff.doors.pytest.rows import EvalRow
from bakeoff.doors.pytest.suite import NO_LIMIT, Settings
from bakeoff.engine.resources import SharedResources
from bakeoff.engine.run_control import SharedBudget
from bakeoff.plan import SubjectSpec
from bakeoff.protocols import Subject
from bakeoff.record import Record

if TYPE_CHECKING:
    from bakeoff.doors.pytest.items import EvalItem
    from bakeoff.doors.pytest.until_decided import SessionDecisions

_KEY = pytest.StashKey["EvalSession"]()
_MAX_AHEAD = 256  # cases that run or wait to be reported


def session_of(config: pytest.Config) -> "EvalSession":
    """Return the session of this process, which is opened on first use."""
    found = config.stash.get(_KEY, None)
    if found is None:
        found = config.stash[_KEY] = EvalSession(config)
        config.add_cleanup(found.close)
        if found.options.replay != "off":
            from bakeoff.replay.process import replaying

            replay = ExitStack()
            replay.enter_context(replaying(found.options.replay, found.options.recordings, found.options.redactor()))
            config.add_cleanup(replay.close)
    return found


def close_session(config: pytest.Config) -> None:
    """Cancel the cases that have not been reported."""
    if (found := config.stash.get(_KEY, None)) is not None:
        found.close()


@dataclass(slots=True, eq=False)
class _RunningCase:
    """A group whose cases are being run."""

    execution: SuiteExecution
    arguments: Mapping[str, Any]  # the fixtures that they were given
    loop: EvalLoop
    submitted: set[str] = field(default_factory=set)  # rows
    pending: dict[str, PendingCase] = field(default_factory=dict)  # by row; removed when pytest reports the case

    def has(self, arguments: Mapping[str, Any], loop: EvalLoop) -> bool:
        """Tell whether loop and fixtures are the same objects: pytest may have made new ones."""
        return (
            self.loop is loop
            and self.arguments.keys() == arguments.keys()
            and all(self.arguments[name] is value for name, value in arguments.items())
        )

    def submit(self, group: Group, items: "Iterable[EvalItem]") -> None:
        """Start the cases of these items that are not started yet."""
        rows = [item.row for item in items if item.row.id not in self.submitted and item.row.problem is None]
        if rows:
            cases = self.execution.submit(map(group.case_id, rows))
            self.submitted.update(row.id for row in rows)
            self.pending.update((row.id, case) for row, case in zip(rows, cases, strict=True))


class EvalSession:
    """The evals of one pytest process. It opens with the first eval, and closes when pytest is done."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.options = run_options(config)
        spending = getattr(config, "workerinput", {}).get(SPENDING_FILE)
        self._budget = SharedBudget(self.options, Path(spending) if spending else None)
        self.loop = LoopThread()
        self._shared = SharedResources()
        self._running: dict[Group, _RunningCase] = {}
        self._printing = printing_of(config)
        self._scheduled = _xdist_schedule(config)
        self.decisions: SessionDecisions | None = config.pluginmanager.getplugin("bakeoff-until-decided")
        self._step_by_step = self._scheduled is not None or self.decisions is not None  # later items are not known
        self._told: set[str] = set()
        self._borrowed: WeakKeyDictionary[object, BorrowedLoop] = WeakKeyDictionary()  # by the runners of other plugins
        self._debug = is_debugging(config)

    def close(self) -> None:
        """Cancel unfinished cases, and close loops and resources. The session can be used again afterwards."""
        for running in self._running.values():
            running.execution.stop()
        self._running.clear()
        for borrowed in self._borrowed.values():
            borrowed.close()
        if self._shared.used:
            self.loop.result(self._shared.close())
            self._shared = SharedResources()
        self.loop.close()

    def trials(
        self,
        rows: Mapping[str, EvalRow],
        subject: Subject,
        spec: SubjectSpec,
        scorers: Iterable[Callable[..., Any]],
        settings: Settings,
    ) -> SuiteTrials:
        """Return the trials of these rows, with the options, budget and resources of the session."""
        named = named_scorers(scorers, offline=self.options.replay == "strict")
        settings = replace(settings, timeout=NO_LIMIT) if self._debug else settings
        rounds = rounds_of(self._config, settings)
        return SuiteTrials(rows, subject, spec, named, settings, rounds, self.options, self._budget, self._shared)

    async def records(self, trials: SuiteTrials) -> list[Record]:
        """Run one case on the test's asyncio loop or, if it has none, on the session's loop."""
        if not on_asyncio():
            from anyio import to_thread  # only a test on another kind of loop needs it, and has loaded it

            return await to_thread.run_sync(lambda: self.loop.result(trials.records()))
        if self.loop.is_here():
            return await trials.records()
        # A loop of the test's own needs its own clients. What is behind them, such as an embedded model, stays open on
        # the session's loop, so that it need not be started for each test.
        return await (await self.loop.awaited(self._opened(trials))).records()

    async def _opened(self, trials: SuiteTrials) -> SuiteTrials:
        """Open the resources of the trials on the session's loop, and return the trials for use on another loop."""
        if wanted := list(trials.resolve().resources()):
            refuse_incomplete(trials.scorers)
            await self._shared.open(wanted, {})
        return replace(trials, shared=None)

    def result(self, item: "EvalItem", arguments: Mapping[str, Any], holder: Any) -> PendingCase:
        """Run a case and return it when it is done. If its suite allows, the cases after it are started too."""
        group = item.group
        if group.serial is not None:
            return self._run_alone(item, arguments, lambda: holder)
        running, loop = self._running.get(group), self._loop_of(item)
        if running is None or not running.has(arguments, loop):
            if running is not None:
                running.execution.stop()
            execution = self._execution(group, group.rows, arguments, group.holder, loop)
            running = self._running[group] = _RunningCase(execution, arguments, loop)
        if self._step_by_step or item.row.id not in running.submitted or len(running.pending) <= _MAX_AHEAD // 2:
            running.submit(group, self._upcoming(item))
        case = running.pending.pop(item.row.id, None)
        if case is None:  # pytest runs it again
            return self._run_alone(item, arguments, group.holder)
        self._wait_for(case, running.execution)
        if item is self._selected[group][-1]:
            running.execution.stop()
        return case

    def _wait_for(self, case: PendingCase, execution: SuiteExecution) -> None:
        """Wait for a case, and give pytest its output even if the wait is interrupted."""
        self._printing.route()
        try:
            execution.wait_for(case)
        finally:
            self._printing.show(case.printed)

    def _run_alone(
        self, item: "EvalItem", arguments: Mapping[str, Any], holder: Callable[[], Any] | None
    ) -> PendingCase:
        execution = self._execution(item.group, [item.row], arguments, holder, self._loop_of(item))
        (case,) = execution.submit([item.group.case_id(item.row)])
        try:
            self._wait_for(case, execution)
        finally:
            execution.stop()
        return case

    def _execution(
        self,
        group: Group,
        chosen: Iterable[EvalRow],
        arguments: Mapping[str, Any],
        holder: Callable[[], Any] | None,
        loop: EvalLoop,
    ) -> SuiteExecution:
        errors: Errors = {}
        described, settings = group.described, group.described.settings
        rows = {group.case_id(row): row for row in chosen}

        def prepared(case_id: str) -> Call:
            if not described.given_a_case:
                return call_with_row(described.function, rows[case_id])
            return call_with_case(described.function, rows[case_id], arguments, holder() if holder else None)

        subject = EvalSubject(prepared, errors, self._debug)
        trials = self.trials(rows, subject, self.subjects[group.parameters], described.scorers, settings)
        if loop is not self.loop:
            trials = self.loop.result(self._opened(trials))
        buffered = self._printing.routes and not group.captures and not self._debug
        return SuiteExecution(loop, trials, errors, concurrency_of(self._config, settings), buffered=buffered)

    def _loop_of(self, item: "EvalItem") -> EvalLoop:
        """Return the loop on which a case runs: the session's, a debugger's, or that of its async fixtures."""
        if self._debug and not item.group.borrows:
            return BorrowedLoop(lambda make: run_here(make()), watched=False)
        found = runner_of(item) if item.group.borrows else None
        if found is None:
            return self.loop
        runner, run = found
        borrowed = self._borrowed.get(runner)
        if borrowed is None:
            borrowed = self._borrowed[runner] = BorrowedLoop(run, watched=not self._debug)
        return borrowed

    def _upcoming(self, item: "EvalItem") -> "Iterator[EvalItem]":
        """Yield this item, and the known items of its group that this process will run after it."""
        yield item
        at_a_time = concurrency_of(self._config, item.group.described.settings)
        if self._scheduled is None:
            later = (each for each in self._later(item) if not each.may_be_skipped())
            # As many as run beside this one, if they are needed as far as is known now.
            soon = self.decisions and islice(filter(self.decisions.needs, later), at_a_time - 1)
            yield from soon or islice(later, _MAX_AHEAD)
            return
        items = self._items
        scheduled: Iterator[Any] = chain([item.group.following], (items[index] for index in self._scheduled()))
        if not item.group.lasting:
            scheduled = takewhile(lambda each: getattr(each, "group", None) is item.group, scheduled)
        ahead = (each for each in scheduled if getattr(each, "group", None) is item.group and not each.may_be_skipped())
        yield from islice(ahead, at_a_time)

    def _later(self, item: "EvalItem") -> "Iterator[EvalItem]":
        """Yield the later items of the group, up to the point where pytest may create other fixtures for them."""
        ours = self._selected[item.group]
        later = islice(ours, ours.index(item) + 1, None)
        if item.group.lasting:
            return later
        following = islice(self._items, self._items.index(item) + 1, None)
        return (
            mine for mine, next_one in takewhile(lambda both: both[0] is both[1], zip(later, following, strict=False))
        )

    def is_not_needed(self, item: "EvalItem") -> bool:
        """Tell whether an item can no longer decide anything and was not started yet."""
        if self.decisions is None or self.decisions.needs(item):
            return False
        running = self._running.get(item.group)
        return running is None or item.row.id not in running.pending

    @cached_property
    def subjects(self) -> Mapping[str, SubjectSpec]:
        """Return the subjects of this session, by their parameters."""
        return subjects_of(self._selected)

    def subject_to_tell(self, parameters: str) -> SubjectSpec | None:
        """Return the subject on the first call, and None later: each process reports a subject only once."""
        if parameters in self._told:
            return None
        self._told.add(parameters)
        return self.subjects[parameters]

    @cached_property
    def _selected(self) -> "dict[Group, list[EvalItem]]":
        """Return the items that were not deselected, by group, in running order."""
        return by_group(self._items)

    @property
    def _items(self) -> list[Any]:
        """Return the items of pytest's session that were not deselected."""
        session: Any = self._config.pluginmanager.get_plugin("session")
        return session.items  # type: ignore[no-any-return]


def _xdist_schedule(config: pytest.Config) -> Callable[[], list[int]] | None:
    """Return a function that lists the items of this xdist worker by index; None without xdist.

    xdist keeps them in a queue that is read under its lock. A queue without a lock is not read.
    """
    if not hasattr(config, "workerinput"):
        return None
    queue = next((plugin.torun for plugin in config.pluginmanager.get_plugins() if hasattr(plugin, "torun")), None)

    def scheduled() -> list[int]:
        if queue is None or not hasattr(queue, "lock"):
            return []
        with queue.lock() as waiting:
            return [index for index in waiting if isinstance(index, int)]

    return scheduled

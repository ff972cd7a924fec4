"""Evals of one pytest process: the loop they run on, and which cases are begun before pytest asks for them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from bakeoff.doors.pytest_plugin.columns import columns_of
from bakeoff.doors.pytest_plugin.groups import Group
from bakeoff.doors.pytest_plugin.loops import LoopThread, on_asyncio
from bakeoff.doors.pytest_plugin.options import concurrency_of, rounds_of, run_options
from bakeoff.doors.pytest_plugin.parallel import Crew, Production, Ticket
from bakeoff.doors.pytest_plugin.replaying import start_replay
from bakeoff.doors.pytest_plugin.scoring import named_scorers, refuse_incomplete
from bakeoff.doors.pytest_plugin.shared import SharedResources
from bakeoff.doors.pytest_plugin.tasks import Call, Errors, EvalSubject, call_with_case, call_with_row
from bakeoff.plan import SubjectSpec
from bakeoff.protocols import Resource
from bakeoff.record import Record

if TYPE_CHECKING:
    from bakeoff.doors.pytest_plugin.items import Eval

_KEY = pytest.StashKey["EvalSession"]()


def session_of(config: pytest.Config) -> "EvalSession":
    """The one of this process, opened when it is first asked for."""
    found = config.stash.get(_KEY, None)
    if found is None:
        found = config.stash[_KEY] = EvalSession(config)
        config.add_cleanup(found.close)
        start_replay(config, run_options(config))
    return found


def close_session(config: pytest.Config) -> None:
    """Cancel what has not been reported."""
    if (found := config.stash.get(_KEY, None)) is not None:
        found.close()


@dataclass(slots=True, eq=False)
class _Running:
    """A group whose cases are being carried out."""

    crew: Crew
    arguments: Mapping[str, Any]  # the fixtures that they were given
    ordered: set[str] = field(default_factory=set)  # rows
    tickets: dict[str, Ticket] = field(default_factory=dict)  # by row; one that is taken is gone

    def serves(self, arguments: Mapping[str, Any]) -> bool:
        """Whether fixtures are still the same objects: pytest may have torn one down and made another."""
        return self.arguments.keys() == arguments.keys() and all(
            self.arguments[name] is value for name, value in arguments.items()
        )

    def order(self, group: Group, items: "Iterable[Eval]", *, last: bool) -> None:
        rows = [item.row.id for item in items if item.row.id not in self.ordered and item.row.problem is None]
        if rows:
            tickets = self.crew.order([group.places[row] for row in rows], last=last)
            self.ordered.update(rows)
            self.tickets.update(zip(rows, tickets, strict=True))


class EvalSession:
    """Opened with the first eval that runs, closed when pytest is done."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.loop = LoopThread()
        self.shared = SharedResources()
        self._running: dict[Group, _Running] = {}
        self._selected: dict[Group, list[Eval]] | None = None
        self._schedule = _schedule_of(config)
        self._columns: dict[str, SubjectSpec] | None = None
        self._told: set[str] = set()

    def close(self) -> None:
        for running in self._running.values():
            running.crew.stop()
        self._running.clear()
        if self.shared.used:
            self.loop.result(self.shared.close())
            self.shared = SharedResources()
        self.loop.close()

    async def records(self, production: Production) -> list[Record]:
        """Of one case, on the loop of the test that asks; where that is not of asyncio, on the session's."""
        ours = replace(production, shared=self.shared)
        if not on_asyncio():
            from anyio import to_thread  # only a test on another kind of loop needs it, which has loaded it

            return await to_thread.run_sync(lambda: self.loop.result(ours.records()))
        if self.loop.is_here():
            return await ours.records()
        await self._keep_open(production)
        return await production.records()

    async def _keep_open(self, production: Production) -> None:
        """A loop of the test's own needs clients of its own; what is behind them, such as an embedded model, need not
        be started anew for each."""
        if wanted := list(production.resolve().resources()):
            refuse_incomplete(production.scorers)
            await self.loop.awaited(self._lent(wanted))

    async def _lent(self, wanted: list[Resource]) -> None:
        async with self.shared.lent(wanted, {}):
            pass

    def result(self, item: "Eval", arguments: Mapping[str, Any], holder: Any) -> Ticket:
        """What a case came to. Where its suite allows, those after it are begun too."""
        group = item.group
        if group.serial is not None:
            return self._alone(item, arguments, lambda: holder)
        running = self._running.get(group)
        if running is None or not running.serves(arguments):
            if running is not None:
                running.crew.stop()
            running = self._running[group] = _Running(self._crew(item, arguments, group.holder), arguments)
            running.order(group, self._foreseen(item), last=self._schedule is None)
        elif self._schedule is not None:
            running.order(group, self._foreseen(item), last=False)
        ticket = running.tickets.pop(item.row.id, None)
        if ticket is None:  # it is run again
            return self._alone(item, arguments, group.holder)
        running.crew.take(ticket)
        return ticket

    def _alone(self, item: "Eval", arguments: Mapping[str, Any], holder: Callable[[], Any] | None) -> Ticket:
        crew = self._crew(item, arguments, holder)
        (ticket,) = crew.order([item.group.places[item.row.id]], last=True)
        try:
            crew.take(ticket)
        finally:
            if not ticket.done:
                crew.stop()
        return ticket

    def _foreseen(self, item: "Eval") -> "Iterator[Eval]":
        """This item and those of its group that this process is to run after it, as far as that is known."""
        yield item
        if self._schedule is None:
            ours = self._selection(item.session)[item.group]
            later = islice(ours, ours.index(item) + 1, None)
            yield from (each for each in later if not each.may_be_skipped())
            return
        scheduled: Iterator[Any] = (item.session.items[index] for index in self._schedule())
        ahead = (each for each in scheduled if getattr(each, "group", None) is item.group and not each.may_be_skipped())
        yield from islice(ahead, concurrency_of(self._config, item.group.described.settings))

    def columns(self, session: pytest.Session) -> Mapping[str, SubjectSpec]:
        """The subjects of this session, by parameters."""
        if self._columns is None:
            self._columns = columns_of(self._selection(session))
        return self._columns

    def subject_to_tell(self, session: pytest.Session, parameters: str) -> SubjectSpec | None:
        """The subject, where this process has not told it to whoever keeps the run."""
        if parameters in self._told:
            return None
        self._told.add(parameters)
        return self.columns(session)[parameters]

    def _selection(self, session: pytest.Session) -> "dict[Group, list[Eval]]":
        """What was not deselected, by groups, in the order in which it will be run."""
        if self._selected is None:
            self._selected = {}
            for item in session.items:
                if (group := getattr(item, "group", None)) is not None:
                    self._selected.setdefault(group, []).append(item)  # type: ignore[arg-type]
        return self._selected

    def _crew(self, item: "Eval", arguments: Mapping[str, Any], holder: Callable[[], Any] | None) -> Crew:
        errors: Errors = {}
        group, session = item.group, item.session
        described, config = group.described, self._config
        settings, options = described.settings, run_options(config)
        production = Production(
            name=described.name,
            rows=group.rows,
            around=group.around,
            subject=EvalSubject(_caller(group, arguments, holder), errors, settings.isolate),
            scorers=named_scorers(
                described.scorers, null_as_zero=settings.null_as_zero, offline=options.replay == "strict"
            ),
            settings=settings,
            rounds=rounds_of(config, settings),
            options=options,
            column=self.columns(session)[group.parameters],
            shared=self.shared,
        )
        return Crew(self.loop, production, errors, concurrency_of(config, settings))


def _caller(group: Group, arguments: Mapping[str, Any], holder: Callable[[], Any] | None) -> Callable[[str], Call]:
    """How the function is called for a case."""
    function, rows = group.described.function, {group.case_id(row): row for row in group.rows}
    if not group.described.given_a_case:
        return lambda case: call_with_row(function, rows[case])
    if holder is None:
        return lambda case: call_with_case(function, rows[case], arguments)
    return lambda case: call_with_case(function, rows[case], arguments, holder())


def _schedule_of(config: pytest.Config) -> Callable[[], list[int]] | None:
    """On a worker of xdist: which items it has been given to run, by their places. None where all are this process's.

    xdist keeps them in a queue that it means to be looked at under its lock; without one, only the next is known.
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

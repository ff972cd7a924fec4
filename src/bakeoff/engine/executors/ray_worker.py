"""The worker on one Ray node. It runs many trials at once, and keeps no state of the run.

Ray calls the methods of `Worker` in threads. Trials run on an event loop in another thread, so that
the worker still answers if a subject blocks the loop.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Literal

from bakeoff._kernel.clock import Clock, Delay
from bakeoff._kernel.environment import hide_our_memory
from bakeoff._kernel.imports import import_target
from bakeoff._kernel.temporary import removing_beside
from bakeoff._version import __version__
from bakeoff.engine.registry import Registry, ResolvedPlan
from bakeoff.engine.resources import OpenResources, sandbox_of
from bakeoff.engine.run import open_local
from bakeoff.engine.run_control import Budget, RunControl
from bakeoff.engine.trial import Job, TrialRunner, apart
from bakeoff.errors import BakeoffError, BudgetError, InfraError, UsageError
from bakeoff.models.rate_limit import SHARED_SLOTS, CallSlots, Outcome
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.record import NO_USAGE, Record, Usage
from bakeoff.storage.journal import without_secrets
from bakeoff.storage.redacted_stream import printed_secrets, redact_streams
from bakeoff.storage.redaction import Redactor

POLL_SECONDS = 1.0
"""A call of `poll` returns after this time at the latest: it is the worker's sign of life."""

_REMOVAL_SECONDS = 10.0  # for the folders of trials, at the end

# --- from the driver to a worker ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Order:
    """Everything that a worker needs to run trials of a plan, except the plan itself.

    An order contains secrets, so it is passed as a call argument, which stays in memory. Ray puts
    arguments over 100 kB, such as plans, into its object store, which may spill to disk.
    """

    version: str
    source: str  # the import name of the registry
    folder: str  # the current folder of the driver
    options: RunOptions
    environment: Mapping[str, str] = field(repr=False)
    marker: str | None  # a marker file beside the recordings


@dataclass(frozen=True, slots=True)
class Start:
    """A message to run a trial. `job` is new even for a trial that another worker has lost."""

    job: int
    trial: int
    prior: Record | None
    spent: Usage


@dataclass(frozen=True, slots=True)
class Cancel:
    """A message to cancel a job, which may not have started yet."""

    job: int


@dataclass(frozen=True, slots=True)
class BudgetGrant:
    """A message that grants a slot of a provider, which the worker must give back."""

    request: int


@dataclass(frozen=True, slots=True)
class SpendingReport:
    """A message with the spending of the run on all nodes."""

    spent: Usage
    counted: int  # how many reports of this worker are included
    reached: str | None  # a sentence about the limit that was reached, if any


# --- from a worker to the driver ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeFailed:
    """A message that the worker cannot run trials, or had an error outside of trials."""

    reason: str
    ended: bool = False  # the worker has stopped completely


@dataclass(frozen=True, slots=True)
class NodeClosed:
    """A message that resources are closed. `left_behind` lists folders that remain, and why."""

    left_behind: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """A message that a trial has finished. Its record holds no secrets."""

    job: int
    record: Record


@dataclass(frozen=True, slots=True)
class UsageSpent:
    """A message with usage that a job has just reported."""

    job: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class TrialsWanted:
    """A request for a provider's slot. All workers together get at most `most` at a time."""

    request: int
    provider: str
    most: int


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A message that a slot is free, or that its request is withdrawn."""

    request: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class WaitNotice:
    """A message about the beginning or end of a trial's wait."""

    trial: int
    delay: Delay | None


ToWorker = Start | Cancel | BudgetGrant | SpendingReport | Literal["drain", "close"]
"""Messages to a worker: `drain` starts no further tries, `close` cancels running trials and closes the resources."""
ToDriver = Literal["opened"] | NodeFailed | NodeClosed | TrialEnded | UsageSpent | TrialsWanted | GivenBack | WaitNotice
"""Messages to the driver; `opened` means that the worker can run trials."""

Tell = Callable[[ToDriver], None]


class Worker:
    """The worker's actor. The driver calls `open`, then `poll` repeatedly and `tell` as needed."""

    def __init__(self) -> None:
        self._events: SimpleQueue[ToDriver] = SimpleQueue()
        self._messages: asyncio.Queue[ToWorker] = asyncio.Queue()
        self._loop = asyncio.new_event_loop()
        self._serving: asyncio.Task[None] | None = None
        self._opened = False

    def open(self, order: Order, plan: bytes) -> None:
        """Start to open the resources of a plan. `poll` will return `opened` or `NodeFailed`."""
        trials = _WorkerTrials(order, plan, self._messages, self._tell)
        threading.Thread(target=self._run, args=(trials,), name="bakeoff-trials", daemon=True).start()

    def _run(self, trials: "_WorkerTrials") -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._serving = self._loop.create_task(trials.serve())
            self._loop.run_until_complete(self._serving)
        except asyncio.CancelledError:
            self._events.put(NodeClosed({}))
        except BakeoffError as error:
            self._events.put(NodeFailed(trials.redact(str(error)), ended=True))
        except Exception as error:  # noqa: BLE001 - the end of the thread: the driver reports it
            self._events.put(NodeFailed(trials.redact(f"{type(error).__name__}: {error}"), ended=True))
        finally:
            self._loop.close()

    def _tell(self, event: ToDriver) -> None:
        self._opened = self._opened or event == "opened"
        self._events.put(event)

    def poll(self) -> list[ToDriver]:
        """Wait for messages to the driver and return them."""
        with suppress(Empty):
            found = [self._events.get(timeout=POLL_SECONDS)]
            while True:
                with suppress(Empty):
                    found.append(self._events.get_nowait())
                    continue
                return found
        return []

    def tell(self, messages: Sequence[ToWorker]) -> None:
        """Handle messages from the driver."""
        for message in messages:
            with suppress(RuntimeError):  # the loop has ended, so there is nothing to notify
                self._loop.call_soon_threadsafe(self._take, message)

    def _take(self, message: ToWorker) -> None:
        if message == "close" and not self._opened and self._serving is not None:
            self._serving.cancel()  # the opening may take minutes
        self._messages.put_nowait(message)


class _WorkerTrials:
    """Runs trials on one event loop, as directed by the driver."""

    def __init__(self, order: Order, plan: bytes, messages: "asyncio.Queue[ToWorker]", tell: Tell) -> None:
        self._order = order
        self._plan = plan
        self._messages = messages
        self._tell = tell
        self._redactor = Redactor({**order.options.secrets})
        self._running: dict[int, asyncio.Task[None]] = {}
        self._cancelled: set[int] = set()  # jobs that may have been cancelled before they arrived
        self._slots = _SharedSlots(tell)

    def redact(self, text: str) -> str:
        """Return a text without the secrets of the run."""
        return self._redactor.text(text, cut=True)

    async def serve(self) -> None:
        """Open the resources, run trials until the driver sends `close`, and close the resources."""
        order, options = self._order, self._order.options
        _apply_driver_settings(order)
        self._redactor = options.redactor()
        plan = Plan.model_validate_json(self._plan)
        control = _Control(self._tell)
        control.redact = self.redact
        budget = NodeBudget(options)
        SHARED_SLOTS.set(self._slots.of)
        async with AsyncExitStack() as stack:
            removals = await stack.enter_async_context(removing_beside(lambda: _REMOVAL_SECONDS))
            resolved = resolve(plan, options, order.source)
            opening = open_local(resolved, options, sandbox_of(options, plan), control, budget)
            runner = await stack.enter_async_context(opening)
            failed = runner.resources.failed if isinstance(runner.resources, OpenResources) else {}
            if failed:  # otherwise it would soon get and fail all trials
                raise InfraError("; ".join(failed.values()))
            self._tell("opened")
            try:
                while (message := await self._messages.get()) != "close":
                    self._take(message, runner, budget)
            finally:
                for task in (running := list(self._running.values())):
                    task.cancel()
                if running:
                    await asyncio.wait(running)
        self._tell(NodeClosed({str(path): problem for path, problem in removals.left.items()}))

    def _take(self, message: ToWorker, runner: TrialRunner, budget: "NodeBudget") -> None:
        match message:
            case Start(job=job):
                if job not in self._cancelled:
                    self._running[job] = asyncio.create_task(self._run(message, runner, budget))
            case Cancel(job=job):
                self._cancelled.add(job)
                if job in self._running:
                    self._running[job].cancel()
            case BudgetGrant(request=request):
                self._slots.granted(request)
            case SpendingReport():
                budget.update(message)
            case "drain":
                runner.control.drain()

    async def _run(self, start: Start, runner: TrialRunner, budget: "NodeBudget") -> None:
        def spend(usage: Usage) -> None:
            self._tell(UsageSpent(start.job, usage))
            budget.add(usage)
            if reason := budget.exceeded():
                raise BudgetError(reason)

        trial = runner.resolved.plan.trial(start.trial)
        try:
            record = await apart(partial(runner.run, Job(trial, start.prior, start.spent), spend))
            self._tell(TrialEnded(start.job, without_secrets(record, self._redactor)))
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - trials catch their own errors: this ends the run, as it does locally
            self._tell(NodeFailed(self.redact(f"trial {trial.case.id!r}: {type(error).__name__}: {error}")))
        finally:
            del self._running[start.job]


def _apply_driver_settings(order: Order) -> None:
    """Adopt the driver's variables and current folder. Refuse another version of Bakeoff."""
    if order.version != __version__:
        raise UsageError(
            f"it has Bakeoff {__version__}, and the run was started by {order.version}: install that there"
        )
    os.environ.update(order.environment)
    with suppress(OSError):  # without that folder, stay where Ray started us
        os.chdir(order.folder)
    if order.marker is not None and not Path(order.marker).is_file():
        folder = Path(order.marker).parent
        raise UsageError(
            f"it does not see the recordings in {folder}: use a folder that all nodes share, or no --replay"
        )
    hide_our_memory()
    # What is printed here goes to Ray's log files. Ray wraps the streams in objects that cannot be redacted.
    sys.stdout, sys.stderr = sys.__stdout__ or sys.stdout, sys.__stderr__ or sys.stderr
    redact_streams()
    printed_secrets().learn(order.options.secrets)


def resolve(plan: Plan, options: RunOptions, source: str) -> ResolvedPlan:
    """Build everything in a plan, in a process that has only the plan.

    `source` names the function that makes the registry, as set by `Registry.built_by`. If this node
    lacks something that the plan needs, raise `UsageError`.
    """
    make = import_target(source, "the plan's registry")
    registry: Registry = make(plan, options)
    try:
        return registry.resolve(plan, offline=options.replay == "strict", attempts=not options.rescore_only)
    except UsageError as error:
        raise UsageError(
            f"what the plan names cannot be built there: {error}; it must be installed there, or be a "
            "`module:function` in a folder that the node also has"
        ) from error


class _Control(RunControl):
    """A run control that also reports waits of trials to the driver."""

    def __init__(self, tell: Tell) -> None:
        super().__init__()
        self._tell = tell

    def begin_wait(self, trial: int, delay: Delay, who: str = "") -> None:
        super().begin_wait(trial, delay, who)
        self._tell(WaitNotice(trial, self.delays[trial]))

    def end_wait(self, trial: int) -> None:
        super().end_wait(trial)
        self._tell(WaitNotice(trial, None))


class NodeBudget(Budget):
    """The budget as seen by one node: the driver's last report plus later spending here."""

    def __init__(self, options: RunOptions) -> None:
        super().__init__(replace(options, max_seconds=None))  # the driver has the clock
        self._known = SpendingReport(NO_USAGE, 0, None)
        self._uncounted: list[Usage] = []

    def add(self, usage: Usage) -> None:
        """Count spending on this node until the driver's reports include it."""
        super().add(usage)
        self._uncounted.append(usage)

    def exceeded(self) -> str | None:
        """Return the limit that was reached, in the driver's report or on this node, or None."""
        return self._known.reached or super().exceeded()

    def update(self, now: SpendingReport) -> None:
        """Use the driver's latest report on the spending of all nodes. Ignore outdated reports."""
        if now.counted < self._known.counted:
            return
        del self._uncounted[: now.counted - self._known.counted]
        self._known = replace(now, reached=now.reached or self._known.reached)
        self.spent = sum(self._uncounted, start=now.spent)


class _SharedSlots:
    """Slots of providers, as granted by the driver."""

    def __init__(self, tell: Tell) -> None:
        self.tell = tell
        self.numbers = count()
        self.asked: dict[int, asyncio.Future[None]] = {}

    def of(self, provider: str, most: int) -> CallSlots:
        """Return the slots of one provider, at most `most` at a time for all workers together."""
        return _RemoteSlots(self, provider, most)

    def granted(self, number: int) -> None:
        """Record that the driver has granted a slot."""
        if number in self.asked and not self.asked[number].done():
            self.asked[number].set_result(None)


class _RemoteSlots(CallSlots):
    """The slots of one provider. `take` returns the driver's number in place of the limit."""

    def __init__(self, shared: _SharedSlots, provider: str, most: int) -> None:
        super().__init__(most)
        self._shared, self._provider, self._most = shared, provider, most

    async def take(self, clock: Clock) -> float:
        shared, number = self._shared, next(self._shared.numbers)
        granted = shared.asked[number] = asyncio.get_running_loop().create_future()
        shared.tell(TrialsWanted(number, self._provider, self._most))
        try:
            with clock.paused():  # waiting for the driver is not the subject's fault
                await granted
        except asyncio.CancelledError:
            shared.tell(GivenBack(number, "failed"))
            raise
        finally:
            del shared.asked[number]
        self.in_flight += 1
        return float(number)

    def give_back(self, limit: float, outcome: Outcome) -> None:
        """Give back the slot with this number. The driver knows its limit."""
        self.in_flight -= 1
        self._shared.tell(GivenBack(int(limit), outcome))

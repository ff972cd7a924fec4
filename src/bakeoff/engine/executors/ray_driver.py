"""Run trials on the nodes of a Ray cluster, with one worker per node. The driver keeps all state.

The driver assigns trials, counts spending and grants call slots of providers. A worker that dies or
is silent for too long is abandoned, and its trials run again on other workers.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from math import inf
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from bakeoff._kernel.choices import SandboxName
from bakeoff._kernel.clock import Clock
from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.files import os_errors_explained
from bakeoff._version import __version__
from bakeoff.engine.executors.ray_cluster import (
    RayNode,
    answer_of,
    connected,
    kill_worker,
    start_worker,
    usable_nodes,
)
from bakeoff.engine.executors.ray_worker import (
    BudgetGrant,
    Cancel,
    GivenBack,
    NodeClosed,
    NodeFailed,
    Order,
    SpendingReport,
    Start,
    ToDriver,
    ToWorker,
    TrialEnded,
    TrialsWanted,
    UsageSpent,
    WaitNotice,
)
from bakeoff.engine.registry import ResolvedPlan
from bakeoff.engine.run_control import Budget, RunControl
from bakeoff.engine.trial import Job, TrialRunner
from bakeoff.errors import BudgetError, InfraError, PlanError, UsageError
from bakeoff.models.rate_limit import CallSlots
from bakeoff.options import RunOptions
from bakeoff.plan import Plan, ScorerSpec, SubjectSpec, describe
from bakeoff.protocols import Sandbox
from bakeoff.record import NO_USAGE, Failure, Record, Usage
from bakeoff.storage.redaction import known_secrets

_MAX_LOSSES = 3  # a trial that loses so many workers may be killing them
_MAX_STARTS = 3  # of a node's worker, without a finished trial in between
_LOOK_SECONDS = 2.0  # between searches for new nodes
_START_SECONDS = 300.0  # for a node to start a process and to import everything
_CLOSE_SECONDS = 30.0  # for the workers to end commands, close resources and remove folders
_STOPPED_SECONDS = 12.0  # the same, after someone stopped the run


@dataclass(slots=True, eq=False)
class _Assignment:
    """A job that a worker runs. Its result is None if the worker is lost."""

    trial: int
    spend: Callable[[Usage], None]
    result: asyncio.Future[Record | None]
    spent: Usage = NO_USAGE


@dataclass(slots=True, eq=False)
class _Worker:
    """The driver's view of a worker: its node, jobs and queued messages."""

    node: RayNode
    actor: Any
    opened: asyncio.Future[str | None]  # its result: None, or why the worker cannot run trials
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    jobs: dict[int, _Assignment] = field(default_factory=dict)
    cancelled: dict[int, _Assignment] = field(default_factory=dict)  # their spending still counts
    slots: dict[int, "_Held"] = field(default_factory=dict)
    reports: int = 0  # number of spending reports
    outbox: list[ToWorker] = field(default_factory=list)
    to_flush: bool = False
    lost: str | None = None  # why the worker was lost
    listening: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        """Return True if the worker can take trials."""
        return self.lost is None and self.opened.done() and self.opened.result() is None

    @property
    def load(self) -> float:
        """Return how many jobs per CPU the worker would have with one more job."""
        return (len(self.jobs) + 1) / self.node.cpus


@dataclass(slots=True, eq=False)
class _Held:
    """A provider's slot that a worker holds or waits for."""

    slots: CallSlots
    taking: asyncio.Task[None] | None = None
    limit: float | None = None  # the provider's limit when the slot was granted


class RayRunner:
    """Runs jobs on workers. A `TrialPool` uses it like a `TrialRunner`."""

    def __init__(self, local: TrialRunner, budget: Budget, order: Order) -> None:
        self.control = local.control
        self.not_started = local.not_started
        self._local = local
        self._budget = budget
        self._order = order
        self._plan: Any = None  # the plan as JSON, in Ray's object store
        self._silence = local.options.ray_silence_seconds
        self._numbers = count()
        self._workers: dict[str, _Worker] = {}  # by node
        self._starts: dict[str, int] = {}  # by node
        self._providers: dict[str, CallSlots] = {}
        self._changed = asyncio.Event()  # a worker is ready or lost
        self._failed: dict[RayNode, str] = {}  # why workers failed, even while closing
        self._given_up = False  # a trial has waited for a worker in vain; others need not

    # --- jobs -------------------------------------------------------------------------------------------------------

    async def run(self, job: Job, spend: Callable[[Usage], None]) -> Record:
        """Run one trial on some node and return its record."""
        trial = job.trial
        self.control.in_flight[trial.index] = (trial.subject.name, trial.case.id)
        try:
            record = await self._try_workers(job, spend)
            self._local.note_refusal(record)
            return record
        finally:
            self.control.end_wait(trial.index)
            del self.control.in_flight[trial.index]

    async def _try_workers(self, job: Job, spend: Callable[[Usage], None]) -> Record:
        """Try workers in turn. Prefer a record with an attempt to a record without one."""
        why = ""
        for _ in range(_MAX_LOSSES):
            worker = await self._free_worker()
            if worker is None:
                return job.prior or self.not_started(
                    job, f"no Ray node is left to run it{why}: resume the run when there is", "infra"
                )
            assigned = _Assignment(job.trial.index, spend, asyncio.get_running_loop().create_future())
            record = await self._run_on(worker, job, assigned)
            if record is not None:
                return record
            why = f" ({worker.node}: {worker.lost})"
            job = replace(job, spent=job.spent + assigned.spent)
        message = f"{_MAX_LOSSES} Ray workers were lost while they ran it{why}"
        return job.prior or self._local.lost(job, Failure(kind="infra", type="WorkerLost", message=message))

    async def _run_on(self, worker: _Worker, job: Job, assigned: _Assignment) -> Record | None:
        """Run a job on one worker. Return None if the worker is lost during the job."""
        number = next(self._numbers)
        worker.jobs[number] = assigned
        self._send(worker, Start(number, job.trial.index, job.prior, job.spent))
        try:
            return await assigned.result
        except asyncio.CancelledError:
            worker.cancelled[number] = assigned
            self._send(worker, Cancel(number))
            raise
        finally:
            worker.jobs.pop(number, None)

    async def _free_worker(self) -> _Worker | None:
        """Return the least busy worker. If no worker is ready, wait for one, up to a limit."""
        try:
            async with asyncio.timeout(0 if self._given_up else self._silence):
                while not (ready := [worker for worker in self._workers.values() if worker.ready]):
                    await self._changed.wait()
        except TimeoutError:
            self._given_up = True
            return None
        self._given_up = False
        return min(ready, key=lambda worker: worker.load)

    # --- workers ----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def open(self, plan: Plan) -> AsyncIterator["RayRunner"]:
        """Start a worker on each node, wait until all are ready, and end them after the block."""
        import ray

        self._plan = ray.put(plan.model_dump_json().encode())

        async def pass_on_draining() -> None:
            await self.control.until_draining()
            self._send_all("drain")

        beside = [asyncio.create_task(pass_on_draining())]
        try:
            await self._open_first()
            beside.append(asyncio.create_task(self._look_for_nodes()))
            yield self
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)
            await self._close()
        if self._failed:
            raise InfraError("; ".join(f"{node}: {reason}" for node, reason in self._failed.items()))

    async def _open_first(self) -> None:
        """Wait for the workers of all nodes, so that problems appear before any spending."""
        nodes = await asyncio.to_thread(usable_nodes)
        if not nodes:
            raise UsageError("the Ray cluster has no node with CPUs: add one, such as with `ray start --address=…`")
        for node in nodes:
            self._start(node)
        workers = list(self._workers.values())
        await asyncio.wait([worker.opened for worker in workers])
        failed = {worker.node: why for worker in workers if worker.lost is None and (why := worker.opened.result())}
        hint = (
            "\nno --ray-address was given: if another Ray runs on this machine, its nodes were used; name a cluster "
            "with --ray-address HOST:PORT, or start one for this run alone with --ray-address local"
        )
        if self._local.options.ray_address or os.environ.get("RAY_ADDRESS"):
            hint = ""
        if failed:
            raise UsageError("\n".join(f"{node}: {why}" for node, why in failed.items()) + hint)
        if not any(worker.ready for worker in workers):
            lost = "; ".join(f"{worker.node}: {worker.lost}" for worker in workers)
            raise InfraError(f"no Ray node can run trials: {lost}{hint}")

    def _start(self, node: RayNode) -> None:
        self._starts[node.id] = self._starts.get(node.id, 0) + 1
        worker = _Worker(node, start_worker(node), asyncio.get_running_loop().create_future())
        self._workers[node.id] = worker
        worker.listening = asyncio.create_task(self._listen(worker))
        worker.listening.add_done_callback(partial(self._on_listener_done, worker))

    async def _look_for_nodes(self) -> None:
        """Start a worker on each node that joins or has lost its worker."""
        import ray

        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                nodes = await asyncio.to_thread(usable_nodes)
            except (ray.exceptions.RayError, RuntimeError, OSError):
                continue  # the head node does not answer now
            for node in nodes:
                known = self._workers.get(node.id)
                if (known is None or known.lost) and self._starts.get(node.id, 0) < _MAX_STARTS:
                    self._start(node)

    async def _listen(self, worker: _Worker) -> None:
        """Receive a worker's messages until it is closed or lost."""
        try:
            await answer_of(worker.actor.open.remote(self._order, self._plan), _START_SECONDS)
            while not worker.closed.is_set():
                events = await answer_of(worker.actor.poll.remote(), self._silence)
                for event in events:
                    self._handle(worker, event)
        except ConnectionError as error:
            self._lose(worker, str(error))

    def _on_listener_done(self, worker: _Worker, listening: asyncio.Task[None]) -> None:
        """If listening failed, as on a full disk, fail everything that waits for the worker."""
        if not listening.cancelled() and (error := listening.exception()) is not None:
            results: list[asyncio.Future[Any]] = [assigned.result for assigned in worker.jobs.values()]
            for waited_for in (worker.opened, *results):
                if not waited_for.done():
                    waited_for.set_exception(error)

    def _lose(self, worker: _Worker, why: str) -> None:
        """Abandon a worker. It gets no more trials, and its unfinished trials run elsewhere."""
        worker.lost = why
        kill_worker(worker.actor)
        if not worker.opened.done():
            worker.opened.set_result(why)
            if self._starts[worker.node.id] >= _MAX_STARTS:
                self.control.left_out[str(worker.node)] = why
        worker.closed.set()
        for request in list(worker.slots):
            self._take_back(worker, GivenBack(request, "failed"))
        for assigned in worker.jobs.values():
            self.control.end_wait(assigned.trial)
            if not assigned.result.done():
                assigned.result.set_result(None)
        worker.jobs.clear()
        self._note_change()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _close(self) -> None:
        """End all workers: ask first, so that they close their resources, then kill."""
        asked = [worker for worker in self._workers.values() if worker.lost is None]
        for worker in asked:
            self._send(worker, "close")
        try:
            async with asyncio.timeout(_STOPPED_SECONDS if self.control.stopped else _CLOSE_SECONDS):
                for worker in asked:
                    await worker.closed.wait()
        except TimeoutError:
            pass
        for worker in asked:
            kill_worker(worker.actor)
        listening = [worker.listening for worker in self._workers.values() if worker.listening is not None]
        for task in listening:
            task.cancel()
        if listening:
            await asyncio.wait(listening)

    # --- messages ---------------------------------------------------------------------------------------------------

    def _send(self, worker: _Worker, *messages: ToWorker) -> None:
        """Queue messages, which are soon sent together with the spending of the run."""
        worker.outbox += messages
        if not worker.to_flush:
            worker.to_flush = True
            asyncio.get_running_loop().call_soon(self._flush, worker)

    def _send_all(self, *messages: ToWorker) -> None:
        for worker in self._workers.values():
            self._send(worker, *messages)

    def _flush(self, worker: _Worker) -> None:
        """Send all queued messages of a worker in one call."""
        messages, worker.outbox, worker.to_flush = worker.outbox, [], False
        if worker.lost is None:
            # A granted call must be told the spending so far.
            spending = SpendingReport(self._budget.spent, worker.reports, self._budget.exceeded())
            worker.actor.tell.remote([spending, *messages])

    def _handle(self, worker: _Worker, event: ToDriver) -> None:
        match event:
            case "opened":
                worker.opened.set_result(None)
                self._note_change()
            case NodeFailed():
                self._fail(worker, event)
            case TrialEnded(job=job, record=record):
                self._starts[worker.node.id] = 1
                if (ended := worker.jobs.get(job)) is not None and not ended.result.done():
                    ended.result.set_result(record)
            case UsageSpent():
                self._count(worker, event)
            case TrialsWanted(request=request):
                slots = self._providers.setdefault(event.provider, CallSlots(event.most))
                held = worker.slots[request] = _Held(slots)
                held.taking = asyncio.create_task(self._grant(worker, request, held))
            case GivenBack():
                self._take_back(worker, event)
            case WaitNotice(trial=trial, delay=delay):
                self.control.end_wait(trial) if delay is None else self.control.begin_wait(trial, delay)
            case NodeClosed(left_behind=left):
                self.control.left_behind |= {Path(f"{worker.node.address}:{path}"): why for path, why in left.items()}
                worker.closed.set()

    def _fail(self, worker: _Worker, event: NodeFailed) -> None:
        """Note a worker that cannot continue, at its start or after an error outside of trials."""
        if not worker.opened.done():
            worker.opened.set_result(event.reason)
            worker.closed.set()
            self.control.left_out[str(worker.node)] = event.reason
        elif event.ended:
            self._failed[worker.node] = event.reason
            self._lose(worker, event.reason)
        else:
            for assigned in worker.jobs.values():
                if not assigned.result.done():
                    assigned.result.set_exception(InfraError(f"{worker.node}: {event.reason}"))

    def _count(self, worker: _Worker, event: UsageSpent) -> None:
        """Count the spending of a trial, even if the trial has been cancelled."""
        worker.reports += 1
        assigned = worker.jobs.get(event.job) or worker.cancelled.get(event.job)
        if assigned is None:
            self._budget.add(event.usage)
            return
        assigned.spent += event.usage
        try:
            assigned.spend(event.usage)
        except BudgetError:
            self._send_all()  # all workers learn of it at once

    async def _grant(self, worker: _Worker, request: int, held: _Held) -> None:
        """Wait for a provider's slot, and tell the worker when it is granted."""
        held.limit = await held.slots.take(Clock(inf))
        self._send(worker, BudgetGrant(request))

    def _take_back(self, worker: _Worker, event: GivenBack) -> None:
        """Free a slot of a worker, or cancel its wait for one."""
        held = worker.slots.pop(event.request, None)
        if held is None:
            return
        if held.limit is not None:
            held.slots.give_back(held.limit, event.outcome)
        elif held.taking is not None:
            held.taking.cancel()


_OF_ONE_MACHINE = frozenset(
    (
        *("PATH", "HOME", "PWD", "OLDPWD", "SHELL", "USER", "LOGNAME", "HOSTNAME", "TMPDIR", "TMP", "TEMP", "TERM"),
        *("SHLVL", "_", "DISPLAY", "VIRTUAL_ENV", "OMP_NUM_THREADS", "LANG", "MAIL", "EDITOR", "PAGER"),
    )
)
_OF_ONE_MACHINE_PREFIXES = (
    *("RAY_", "PYTHON", "LD_", "DYLD_", "LC_", "XDG_", "SSH_", "CONDA_", "CUDA_", "NVIDIA_", "KUBERNETES_", "NODE_"),
    *("COLUMNS", "LINES", "PYTEST_", "COV_", "COVERAGE_", "DBUS_", "WAYLAND_", "SYSTEMD_", "INVOCATION_"),
)


@contextmanager
def make_order(resolved: ResolvedPlan, options: RunOptions, sandbox: str | None) -> Iterator[Order]:
    """Yield the order for the workers. Raise PlanError if only this process can run the plan.

    `sandbox` is the name of the sandbox chosen here, which all nodes use.
    """
    source, here = _portable_source(resolved), Path.cwd()
    with _marked(options) as marker:
        yield Order(
            version=__version__,
            source=source,
            folder=str(here),
            options=replace(
                options,
                executor="local",
                ray_address=None,
                sandbox=cast("SandboxName", sandbox or options.sandbox),
                results=here / options.results,
                folder=options.folder and here / options.folder,
                recordings=here / options.recordings,
                secrets={**known_secrets(), **options.secrets},
            ),
            environment={  # of this process and of its `.env` files
                name: value
                for name, value in read_environment().items()
                if name not in _OF_ONE_MACHINE and not name.startswith(_OF_ONE_MACHINE_PREFIXES)
            },
            marker=marker,
        )


@contextmanager
def _marked(options: RunOptions) -> Iterator[str | None]:
    """Write a marker file beside the recordings, so that nodes can tell if they share them."""
    if options.replay == "off":
        yield None
        return
    folder = Path.cwd() / options.recordings
    marker = folder / f".shared-{uuid4().hex}"
    hint = "Ray needs a folder that can be: choose another"
    with os_errors_explained(f"recordings: {folder}", "written", hint=hint, kind=UsageError):
        folder.mkdir(parents=True, exist_ok=True)
        marker.touch()
    try:
        yield str(marker)
    finally:
        marker.unlink(missing_ok=True)


def _portable_source(resolved: ResolvedPlan) -> str:
    """Return the import name of the plan's registry. Raise PlanError for non-portable parts."""
    plan = resolved.plan
    specs: tuple[SubjectSpec | ScorerSpec, ...] = (*plan.subjects, *plan.every_scorer)
    problems = [
        f"{describe(spec)}: {target!r} cannot be imported on a Ray node: move the function out of the script into a "
        "module, and name it as `module:function`"
        for spec in specs
        if isinstance(target := spec.options.get("target"), str) and target.startswith("__main__:")
    ]
    if resolved.source is None or resolved.rows:
        problems.append(
            f"plan {plan.name!r} uses a registry that only this process can build: for Ray, give it the name of a "
            "function that returns it, with `registry.built_by('module:function')`, or name subjects and scorers as "
            "`module:function`, with the kind `function`"
        )
    if problems or resolved.source is None:
        raise PlanError(problems)
    return resolved.source


@asynccontextmanager
async def open_ray(
    resolved: ResolvedPlan, options: RunOptions, sandbox: Callable[[], Sandbox], control: RunControl, budget: Budget
) -> AsyncIterator[RayRunner]:
    """Connect to the cluster, and yield a runner of trials on its nodes."""
    with make_order(resolved, options, control.sandbox) as order:
        async with connected(options.ray_address):
            local = TrialRunner(resolved, options, sandbox, {}, control)
            async with RayRunner(local, budget, order).open(resolved.plan) as runner:
                yield runner

"""Run a plan, and yield each record once it is safely on disk. Find what is left of a run."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

from bakeoff._kernel.environment import hide_our_memory
from bakeoff._kernel.imports import existing_objects_frozen
from bakeoff._kernel.tracing import OpenTelemetry
from bakeoff.engine.pool import Runner, TrialPool
from bakeoff.engine.registry import Registry, ResolvedPlan, default_registry
from bakeoff.engine.resources import SharedResources, open_resources, sandbox_of
from bakeoff.engine.run_control import Budget, RunControl
from bakeoff.engine.run_journal import RunJournal
from bakeoff.engine.trial import Job, TrialRunner
from bakeoff.errors import PlanError, RunFolderError
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.protocols import BUDGET, ON_DEMAND, Sandbox
from bakeoff.record import NO_USAGE, Record, Usage
from bakeoff.replay.store import recordings_resource
from bakeoff.sandbox import guarantees
from bakeoff.stats.sequential import PairDecisions, random_order
from bakeoff.storage.journal import SpentTokens, record_at
from bakeoff.storage.journal_lines import Damage, note_damage
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.run_folder import RunFolder, made_run_folder, new_run_folder
from bakeoff.storage.store_copy import store_of
from bakeoff.verdict import Round

_AHEAD = 8
"""The number of trials per parallel trial that may start while an earlier one is unfinished, in a run until decided:
the comparisons wait for the earlier one, and may not need the later ones.
"""


async def run(
    plan: Plan | ResolvedPlan,
    options: RunOptions | None = None,
    *,
    registry: Registry | None = None,
    control: RunControl | None = None,
) -> AsyncIterator[Record]:
    """Run the unfinished trials of a plan, and yield each record once it is safely on disk.

    The whole plan is checked before the first trial. If it has problems, raise `PlanError`.

    Args:
        plan: the plan, or the result of `Registry.resolve`.
        options: how to run the plan, and where to keep the run.
        registry: the kinds of subjects and scorers; ignored if the plan is already resolved.
        control: lets the caller watch the run and stop it.
    """
    hide_our_memory()
    options = options or RunOptions()
    control = control or RunControl()
    if isinstance(plan, ResolvedPlan):
        resolved, plan = plan, plan.plan
    else:
        resolved = (registry or default_registry()).resolve(plan, offline=options.replay == "strict")
    options = replace(options, secrets={**resolved.secrets(), **options.secrets})
    redactor = options.redactor()
    _refuse_secrets(plan, redactor)
    control.redact = partial(redactor.text, cut=True)
    sandbox = sandbox_of(options, plan)
    if resolved.may_run_commands():
        control.sandbox, control.guarantees = sandbox().name, guarantees(sandbox())
    folder = made_run_folder(options.folder) if options.folder else new_run_folder(options.results, plan.name)
    async with uploaded_beside(folder, options, control):
        with RunJournal(folder, redactor) as journal:
            if (began := folder.beginning()) and not options.rescore_only:
                resolved.refuse_changed_code(began.get("servers", {}))
            progress = read_progress(folder, plan, options)
            control.finished_before = progress.finished.count(1)
            control.decisions = None if options.rescore_only else progress.decisions(plan)
            facts = {"sandbox": control.sandbox, "sandbox_wanted": options.sandbox, "jobs": options.jobs}
            journal.start(plan, made_here=True, **facts, servers=resolved.server_code())
            work = _Work(resolved, options, sandbox, control, journal, Budget(options, progress.spent))
            task = work.start(pending_jobs(plan, progress, folder, options))
            control.on_stop(work.cancel)
            try:
                async for record in journal.records(task):
                    yield record
                if not task.cancelled():
                    task.result()
            finally:
                work.cancel()
                await asyncio.wait([task])
            journal.end(work.reason_to_end)


def _refuse_secrets(plan: Plan, redactor: Redactor) -> None:
    advice = "take it out of the plan, or unset the variable if it is not a secret"
    why = f"and no file of a run may contain a secret: {advice}"
    if leaked := redactor.names_in(plan):
        raise PlanError([f"plan {plan.name!r} contains the value of {name}, {why}" for name in leaked])


@asynccontextmanager
async def uploaded_beside(folder: RunFolder, options: RunOptions, control: RunControl) -> AsyncIterator[None]:
    """Upload the run during the block, if its folder is the local copy of a run in an object store.

    Raise StoreError at once if the store is not writable or another process uses the run.
    """
    store = store_of(folder.path.parent.parent)
    if store is None:
        yield
        return
    from bakeoff.storage.store_upload import RunUpload

    stop = partial(asyncio.get_running_loop().call_soon_threadsafe, control.stop)
    upload = RunUpload(store, folder.path, options.upload_interval, stop)
    entering = asyncio.ensure_future(asyncio.to_thread(upload.__enter__))
    try:
        await asyncio.shield(entering)
        yield
    finally:
        await asyncio.wait([entering])  # cancelled: wait, so that the lease can be released
        if entering.exception() is None:
            try:
                await asyncio.to_thread(upload.__exit__)
            finally:
                control.upload_problem, control.taken_over = upload.problem, upload.lost


@dataclass(slots=True)
class _Work:
    """Opens the resources, runs the jobs and closes the resources, in one task."""

    resolved: ResolvedPlan
    options: RunOptions
    sandbox: Callable[[], Sandbox]
    control: RunControl
    journal: RunJournal
    budget: Budget
    _pool: TrialPool | None = None
    _task: asyncio.Task[None] | None = None
    _trials: asyncio.Task[None] | None = None
    _cancelled: bool = False

    def start(self, jobs: Iterator[Job]) -> asyncio.Task[None]:
        """Start the task that runs all jobs."""
        self._task = asyncio.create_task(self._run(jobs))
        return self._task

    @property
    def reason_to_end(self) -> str:
        """Return why no more trials were started, for the last line of the journal."""
        if self._decided:
            return "decided"
        if self._pool is not None and self._pool.limit_reached:
            return self._pool.limit_reached
        return "interrupted" if self.control.draining else "finished"

    @property
    def _decided(self) -> bool:
        decisions = self.control.decisions
        return decisions is not None and decisions.decided == decisions.pairs

    def cancel(self) -> None:
        """Cancel the trials, or the opening of resources, once. Resources are still closed."""
        if not self._cancelled and (task := self._trials or self._task):
            self._cancelled = True
            task.cancel()

    async def _run(self, jobs: Iterator[Job]) -> None:
        options = self.options
        if options.executor == "local":
            executor: Callable[..., AbstractAsyncContextManager[Runner]] = open_local
        else:
            from bakeoff.engine.executors.ray_driver import open_ray as executor  # most runs never need it
        async with executor(self.resolved, options, self.sandbox, self.control, self.budget) as runner:
            width, decisions = min(options.jobs, self.resolved.plan.size), self.control.decisions
            pool = TrialPool(
                runner,
                self.budget,
                width=width,
                commit=self._commit,
                journal=self.journal,
                needed=lambda job: decisions is None or decisions.needs(job.trial.subject.name),
                most_ahead=None if decisions is None else _AHEAD * width,
            )
            self._pool = pool
            self._trials = asyncio.create_task(self._submit_all(jobs, pool))
            with existing_objects_frozen():
                await self._trials

    async def _submit_all(self, jobs: Iterator[Job], pool: TrialPool) -> None:
        async with pool.open():
            for job in jobs:
                if self.control.draining or self._decided:
                    break
                await pool.submit(job)

    async def _commit(self, record: Record) -> None:
        if self.control.decisions is not None:
            self.control.decisions.add(record)
        await self.journal.commit(record)


@asynccontextmanager
async def open_local(
    resolved: ResolvedPlan, options: RunOptions, sandbox: Callable[[], Sandbox], control: RunControl, budget: Budget
) -> AsyncIterator[TrialRunner]:
    """Open the resources of a plan, and close them at the end in the same task."""
    traced = (OpenTelemetry(control.redact),) if options.trace else ()
    async with AsyncExitStack() as stack:
        on_demand = await stack.enter_async_context(SharedResources.on_demand())
        given: dict[str, Any] = {BUDGET: budget, ON_DEMAND: on_demand}
        if options.replay != "off":
            given |= recordings_resource(options)
        resources = await stack.enter_async_context(open_resources(chain(traced, resolved.resources()), given))
        yield TrialRunner(resolved, options, sandbox, resources, control)


# --- the rest of a run ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class FinishedTrials:
    """The finished trials of a run and its spending so far, read from its journal."""

    finished: bytearray  # 1 for each trial that is finished, by its index
    attempted: dict[int, int] = field(default_factory=dict)  # trial -> place of its record, if only scoring is left
    spent: Usage = NO_USAGE
    spent_on: dict[str, Usage] = field(default_factory=dict)  # attempt key -> spending on an unfinished trial
    damaged: int = 0  # unreadable lines of the journal
    rounds: dict[int, Round] = field(default_factory=dict)  # trial -> result, in a run that ends when it is decided

    def decisions(self, plan: Plan) -> PairDecisions | None:
        """Return the comparisons so far of a run that can end early; None for other runs.

        Lost trials of undecided pairs are left out, because they will be tried again.
        """
        if not plan.ends_when_decided:
            return None
        every, finished = PairDecisions(plan), PairDecisions(plan)
        for index, result in self.rounds.items():
            trial = plan.trial(index)
            every.add_round(trial.subject.name, trial.case.id, trial.round, result)
            if self.finished[index]:
                finished.add_round(trial.subject.name, trial.case.id, trial.round, result)
        return every if every.decided == every.pairs else finished


def read_progress(folder: RunFolder, plan: Plan, options: RunOptions) -> FinishedTrials:
    """Read the journal once. Memory is constant, except for runs that can end early.

    Records of edited cases or subjects are ignored.
    """
    progress = FinishedTrials(bytearray(plan.size))
    for place, entry in folder.entries_with_places():
        if isinstance(entry, SpentTokens):
            progress.spent = entry.total
            progress.spent_on[entry.trial] = progress.spent_on.get(entry.trial, NO_USAGE) + entry.usage
        elif isinstance(entry, Damage) and not entry.newer:
            progress.damaged += 1
        elif isinstance(entry, Damage):
            raise RunFolderError(f"run {folder.name} cannot be resumed: line {entry.line}: {entry.reason}")
        elif isinstance(entry, Record):
            if (trial := entry.trial_in(plan)) is None:
                continue
            scored = not entry.needs_score(trial) and not (options.rescore_all and entry.attempted)
            finished = entry.verdict.counts and scored
            progress.finished[trial.index] = finished
            if entry.attempted and not finished:
                progress.attempted[trial.index] = place
            else:
                progress.attempted.pop(trial.index, None)
            if finished or entry.attempted:
                progress.spent_on.pop(entry.attempt_key, None)
            if plan.ends_when_decided and scored:
                progress.rounds[trial.index] = entry.judged()
    note_damage(folder.label, progress.damaged)
    return progress


def trials_left(plan: Plan, progress: FinishedTrials) -> int:
    """Return how many trials are unfinished, without those that early stopping skips."""
    decisions = progress.decisions(plan)
    if decisions is None:
        return plan.size - progress.finished.count(1)
    needed = [decisions.needs(spec.name) for spec in plan.subjects]
    return sum(not progress.finished[index] and needed[index % len(needed)] for index in range(plan.size))


def pending_jobs(plan: Plan, progress: FinishedTrials, folder: RunFolder, options: RunOptions) -> Iterator[Job]:
    """Yield a job for each unfinished trial. Early stopping uses a random order of cases."""
    order: Iterable[int] = range(plan.size)
    if plan.ends_when_decided:
        places = {case.id: place for place, case in enumerate(plan.cases)}
        width, cases = len(plan.subjects), [places[case.id] for unit in random_order(plan) for case in unit]
        firsts = ((round_ * len(places) + place) * width for place in cases for round_ in range(plan.rounds))
        order = (first + number for first in firsts for number in range(width))
    for index in order:
        if progress.finished[index]:
            continue
        place = progress.attempted.get(index)
        if place is not None:
            prior = record_at(folder.journal_file, place)
            yield Job(plan.trial(index), prior, prior.spent)
        elif not options.rescore_only:
            trial = plan.trial(index)
            yield Job(trial, spent=progress.spent_on.get(trial.attempt_key, NO_USAGE))

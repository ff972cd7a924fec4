"""RUN: carries out a plan and yields each record once it can no longer be lost."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

from bakeoff._kernel.tracing import OpenTelemetry
from bakeoff._version import __version__
from bakeoff.engine.budget import Budget
from bakeoff.engine.executors import Executor
from bakeoff.engine.executors.local import LocalExecutor
from bakeoff.engine.registry import Registry, ResolvedPlan, default_registry
from bakeoff.engine.resources import open_resources
from bakeoff.engine.resume import pending_jobs, what_is_done
from bakeoff.engine.run_control import RunControl
from bakeoff.engine.scheduler import Desk
from bakeoff.engine.trial import TrialRunner
from bakeoff.errors import PlanError
from bakeoff.options import RunOptions
from bakeoff.plan import HIDDEN, Plan
from bakeoff.protocols import BUDGET, Sandbox
from bakeoff.record import Record
from bakeoff.sandbox import choose_sandbox
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.run_folder import RunFolder, new_run_folder


async def run(
    plan: Plan,
    options: RunOptions | None = None,
    *,
    registry: Registry | None = None,
    control: RunControl | None = None,
) -> AsyncIterator[Record]:
    """Carry out what is not yet done of a plan. Nothing is spent before all of the plan has been checked."""
    options = options or RunOptions()
    control = control or RunControl()
    resolved = (registry or default_registry()).resolve(plan, offline=options.replay == "strict")
    options = replace(options, secrets={**resolved.secrets(), **options.secrets})
    redactor = options.redactor()
    if leaked := redactor.names_in(plan):
        raise PlanError(
            [
                f"plan {plan.name!r} holds the value of {name}, which no file of a run may: "
                "take it out of the plan, or unset the variable where it is no secret"
                for name in leaked
            ]
        )
    sandbox = sandbox_of(options, plan)
    control.sandbox = sandbox().name if resolved.may_run_commands(plan) else None
    folder = RunFolder(options.folder) if options.folder else new_run_folder(options.results, plan.name)
    with JournalWriter(folder.journal_file, redactor) as journal:
        done = what_is_done(folder, plan, options)
        control.finished_before = done.finished.count()
        folder.write_plan(plan, redactor)
        facts = {"sandbox": control.sandbox, "sandbox_wanted": options.sandbox, "jobs": options.jobs}
        journal.append("start", bakeoff=__version__, time=time.time(), **facts)
        desk = Desk(journal, Budget(options, done.spent), control, pending_jobs(plan, done, folder, options))
        work = asyncio.create_task(_work(plan, options, resolved, sandbox, desk))
        control.when_stopped(partial(desk.give_up, work))
        try:
            async for record in desk.records(work):
                yield record
            if not work.cancelled():
                work.result()
        finally:
            desk.give_up(work)
            await asyncio.wait([work])
        journal.append("end", reason=desk.ending(), time=time.time())


async def _work(
    plan: Plan, options: RunOptions, resolved: ResolvedPlan, sandbox: Callable[[], Sandbox], desk: "Desk"
) -> None:
    """Everything between opening the resources and closing them, in one task."""
    traced = (OpenTelemetry(),) if options.trace else ()
    given = {**_recordings(options), BUDGET: desk.budget}
    async with open_resources(chain(traced, resolved.resources()), given) as resources:
        runner = TrialRunner(plan, resolved, options, sandbox, resources, desk.control)
        desk.trials = asyncio.create_task(_trials(plan, LocalExecutor(runner, min(options.jobs, plan.size)), desk))
        with _old_objects_left_alone():
            await desk.trials


@contextmanager
def _old_objects_left_alone() -> Iterator[None]:
    """What was there before the first trial is not searched for garbage while trials run.

    There are hundreds of thousands of them, the libraries', and a search would stop all trials for a tenth of a second.
    """
    ours = gc.get_freeze_count() == 0
    gc.freeze()
    try:
        yield
    finally:
        if ours:
            gc.unfreeze()


def _recordings(options: RunOptions) -> dict[str, Any]:
    if options.replay == "off":
        return {}
    from bakeoff.models.replay import RECORDINGS, Recordings  # behind it are SDKs that take a second to load

    return {RECORDINGS: Recordings(options.replay, options.recordings, options.redactor())}


async def _trials(plan: Plan, executor: Executor, desk: "Desk") -> None:
    await executor.execute(desk.jobs(), desk)
    await desk.mark_the_rest(plan)


def sandbox_of(options: RunOptions, plan: Plan | None = None) -> Callable[[], Sandbox]:
    """Chosen when first needed, and only once; one that is insisted on must be there from the start."""
    named = plan.settings.get(HIDDEN) if plan else None
    more = [Path(path) for path in named if isinstance(path, str)] if isinstance(named, list) else []
    hidden = tuple(path.resolve() for path in (options.results, options.folder, *more) if path)
    choose = cache(lambda: choose_sandbox(options.sandbox, hidden=hidden))
    if options.sandbox != "auto":
        choose()
    return choose

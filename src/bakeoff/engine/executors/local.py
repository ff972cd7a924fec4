"""Run trials in this process."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import chain

from bakeoff._kernel.tracing import OpenTelemetry
from bakeoff.engine.registry import ResolvedPlan
from bakeoff.engine.resources import SharedResources, open_resources
from bakeoff.engine.run_control import Budget, RunControl
from bakeoff.engine.trial import TrialRunner
from bakeoff.options import RunOptions
from bakeoff.protocols import BUDGET, ON_DEMAND, Sandbox
from bakeoff.replay.store import recordings_resource


@asynccontextmanager
async def open_local(
    resolved: ResolvedPlan, options: RunOptions, sandbox: Callable[[], Sandbox], control: RunControl, budget: Budget
) -> AsyncIterator[TrialRunner]:
    """Open the resources of a plan, and close them at the end, in the task that opened them."""
    traced = (OpenTelemetry(control.redact),) if options.trace else ()
    async with AsyncExitStack() as stack:
        on_demand = await stack.enter_async_context(SharedResources.on_demand())
        given = {**recordings_resource(options), BUDGET: budget, ON_DEMAND: on_demand}
        resources = await stack.enter_async_context(open_resources(chain(traced, resolved.resources()), given))
        yield TrialRunner(resolved, options, sandbox, resources, control)

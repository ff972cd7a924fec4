"""Provide the meter as a resource of a run, which opens a gateway for each trial."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from bakeoff.errors import UsageError
from bakeoff.meter.app import MeterApp
from bakeoff.meter.listener import listen, sweep
from bakeoff.meter.shared import MeterLimits, SharedMeter
from bakeoff.meter.trial import TrialMeter
from bakeoff.meter.upstreams import Upstream
from bakeoff.models.rate_limit import DEFAULT_MAX_IN_FLIGHT, RetryPolicy
from bakeoff.protocols import Place, Task
from bakeoff.replay.store import recordings_of

METER = "meter"
"""The key of the meter among the resources of a trial."""


@dataclass(frozen=True, slots=True)
class Meter:
    """The resource."""

    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    most_in_flight: int = DEFAULT_MAX_IN_FLIGHT  # requests to one provider, over all trials
    limits: MeterLimits = field(default_factory=MeterLimits)

    @property
    def key(self) -> str:
        return METER

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenMeter"]:
        await asyncio.to_thread(sweep)
        async with AsyncExitStack() as stack:
            yield OpenMeter(self.limits, self.retry_policy, self.most_in_flight, stack)


class OpenMeter(SharedMeter):
    """Opens a meter for each trial."""

    @asynccontextmanager
    async def open_trial(
        self,
        task: Task,
        upstreams: Iterable[Upstream],
        *,
        place: Place | None = None,
        worked: set[str] | None = None,
    ) -> AsyncIterator[TrialMeter]:
        """Open the meter of one trial. When the block ends, all connections are closed and all usage is recorded.

        `place` is where the agent will run: its user may use the socket. `worked` has the models that have answered the
        same subject before, and gets those that do now.
        """
        named = {upstream.name: upstream for upstream in upstreams}
        if not named:
            raise UsageError("a meter needs at least one provider")
        for upstream in named.values():
            await self.prepare(upstream)
        trial = TrialMeter(self, task, named, recordings_of(task.resources), set() if worked is None else worked)
        uid = place.uid if place else None
        async with listen(MeterApp(trial), uid, self.limits.of_server) as (trial.port, trial.folder):
            try:
                yield trial
            finally:
                await trial.end_exchanges()
